"""A whole reconciliation on Spark local[2] beside Polars: are all rows the same, and what does it cost?

    python benchmarks/spark.py [--attempts N] [--days N] [--seed N] [--folder DIR]

Traffic of some days is simulated with its faults, taken in and priced; then the same lake is reconciled on each engine,
each in a process of its own and each on a copy of its own: matching, causes, money, findings. The digests of all rows
of `reconciled`, `gap_cause` and `finding` have to be equal, and what is found has to be what was put in. The JVM is
part of the Spark process's cost: it is waited for before that process ends. With `--folder` the lake is kept there,
and one that is there is reconciled again. Exit code 0: everything is equal; 1: something is not.
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
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weighbridge.pipeline.lake import Lake

SEED = 7
ENGINES = ("polars", "spark")
WRITTEN = ("reconciled", "gap_cause", "finding")
_EVERY_S = 0.5


@dataclass(frozen=True)
class Cost:
    """What one step took: seconds, CPU seconds (user and system), peak resident memory, and what it printed.

    Attributes:
        peak_gib: of the process that is asked.
        peak_all_gib: of it and all processes it started (a JVM), looked at twice a second.
    """

    wall_s: float
    cpu_s: float
    peak_gib: float
    peak_all_gib: float
    told: dict[str, Any]


def measured(step: str, home: Path, *arguments: str) -> Cost:
    """Run one step of this file in a process of its own."""
    began = time.monotonic()
    command = [sys.executable, __file__, "--step", step, "--folder", str(home), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    seen = [0]
    ended = threading.Event()
    watch = threading.Thread(target=_watch, args=(process.pid, seen, ended), daemon=True)
    watch.start()
    output = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    ended.set()
    watch.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the step {step} ended with exit code {process.returncode}")
    told = json.loads(output.splitlines()[-1])
    cpu = used.ru_utime + used.ru_stime
    return Cost(time.monotonic() - began, cpu, told.pop("own_kib") / 2**20, max(seen) / 2**20, told)


def _watch(pid: int, seen: list[int], ended: threading.Event) -> None:
    """Note how much memory a process and those it started have together, in KiB."""
    while not ended.wait(_EVERY_S):
        seen[0] = max(seen[0], sum(_resident(each) for each in _family(pid)))


def _family(pid: int) -> list[int]:
    """A process and all that it started."""
    try:
        own = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return []
    return [pid, *(each for child in own for each in _family(int(child)))]


def _resident(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)


# --- the steps, each in its own process -------------------------------------------------------------------------


def step_make(home: Path, attempts: int, days: int, seed: int) -> dict[str, Any]:
    """Make an installation whose lake has the attempts, their reports and what these cost."""
    from weighbridge.pipeline.run.demo import new_home
    from weighbridge.pipeline.run.night import Intake, all_months, days_of, set_prices, take_in
    from weighbridge.pipeline.simulate.simulate import START, simulate

    opened = new_home(home, seed)
    simulate(opened.spool, attempts=attempts, days=days, seed=seed, key=opened.key)
    take_in(opened, sorted(opened.spool.glob("*.segment")), Intake(day=START))
    lake = opened.lake()
    set_prices(opened, days_of(lake, all_months(lake)))
    for segment in opened.spool.glob("*.segment"):
        shutil.rmtree(segment)
    return {table: lake.rows(table) for table in ("attempt", "reading", "priced_amount")}


def _reconciled(home: Path, engine: str) -> dict[str, Any]:
    """Reconcile all months on a copy of the lake; the digests of what was written are asked for elsewhere."""
    from weighbridge.pipeline.lake import Lake
    from weighbridge.pipeline.reconcile.reconcile import reconcile

    copy = home / f"lake-{engine}"
    if copy.exists():
        shutil.rmtree(copy)
    shutil.copytree(home / "lake", copy, copy_function=os.link)
    found = reconcile(Lake.open(copy), engine=engine)
    return {
        "attempts": found.attempts,
        "statuses": found.statuses,
        "causes": found.causes,
        "findings": len(found.findings),
    }


def step_polars(home: Path, *_: int) -> dict[str, Any]:
    """On Polars."""
    return _reconciled(home, "polars")


def step_spark(home: Path, *_: int) -> dict[str, Any]:
    """On Spark: its JVM is a child of this process, and counted with it once it has been waited for."""
    from pyspark import SparkContext

    told = _reconciled(home, "spark")
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - nothing else names the JVM's process
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=60)
    return told


def step_digests(home: Path, *_: int) -> dict[str, Any]:
    """The digest of every row that either engine wrote, and what was found beside what was put in."""
    import polars as pl

    from weighbridge.pipeline.lake import Lake
    from weighbridge.pipeline.run.demo import found_faults, stored_faults
    from weighbridge.pipeline.run.home import open_home

    out: dict[str, Any] = {}
    for engine in ENGINES:
        lake = Lake.open(home / f"lake-{engine}")
        out[engine] = {table: [lake.rows(table), _digest(lake, table)] for table in WRITTEN}
    expected = set(stored_faults(open_home(home)))
    found: pl.DataFrame = Lake.open(home / "lake-spark").scan("finding").collect()
    return {**out, "expected": len(expected), "wrong": len(expected ^ set(found_faults(found)))}


def _digest(lake: Lake, table: str) -> str:
    """The canonical digest of a table's rows, by days: all rows of a large one do not fit into memory at once."""
    from weighbridge.pipeline.lake.row_bytes import digest
    from weighbridge.pipeline.lake.shape import declared

    about = declared(table)
    if not about.daily:
        return lake.digest(table)
    days = [(day, digest(about, lake.scan(table, first=day, last=day).collect())) for day in lake.days(table)]
    return hashlib.sha256(json.dumps(days, default=str).encode()).hexdigest()


STEPS: dict[str, Callable[..., dict[str, Any]]] = {
    name.removeprefix("step_"): function for name, function in list(globals().items()) if name.startswith("step_")
}


# --- the whole benchmark -----------------------------------------------------------------------------------------


def run(folder: Path, attempts: int, days: int, seed: int) -> list[tuple[bool, str]]:
    """Make the lake where there is none, reconcile it on both engines, print the table; what holds and what not."""
    home, note = folder / "home", folder / "made.json"
    if not note.exists():
        told = measured("make", home, "--attempts", str(attempts), "--days", str(days), "--seed", str(seed)).told
        note.write_text(json.dumps({**told, "asked": attempts, "days": days}), encoding="utf-8")
    made = json.loads(note.read_text(encoding="utf-8"))
    if (made["asked"], made["days"]) != (attempts, days):
        raise SystemExit(f"the lake in {folder} was made of {made['asked']:,} attempts on {made['days']} days")
    print(f"{made['attempt']:,} attempts, {made['reading']:,} reports, {days} days\n")
    print(f"{'engine':<9}{'s':>9}{'CPU s':>9}{'GiB':>7}{'all GiB':>9}{'load':>7}", flush=True)
    costs = {}
    for engine in ENGINES:
        costs[engine] = cost = measured(engine, home)
        print(
            f"{engine:<9}{cost.wall_s:>9.0f}{cost.cpu_s:>9.0f}{cost.peak_gib:>7.2f}{cost.peak_all_gib:>9.2f}"
            f"{os.getloadavg()[0]:>7.1f}",
            flush=True,
        )
    print()
    return list(_judged(costs, measured("digests", home).told, made["attempt"]))


def _judged(costs: dict[str, Cost], told: dict[str, Any], attempts: int) -> Iterator[tuple[bool, str]]:
    polars, spark = (told[engine] for engine in ENGINES)
    for table in WRITTEN:
        rows, digest = spark[table]
        yield spark[table] == polars[table], f"{table}: {rows:,} rows, digest {digest[:16]}, as on Polars"
    yield costs["spark"].told == costs["polars"].told, f"statuses and counts: {json.dumps(costs['spark'].told)}"
    yield costs["spark"].told["attempts"] >= attempts, "every attempt was reconciled"
    yield told["wrong"] == 0 and told["expected"] > 0, f"{told['expected']} faults were put in, all found, none else"


def main() -> int:
    """Run the benchmark, or one step of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--attempts", type=int, default=5_000_000)
    parser.add_argument("--days", type=int, default=8)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--folder", type=Path, help="where the lake is made and kept; a temporary one")
    parser.add_argument("--step", choices=sorted(STEPS), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        import resource

        told = STEPS[given.step](given.folder, given.attempts, given.days, given.seed)
        print(json.dumps({**told, "own_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))
        return 0
    folder = given.folder or Path(tempfile.mkdtemp(prefix="weighbridge-spark-"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        judged = run(folder, given.attempts, given.days, given.seed)
        for holds, what in judged:
            print("ok   " if holds else "WRONG", what)
        return 0 if all(holds for holds, _ in judged) else 1
    finally:
        if given.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
