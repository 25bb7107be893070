"""What MergingPress of kvpress folds into which survivor: read off the two numbers it adds up, not worked out again.

For each row it evicts the press looks for the most alike survivor, and adds up weights per survivor: index and weight
of that sum are the map, and a weight of 0 is an eviction. CAMPress divides a row among several survivors, which one
destination for each source cannot say; it is not watched here.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, Final

_SUM_AXES: Final = 3
_POSITION: Final = 2


@dataclasses.dataclass(slots=True)
class Merge:
    """One time values were folded into those of survivors.

    Attributes:
        went: of each row that was evicted, whether its value went into another (batch x heads x rows).
        sources, targets: positions of these rows, and of those they went into; None where positions are not wanted,
            or not known.
        step, seen: forward passes before it, and positions that had been written.
    """

    went: Any
    sources: Any = None
    targets: Any = None
    step: int = 0
    seen: int = 0

    @property
    def held_bytes(self) -> int:
        """What it keeps in memory."""
        return sum(
            each.numel() * each.element_size() for each in (self.went, self.sources, self.targets) if each is not None
        )

    def count(self, row: int) -> int:
        """Entries that went into others, of one row of the batch."""
        return int(self.went[row].sum())

    def maps(self, row: int) -> list[dict[int, int]]:
        """Per head where each position went, of one row of the batch."""
        parts = (part[row].tolist() for part in (self.went, self.sources, self.targets))
        return [
            {source: target for went, source, target in zip(*head, strict=True) if went}
            for head in zip(*parts, strict=True)
        ]


def merging(press: Any) -> Iterator[Any]:
    """The presses of kvpress in a press, itself among them, that fold values into one survivor each."""
    if type(press).__name__ == "MergingPress":
        yield press
    if dataclasses.is_dataclass(press):
        for each in dataclasses.fields(press):
            inner = getattr(press, each.name, None)
            for one in inner if isinstance(inner, list | tuple) else (inner,):
                if dataclasses.is_dataclass(one):
                    yield from merging(one)


def spreads(press: Any) -> bool:
    """Whether it divides values among several survivors, which is not told."""
    return any(kind.__name__ == "CAMPress" for kind in type(press).__mro__)


def merged(noted: tuple[Any, Any], indices: Any, held: Any, rows: int) -> Merge:
    """The merge of a sum that was noted.

    Args:
        noted: of each evicted row the place among the survivors it was added to, and its weight.
        indices: rows that survive (batch x heads x survivors), in the order of their places.
        held: positions of the rows there were, None where they are not wanted or known.
        rows: how many there were.
    """
    place, weight = noted
    went = weight > 0
    if held is None:
        return Merge(went)
    import torch  # noqa: PLC0415 - the host has it loaded

    gone = torch.ones(*indices.shape[:_POSITION], rows, dtype=torch.bool, device=indices.device)
    gone.scatter_(_POSITION, indices, False)
    # Ascending in each head, which is the order the press takes them in.
    evicted = gone.nonzero()[:, _POSITION].view(went.shape)
    return Merge(went, held.gather(_POSITION, evicted), held.gather(_POSITION, indices.gather(_POSITION, place)))


@functools.cache
def noting() -> Any:
    """The class `Noting()`: a context that notes the sum of weights per survivor in `noted`, None until it is seen."""
    from torch.overrides import TorchFunctionMode  # noqa: PLC0415 - the host has it loaded

    class Noting(TorchFunctionMode):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.noted: tuple[Any, Any] | None = None

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **kwargs) if kwargs else func(*args)
            if getattr(func, "__name__", "") == "scatter_add_":
                with contextlib.suppress(Exception):
                    into, dim, index, weight = args
                    if into.ndim == _SUM_AXES and dim == _POSITION and index.shape == weight.shape:
                        self.noted = index.clone(), weight.clone()
            return out

    return Noting
