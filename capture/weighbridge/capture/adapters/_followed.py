"""Which positions the rows of a cache are, followed through what a press does with its tensors.

A press gathers the rows it keeps, and forgets which they were. While its hook runs, every operation that takes rows
out of a followed tensor (gather, slices, selections, concatenations) takes the same out of the positions, so the
result is known whatever the press is and in whatever order it stores the rows. No value of a tensor is looked at.
What computes new values (a rotation, a merge) is not followed; keys and values are, and one of the two is enough.

A gather is only noted; it is done to the positions when they are asked for, which of keys and values is once.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Final, NamedTuple

# Axes of a cache: batch, head, position and channel.
_AXES: Final = 4
_POSITION: Final = 2


class _Gather(NamedTuple):
    """A gather that is still to be done to the positions.

    Attributes:
        source: the tensor that was gathered from.
        index: batch x heads x rows.
        version: how often the index had been written to; None where that is not counted, and the index is a copy.
    """

    source: Any
    index: Any
    version: int | None


class Followed:
    """Tensors (batch x heads x positions x channels) and the positions of their rows (batch x heads x positions)."""

    def __init__(self) -> None:
        # The tensor is held, so that its id is that of no other.
        self._known: dict[int, tuple[Any, Any]] = {}

    def add(self, tensor: Any, positions: Any) -> None:
        """Follow a tensor; the positions may be a call that makes them when they are first asked for."""
        self._known[id(tensor)] = (tensor, positions)

    def positions(self, tensor: Any) -> Any:
        """The positions of its rows, None where it is not followed."""
        known = self._known.get(id(tensor))
        if known is None:
            return None
        positions = known[1]
        if isinstance(positions, _Gather):
            positions = self._gathered(positions)
        elif callable(positions):
            positions = positions()
        if positions is not None and positions.shape != tensor.shape[: _POSITION + 1]:
            positions = None
        if positions is not known[1]:
            self._known[id(tensor)] = (tensor, positions)
        return positions

    def _gathered(self, noted: _Gather) -> Any:
        held = self.positions(noted.source)
        # What was written into since then may be another choice than the press made.
        if held is None or (noted.version is not None and _writes(noted.index) != noted.version):
            return None
        return held.gather(_POSITION, noted.index.to(held.device))

    def took(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
        """An operation is done: follow its result, if it is rows of what is followed."""
        if not args or out is args[0] or getattr(out, "ndim", 0) != _AXES:
            return
        positions = TAKES[name](self, args, kwargs)
        if positions is not None:
            self.add(out, positions)

    def same(self, args: tuple[Any, ...], _: dict[str, Any]) -> Any:
        """The positions of a copy, or what is known of them so far."""
        known = self._known.get(id(args[0]))
        return None if known is None else known[1]

    def gather(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Gather | None:
        """A gather, noted: it is done when its positions are asked for."""
        if id(args[0]) not in self._known or not _along(_argument(args, kwargs, 1, "dim")):
            return None
        each = _argument(args, kwargs, 2, "index")
        index = each[..., 0]
        # Nearly always it is spread over the channels; where it is not, each channel could be of another row.
        if each.stride(-1) and not bool((each == index[..., None]).all()):
            return None
        counted = not index.is_inference()
        return _Gather(args[0], index if counted else index.clone(), _writes(index) if counted else None)


def _writes(tensor: Any) -> int:
    """How often a tensor was written to in place."""
    return int(tensor._version)  # noqa: SLF001 - torch has no other name for it


def _argument(args: tuple[Any, ...], kwargs: dict[str, Any], at: int, name: str) -> Any:
    return args[at] if len(args) > at else kwargs.get(name)


def _along(dim: Any) -> bool:
    return dim in (_POSITION, _POSITION - _AXES)


def _select(followed: Followed, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    held = followed.positions(args[0])
    if held is None or not _along(_argument(args, kwargs, 1, "dim")):
        return None
    return held.index_select(_POSITION, _argument(args, kwargs, 2, "index"))


def _narrow(followed: Followed, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    held = followed.positions(args[0])
    if held is None or not _along(_argument(args, kwargs, 1, "dim")):
        return None
    return held.narrow(_POSITION, _argument(args, kwargs, 2, "start"), _argument(args, kwargs, 3, "length"))


def _item(followed: Followed, args: tuple[Any, ...], _: dict[str, Any]) -> Any:
    held = followed.positions(args[0])
    if held is None:
        return None
    index = args[1] if isinstance(args[1], tuple) else (args[1],)
    if any(part is None or isinstance(part, bool) for part in index):
        return None
    if any(part is Ellipsis for part in index):
        at = next(place for place, part in enumerate(index) if part is Ellipsis)
        index = (*index[:at], *[slice(None)] * (_AXES - len(index) + 1), *index[at + 1 :])
    # Channels may be cut as well; which position a row is does not change by that.
    if len(index) == _AXES and not isinstance(index[-1], slice):
        return None
    return held[index[: _POSITION + 1]]


def _cat(followed: Followed, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    parts = [followed.positions(part) for part in args[0]]
    if any(part is None for part in parts) or not _along(_argument(args, kwargs, 1, "dim")):
        return None
    import torch  # noqa: PLC0415 - the host has it loaded

    return torch.cat(parts, _POSITION)


TAKES: Final = {
    "gather": Followed.gather,
    "take_along_dim": lambda followed, args, kwargs: followed.gather(
        (args[0], _argument(args, kwargs, 2, "dim"), _argument(args, kwargs, 1, "indices")), {}
    ),
    "index_select": _select,
    "narrow": _narrow,
    "__getitem__": _item,
    "cat": _cat,
    "concat": _cat,
    "contiguous": Followed.same,
    "clone": Followed.same,
    "detach": Followed.same,
    "to": Followed.same,
}


@functools.cache
def following() -> Any:
    """The class `Following(followed)`: a context in which torch tells `followed` of each operation."""
    from torch.overrides import TorchFunctionMode  # noqa: PLC0415 - the host has it loaded

    class Following(TorchFunctionMode):  # type: ignore[misc]
        def __init__(self, followed: Followed) -> None:
            super().__init__()
            self._followed = followed

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **kwargs) if kwargs else func(*args)
            # Most calls take no rows: they cost a look into a dictionary.
            name = getattr(func, "__name__", "")
            if name in TAKES:
                # What is not followed is told as not known, and the press goes on.
                with contextlib.suppress(Exception):
                    self._followed.took(name, args, kwargs or {}, out)
            return out

    return Following
