"""Whether the figures of a close agree with each other: every margin adds up to the whole, erased rows or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from weighbridge.pipeline.close.exact import EXACT
from weighbridge.pipeline.close.figures import Entry, Figures, Value, names
from weighbridge.pipeline.close.verification import Difference, Kind

# Section -> the labels that its margins (by provider, model, tenant, task, cell, day, status) have beside their own.
WHOLES: dict[str, tuple[str, ...]] = {"attempts": (), "money": ("currency", "status"), "usage": ()}


def apart(figures: Figures) -> Iterator[Difference]:
    """The margins that do not add up."""
    for whole, kept in WHOLES.items():
        expected = _sums(figures.get(whole, ()), kept)
        for section in sorted(figures):
            if section.startswith(f"{whole}_by_"):
                found = _sums(figures[section], kept)
                for place in sorted(expected.keys() | found.keys(), key=str):
                    yield from _differing(section, place, expected.get(place, {}), found.get(place, {}))


Place = tuple[tuple[str, str | None], ...]


def _sums(entries: Sequence[Entry], kept: Sequence[str]) -> dict[Place, dict[str, Value]]:
    """The known values of entries, added up under the labels that are kept."""
    out: dict[Place, dict[str, Value]] = {}
    for entry in entries:
        sums = out.setdefault(tuple((name, entry.about(name)) for name in kept), {})
        for name, value in entry.values.items():
            sums[name] = _plus(sums.get(name), value)
    return out


def _plus(left: Value, right: Value) -> Value:
    if left is None or right is None:
        return right if left is None else left
    if isinstance(left, Decimal) or isinstance(right, Decimal):
        return EXACT.add(Decimal(left), Decimal(right))
    return left + right


def _differing(section: str, place: Place, expected: dict[str, Value], found: dict[str, Value]) -> Iterator[Difference]:
    for name in sorted(expected.keys() | found.keys()):
        if (expected.get(name) or 0) != (found.get(name) or 0):
            where = names(section, Entry(place, {}))
            yield Difference(Kind.FIGURE, f"{where}.{name}", "its parts do not add up to the whole")
