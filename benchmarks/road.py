"""The road at scale: 1,000,000 simulated attempts, ingest to report, in CPU seconds beside the floor.

    python benchmarks/road.py [--attempts N] [--seed N] [--folder DIR]

Every step is a process of its own, so that its CPU time and peak memory are its own, imports included. The floor reads
the same bytes with pyarrow and adds up every number in them: no road over them can be cheaper. Exit code 0: counts are
right and the budget holds; 1: not.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

CPU_BUDGET_S = 60.0
MEMORY_BUDGET_GIB = 2.0
IN_BUDGET = ("ingest", "price", "reconcile", "report")
SEED = 7


@dataclass(frozen=True)
class Cost:
    """What one step took: CPU seconds (user and system), peak resident memory in GiB, and what it printed."""

    cpu_s: float
    peak_gib: float
    told: dict[str, int]


def measured(step: str, home: Path, *arguments: str) -> Cost:
    """Run one step of this file in a process of its own."""
    command = [sys.executable, __file__, "--step", step, "--folder", str(home), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the step {step} ended with exit code {process.returncode}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20, json.loads(output))


# --- the steps, each in its own process -------------------------------------------------------------------------


def step_simulate(home: Path, attempts: int, seed: int) -> dict[str, int]:
    """Make the installation and the segments."""
    from weighbridge.pipeline.run.demo import new_home
    from weighbridge.pipeline.simulate.simulate import simulate

    opened = new_home(home, seed)
    made = simulate(opened.spool, attempts=attempts, seed=seed, key=opened.key)
    lost = sum(item.rows for item in made.expected if item.code == "capture_gap")
    return {"segments": len(made.segments), "lost": lost, "bytes": sum(p.stat().st_size for p in _files(home))}


def step_floor(home: Path, *_: int) -> dict[str, int]:
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


def step_ingest(home: Path, *_: int) -> dict[str, int]:
    """Take every segment in."""
    from weighbridge.pipeline.run.home import open_home
    from weighbridge.pipeline.run.night import Intake, take_in
    from weighbridge.pipeline.simulate.simulate import START

    opened = open_home(home)
    taken = take_in(opened, sorted(opened.spool.glob("*.segment")), Intake(day=START))
    lake = opened.lake()
    return {
        "rows_in": sum(file.rows_in for file in taken.files),
        "rows_out": sum(file.rows_out for file in taken.files),
        **{table: lake.rows(table) for table in ("attempt", "usage_report", "reading", "gap")},
    }


def step_price(home: Path, *_: int) -> dict[str, int]:
    """Price every reading."""
    from weighbridge.pipeline.run.home import open_home
    from weighbridge.pipeline.run.night import all_months, days_of, set_prices

    opened = open_home(home)
    lake = opened.lake()
    return {"priced_amount": set_prices(opened, days_of(lake, all_months(lake)))}


def step_reconcile(home: Path, *_: int) -> dict[str, int]:
    """Reconcile every month."""
    from weighbridge.pipeline.run.home import open_home
    from weighbridge.pipeline.run.night import all_months, weigh

    opened = open_home(home)
    lake = opened.lake()
    weigh(opened, all_months(lake))
    return {table: lake.rows(table) for table in ("reconciled", "gap_cause", "finding")}


def step_report(home: Path, *_: int) -> dict[str, int]:
    """Write the report of every month."""
    from weighbridge.pipeline.run.home import open_home
    from weighbridge.pipeline.run.night import all_months, write_reports

    opened = open_home(home)
    return {"reports": len(write_reports(opened, all_months(opened.lake())))}


def step_check(home: Path, *_: int) -> dict[str, int]:
    """Hold the findings against the faults that were put in."""
    from weighbridge.pipeline.run.demo import found_faults, stored_faults
    from weighbridge.pipeline.run.home import open_home

    opened = open_home(home)
    expected = set(stored_faults(opened))
    found = set(found_faults(opened.lake().scan("finding").collect()))
    return {
        "expected": len(expected),
        "missing": len(expected - found),
        "unexpected": len(found - expected),
        "rows": sum(item.rows for item in expected),
    }


STEPS: dict[str, Callable[..., dict[str, int]]] = {
    name.removeprefix("step_"): function for name, function in list(globals().items()) if name.startswith("step_")
}


def _files(home: Path) -> list[Path]:
    return sorted((home / "spool").glob("*.segment/*.parquet"))


# --- the whole road ----------------------------------------------------------------------------------------------


def run(folder: Path, attempts: int, seed: int) -> bool:
    """Run every step, print the table, and say whether counts and budget hold."""
    home = folder / "home"
    told = ("--attempts", str(attempts), "--seed", str(seed))
    costs = {step: measured(step, home, *told) for step in STEPS}
    wrong = list(_wrong(costs, attempts))
    _print(costs, attempts)
    for line in wrong:
        print("WRONG:", line)
    return not wrong


def _wrong(costs: dict[str, Cost], attempts: int) -> list[str]:
    """What does not come out as it must, one line each."""
    made, taken, check = costs["simulate"].told, costs["ingest"].told, costs["check"].told
    cpu = sum(costs[step].cpu_s for step in IN_BUDGET)
    peak = max(costs[step].peak_gib for step in IN_BUDGET)
    facts = [
        (taken["rows_in"] == costs["floor"].told["rows"], "ingest read as many rows as the floor"),
        (taken["rows_out"] == taken["rows_in"], "every row was stored"),
        (taken["attempt"] == attempts - made["lost"], "every attempt the agent did not lose is in the lake"),
        (costs["price"].told["priced_amount"] == taken["reading"], "every reading has an amount"),
        (check["missing"] == 0, "every fault was found, to the token"),
        (check["unexpected"] == 0, "nothing else was found"),
        (check["expected"] > 0, "there are faults to be found"),
        (cpu < CPU_BUDGET_S, f"{cpu:.1f} CPU s stay under {CPU_BUDGET_S:.0f}"),
        (peak < MEMORY_BUDGET_GIB, f"{peak:.2f} GiB stay under {MEMORY_BUDGET_GIB:.0f}"),
    ]
    return [fact for holds, fact in facts if not holds]


def _print(costs: dict[str, Cost], attempts: int) -> None:
    floor = costs["floor"].cpu_s
    print(
        f"{attempts:,} attempts, {costs['simulate'].told['bytes'] / 2**20:,.0f} MiB in segments, one process a step\n"
    )
    print(f"{'step':<11}{'CPU s':>8}{'x floor':>9}{'peak GiB':>10}  counts")
    for step, cost in costs.items():
        counts = ", ".join(f"{name} {value:,}" for name, value in cost.told.items() if name != "sum")
        print(f"{step:<11}{cost.cpu_s:>8.2f}{cost.cpu_s / floor:>9.1f}{cost.peak_gib:>10.2f}  {counts}")
    cpu = sum(costs[step].cpu_s for step in IN_BUDGET)
    peak = max(costs[step].peak_gib for step in IN_BUDGET)
    print(f"{'the road':<11}{cpu:>8.2f}{cpu / floor:>9.1f}{peak:>10.2f}  {' + '.join(IN_BUDGET)}")


def main() -> int:
    """Run the benchmark, or one step of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--attempts", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--folder", type=Path, help="where to work; if left out, a temporary folder")
    parser.add_argument("--step", choices=sorted(STEPS), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        print(json.dumps(STEPS[given.step](given.folder, given.attempts, given.seed)))
        return 0
    folder = given.folder or Path(tempfile.mkdtemp(prefix="weighbridge-road-"))
    try:
        return 0 if run(folder, given.attempts, given.seed) else 1
    finally:
        if given.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
