"""Validation at scale: 10,000,000 attempts on 30 days under the full suite, in CPU seconds beside a floor and a peer.

    python benchmarks/validate.py [--attempts N] [--days N] [--sample N] [--folder DIR]

Every step is a process of its own, so that its CPU time and peak memory are its own, imports included. The attempts are
those of the simulation, filled as an agent fills them, one row in a hundred thousand broken on purpose.

    floor      every column of every file is read by Polars, and nothing is looked at
    validate   the product: Great Expectations' import, all rules, keys, accounts, arrivals, quarantine, the page
    peer       the rules of single columns, as Great Expectations' own expectations, on a pandas frame of some rows;
               its time without imports, times all rows by those: what judging the rows that way would cost

Exit code 0: every broken row was found, nothing else was, and the budget holds; 1: not.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

CPU_BUDGET_S = 10.0
MEMORY_BUDGET_GIB = 2.5
START = date(2026, 1, 1)
SEED = 7
# One row in so many is broken, by each of the rules below in turn.
RARE = 100_000
RULES = ("minimum.queue_us", "word.status", "pattern.task", "identity.drafted", "unique.key")
KEY = bytes(range(32))


@dataclass(frozen=True)
class Cost:
    """What one step took: CPU seconds (user and system), peak resident memory in GiB, and what it printed."""

    cpu_s: float
    peak_gib: float
    told: dict[str, float]


def measured(step: str, folder: Path, *arguments: str) -> Cost:
    """Run one step of this file in a process of its own."""
    command = [sys.executable, __file__, "--step", step, "--folder", str(folder), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the step {step} ended with exit code {process.returncode}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20, json.loads(output))


# --- the steps, each in its own process -------------------------------------------------------------------------


def step_make(folder: Path, attempts: int, days: int, _: int) -> dict[str, float]:
    """Make a lake with the attempts of a sealed segment a day, some of them broken."""
    import numpy as np
    import polars as pl

    from weighbridge.pipeline.lake.lake import Lake
    from weighbridge.pipeline.simulate.columns import attempt_table
    from weighbridge.pipeline.simulate.engine import times
    from weighbridge.pipeline.simulate.faults import NONE
    from weighbridge.pipeline.simulate.lengths import lengths
    from weighbridge.pipeline.simulate.traffic import traffic

    lake = Lake.create(folder / "lake")
    accounts = []
    broken = 0
    for number in range(days):
        rng = np.random.default_rng([SEED, number])
        day = START + timedelta(days=number)
        rows = attempts // days + (number < attempts % days)
        drawn = traffic(rng, rows, day, 1)
        tokens = lengths(rng, drawn)
        table = attempt_table(rng, drawn, tokens, np.full(drawn.rows, NONE), times(rng, drawn, tokens), KEY)
        digest = hashlib.sha256(f"{SEED} {number}".encode()).hexdigest()
        frame = pl.DataFrame(pl.from_arrow(table)).with_columns(
            day=pl.lit(day), segment=pl.lit(digest), segment_row=pl.int_range(pl.len(), dtype=pl.Int64)
        )
        frame, wrong = _break(frame)
        broken += wrong
        lake.append("attempt", frame)
        accounts.append({"segment": digest, "rows": frame.height})
    lake.append("segment", _accounts(accounts))
    return {"rows": lake.rows("attempt"), "broken": broken, "bytes": sum(p.stat().st_size for p in _files(folder))}


def _break(frame: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Break one row in `RARE`, by one rule after the other, and say how many."""
    import polars as pl

    rows = list(range(RARE // 2, frame.height, RARE)) or [frame.height // 2]
    which = {row: RULES[number % len(RULES)] for number, row in enumerate(rows)}

    def of(rule: str) -> pl.Expr:
        return pl.col("segment_row").is_in([row for row, name in which.items() if name == rule])

    again = of("unique.key")
    keys = [
        pl.when(again).then(pl.col(name).shift(1)).otherwise(name).alias(name) for name in ("attempt_hi", "attempt_lo")
    ]
    drafted = pl.col("accepted").fill_null(0) + pl.col("rejected").fill_null(0) + 1
    return frame.with_columns(
        *keys,
        pl.when(of("minimum.queue_us")).then(-1).otherwise("queue_us").alias("queue_us"),
        pl.when(of("word.status")).then(pl.lit("fine")).otherwise("status").alias("status"),
        pl.when(of("pattern.task")).then(pl.lit("two words")).otherwise("task").alias("task"),
        *(
            pl.when(of("identity.drafted")).then(value).otherwise(name).alias(name)
            for name, value in (("drafted", drafted), ("accepted", pl.col("accepted").fill_null(0)),
                                ("rejected", pl.col("rejected").fill_null(0)))
        ),
    ), len(which)  # fmt: skip


def _accounts(rows: list[dict[str, object]]) -> pl.DataFrame:
    import polars as pl

    same = {"importer": "segment", "name": "simulated.segment", "bytes": 0, "end": "complete", "schema_version": 1}
    none = {"rows_quarantined": 0, "rows_duplicate": 0, "rows_unplaced": 0}
    return pl.DataFrame(
        [{"segment": row["segment"], **same, "rows_in": row["rows"], "rows_out": row["rows"], **none} for row in rows]
    )


def step_floor(folder: Path, *_: int) -> dict[str, float]:
    """Read every column of every file; how many values are null says that it was read."""
    import polars as pl

    rows = nulls = 0
    for path in _files(folder):
        counts = pl.scan_parquet(path).select(pl.len().alias("rows"), pl.exclude("rows").null_count())
        found = counts.collect(engine="streaming").row(0)
        rows += found[0]
        nulls += sum(found[1:])
    return {"rows": rows, "nulls": nulls}


def step_validate(folder: Path, _: int, days: int, __: int) -> dict[str, float]:
    """Validate the lake, write the page."""
    from weighbridge.pipeline.lake.lake import Lake
    from weighbridge.pipeline.validate.rule import Gravity
    from weighbridge.pipeline.validate.validate import validate

    lake = Lake.open(folder / "lake")
    found = validate(lake, today=START + timedelta(days=days), page=folder / "page.html")
    open_ = [v for v in found.violations if v.gravity is not Gravity.INFO]
    return {
        "rows": found.rows["attempt"],
        "rules": found.rules,
        "broken": sum(v.rows for v in open_),
        "stray": sum(v.rows for v in open_ if v.rule not in RULES),
        "held": found.quarantined,
        "shut": not found.gate,
    }


def step_peer(folder: Path, _: int, __: int, sample: int) -> dict[str, float]:
    """The rules of the columns as expectations on the rows themselves, in pandas; CPU seconds of the run alone."""
    import logging
    import resource
    import warnings

    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    import great_expectations as gx
    import great_expectations.expectations
    import polars as pl
    from great_expectations.data_context.types.base import ProgressBarsConfig

    from weighbridge.schemas.tables import TABLES

    known: Any = gx.expectations
    frame = pl.concat([pl.scan_parquet(path) for path in _files(folder)]).head(sample).collect().to_pandas()
    columns = [column for column in TABLES["attempt"].columns if column.name != "day"]
    expected: list[Any] = []
    for column in columns:
        name = column.name
        if frame[name].isna().all():
            frame[name] = frame[name].astype("float64")
        if not column.nullable:
            expected.append(known.ExpectColumnValuesToNotBeNull(column=name))
        if column.minimum is not None:
            expected.append(known.ExpectColumnValuesToBeBetween(column=name, min_value=column.minimum))
        if column.values is not None:
            expected.append(known.ExpectColumnValuesToBeInSet(column=name, value_set=[str(v) for v in column.values]))
        elif column.pattern is not None and not frame[name].isna().all():
            expected.append(known.ExpectColumnValuesToMatchRegex(column=name, regex=f"^(?:{column.pattern})$"))
    key = [name for name in TABLES["attempt"].key if name != "day"]
    expected.append(known.ExpectCompoundColumnsToBeUnique(column_list=key))
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    batch = context.data_sources.add_pandas("p").add_dataframe_asset("a").add_batch_definition_whole_dataframe("b")
    suite = context.suites.add(gx.ExpectationSuite(name="s", expectations=expected))
    definition = context.validation_definitions.add(gx.ValidationDefinition(name="v", data=batch, suite=suite))
    before = resource.getrusage(resource.RUSAGE_SELF)
    began = time.monotonic()
    definition.run(batch_parameters={"dataframe": frame}, result_format="BOOLEAN_ONLY")
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"rows": len(frame), "rules": len(expected), "cpu_s": cpu, "wall_s": time.monotonic() - began}


STEPS: dict[str, Callable[..., dict[str, float]]] = {
    name.removeprefix("step_"): function for name, function in list(globals().items()) if name.startswith("step_")
}


def _files(folder: Path) -> list[Path]:
    return sorted((folder / "lake" / "billing" / "attempt").rglob("*.parquet"))


# --- the whole benchmark -----------------------------------------------------------------------------------------


def run(folder: Path, attempts: int, days: int, sample: int) -> bool:
    """Run every step, print the table, and say whether counts and budget hold."""
    told = ("--attempts", str(attempts), "--days", str(days), "--sample", str(sample))
    costs = {step: measured(step, folder, *told) for step in STEPS}
    _print(costs)
    wrong = list(_wrong(costs, attempts))
    for line in wrong:
        print("WRONG:", line)
    return not wrong


def _wrong(costs: dict[str, Cost], attempts: int) -> list[str]:
    """What does not come out as it must, one line each."""
    made, found = costs["make"].told, costs["validate"].told
    cpu, peak = costs["validate"].cpu_s, costs["validate"].peak_gib
    facts = [
        (made["rows"] == attempts, "as many attempts were made as asked for"),
        (costs["floor"].told["rows"] == attempts, "the floor read every row"),
        (found["rows"] == attempts, "every row was looked at"),
        (found["broken"] == made["broken"], f"{made['broken']:,} broken rows were found, and {found['broken']:,} said"),
        (found["stray"] == 0, "no rule is broken that was not"),
        (found["held"] == made["broken"], "every broken row is in quarantine"),
        (bool(found["shut"]), "the gate is shut"),
        (cpu < CPU_BUDGET_S, f"{cpu:.2f} CPU s stay under {CPU_BUDGET_S:.0f}"),
        (peak < MEMORY_BUDGET_GIB, f"{peak:.2f} GiB stay under {MEMORY_BUDGET_GIB}"),
    ]
    return [fact for holds, fact in facts if not holds]


def _print(costs: dict[str, Cost]) -> None:
    made, floor, ours, peer = (costs[name] for name in ("make", "floor", "validate", "peer"))
    rows = int(made.told["rows"])
    print(f"{rows:,} attempts, {made.told['bytes'] / 2**20:,.0f} MiB, one process a step, imports included\n")
    print(f"{'step':<11}{'CPU s':>9}{'x floor':>9}{'peak GiB':>10}  what")
    line = "{:<11}{:>9.2f}{:>9.1f}{:>10.2f}  {}"
    print(line.format("floor", floor.cpu_s, 1.0, floor.peak_gib, "every column read"))
    said = f"{int(ours.told['rules'])} rules judged, {int(ours.told['broken'])} broken rows found and held"
    print(line.format("validate", ours.cpu_s, ours.cpu_s / floor.cpu_s, ours.peak_gib, said))
    whole = peer.told["cpu_s"] * rows / peer.told["rows"]
    said = (
        f"{int(peer.told['rules'])} rules on {int(peer.told['rows']):,} rows in pandas: {peer.told['cpu_s']:.2f} CPU s"
    )
    print(
        line.format("peer", whole, whole / floor.cpu_s, peer.peak_gib, f"{said}, times {rows / peer.told['rows']:.0f}")
    )


def main() -> int:
    """Run the benchmark, or one step of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--attempts", type=int, default=10_000_000)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--sample", type=int, default=200_000, help="rows the peer is given")
    parser.add_argument("--folder", type=Path, help="where to work; if left out, a temporary folder")
    parser.add_argument("--step", choices=sorted(STEPS), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        print(json.dumps(STEPS[given.step](given.folder, given.attempts, given.days, given.sample)))
        return 0
    folder = given.folder or Path(tempfile.mkdtemp(prefix="weighbridge-validate-"))
    try:
        return 0 if run(folder, given.attempts, given.days, given.sample) else 1
    finally:
        if given.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
