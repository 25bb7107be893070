"""What a metric of a serving engine counts, and in what: the facts of `engine_counters.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from weighbridge.schemas.enumerations import CounterUnit, EngineCounter

_FILE = Path(__file__).parent / "engine_counters.toml"
_IN_TERMS_OF = re.compile(r"in terms of number of (?:queried|cached) ?(blocks|tokens)\b")


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes:
        engine: whose it is.
        metric: the name its samples have.
        counter: what it counts; labelled: what it counts where it has its label.
        unit: what it counts in; null where only its HELP text says so.
        label: the label that tells its parts apart.
        renamed: the metric that took its place and counts the same.
        since, until: the first version that has it, and the first that has it no more.
        source: the page it was read from.
    """

    engine: str
    metric: str
    counter: EngineCounter
    source: str
    labelled: EngineCounter | None = None
    unit: CounterUnit | None = None
    label: str | None = None
    renamed: str | None = None
    since: str | None = None
    until: str | None = None

    def counts(self, label: str | None) -> EngineCounter:
        """What a sample with this label, or without one, counts."""
        return self.counter if label is None or self.labelled is None else self.labelled

    def counted_in(self, described: str) -> CounterUnit | None:
        """What it counts in, given its HELP text; null where neither says so."""
        if self.unit is not None:
            return self.unit
        told = _IN_TERMS_OF.search(described)
        return CounterUnit(told.group(1)) if told else None


@cache
def all_metrics() -> Mapping[str, Metric]:
    """Every metric that is known, by the name of its samples."""
    tables = tomllib.loads(_FILE.read_text(encoding="utf-8"))["metrics"]
    return {
        row["metric"]: Metric(
            engine=table["engine"],
            source=table["source"],
            metric=row["metric"],
            counter=EngineCounter(row["counter"]),
            labelled=EngineCounter(row["labelled"]) if "labelled" in row else None,
            unit=CounterUnit(row["unit"]) if "unit" in row else None,
            **{name: row.get(name) for name in ("label", "renamed", "since", "until")},
        )
        for table in tables
        for row in table["rows"]
    }
