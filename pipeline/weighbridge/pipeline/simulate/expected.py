"""What reconciliation has to find, counted while the faults are made and independently of how they are found."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from weighbridge.pipeline.ingest.door import EXPECTED
from weighbridge.pipeline.simulate import faults, world
from weighbridge.pipeline.simulate.lengths import Lengths
from weighbridge.pipeline.simulate.traffic import DAY_US, SUCCEEDED, Traffic
from weighbridge.pipeline.simulate.usage import figures
from weighbridge.pipeline.simulate.world import Ints, Mask

FILE = EXPECTED


@dataclass(frozen=True, slots=True, order=True)
class ExpectedFinding:
    """A finding about one month, provider and model.

    Attributes:
        code: of the finding, which for a fault is that of its cause.
        provider, model: who answered, and the name the answer carried; empty where the finding is not about one.
        period: the UTC month, `YYYY-MM`.
        rows: attempts (or reports, or gap records) it stands for.
        difference: reported minus observed tokens, both directions together; for gap records the attempts lost.
    """

    code: str
    provider: str
    model: str
    period: str
    rows: int
    difference: int


@dataclass(frozen=True, slots=True)
class Told:
    """What the expectations are counted from: the truth, faults, when reports were booked, when outages began."""

    traffic: Traffic
    tokens: Lengths
    fault: Ints
    booked_at: Ints
    outages: Ints


def expected_of(told: Told) -> list[ExpectedFinding]:
    """The findings these attempts have to lead to: every fault, and what is to be said about the rest."""
    found = [item for index in range(len(faults.FAULTS)) for item in _of_fault(told, index)]
    return [*found, *_hidden_reasoning(told), *_assumed(told), *_records(told), *_gap_records(told)]


def _of_fault(told: Told, index: int) -> list[ExpectedFinding]:
    rows = told.fault == index
    kind = faults.FAULTS[index]
    return _counted(kind.code, told.traffic.day, rows, kind.difference(told.tokens), told.traffic.model)


def _hidden_reasoning(told: Told) -> list[ExpectedFinding]:
    """A client cannot count the reasoning it is not shown, and says so: no fault, and yet nobody's proof."""
    reported = (told.traffic.status == SUCCEEDED) & (told.fault != faults.MISSING) & (told.fault != faults.LOST)
    rows = reported & ~told.tokens.engine & (told.tokens.reasoning > 0)
    return _counted("reasoning_not_delivered", told.traffic.day, rows, told.tokens.reasoning, told.traffic.model)


def _assumed(told: Told) -> list[ExpectedFinding]:
    """Anthropic states no total. Where the cached tokens would fit into the input, they may be inside it or beside."""
    figure = figures(told.traffic, told.tokens, told.fault)
    beside = figure["cached"] + figure["written"]
    anthropic = np.array([model.provider == "anthropic" for model in world.MODELS])[told.traffic.model]
    reported = (told.traffic.status == SUCCEEDED) & (told.fault != faults.MISSING)
    rows = np.flatnonzero(reported & anthropic & (beside > 0) & (beside <= figure["input"]))
    # Reports are counted, on the day the log booked them; repeated ones are two.
    rows = np.repeat(rows, np.where(told.fault[rows] == faults.DUPLICATE, 2, 1))
    return _counted("assumed_usage", told.booked_at // DAY_US, rows, np.zeros_like(beside), told.traffic.model)


def _records(told: Told) -> list[ExpectedFinding]:
    """Attempts without a time or a tenant."""
    seen, nothing = told.fault != faults.LOST, np.zeros_like(told.fault)
    return [
        *_counted("undated_records", told.traffic.day, seen & told.traffic.undated, nothing),
        *_counted("unassigned_tenant", told.traffic.day, seen & (told.traffic.tenant < 0), nothing),
    ]


def _gap_records(told: Told) -> list[ExpectedFinding]:
    lost = faults.outage_of(told.traffic.at[told.fault == faults.LOST], told.outages)
    which, attempts = np.unique(lost, return_counts=True)
    day = told.outages[which] // DAY_US
    return _counted("gap_records", day, np.ones(len(which), bool), attempts)


def _counted(
    code: str, day: Ints, rows: Mask | Ints, difference: Ints, model: Ints | None = None
) -> list[ExpectedFinding]:
    """One finding per month (and model) of these rows, given as a mask or as indices."""
    index = np.flatnonzero(rows) if rows.dtype == bool else rows
    month = day[index].astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    of = np.full(len(index), -1) if model is None else model[index]
    cells, at = np.unique(np.stack([month, of]), axis=1, return_inverse=True)
    out = []
    for cell, (when, place) in enumerate(cells.T):
        inside = at.ravel() == cell
        provider, served = ("", "") if place < 0 else (world.MODELS[place].provider, world.MODELS[place].served)
        period, total = str(np.datetime64(int(when), "M")), int(difference[index][inside].sum())
        out.append(ExpectedFinding(code, provider, served, period, int(inside.sum()), total))
    return out


def together(found: Iterable[ExpectedFinding]) -> list[ExpectedFinding]:
    """One finding per code, provider, model and month, in order."""
    sums: dict[tuple[str, str, str, str], tuple[int, int]] = {}
    for item in found:
        cell = (item.code, item.provider, item.model, item.period)
        rows, difference = sums.get(cell, (0, 0))
        sums[cell] = (rows + item.rows, difference + item.difference)
    return [ExpectedFinding(*cell, rows, difference) for cell, (rows, difference) in sorted(sums.items())]


def write_expected(path: Path, found: Iterable[ExpectedFinding], labels: Mapping[str, str]) -> Path:
    """Write the expected findings as JSON, labelled as simulated."""
    content = {"labels": dict(labels), "expected": [asdict(item) for item in found]}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path
