"""Reconciling at scale: 10,000,000 attempts beside 10,000,000 reports, in CPU seconds beside a floor and a peer.

    python benchmarks/reconcile.py [--attempts N] [--days N] [--repeats N] [--large N] [--spark N] [--folder DIR]

Every step is a process of its own, so that its CPU time and peak memory are its own; all steps are repeated one after
the other, and the best of each counts. The data: attempts on some days in one lake, of every two hundred one without a
report, one with another input and one with another output; of five hundred reports one comes after midnight; of a
thousand one has no attempt, but half of its key in common with an attempt that has no report.

    floor          every column that is needed is read and added up, and nothing is compared
    hand           one DuckDB query over the same files, written for this data: it takes for granted that a key is in
                   each table once
    hand_checked   the same, after a query that sees that no key is in a table twice, which would make its sums wrong
    sorted         the product, `weighbridge reconcile --summary`, on days sorted by key: it checks the order of every
                   file, looks for repeated keys in both tables and matches them, checks rows of joins and sizes of
                   figures, and matches across days
    loose          the product on the same files in no order, beside the query on those (hand_loose)
    duckdb         the product, joining on DuckDB

`start` is what a process costs before its work begins: the interpreter and the modules it imports, which is more for
the product than for a query, and the same for a thousand rows as for a hundred million. `work` is all the rest, reading
the table's log and footers included. Limits are those of ten million attempts (of few, whatever is done once weighs
more), and are held on the work, against that of `hand`, the query as somebody would write it; the ratio of whole
processes stands beside it, and so does that to `hand_checked`, which looks for what the product looks for. Every step
finds its modules compiled, as an installed package has them.

Each result is compared with that of the hand-written query group by group: counts and sums exactly, percentiles to a
hundredth. `--large` also measures that the work grows with the rows and memory does not; `--spark` runs Spark local[2]
on a lake of so many attempts beside Polars; with `--attempts 0` nothing else is run. With `--folder` the lakes are kept
there, and those that are there are measured again.
Exit code 0: all results are right and all limits hold; 1: not.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

SORTED_TO_HAND = 0.6
LOOSE_TO_HAND = 1.0
DUCKDB_TO_HAND = 1.15
PEAK_GIB = 1.5
LINEAR = 1.15
# Memory of ten times the rows, beside that of one time: the same but for noise and the names of files.
FLAT = 1.15
START = date(2026, 3, 1)
SEED = 7
TENANTS, MODELS = 200, 8
GROUPS = ["tenant", "model", "kind"]


@dataclass(frozen=True)
class Cost:
    """What one step took, and what it printed.

    Attributes:
        cpu_s: CPU seconds, user and system, of the whole process.
        start_s: those before its work began.
        peak_gib: peak resident memory in GiB.
    """

    cpu_s: float
    start_s: float
    peak_gib: float
    told: dict[str, Any]

    @property
    def work_s(self) -> float:
        """CPU seconds of the work."""
        return self.cpu_s - self.start_s


def measured(step: str, folder: Path, *arguments: str) -> Cost:
    """Run one step of this file in a process of its own."""
    command = [sys.executable, __file__, "--step", step, "--folder", str(folder), *arguments]
    # Compiled modules are kept beside the data, also where this process itself keeps none.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    own = {**kept, "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=own)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the step {step} ended with exit code {process.returncode}")
    told = json.loads(output.splitlines()[-1])
    return Cost(used.ru_utime + used.ru_stime, told.pop("start_s"), used.ru_maxrss / 2**20, told)


def _made(folder: Path, attempts: int, days: int) -> int:
    """Make a lake where there is none yet; how many reports it has."""
    note = folder / "made.json"
    if not note.exists():
        told = measured("make", folder, "--attempts", str(attempts), "--days", str(days)).told
        note.write_text(json.dumps(told))
    told = json.loads(note.read_text())
    if told["attempt"] != attempts:
        raise SystemExit(
            f"the lake in {folder} has {told['attempt']:,} attempts, not {attempts:,}; name another folder"
        )
    return int(told["reading"])


# --- the steps, each in its own process -------------------------------------------------------------------------


def step_make(folder: Path, attempts: int, days: int) -> dict[str, int]:
    """Make a lake, day by day."""
    import numpy as np
    import polars as pl

    from weighbridge.pipeline.lake import Lake

    lake = Lake.create(folder / "lake")
    tenants = pl.Series([f"t_{number:016x}" for number in range(TENANTS)])
    models = pl.Series([f"model-{number}" for number in range(MODELS)])
    weights = 1 / np.arange(1, TENANTS + 1)
    late = None
    for number in range(days):
        rng = np.random.default_rng([SEED, number])
        day, rows = START + timedelta(days=number), attempts // days + (number < attempts % days)
        key = {name: rng.integers(-(2**63), 2**63 - 1, rows) for name in ("attempt_hi", "attempt_lo")}
        tenant = tenants.gather(rng.choice(TENANTS, rows, p=weights / weights.sum()))
        model = models.gather(rng.integers(0, MODELS, rows))
        seen = {"input_computed": rng.integers(50, 4000, rows), "output_computed": rng.integers(1, 1500, rows)}
        common = pl.DataFrame({**key, "model": model}).with_columns(
            day=pl.lit(day), segment=pl.lit("a" * 64), segment_row=pl.int_range(pl.len(), dtype=pl.Int64)
        )
        words = {"source": "agent", "status": "succeeded", "task": "chat", "route": "main", "provider": "openai"}
        lake.append(
            "attempt",
            common.rename({"model": "model_served"}).with_columns(
                *_series(seen), tenant=tenant, revision=pl.lit(0, pl.Int32), **{n: pl.lit(w) for n, w in words.items()}
            ),
        )
        kind, fate = rng.integers(0, 200, rows), rng.integers(0, 1000, rows)
        told = {
            "input_total": seen["input_computed"] + np.where(kind == 1, 7, 0),
            "output_total": seen["output_computed"] + np.where(kind == 2, 3, 0),
        }
        words = {"source": "gateway", "verdict": "PROVED", "dialect": "openai_chat", "ended": "complete"}
        words |= {"provider": "openai", "api": "openai_chat"}
        numbers = {name: pl.lit(0, pl.Int32) for name in ("child", "report", "revision")}
        hi = pl.when(pl.Series(fate == 0)).then(pl.col("attempt_hi") ^ 1).otherwise("attempt_hi")
        reports = common.with_columns(*_series(told), **numbers, **{n: pl.lit(w) for n, w in words.items()})
        reports = reports.with_columns(attempt_hi=hi).filter(pl.Series(kind != 0))
        after = pl.Series((fate == 1) | (fate == 2)).filter(pl.Series(kind != 0))
        own = reports.filter(~after)
        lake.append("reading", own if late is None else pl.concat([own, late]))
        late = reports.filter(after).with_columns(day=pl.lit(day + timedelta(days=1)))
    assert late is not None
    lake.append("reading", late)
    return {table: lake.rows(table) for table in ("attempt", "reading")}


def _series(columns: Mapping[str, Any]) -> list[pl.Series]:
    import polars as pl

    return [pl.Series(name, values, dtype=pl.Int64) for name, values in columns.items()]


def step_shuffle(folder: Path, *_: int) -> dict[str, int]:
    """The same files in no order, as another writer would leave them."""
    import polars as pl

    shutil.copytree(folder / "lake", folder / "loose")
    for path in sorted((folder / "loose").rglob("*.parquet")):
        rows = pl.read_parquet(path, hive_partitioning=False)
        rows.sample(fraction=1, shuffle=True, seed=1).write_parquet(path, compression="zstd", compression_level=1)
    return {}


def step_floor(folder: Path, *_: int) -> dict[str, int]:
    """Read the columns that are needed and add them up."""
    import polars as pl

    from weighbridge.pipeline.reconcile.overview.pairs import ATTEMPT_READ, READING_READ

    total = 0
    for table, columns in (("attempt", ATTEMPT_READ), ("reading", READING_READ)):
        for path in _files(folder / "lake", table):
            rows = pl.scan_parquet(path, hive_partitioning=False).select(columns)
            numbers = rows.select(pl.col(pl.Int64).sum(), pl.col(pl.String).count().cast(pl.Int64).name.prefix("n_"))
            total ^= hash(numbers.collect(engine="streaming").row(0))
    return {"sum": total % 2**31}


def _by_hand(folder: Path, lake: str, *, check: bool = False) -> dict[str, int]:
    """The query somebody would write who knows the data."""
    import duckdb

    attempts, reports = ([str(path) for path in _files(folder / lake, table)] for table in ("attempt", "reading"))
    query = f"""
    with a as (
        select attempt_hi as h, attempt_lo as l, tenant, coalesce(model_served, model_requested) as model,
            coalesce(input_computed, input_recounted) as i, coalesce(output_computed, output_recounted) as o
        from read_parquet({attempts}, hive_partitioning = false)
    ), r as (
        select attempt_hi as rh, attempt_lo as rl, model as rm, input_total as ri, output_total as ro
        from read_parquet({reports}, hive_partitioning = false)
        where verdict in ('PROVED', 'ASSUMED') and input_total <= {2**40} and output_total <= {2**40}
    )
    select coalesce(tenant, 'unassigned') as tenant, coalesce(model, rm) as model,
        case when l is null then 'unseen' when rl is null then 'missing' when ri <> i then 'input_differs'
            when ro <> o then 'output_differs' else 'matched' end as kind,
        count(*) as attempts, sum(i) as input, sum(o) as output, sum(ri - i) as input_difference,
        sum(ro - o) as output_difference, round(quantile_cont(o, 0.95) * 100)::bigint as p95
    from a full join r on h = rh and l = rl group by all
    """
    connection = duckdb.connect()
    for paths in (attempts, reports) if check else ():
        keys = f"select attempt_lo from read_parquet({paths}, hive_partitioning = false) group by 1 having count(*) > 1"
        if connection.sql(f"select count(*) from ({keys})").fetchall() != [(0,)]:
            raise SystemExit("keys are repeated: the query would count them twice")
    connection.sql(f"copy ({query}) to '{folder}/hand_{lake}.parquet'")
    return {}


def step_hand(folder: Path, *_: int) -> dict[str, int]:
    """The query on the lake's own files."""
    return _by_hand(folder, "lake")


def step_hand_checked(folder: Path, *_: int) -> dict[str, int]:
    """The same, after a look for repeated keys."""
    return _by_hand(folder, "lake", check=True)


def step_hand_loose(folder: Path, *_: int) -> dict[str, int]:
    """The query on files without order."""
    return _by_hand(folder, "loose")


def _overview(folder: Path, lake: str, engine: str, name: str) -> dict[str, int]:
    from weighbridge.pipeline.lake.committed import Committed
    from weighbridge.pipeline.reconcile.overview.overview import overview

    groups = overview(Committed.open(folder / lake), engine=engine)
    groups.write_parquet(folder / f"{name}.parquet")
    return {"attempts": int(groups["attempts"].sum())}


def step_sorted(folder: Path, *_: int) -> dict[str, int]:
    """The product on the lake's own files, which are sorted; their order is checked."""
    return _overview(folder, "lake", "polars", "sorted")


def step_loose(folder: Path, *_: int) -> dict[str, int]:
    """The product on files without order."""
    return _overview(folder, "loose", "polars", "loose")


def step_duckdb(folder: Path, *_: int) -> dict[str, int]:
    """The product on DuckDB."""
    return _overview(folder, "lake", "duckdb", "duckdb")


def step_spark(folder: Path, *_: int) -> dict[str, int]:
    """The product on Spark: its JVM is a child of this process, and counted with it once it has been waited for."""
    from pyspark import SparkContext

    told = _overview(folder, "lake", "spark", "spark")
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - nothing else names the JVM's process
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=60)
    return told


STEPS: dict[str, Callable[..., dict[str, int]]] = {
    name.removeprefix("step_"): function for name, function in list(globals().items()) if name.startswith("step_")
}
MEASURED = ("floor", "hand", "hand_checked", "sorted", "hand_loose", "loose", "duckdb")
# What a step imports before its work begins; others import as they go, which is counted as work.
_PRODUCT = ("weighbridge.pipeline.lake.committed", "weighbridge.pipeline.reconcile.overview.overview")
IMPORTS = {
    "floor": ("polars", "weighbridge.pipeline.reconcile.overview.pairs"),
    **dict.fromkeys(("hand", "hand_checked", "hand_loose"), ("duckdb",)),
    **dict.fromkeys(("sorted", "loose"), _PRODUCT),
    "duckdb": (*_PRODUCT, "weighbridge.pipeline.reconcile.engines.on_duckdb", "duckdb"),
}


def _files(lake: Path, table: str) -> list[Path]:
    return sorted((lake / "billing" / table).rglob("day=*/*.parquet"))


def differing(folder: Path, name: str, hand: str) -> int:
    """How many groups of a result are not those of the hand-written query."""
    import polars as pl

    ours = pl.read_parquet(folder / f"{name}.parquet").rename({"output_p95_hundredths": "p95"})
    theirs = pl.read_parquet(folder / f"{hand}.parquet").select(
        pl.col(n).cast(pl.Int64) if n not in GROUPS else n for n in ours.columns
    )
    both = ours.join(theirs, on=ours.columns, how="semi", nulls_equal=True).height
    return max(ours.height, theirs.height) - both


# --- the whole benchmark -----------------------------------------------------------------------------------------


def run(folder: Path, attempts: int, days: int, repeats: int) -> list[tuple[bool, str]]:
    """Make the data, run every step, print the table; what was held against its limit."""
    reports = _made(folder, attempts, days)
    if not (folder / "loose").exists():
        measured("shuffle", folder)
    runs: dict[str, list[Cost]] = {step: [] for step in MEASURED}
    for _ in range(repeats):
        for step in MEASURED:
            runs[step].append(measured(step, folder))
    costs = {step: min(found, key=lambda cost: cost.work_s) for step, found in runs.items()}
    print(f"{attempts:,} attempts, {reports:,} reports, {days} days; best of {repeats}, load {_load()}\n")
    print(f"{'CPU s:':<14}{'start':>8}{'work':>8}{'worst':>8}{'x floor':>9}", end="")
    print(f"{'x hand':>9}{'x checked':>11}{'whole':>9}{'x hand':>9}{'peak GiB':>10}")
    for step, cost in costs.items():
        worst = max(each.work_s for each in runs[step])
        hand = costs[_hand(step)]
        floor, trusting, checked = (
            cost.work_s / other.work_s for other in (costs["floor"], hand, costs["hand_checked"])
        )
        print(f"{step:<14}{cost.start_s:>8.2f}{cost.work_s:>8.2f}{worst:>8.2f}{floor:>9.1f}", end="")
        print(
            f"{trusting:>9.2f}{checked:>11.2f}{cost.cpu_s:>9.2f}{cost.cpu_s / hand.cpu_s:>9.2f}{cost.peak_gib:>10.2f}"
        )
    return list(_judged(folder, costs, attempts))


def _hand(step: str) -> str:
    return "hand_loose" if "loose" in step else "hand"


def _judged(folder: Path, costs: dict[str, Cost], attempts: int) -> Iterator[tuple[bool, str]]:
    limits = {"sorted": SORTED_TO_HAND, "loose": LOOSE_TO_HAND, "duckdb": DUCKDB_TO_HAND}
    for name in limits:
        wrong = differing(folder, name, "hand_loose" if name == "loose" else "hand_lake")
        yield wrong == 0, f"{name}: {wrong} groups differ from the query by hand"
        yield costs[name].told["attempts"] >= attempts, f"{name}: every attempt is counted"
    for name, limit in limits.items():
        ratio = costs[name].work_s / costs[_hand(name)].work_s
        yield ratio <= limit, f"{name}: {ratio:.2f} times the work of the query by hand, at most {limit}"
        yield costs[name].peak_gib <= PEAK_GIB, f"{name}: {costs[name].peak_gib:.2f} GiB, at most {PEAK_GIB}"


def grown(folder: Path, small: Path, attempts: int, large: int, days: int) -> Iterator[tuple[bool, str]]:
    """The sorted way on many more rows on the same number of days, between two runs on the few."""
    _made(folder, large, days)
    before, cost, after = (measured("sorted", _warm(place)) for place in (small, folder, small))
    own = min((before, after), key=lambda each: each.work_s)
    expected = own.work_s * large / attempts
    print(
        f"\n{large:,} attempts: {cost.work_s:.2f} CPU s of work ({cost.work_s / expected:.2f} of linear), "
        f"{cost.peak_gib:.2f} GiB, load {_load()}; {attempts:,} before and after it: {before.work_s:.2f} and "
        f"{after.work_s:.2f} CPU s, {own.peak_gib:.2f} GiB"
    )
    yield cost.told["attempts"] >= large, "every attempt of the large lake is counted"
    yield cost.work_s <= expected * LINEAR, f"{cost.work_s:.1f} CPU s, at most {LINEAR} times linear ({expected:.1f})"
    most = own.peak_gib * FLAT
    yield cost.peak_gib <= most, f"{cost.peak_gib:.2f} GiB, at most {FLAT} times those of the small one ({most:.2f})"


def _warm(folder: Path) -> Path:
    """The folder, whose files the system has in its memory: bringing them in from a disk is CPU time of the system."""
    for path in (folder / "lake").rglob("*.parquet"):
        with path.open("rb") as file:
            while file.read(2**24):
                pass
    return folder


def on_spark(folder: Path, attempts: int, days: int) -> Iterator[tuple[bool, str]]:
    """Spark on two cores, beside Polars on the same lake."""
    _made(folder, attempts, days)
    measured("hand", folder)
    for name, result in (("polars", "sorted"), ("spark", "spark")):
        began = time.monotonic()
        cost = measured(result, folder)
        wall = time.monotonic() - began
        print(f"{attempts:,} attempts on {name}: {wall:.1f} s, {cost.cpu_s:.1f} CPU s, load {_load()}", flush=True)
        wrong = differing(folder, result, "hand_lake")
        yield wrong == 0, f"{name}: {wrong} groups differ from the query by hand"
        yield cost.told["attempts"] >= attempts, f"{name}: every attempt is counted"


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}"


def main() -> int:
    """Run the benchmark, or one step of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--attempts", type=int, default=10_000_000)
    parser.add_argument("--days", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--large", type=int, default=0, help="also measure the growth to so many attempts")
    parser.add_argument("--spark", type=int, default=0, help="also run Spark on so many attempts")
    parser.add_argument("--folder", type=Path, help="where lakes are made and kept; a temporary one")
    parser.add_argument("--step", choices=sorted(STEPS), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.large and not given.attempts:
        parser.error("--large is measured beside --attempts, which may not be 0 then")
    if given.step:
        for module in IMPORTS.get(given.step, ()):
            import_module(module)
        used = resource.getrusage(resource.RUSAGE_SELF)
        told = STEPS[given.step](given.folder, given.attempts, given.days)
        print(json.dumps({**told, "start_s": used.ru_utime + used.ru_stime}))
        return 0
    folder = given.folder or Path(tempfile.mkdtemp(prefix="weighbridge-reconcile-"))
    try:
        judged: list[tuple[bool, str]] = []
        places = {name: folder / name for name in ("first", "large", "spark")}
        for place in places.values():
            place.mkdir(parents=True, exist_ok=True)
        if given.attempts:
            judged = run(places["first"], given.attempts, given.days, given.repeats)
        if given.large:
            judged += grown(places["large"], places["first"], given.attempts, given.large, given.days)
        if given.spark:
            judged += on_spark(places["spark"], given.spark, given.days)
        print()
        for holds, what in judged:
            print("ok   " if holds else "WRONG", what)
        return 0 if all(holds for holds, _ in judged) else 1
    finally:
        if given.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
