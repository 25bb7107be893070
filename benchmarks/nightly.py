"""A night at scale: 1,000,000 new attempts from the spool to the last page, in CPU seconds beside the floor.

    python benchmarks/nightly.py [--attempts N] [--days N] [--seed N] [--folder DIR]

The night is one process, as cron runs it, imports included; its steps are timed inside it. The floor reads the same
bytes with pyarrow and adds up every number in them. Exit code 0: every fault that was put in was found, a second night
has nothing to do, and the budget holds; 1: not.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

CPU_BUDGET_S = 120.0
SEED = 7


@dataclass(frozen=True)
class Cost:
    """What a process took: CPU seconds (user and system), peak resident memory in GiB, and what it printed."""

    cpu_s: float
    peak_gib: float
    told: dict[str, Any]


def measured(step: str, home: Path, *arguments: str) -> Cost:
    """Run one part of this file in a process of its own."""
    command = [sys.executable, __file__, "--part", step, "--folder", str(home), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{step} ended with exit code {process.returncode}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20, json.loads(output))


# --- the parts, each in its own process -------------------------------------------------------------------------


def part_simulate(home: Path, attempts: int, days: int, seed: int) -> dict[str, Any]:
    """Make the installation and what waits in its spool."""
    from weighbridge.pipeline.run.demo import new_home
    from weighbridge.pipeline.simulate.simulate import simulate

    opened = new_home(home, seed)
    made = simulate(opened.spool, attempts=attempts, days=days, seed=seed, key=opened.key)
    return {"segments": len(made.segments), "bytes": sum(p.stat().st_size for p in _files(home))}


def part_floor(home: Path, *_: int) -> dict[str, Any]:
    """Read every column of every segment and add up every number."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    rows, total = 0, 0
    for path in _files(home):
        table = pq.read_table(path)
        rows += table.num_rows
        for column in table.columns:
            flat = column.combine_chunks().flatten() if pa.types.is_list(column.type) else column
            if pa.types.is_integer(flat.type):
                total ^= pc.sum(flat).as_py() or 0
    return {"rows": rows, "sum": total}


def part_night(home: Path, *_: int) -> dict[str, Any]:
    """A night, with the time of each step."""
    begun = time.process_time()
    from weighbridge.pipeline.run import night as module
    from weighbridge.pipeline.run.home import open_home
    from weighbridge.pipeline.run.step import Step
    from weighbridge.pipeline.run.steps import NIGHT
    from weighbridge.pipeline.simulate.simulate import START

    spent = {"imports": time.process_time() - begun}

    def timed(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            at = time.process_time()
            try:
                return work(*arguments, **named)
            finally:
                spent[name] = spent.get(name, 0.0) + time.process_time() - at

        return run

    def of(step: Step) -> Step:
        return replace(step, work=timed(step.name, step.work))

    setattr(module, "NIGHT", tuple(of(step) for step in NIGHT))  # noqa: B010 - the names are the module's own
    setattr(module, "take_in", timed("take in", module.take_in))  # noqa: B010
    setattr(module, "pack", timed("pack", module.pack))  # noqa: B010
    opened = open_home(home)
    done = module.night(opened, [opened.spool], module.Intake(day=START))
    lake = opened.lake()
    return {
        "spent": spent,
        "refused": done.refused,
        "stored": sum(file.rows_out for file in done.ingested.files),
        "reports": len(done.reports),
        **{table: lake.rows(table) for table in ("attempt", "reading", "reconciled", "shared_histogram", "finding")},
    }


def part_check(home: Path, *_: int) -> dict[str, Any]:
    """Hold the findings against the faults that were put in."""
    import polars as pl

    from weighbridge.pipeline.run.demo import found_faults, stored_faults
    from weighbridge.pipeline.run.home import open_home
    from weighbridge.schemas.enumerations import FindingOrigin

    opened = open_home(home)
    expected = set(stored_faults(opened))
    own = opened.lake().scan("finding").filter(pl.col("origin") == FindingOrigin.RECONCILE).collect()
    found = set(found_faults(own))
    return {"expected": len(expected), "missing": len(expected - found), "unexpected": len(found - expected)}


PARTS: dict[str, Callable[..., dict[str, Any]]] = {
    name.removeprefix("part_"): function for name, function in list(globals().items()) if name.startswith("part_")
}


def _files(home: Path) -> list[Path]:
    return sorted((home / "spool").glob("*.segment/*.parquet"))


# --- the whole --------------------------------------------------------------------------------------------------


def run(folder: Path, attempts: int, days: int, seed: int) -> bool:
    """Run every part, print the table, and say whether counts and budget hold."""
    home = folder / "home"
    told = ("--attempts", str(attempts), "--days", str(days), "--seed", str(seed))
    costs = {part: measured(part, home, *told) for part in PARTS}
    idle = measured("night", home, *told)
    wrong = [fact for holds, fact in _facts(costs, idle) if not holds]
    _print(costs, idle, attempts, days)
    for line in wrong:
        print("WRONG:", line)
    return not wrong


def _facts(costs: dict[str, Cost], idle: Cost) -> list[tuple[bool, str]]:
    night, check = costs["night"], costs["check"].told
    rests = all(idle.told[table] == night.told[table] for table in ("attempt", "reading", "reconciled", "finding"))
    return [
        (night.told["refused"] is None, "no gate refuses"),
        (night.told["stored"] == costs["floor"].told["rows"], "as many rows were stored as the floor read"),
        (night.told["reports"] > 0, "there are reports"),
        (check["expected"] > 0, "there are faults to be found"),
        (check["missing"] == 0, "every fault was found, to the token"),
        (check["unexpected"] == 0, "nothing else was found by reconciliation"),
        (night.cpu_s < CPU_BUDGET_S, f"{night.cpu_s:.1f} CPU s stay under {CPU_BUDGET_S:.0f}"),
        (rests and idle.told["reports"] == 0, "a second night has nothing to do"),
    ]


def _print(costs: dict[str, Cost], idle: Cost, attempts: int, days: int) -> None:
    night, floor = costs["night"], costs["floor"].cpu_s
    size = costs["simulate"].told["bytes"] / 2**20
    print(f"{attempts:,} attempts of {days} days, {size:,.0f} MiB in segments; the night is one process\n")
    print(f"{'step':<14}{'CPU s':>8}{'x floor':>9}")
    for step, cpu in night.told["spent"].items():
        print(f"{step:<14}{cpu:>8.2f}{cpu / floor:>9.1f}")
    other = night.cpu_s - sum(night.told["spent"].values())
    print(f"{'what is due':<14}{other:>8.2f}{other / floor:>9.1f}")
    counts = ", ".join(f"{name} {night.told[name]:,}" for name in ("attempt", "reading", "reconciled", "finding"))
    print(f"{'the night':<14}{night.cpu_s:>8.2f}{night.cpu_s / floor:>9.1f}  {night.peak_gib:.2f} GiB; {counts}")
    print(f"{'a second one':<14}{idle.cpu_s:>8.2f}{idle.cpu_s / floor:>9.1f}  {idle.peak_gib:.2f} GiB; nothing is due")
    print(f"{'floor':<14}{floor:>8.2f}{1.0:>9.1f}  {costs['floor'].peak_gib:.2f} GiB")


def main() -> int:
    """Run the benchmark, or one part of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--attempts", type=int, default=1_000_000)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--folder", type=Path, help="where to work; if left out, a temporary folder")
    parser.add_argument("--part", choices=sorted(PARTS), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        print(json.dumps(PARTS[given.part](given.folder, given.attempts, given.days, given.seed)))
        return 0
    folder = given.folder or Path(tempfile.mkdtemp(prefix="weighbridge-nightly-"))
    try:
        return 0 if run(folder, given.attempts, given.days, given.seed) else 1
    finally:
        if given.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
