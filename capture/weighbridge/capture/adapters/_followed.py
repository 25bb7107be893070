"""Which positions the rows of a cache are, followed through what a press does with its tensors.

A press gathers the rows it keeps, and forgets which they were. While its hook runs, every operation that takes rows
out of a followed tensor (gather, slices, selections, concatenations) takes the same out of the positions, so the
result is known whatever the press is and in whatever order it stores the rows. No value of a tensor is looked at.
What computes new values (a rotation, a merge) is not followed; keys and values are, and one of the two is enough.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Final

# Axes of a cache: batch, head, position and channel.
_AXES: Final = 4
_POSITION: Final = 2


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
        if callable(positions):
            positions = positions()
            self._known[id(tensor)] = (tensor, positions)
        return positions

    def took(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
        """An operation is done: follow its result, if it is rows of what is followed."""
        if not args or getattr(out, "ndim", 0) != _AXES:
            return
        take = _TAKES.get(name)
        if take is None:
            return
        positions = take(self, args, kwargs)
        if positions is not None and tuple(positions.shape) == tuple(out.shape[: _POSITION + 1]):
            self.add(out, positions)


def _same(followed: Followed, args: tuple[Any, ...], _: dict[str, Any]) -> Any:
    return followed.positions(args[0])


def _argument(args: tuple[Any, ...], kwargs: dict[str, Any], at: int, name: str) -> Any:
    return args[at] if len(args) > at else kwargs.get(name)


def _along(dim: Any) -> bool:
    return dim in (_POSITION, _POSITION - _AXES)


def _gather(followed: Followed, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    held = followed.positions(args[0])
    if held is None or not _along(_argument(args, kwargs, 1, "dim")):
        return None
    index = _argument(args, kwargs, 2, "index")
    return held.gather(_POSITION, index[..., 0].to(held.device))


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


_TAKES: Final = {
    "gather": _gather,
    "take_along_dim": lambda followed, args, kwargs: _gather(
        followed, (args[0], _argument(args, kwargs, 2, "dim"), _argument(args, kwargs, 1, "indices")), {}
    ),
    "index_select": _select,
    "narrow": _narrow,
    "__getitem__": _item,
    "cat": _cat,
    "concat": _cat,
    "contiguous": _same,
    "clone": _same,
    "detach": _same,
    "to": _same,
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
            out = func(*args, **(kwargs or {}))
            # What is not followed is told as not known, and the press goes on.
            with contextlib.suppress(Exception):
                self._followed.took(getattr(func, "__name__", ""), args, kwargs or {}, out)
            return out

    return Following
