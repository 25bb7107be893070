"""Simulate: draw the traffic of a period, put the faults in, write what the agent and the provider would have written.

Everything is labelled `simulated`, in the manifest of each segment and in the file of expected findings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from weighbridge.pipeline.simulate.columns import (
    AGENT,
    PROVIDER,
    attempt_table,
    dense_strategy,
    gap_table,
    report_table,
)
from weighbridge.pipeline.simulate.engine import times
from weighbridge.pipeline.simulate.expected import (
    FILE,
    ExpectedFinding,
    Told,
    expected_of,
    together,
    write_expected,
)
from weighbridge.pipeline.simulate.faults import NONE, assign, outages
from weighbridge.pipeline.simulate.lengths import lengths
from weighbridge.pipeline.simulate.traffic import DAY_US, EPOCH, day_weights, traffic
from weighbridge.pipeline.simulate.usage import parts
from weighbridge.pipeline.simulate.world import Ints
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import key_id
from weighbridge.schemas.segment import SUFFIX, write_segment

WRITERS: tuple[str, ...] = (AGENT, PROVIDER)
START = date(2026, 1, 1)
_ROWS_A_PART = 80_000
_FEWEST_PARTS, _MOST_PARTS = 4, 12


@dataclass(frozen=True, slots=True)
class Simulation:
    """What was written.

    Attributes:
        segments: the sealed segments, in the order they were written.
        expected: the findings reconciliation has to come to, no more and no fewer.
        labels: the labels of every segment.
    """

    segments: list[Path]
    expected: list[ExpectedFinding]
    labels: dict[str, str]


def simulate(
    out: Path,
    *,
    attempts: int = 20_000,
    seed: int = 7,
    start: date = START,
    days: int = 90,
    key: bytes,
    faults: bool = True,
) -> Simulation:
    """Write a period of simulated traffic as sealed segments, and `expected.json` beside them.

    Args:
        out: the folder; it must hold no segments yet.
        attempts: how many attempts, failures and retries included.
        seed: the same arguments give the same bytes.
        start, days: the UTC days.
        key: the pseudonym key of the installation that will ingest them.
        faults: whether anything is wrong with the reports.

    Raises:
        ConfigError: fewer than one attempt or day, or segments are in `out` already.
    """
    if attempts < 1 or days < 1 or seed < 0:
        raise ConfigError(f"attempts={attempts}, days={days}, seed={seed}: at least 1, 1 and 0 are needed; raise them")
    if any(out.glob(f"*{SUFFIX}")):
        raise ConfigError(f"{out} holds segments already, which are never overwritten; name an empty folder")
    labels = {"simulated": "true", "seed": str(seed)}
    began = outages(np.random.default_rng([seed, 0]), start, days) if faults else np.empty(0, np.int64)
    closes = ((start - EPOCH).days + days) * DAY_US - 1
    segments: list[Path] = []
    expected: list[ExpectedFinding] = []
    for number, (first, length, rows) in enumerate(_parts_of(attempts, seed, start, days)):
        rng = np.random.default_rng([seed, 1, number])
        tables, found = _part(rng, rows, first, length, key, began, closes, faults=faults)
        if number == 0:
            tables[AGENT]["strategy"] = pa.Table.from_pylist([dense_strategy()])
        expected += found
        segments += [_seal(out, number, writer, tables[writer], labels, key) for writer in WRITERS]
    merged = together(expected)
    write_expected(out / FILE, merged, labels)
    return Simulation(segments, merged, labels)


def _seal(
    out: Path, number: int, writer: str, tables: Mapping[str, pa.Table], labels: Mapping[str, str], key: bytes
) -> Path:
    name = f"{writer}-{number:03d}"
    return write_segment(out, name, tables, writer=writer, sequence=(number, number), labels=labels, key_id=key_id(key))


def _parts_of(attempts: int, seed: int, start: date, days: int) -> Iterator[tuple[date, int, int]]:
    """The parts the period is written in: first day, days, attempts."""
    number = min(max(round(attempts / _ROWS_A_PART), _FEWEST_PARTS), _MOST_PARTS, days)
    weights = day_weights(start, days)
    ranges = np.array_split(np.arange(days), number)
    shares = np.array([weights[part].sum() for part in ranges])
    counts = np.random.default_rng([seed, 2]).multinomial(attempts, shares / shares.sum())
    for part, rows in zip(ranges, counts, strict=True):
        yield start + timedelta(days=int(part[0])), len(part), int(rows)


def _part(
    rng: np.random.Generator,
    rows: int,
    start: date,
    days: int,
    key: bytes,
    began: Ints,
    closes: int,
    *,
    faults: bool,
) -> tuple[dict[str, dict[str, pa.Table]], list[ExpectedFinding]]:
    """The tables of one part by writer, and the findings its faults have to lead to."""
    drawn = traffic(rng, rows, start, days)
    tokens = lengths(rng, drawn)
    fault = assign(rng, drawn, tokens, began) if faults else np.full(drawn.rows, NONE, np.int64)
    clock = times(rng, drawn, tokens)
    # A report is booked when its attempt ends, perhaps on the next day; the log of the period closes with the period.
    booked_at = np.minimum(drawn.at + clock["total_us"], closes)
    attempts = attempt_table(rng, drawn, tokens, fault, clock, key)
    reports = report_table(drawn, tokens, fault, parts(rng, drawn, tokens, fault), booked_at)
    gaps = gap_table(drawn, fault, began)
    agent = {"attempt": attempts} | ({"gap": gaps} if gaps.num_rows else {})
    found = expected_of(Told(drawn, tokens, fault, booked_at, began))
    return {AGENT: agent, PROVIDER: {"usage_report": reports}}, found
