"""A comparison composed: where answers come from, whose keys open them, and what is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from weighbridge.pipeline.compare.answer import Side
from weighbridge.pipeline.compare.recording import BASELINES, read_recording
from weighbridge.schemas.errors import ConfigError

AT = "#"


def sides_of(source: str) -> tuple[list[Side], str | None]:
    """The strategies of a source, and the one it names.

    Args:
        source: a file of recorded answers; after `#` the name of one of its strategies.

    Raises:
        ConfigError: there is no such file, or no such strategy in it.
        ContractError: it cannot be read as answers.
    """
    place, _, name = source.partition(AT)
    path = Path(place)
    if not path.exists():
        raise ConfigError(f"there is no {place}; name a run folder, or a file with one answer a line")
    sides = read_recording(path)
    if name and name not in [side.name for side in sides]:
        raise ConfigError(f"{place} has no strategy {name!r}; it has {', '.join(side.name for side in sides)}")
    return sides, name or None


def chosen(first: str, second: str | None) -> tuple[Side, list[Side]]:
    """The baseline and the strategies that two sources name, or one that holds all of them.

    Raises:
        ConfigError: nothing is left to hold against the baseline, or which one it is cannot be told.
        ContractError: see `sides_of`.
    """
    sides, name = sides_of(first)
    off = _baseline(sides, name, first)
    if second is None:
        on = [side for side in sides if side.name != off.name]
    else:
        others, wanted = sides_of(second)
        named = [side for side in others if wanted is None or side.name == wanted]
        on = [side for side in named if side.name not in BASELINES] or named
        on = [_renamed(side, off.name, Path(second.partition(AT)[0])) for side in on]
    if not on:
        raise ConfigError(f"{first} holds {off.name} alone; name a second source, or a file with several strategies")
    return off, on


def _baseline(sides: Sequence[Side], name: str | None, source: str) -> Side:
    wanted = [side for side in sides if (side.name in BASELINES if name is None else side.name == name)]
    if len(wanted) == 1:
        return wanted[0]
    if len(sides) == 1:
        return sides[0]
    raise ConfigError(
        f"{source} holds {', '.join(side.name for side in sides)}; say which one is the baseline: {source}{AT}NAME"
    )


def _renamed(side: Side, taken: str, path: Path) -> Side:
    """Two files may name their answers alike; the second is then called by its file."""
    return side if side.name != taken else replace(side, name=f"{path.stem}.{side.name}")
