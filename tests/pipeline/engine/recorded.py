"""A recorded configuration of a vLLM server on the product's own road: its files ingested, its scrapes dated.

The recorded scrapes state no time: each was made after the last call of its group and before the first of the next, so
it is given a time between the two, in which no recorded call ran.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from weighbridge.pipeline.engine.engine import weigh_engines
from weighbridge.pipeline.ingest.ingest import ingest
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.identity import AttemptKey

KEY = bytes(range(32))
DAY = date(2026, 11, 29)
MODEL = "tiny-qwen3"
CONFIGURATIONS = ("a_plain", "b_spec_ngram", "c_reasoning_tools_small_pool")
Row = dict[str, Any]


def lines(path: Path) -> list[Row]:
    """The records of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def scrapes(folder: Path, out: Path) -> list[Path]:
    """The scrapes after each group, with the time in their names; files of a few hundred lines each."""
    calls = [call for call in lines(folder / "requests.jsonl") if call["client"]]
    ended: dict[str | None, float] = {}
    begun: dict[str | None, float] = {}
    for call in calls:
        client = call["client"]
        start = client["t_start_unix"]
        begun[call["group"]] = min(begun.get(call["group"], start), start)
        ended[call["group"]] = max(ended.get(call["group"], 0), start + (client["end_ms"] or 0) / 1000)
    groups = sorted(begun, key=lambda group: begun[group])
    paths = []
    for before, after in zip(groups, [*groups[1:], None], strict=True):
        found = [path for path in (folder / "metrics").iterdir() if path.stem.split("_", 1)[1] == (before or "start")]
        if not found:
            continue
        last = begun[after] if after is not None else ended[before] + 2
        moment = datetime.fromtimestamp((ended[before] + last) / 2, UTC)
        path = out / f"server_{moment:%Y%m%dT%H%M%S}Z.prom"
        comment = f"# scraped_at: {moment.isoformat()}\n"
        path.write_text(comment + found[0].read_text(encoding="utf-8"), encoding="utf-8")
        paths.append(path)
    return paths


@dataclass(frozen=True)
class Recorded:
    """A lake with one recorded configuration in it, its engine weighed."""

    lake: Lake
    folder: Path

    def of(self, table: str, **equal: object) -> list[Row]:
        """Rows of a table with these values."""
        frame = self.lake.scan(table).collect()
        return frame.filter(*(pl.col(name) == value for name, value in equal.items())).to_dicts()

    def attempts(self, case: str) -> set[AttemptKey]:
        """The attempts of a recorded case: those of its client's id that began with it."""
        call = next(call for call in lines(self.folder / "requests.jsonl") if call["case"] == case)
        start = datetime.fromtimestamp(call["client"]["t_start_unix"], UTC)
        rows = self.lake.scan("attempt").collect().filter(
            pl.col("source") == "http-client",
            (pl.col("arrived_at") - start).abs() < timedelta(microseconds=40),
            pl.col("api").is_not_null(),
        )  # fmt: skip
        return {AttemptKey(hi, lo) for hi, lo in rows.select("attempt_hi", "attempt_lo").iter_rows()}

    def attempt(self, case: str) -> AttemptKey:
        """The only attempt of a case."""
        (key,) = self.attempts(case)
        return key

    def gaps(self, source: str, counter: str, label: str | None = None) -> dict[datetime, Row]:
        """End of window -> its row of `engine_gap`."""
        rows = self.of("engine_gap", source=source, counter=counter)
        return {row["until"]: row for row in sorted(rows, key=lambda row: row["until"]) if row["label"] == label}

    def causes(self, gap: Row) -> dict[str, int]:
        """The causes of a row of `engine_gap`."""
        names = ("day", "source", "engine", "model", "instance", "counter", "label", "until")
        rows = self.lake.scan("engine_gap_cause").collect().to_dicts()
        return {row["cause"]: row["tokens"] for row in rows if all(row[name] == gap[name] for name in names)}


def recorded(root: Path, configuration: str, shared_real: Path, *, client: str = "vllm") -> Recorded:
    """Ingest a configuration whole and weigh it; `client` is the provider its calls are said to be of."""
    folder = shared_real / "engines" / "vllm" / configuration
    lake = Lake.create(root / "lake")
    stamped = root / "scrapes"
    stamped.mkdir()
    of_calls = [folder / "requests.jsonl"]
    of_engine = [folder / "engine_finished.jsonl", folder / "engine_steps.jsonl", *scrapes(folder, stamped)]
    for paths, provider in ((of_calls, client), (of_engine, "vllm")):
        ingest(paths, lake, key=KEY, day=DAY, provider=provider, model=MODEL)
    weigh_engines(lake)
    return Recorded(lake, folder)
