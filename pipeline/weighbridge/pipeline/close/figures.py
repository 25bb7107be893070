"""The figures of a month as data: sections of entries, each with what it is about and exact values.

    {"usage_by_model": [{"by": {"model": ..., "provider": ...}, "values": {"tokens": 12, ...}}, ...], ...}

Counts are integers of any size, amounts are decimals and stand as text in JSON, null is unknown. The order of entries
follows from what they are about, so equal figures have equal bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import polars as pl

from weighbridge.pipeline.close.plain import text_of

FORMAT = "weighbridge figures"
VERSION = 1
Value = int | Decimal | None
Label = str | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One group of figures.

    Attributes:
        by: what they are about, name and value, in the order of the names.
        values: name -> exact value; null is unknown.
    """

    by: tuple[tuple[str, Label], ...]
    values: Mapping[str, Value]

    def about(self, name: str) -> Label:
        """One thing it is about, null where it is about no such thing."""
        return dict(self.by).get(name)


Figures = Mapping[str, Sequence[Entry]]


def entries(frame: pl.DataFrame, by: Sequence[str]) -> list[Entry]:
    """The rows of a frame as entries: the columns `by` say what each is about, the others are its values."""
    found = []
    for row in frame.iter_rows(named=True):
        about = tuple(sorted((name, None if row[name] is None else str(row[name])) for name in by))
        found.append(Entry(about, {name: row[name] for name in sorted(row) if name not in by}))
    return sorted(found, key=_place)


def _place(entry: Entry) -> list[tuple[str, bool, str]]:
    return [(name, value is not None, value or "") for name, value in entry.by]


def names(section: str, entry: Entry) -> str:
    """The name of a group of figures, for messages: `usage_by_model[model=gpt-4o; provider=openai]`."""
    about = "; ".join(f"{name}={'-' if value is None else value}" for name, value in entry.by)
    return f"{section}[{about}]" if about else section


def flat(figures: Figures) -> dict[str, Value]:
    """Every figure by its full name."""
    return {
        f"{names(section, entry)}.{name}": value
        for section, found in figures.items()
        for entry in found
        for name, value in entry.values.items()
    }


def relabelled(figures: Figures, name: str, label: Callable[[Label], Label]) -> Figures:
    """The same figures with other labels under one name."""
    return {
        section: sorted(
            (
                Entry(tuple((key, label(value) if key == name else value) for key, value in entry.by), entry.values)
                for entry in found
            ),
            key=_place,
        )
        for section, found in figures.items()
    }


def labels(figures: Figures, name: str) -> set[str]:
    """Every label that stands under one name."""
    return {value for found in figures.values() for entry in found for key, value in entry.by if key == name and value}


def plain(figures: Figures, period: str) -> dict[str, object]:
    """The figures as values of JSON."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "period": period,
        "sections": {
            section: [
                {"by": dict(entry.by), "values": {name: _plain(value) for name, value in entry.values.items()}}
                for entry in found
            ]
            for section, found in figures.items()
        },
    }


def _plain(value: Value) -> int | str | None:
    return text_of(value) if isinstance(value, Decimal) else value


def figures_of(content: Mapping[str, object]) -> Figures:
    """The figures that `plain` wrote; a text is an amount.

    Raises:
        KeyError, TypeError, ValueError: they are no figures.
    """
    if content["format"] != FORMAT or content["version"] != VERSION:
        raise ValueError("figures of another format")
    sections = content["sections"]
    if not isinstance(sections, Mapping):
        raise TypeError("sections are no mapping")
    return {section: [_entry(item) for item in found] for section, found in sections.items()}


def _entry(item: Mapping[str, Mapping[str, int | str | None]]) -> Entry:
    by = tuple(sorted((name, None if value is None else str(value)) for name, value in item["by"].items()))
    return Entry(by, {name: Decimal(v) if isinstance(v, str) else v for name, v in item["values"].items()})
