"""Baselines at scale, held to their promise, beside the usual rules, and on a month with incidents.

    python benchmarks/baseline.py [scale] [promise] [month] [--attempts N] [--cells N] [--lines N] [--seed N]

    scale    a day of 5,000 series beside 10,000,000 attempts of twelve weeks, in CPU seconds and peak memory. The floor
             reads the same columns with pyarrow and adds up every number; the peer is the usual rule (median and three
             and a half median deviations of each cell) as one Polars query over the same rows, and nothing else.
    promise  per recorded series the share of rows that a limit of 1 % and of 5 % is exceeded by, with the exact bound;
             the usual rules on the same rows; and nights on which nothing changed.
    month    twelve weeks and a month resampled from recorded lengths with daily and weekly season: a clean one, and one
             with incidents, judged night by night; an operator confirms what is true and waives what is not.

Without names all three run. Every step of `scale` is a process of its own, imports included. Where the recorded lengths
are not beside the checkout, made-up ones stand in, and that is said. Exit code 0: everything holds; 1: not.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from weighbridge.pipeline.baseline.policy import BaselinePolicy
    from weighbridge.pipeline.lake import Lake
    from weighbridge.pipeline.simulate.incidents import Incident, Lengths, Line

CPU_BUDGET_S = 40.0
MEMORY_BUDGET_GIB = 3.0
PARTS = ("scale", "promise", "month")
START = date(2026, 1, 5)
SEASON, MONTH = 84, 31
GROWN = 20  # of the largest series: their answers double on the judged day
REAL = Path(os.environ.get("WEIGHBRIDGE_REAL", Path(__file__).resolve().parents[2] / "shared" / "real"))
NAMES = ("code in", "code out", "chat in", "chat out", "summary in", "summary out")


# --- scale ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """What one step took: CPU seconds (user and system), peak resident memory in GiB, and what it printed."""

    cpu_s: float
    peak_gib: float
    told: dict[str, Any]


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


def step_make(folder: Path, attempts: int, cells: int, seed: int) -> dict[str, Any]:
    """Write the lake: attempts and readings of 85 days, prices and amounts of the last."""
    import numpy as np
    import polars as pl

    from weighbridge.pipeline.lake import Lake
    from weighbridge.pipeline.simulate.incidents import Line, prices

    rng = np.random.default_rng(seed)
    lake = Lake.create(folder / "lake")
    number = np.arange(cells)
    names = pl.DataFrame(
        {
            "tenant": [f"t_{value:016x}" for value in number % 500],
            "task": [("chat", "code_generation", "document_summary", "extract")[value // 500 % 4] for value in number],
            "model_served": [f"model-{value // 2000}" for value in number],
            "strategy_id": [f"{value % 3:032x}" for value in number],
        }
    )
    lines = [
        Line(tenant="t_" + "0" * 16, task="chat", model=f"model-{value}", lengths="", requests=1) for value in range(8)
    ]
    lake.append("price", prices(lines))
    weight = (number + 20.0) ** -0.7
    prompt, answer = rng.normal(7, 0.5, cells), rng.normal(5, 0.5, cells)
    for day in range(SEASON + 1):
        rows = attempts // (SEASON + 1)
        series = rng.choice(cells, rows, p=weight / weight.sum())
        grown = (day == SEASON) & (series < GROWN)
        tables = _day(rng, START + timedelta(days=day), names[series], prompt[series], answer[series], grown)
        lake.append("attempt", tables[0])
        lake.append("reading", tables[1])
        if day == SEASON:
            lake.append("priced_amount", _amounts(tables[1]))
    return {"attempts": lake.rows("attempt"), "series": cells, "bytes": sum(f.stat().st_size for f in _files(folder))}


def _day(
    rng: Any, day: date, names: pl.DataFrame, prompt: Any, answer: Any, grown: Any
) -> tuple[pl.DataFrame, pl.DataFrame]:
    import numpy as np
    import polars as pl

    rows = names.height
    midnight = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
    keys = pl.DataFrame(
        {
            "attempt_hi": rng.integers(0, 2**62, rows),
            "attempt_lo": rng.integers(-(2**63), 2**63 - 1, rows),
        }
    ).with_columns(pl.lit(day).alias("day"), pl.lit(0, dtype=pl.Int32).alias("revision"), segment=pl.lit("a" * 64))
    attempt = pl.concat([keys, names], how="horizontal").with_columns(
        pl.Series("arrived_at", (midnight + rng.integers(0, 86_400, rows)) * 10**6).cast(pl.Datetime("us", "UTC")),
        pl.Series("attempt_number", np.where(rng.random(rows) < 0.98, 1, 2).astype(np.int32)),
        pl.Series("subject_bucket", rng.integers(0, 256, rows).astype(np.int32)),
        source=pl.lit("agent"),
        tokenizer=pl.lit("o200k_base"),
        route=pl.lit("main"),
        status=pl.lit("succeeded"),
    )
    tokens = np.exp(prompt + 0.8 * rng.standard_normal(rows)).astype(np.int64)
    cached = np.where(rng.random(rows) < 0.4, tokens // 2, 0)
    told = np.exp(answer + 0.7 * rng.standard_normal(rows)).astype(np.int64) * np.where(grown, 2, 1)
    zero = pl.lit(0, dtype=pl.Int64)
    reading = keys.with_columns(
        pl.Series("input_uncached", tokens - cached),
        pl.Series("cache_read", cached),
        pl.Series("output_visible", told),
        pl.Series("input_total", tokens),
        pl.Series("output_total", told),
        *(pl.lit(0, dtype=pl.Int32).alias(name) for name in ("child", "report")),
        model=names["model_served"],
        source=pl.lit("api"),
        verdict=pl.lit("PROVED"),
        ended=pl.lit("complete"),
        **dict.fromkeys(("reasoning", "cache_write_5m", "cache_write_1h", "cache_write_unknown"), zero),
    )
    return attempt, reading


def _amounts(reading: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    from weighbridge.pipeline.simulate.incidents import price_id
    from weighbridge.schemas.lattice import REPORTED_CLASSES

    each = {"cache_read": Decimal("0.5"), "output_visible": Decimal(8), "reasoning": Decimal(8)}
    million = pl.lit(Decimal(10**6), dtype=pl.Decimal(38, 0))
    costs = [
        (
            pl.col(str(name)).cast(pl.Decimal(38, 0))
            * pl.lit(each.get(str(name), Decimal(2)), dtype=pl.Decimal(38, 18))
            / million
        )
        .cast(pl.Decimal(38, 18))
        .alias(f"amount_{name}")
        for name in REPORTED_CLASSES
    ]
    ids = {f"model-{value}": price_id(f"model-{value}") for value in range(8)}
    priced = reading.with_columns(
        *costs,
        basis=pl.lit("reported"),
        currency=pl.lit("USD"),
        status=pl.lit("priced"),
        price_id=pl.col("model").replace_strict(ids),
    )
    names = [
        "attempt_hi",
        "attempt_lo",
        "day",
        "source",
        "child",
        "report",
        "revision",
        "basis",
        "price_id",
        "currency",
    ]
    amounts = [f"amount_{name}" for name in REPORTED_CLASSES]
    whole = pl.sum_horizontal(amounts).cast(pl.Decimal(38, 18)).alias("amount")
    return priced.select(*names, *amounts, whole, "status")


def step_floor(folder: Path, *_: int) -> dict[str, Any]:
    """Read the columns that baselines need and add up every number in them."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from weighbridge.pipeline.baseline.usage import _ATTEMPT_READ, _READING

    rows, total = 0, 0
    for path in _files(folder):
        wanted = {"attempt": _ATTEMPT_READ, "reading": _READING}.get(path.parent.parent.name)
        if wanted is None:
            continue
        table = pq.read_table(path, columns=[name for name in wanted if name != "day"], partitioning=None)
        rows += table.num_rows
        for column in table.columns:
            if pa.types.is_integer(column.type):
                total ^= pc.sum(column).as_py() or 0
    return {"rows": rows, "sum": total}


def step_peer(folder: Path, *_: int) -> dict[str, Any]:
    """The usual rule: per cell the median and three and a half median deviations, rows of the last day beyond them."""
    import polars as pl

    from weighbridge.pipeline.lake import Lake

    lake = Lake.open(folder / "lake")
    last = lake.days("attempt")[-1]
    cell, key = ["tenant", "task", "model_served", "tokenizer", "strategy_id"], ["attempt_lo", "attempt_hi"]
    counts = ["input_uncached", "cache_read", "output_visible"]
    attempts = lake.scan("attempt", columns=[*key, "day", *cell])
    rows = attempts.join(lake.scan("reading", columns=[*key, *counts]), on=key).drop(key).collect(engine="streaming")
    past = rows.lazy().filter(pl.col("day") < last)
    middle = past.group_by(cell).agg(pl.col(counts).median().name.suffix("_m"))
    off = past.join(middle, on=cell).with_columns(
        (pl.col(name) - pl.col(f"{name}_m")).abs().alias(name) for name in counts
    )
    spread = off.group_by(cell).agg(pl.col(counts).median().name.suffix("_s"))
    day = rows.lazy().filter(pl.col("day") == last).join(middle, on=cell).join(spread, on=cell)
    limit = [pl.col(name) > pl.col(f"{name}_m") + 3.5 * 1.4826 * pl.col(f"{name}_s") for name in counts]
    flagged = (
        day.group_by(cell).agg(pl.any_horizontal(limit).any().alias("hit")).filter("hit").collect(engine="streaming")
    )
    return {"rows": rows.height, "flagged series": flagged.height}


def step_judge(folder: Path, *_: int) -> dict[str, Any]:
    """Judge the last day."""
    import polars as pl

    from weighbridge.pipeline.baseline.baseline import baseline
    from weighbridge.pipeline.lake import Lake

    lake = Lake.open(folder / "lake")
    last = lake.days("attempt")[-1]
    result = baseline(lake, days=[last], policy=_policy(floor=Decimal("0.01")))
    rows = lake.scan("baseline", first=last, last=last).filter(pl.col("reported") & pl.col("p_value").is_not_null())
    found = rows.collect()
    named = found.filter((pl.col("driver") == "output_per_request") & (pl.col("day_rows") >= 100))
    return {
        "cells": result.cells,
        "tested": result.tested,
        "reported": found.height,
        "named": named.select("tenant", "task", "model", "strategy_id").n_unique(),
        "promise": round(result.test_alarms / max(result.test_days, 1), 4),
    }


STEPS: dict[str, Callable[..., dict[str, Any]]] = {
    "make": step_make,
    "floor": step_floor,
    "peer": step_peer,
    "judge": step_judge,
}


def _files(folder: Path) -> list[Path]:
    return sorted((folder / "lake" / "billing").glob("*/*/*.parquet"))


def scale(folder: Path, given: argparse.Namespace) -> Iterator[str]:
    """Run every step, print the table, and tell what does not hold."""
    told = ("--attempts", str(given.attempts), "--cells", str(given.cells), "--seed", str(given.seed))
    costs = {step: measured(step, folder, *told) for step in STEPS}
    made, judged = costs["make"].told, costs["judge"]
    print(
        f"{made['attempts']:,} attempts of {made['series']:,} series on {SEASON + 1} days, "
        f"{made['bytes'] / 2**20:,.0f} MiB\n"
    )
    print(f"{'step':<8}{'CPU s':>8}{'x floor':>9}{'peak GiB':>10}  counts")
    for step, cost in costs.items():
        counts = ", ".join(f"{name} {value:,}" for name, value in cost.told.items() if name not in {"sum", "bytes"})
        print(f"{step:<8}{cost.cpu_s:>8.2f}{cost.cpu_s / costs['floor'].cpu_s:>9.1f}{cost.peak_gib:>10.2f}  {counts}")
    grown = min(GROWN, made["series"])
    facts = [
        (costs["floor"].told["rows"] == 2 * made["attempts"], "the floor read every row"),
        (costs["peer"].told["rows"] == made["attempts"], "the peer read every row"),
        (judged.told["tested"] >= made["series"], "every series was tested"),
        (judged.told["promise"] <= 0.05, "the reference windows kept the promise"),
        (judged.told["named"] >= grown or made["attempts"] < 10**6, f"all {grown} doubled series were found and named"),
        (judged.cpu_s < CPU_BUDGET_S, f"{judged.cpu_s:.1f} CPU s stay under {CPU_BUDGET_S:.0f}"),
        (judged.peak_gib < MEMORY_BUDGET_GIB, f"{judged.peak_gib:.2f} GiB stay under {MEMORY_BUDGET_GIB:.0f}"),
    ]
    yield from (fact for holds, fact in facts if not holds)


# --- the promise ------------------------------------------------------------------------------------------------


def recorded() -> tuple[dict[str, Any], bool]:
    """Name -> tokens in the order of their recording, and whether they are recorded ones."""
    import numpy as np
    import polars as pl

    folder = REAL / "traces"
    if not folder.is_dir():
        from weighbridge.pipeline.simulate.incidents import made_up_lengths

        pairs = [made_up_lengths(seed) for seed in range(3)]
        return {name: pairs[place // 2][place % 2] for place, name in enumerate(NAMES)}, False
    code = pl.read_csv(folder / "azure2023_code.csv").select("ContextTokens", "GeneratedTokens")
    chat = pl.read_ndjson(folder / "mooncake_synthetic.jsonl").select("input_length", "output_length")
    summary = pl.read_csv(folder / "vidur_arxiv_summarization_llama2.csv").select(
        "num_prefill_tokens", "num_decode_tokens"
    )
    columns = [frame.to_series(place) for frame in (code, chat, summary) for place in (0, 1)]
    return {
        name: column.cast(pl.Int64).to_numpy().astype(np.int64) for name, column in zip(NAMES, columns, strict=True)
    }, True


def promise(given: argparse.Namespace) -> Iterator[str]:
    """Print what every rule does where it means 1 % and 5 %, and tell where ours is beyond its exact bound."""
    series, real = recorded()
    print(
        f"\n{'recorded' if real else 'MADE-UP'} lengths; each stretch of n rows gives a limit for the n rows after it"
    )
    print(
        f"{'series':<13}{'n':>6}{'means':>7}{'ours':>9}{'bound 99.9 %':>14}"
        f"{'quantile':>10}{'lognormal':>11}{'MAD 3.5':>9}"
    )
    for name, values in series.items():
        for train, rate in ((300, Fraction(1, 100)), (300, Fraction(5, 100)), (1000, Fraction(1, 100))):
            rates, bound = _rates(values, train, rate)
            told = "".join(
                f"{100 * share:>{width}.2f} %"
                for share, width in zip((*rates[:1], bound, *rates[1:]), (7, 12, 8, 9, 7), strict=True)
            )
            print(f"{name:<13}{train:>6}{100 * float(rate):>5.0f} %{told}")
            if rates[0] > bound:
                yield f"{name}: {100 * rates[0]:.2f} % exceed a limit of {100 * float(rate):.0f} % (n = {train})"
    yield from _nights(series, given.seed)


def _rates(values: Any, train: int, rate: Fraction) -> tuple[list[float], float]:
    """Shares of new rows that four rules call too high, and the share that one in a thousand would have at most."""
    import numpy as np

    from weighbridge.pipeline.baseline.limits import rank_of
    from weighbridge.pipeline.baseline.tails import beta_binomial_tail

    rank = int(rank_of(np.array([train]), rate)[0])
    normal = {Fraction(1, 100): 2.326, Fraction(5, 100): 1.645}[rate] * (1 + 1 / (4 * train))
    hits = np.zeros((0, 4))
    stretches = len(values) // (2 * train)
    for at in range(0, stretches * 2 * train, 2 * train):
        past, new = values[at : at + train], values[at + train : at + 2 * train]
        middle, logs = np.median(past), np.log1p(past)
        spread = 1.4826 * np.median(np.abs(past - middle))
        high = (
            new > np.sort(past)[rank - 1],
            new > np.quantile(past, 1 - float(rate)),
            np.log1p(new) > logs.mean() + normal * logs.std(ddof=1) * np.sqrt(1 + 1 / train),
            new > middle + 3.5 * spread,
        )
        hits = np.vstack([hits, [rule.mean() for rule in high]])
    count = np.arange(train + 2)
    tail = beta_binomial_tail(count, np.full_like(count, train), np.full_like(count, train), np.full_like(count, rank))
    whole = np.array([1.0])
    for _ in range(stretches):
        whole = np.convolve(whole, np.diff(-tail))
    most = int(np.flatnonzero(np.cumsum(whole) >= 0.999)[0])
    return [float(share) for share in hits.mean(axis=0)], most / (stretches * train)


def _nights(series: dict[str, Any], seed: int) -> Iterator[str]:
    """Nights of cells that draw from the recorded rows: shares of small p-values, and nights with any report."""
    import numpy as np
    import polars as pl

    nights, lines = 20, 12
    lengths = _pairs(series)
    with tempfile.TemporaryDirectory() as folder:
        lake, days = _lake(Path(folder), lengths, _lines(lines, 120.0), (), nights, seed + 1000)
        from weighbridge.pipeline.baseline.baseline import baseline

        baseline(lake, days=days[SEASON:], policy=_policy(floor=Decimal("0.001")))
        rows = lake.scan("baseline").collect()
    print(f"\n{nights} nights of {lines} lines resampled from them, nothing changed")
    print(f"{'test':<13}{'p-values':>10}{'at most 5 %':>13}{'1 %':>9}{'0.1 %':>9}")
    for (method,), own in sorted(rows.drop_nulls("p_value").partition_by("method", as_dict=True).items()):
        p = own["p_value"].to_numpy()
        shares = [(p <= level).mean() for level in (0.05, 0.01, 0.001)]
        print(
            f"{method!s:<13}{len(p):>10,}{100 * shares[0]:>11.2f} %{100 * shares[1]:>7.2f} %{100 * shares[2]:>7.2f} %"
        )
        for level, share in zip((0.05, 0.01), shares, strict=False):
            if share > level + 4 * np.sqrt(level / len(p)):
                yield f"{method}: {100 * share:.2f} % of p-values are at most {100 * level:.0f} %"
    reports = rows.filter("reported")["day"].n_unique()
    print(
        f"nights with a report: {reports} of {nights}; "
        f"promised are at most {nights / 20:.0f}, by chance up to {_chance(nights)}"
    )
    kept = rows.filter(pl.col("test_days") > 0)
    print(f"self-test: {100 * int(kept['test_alarms'].sum()) / int(kept['test_days'].sum()):.2f} % of days beyond 5 %")
    if reports > _chance(nights):
        yield f"{reports} of {nights} nights without any change have a report"


def _chance(nights: int) -> int:
    """The largest number of nights with a report that one in a thousand would have at 5 %."""
    import numpy as np

    from weighbridge.pipeline.baseline.tails import binomial_tail

    counts = np.arange(nights + 2)
    return int(np.flatnonzero(binomial_tail(counts, np.full_like(counts, nights), 0.05) <= 0.001)[0]) - 1


# --- the month --------------------------------------------------------------------------------------------------


def _policy(**changes: Any) -> BaselinePolicy:
    from weighbridge.pipeline.baseline.policy import BaselinePolicy

    return replace(BaselinePolicy.default(), **{"tasks": {}, **changes})


def _pairs(series: dict[str, Any]) -> dict[str, Lengths]:
    return {task: (series[f"{task} in"], series[f"{task} out"]) for task in ("code", "chat", "summary")}


def _lines(number: int, requests: float) -> list[Line]:
    from weighbridge.pipeline.simulate.incidents import Line

    tasks = ("code", "chat", "summary")
    dear = (Decimal(20), Decimal(5), Decimal(80))
    return [
        Line(
            tenant=f"t_{place // 3:016x}",
            task=tasks[place % 3],
            model=f"model-{place % 4}",
            lengths=tasks[place % 3],
            requests=requests * (0.9 + place % 7 / 10),
            cached=0.9 if place % 5 == 1 else 0.4,
            prices=dear,
            season=0.3,
        )
        for place in range(number)
    ]


def _lake(
    folder: Path,
    lengths: dict[str, Lengths],
    lines: Sequence[Line],
    incidents: Sequence[Incident],
    nights: int,
    seed: int,
) -> tuple[Lake, list[date]]:
    import polars as pl

    from weighbridge.pipeline.lake import Lake
    from weighbridge.pipeline.simulate.incidents import month as traffic
    from weighbridge.pipeline.simulate.incidents import prices

    lake = Lake.create(folder / "lake")
    lake.append("price", prices(lines, incidents))
    for day in traffic(lengths, lines, incidents, seed=seed, start=START, days=SEASON + nights):
        for table, rows in day.tables.items():
            lake.append(table, pl.DataFrame(rows))
    return lake, lake.days("attempt")


def _incidents() -> list[tuple[Incident, str, int]]:
    """What happens, what has to be named, and within how many days."""
    from weighbridge.pipeline.simulate.incidents import Incident, IncidentKind

    kind, at = IncidentKind, SEASON
    other = ("model-x", (Decimal(100), Decimal(25), Decimal(400)))
    large, small = 1, 5
    return [
        (Incident(kind=kind.OUTPUT_GROWTH, line=0, first=at + 2, days=6, size=2.0), "output_per_request", large),
        (Incident(kind=kind.OUTPUT_GROWTH, line=4, first=at + 3, days=6, size=2.0), "output_per_request", large),
        (Incident(kind=kind.OUTPUT_GROWTH, line=8, first=at + 4, days=6, size=2.0), "output_per_request", large),
        (Incident(kind=kind.KEY_BURST, line=3, first=at + 5, days=3, size=2.0), "key_burst", large),
        (Incident(kind=kind.KEY_BURST, line=7, first=at + 9, days=5, size=0.7), "key_burst", large),
        (Incident(kind=kind.RETRY_STORM, line=2, first=at + 7, days=3, size=0.6), "retries", large),
        (Incident(kind=kind.CACHE_BREAKER, line=1, first=at + 8, days=6), "cache_share", large),
        (Incident(kind=kind.CACHE_BREAKER, line=11, first=at + 10, days=6), "cache_share", large),
        (Incident(kind=kind.MODEL_SWAP, line=5, first=at + 11, days=20, to=other), "model_mix", large),
        (Incident(kind=kind.TEMPLATE, line=9, first=at + 13, days=18, size=1.3), "input_per_request", small),
        (Incident(kind=kind.TEMPLATE, line=10, first=at + 14, days=17, size=1.3), "input_per_request", small),
        (Incident(kind=kind.TEMPLATE, line=14, first=at + 15, days=16, size=1.3), "input_per_request", small),
        (Incident(kind=kind.CACHE_BREAKER, line=12, first=at + 16, days=10), "cache_share", small),
    ]


def month(folder: Path, given: argparse.Namespace) -> Iterator[str]:
    """Judge a clean and a faulty month; print what was found when, and tell what does not hold."""
    import polars as pl

    from weighbridge.pipeline.baseline.baseline import baseline

    series, real = recorded()
    lengths, lines = _pairs(series), _lines(given.lines, 700.0)
    policy = _policy(floor=Decimal("0.05"))
    clean, days = _lake(folder / "clean", lengths, lines, (), MONTH, given.seed)
    baseline(clean, days=days[SEASON:], policy=policy)
    rows = clean.scan("baseline").collect()
    reports = rows.filter("reported")
    nights = reports["day"].n_unique()
    print(
        f"\na clean month of {len(lines)} lines, {clean.rows('attempt'):,} attempts, "
        f"{'recorded' if real else 'MADE-UP'} lengths:"
    )
    print(
        f"{rows.drop_nulls('p_value').height:,} tests, {nights} of {MONTH} nights with a report "
        f"({reports.height} cells);",
        end=" ",
    )
    print(f"promised are at most 5 %, by chance up to {_chance(MONTH)}")
    if nights > _chance(MONTH):
        yield f"{nights} nights of the clean month have a report"
    shutil.rmtree(folder / "clean")
    struck = _incidents()
    faulty, days = _lake(folder / "faulty", lengths, lines, [each[0] for each in struck], MONTH, given.seed)
    true, false = _night_by_night(faulty, days[SEASON:], policy, lines, [each[0] for each in struck])
    hits = faulty.scan("baseline").filter("reported").collect()
    print(f"\nthe same month with {len(struck)} incidents, judged night by night\n")
    print(f"{'incident':<16}{'size':>6}  {'task':<9}{'rows that day':>14}{'began':>7}{'found':>7}  named")
    for incident, driver, within in struck:
        own = lines[incident.line]
        began = days[incident.first]
        mine = hits.filter(
            (pl.col("tenant") == own.tenant) & (pl.col("task") == own.task) & (pl.col("day") >= began)
        ).sort("day")
        named = mine.filter(pl.col("driver") == driver)
        first = named["day"][0] if named.height else None
        on = sorted(set(mine.filter(pl.col("day") == first)["driver"])) if first else []
        late = None if first is None else (first - began).days
        volume = int(named["day_rows"][0]) if named.height else 0
        told = f"{incident.first - SEASON:>7}{'-' if late is None else f'+{late}':>7}  {', '.join(on)}"
        print(f"{incident.kind:<16}{incident.size:>6}  {own.task:<9}{volume:>14,}{told}")
        if late is None or late >= within or on != [driver]:
            yield f"{incident.kind} of line {incident.line}: found after {late} days, named {on}"
    print(f"\nof {true + false} reported series and nights, {false} false")
    if false > 0.05 * (true + false) + 3 * (0.05 * (true + false)) ** 0.5:
        yield f"{false} of {true + false} reports are false"


def _night_by_night(
    lake: Lake, days: Sequence[date], policy: BaselinePolicy, lines: Sequence[Line], incidents: Sequence[Incident]
) -> tuple[int, int]:
    """Judge each night; what is true is confirmed, what is false waived. How many series and nights were which."""
    from weighbridge.pipeline.baseline.baseline import baseline
    from weighbridge.pipeline.lake.life import states
    from weighbridge.pipeline.reconcile.life.status import acknowledge, waive

    struck = {(lines[incident.line].tenant, lines[incident.line].task): incident for incident in incidents}
    true = false = 0
    for number, day in enumerate(days, start=SEASON):
        now = datetime(day.year, day.month, day.day, 23, tzinfo=UTC)
        for finding in baseline(lake, days=[day], policy=policy).raised:
            if finding.code != "baseline_exceeded":
                continue
            incident = struck.get((finding.subject["tenant"], finding.subject["task"]))
            real = incident is not None and incident.first <= number < incident.first + incident.days
            true, false = true + real, false + (not real)
            known = states(lake, day).filter(_is(finding.finding_id))
            if known.is_empty() and real:
                acknowledge(lake, finding.finding_id, by="operator", now=now)
            elif known.is_empty():
                waive(lake, finding.finding_id, by="operator", reason="ordinary", expires=date(2027, 1, 1), now=now)
    return true, false


def _is(finding_id: str) -> pl.Expr:
    import polars as pl

    return pl.col("finding_id") == finding_id


def main() -> int:
    """Run the benchmark, or one step of it."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="which parts; all where left out")
    parser.add_argument("--attempts", type=int, default=10_000_000)
    parser.add_argument("--cells", type=int, default=5_000, help="series of the part scale")
    parser.add_argument("--lines", type=int, default=24, help="series of the part month, at least 15")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="where to work; if left out, a temporary folder")
    parser.add_argument("--step", choices=sorted(STEPS), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        print(json.dumps(STEPS[given.step](given.folder, given.attempts, given.cells, given.seed)))
        return 0
    folder = given.folder or Path(tempfile.mkdtemp(prefix="weighbridge-baseline-"))
    parts = given.parts or PARTS
    try:
        wrong = [
            *(scale(folder / "scale", given) if "scale" in parts else ()),
            *(promise(given) if "promise" in parts else ()),
            *(month(folder / "month", given) if "month" in parts else ()),
        ]
    finally:
        if given.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    for line in wrong:
        print("WRONG:", line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
