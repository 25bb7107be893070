"""What one provider means by one API, row by row: the facts that specialise a dialect.

A dialect is the shape an API family speaks. Which convention a provider declares for it, what an absent field means
there, in which steps its counts come: that is a fact of (provider, API), sometimes of the model or the day as well.
The rows lie in `facts/*.toml`, one line each, with the page they were read from.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

_TABLES = Path(__file__).parent / "facts"


class Axis(StrEnum):
    """One question a reading answers with yes or no."""

    INPUT_INCLUDES_CACHE = "input_includes_cache"
    OUTPUT_INCLUDES_REASONING = "output_includes_reasoning"
    INPUT_INCLUDES_TOOL_PROMPT = "input_includes_tool_prompt"
    TOTAL_COUNTS_CACHE_TWICE = "total_counts_cache_twice"
    TOTAL_LEAVES_OUT_REASONING = "total_leaves_out_reasoning"


class Repair(StrEnum):
    """A known fault of a provider's numbers, and what they stand for; a repaired reading is ASSUMED and flagged."""

    # The cache reads were taken from an input that does not hold them: input + read is what was not cached.
    NEGATIVE_INPUT = "negative_input"


class Basis(StrEnum):
    """What a fact rests on."""

    PAGE = "page"  # the provider's page says it
    RECORDED = "recorded"  # recorded answers show it; the page is that of the API
    REPORTED = "reported"  # somebody else says it: a public report, or the page of another service; the page is that
    ALIKE = "alike"  # the same models answer so at another service; of this one nothing was recorded that shows it
    CAUTIOUS = "cautious"  # neither says it: what is not shown is taken for unknown; the page is that of the API


@dataclass(frozen=True, slots=True)
class Fact:
    """One row of the table.

    Attributes:
        provider: who answers.
        api: the name of the dialect he speaks.
        source: the page it was read from.
        model: a pattern of model names in lower case (`*` stands for anything, `|` between alternatives); null: all.
        since, until: the first and the last day it holds; null: no bound.
        declared: per axis the convention the provider declares.
        absent: the dialect's rule for absent fields.
        cached_grain, reasoning_grain: the step in which these counts come.
        repair: a fault to be mended.
        basis: what it rests on.
    """

    provider: str
    api: str
    source: str
    model: str | None = None
    since: date | None = None
    until: date | None = None
    declared: tuple[tuple[Axis, bool], ...] = ()
    absent: str | None = None
    cached_grain: int | None = None
    reasoning_grain: int | None = None
    repair: Repair | None = None
    basis: Basis = Basis.PAGE

    @property
    def general(self) -> bool:
        """Whether it holds for every model on every day."""
        return self.model is None and self.since is None and self.until is None

    def holds(self, model: str | None, day: date | None) -> bool:
        """Whether it holds for this model on this day. A model that is not known fits no pattern.

        A day that is not known is taken for the newest one: then facts without an end hold.
        """
        if self.model is not None and (model is None or not _fits(model.lower(), self.model)):
            return False
        if day is None:
            return self.until is None
        return (self.since is None or day >= self.since) and (self.until is None or day <= self.until)

    def to_dict(self) -> dict[str, Any]:
        """The row as plain JSON values; what it does not say is left out."""
        told = {item.name: getattr(self, item.name) for item in fields(self)}
        told["declared"] = {str(axis): value for axis, value in self.declared}
        plain = {name: str(value) if isinstance(value, date | StrEnum) else value for name, value in told.items()}
        return {name: value for name, value in plain.items() if value not in (None, {})}

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Fact:
        """The fact of a row, as `to_dict` writes it or TOML reads it.

        Raises:
            KeyError, TypeError, ValueError: it is no such row.
        """
        told = dict(row)
        for name in ("since", "until"):
            if isinstance(told.get(name), str):
                told[name] = date.fromisoformat(told[name])
        told["declared"] = tuple((Axis(axis), bool(value)) for axis, value in told.get("declared", {}).items())
        if "repair" in told:
            told["repair"] = Repair(told["repair"])
        if "basis" in told:
            told["basis"] = Basis(told["basis"])
        return cls(**told)


def _fits(model: str, pattern: str) -> bool:
    return any(fnmatchcase(model, one) for one in pattern.split("|"))


@cache
def all_facts() -> tuple[Fact, ...]:
    """Every row, the general ones first: where several hold, the later one decides."""
    rows = [
        Fact.of(row)
        for table in sorted(_TABLES.glob("*.toml"))
        for row in tomllib.loads(table.read_text(encoding="utf-8"))["facts"]
    ]
    return tuple(sorted(rows, key=lambda fact: (fact.model is not None, fact.since or date.min)))
