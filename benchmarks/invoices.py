"""What it costs to hold a month's bill against calls: CPU seconds and peak memory, beside a floor of the same run.

    python benchmarks/invoices.py [--calls 200000] [--models 8] [--days 30] [--every-cell]

A month of calls of some models on two tiers, some failed, some longer than a threshold of price, a price that changes
in the middle; and a bill by day, model and class on which each model is billed in a way of its own: as agreed, failed
calls charged, cache writes at the other lifetime, batches as usual calls, old prices, rounded, with traffic that nobody
saw, and 0.3 % too much. With --every-cell every cell has the last difference, which nothing explains: the dearest case.
The floor reads and sums the columns that any comparison needs. Each is measured in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import polars as pl

from weighbridge.pipeline.invoice.ours.usage import AMOUNTS, CLASSES
from weighbridge.pipeline.invoice.reconcile import Books, months_compared
from weighbridge.pipeline.lake import Lake, polars_schema
from weighbridge.pipeline.lake.shape import complete
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.frame import refresh_prices
from weighbridge.pipeline.price.price_file import read_prices
from weighbridge.schemas.enumerations import Status
from weighbridge.schemas.lattice import CROSSED_CELLS

FIRST = datetime(2026, 4, 1, tzinfo=UTC)
WAYS = ("agreed", "failed", "lifetime", "tier", "date", "rounded", "unseen", "too_much")
OLD = {"input": "3", "cache_read": "0.3", "cache_write_5m": "3.75", "cache_write_1h": "6", "output": "15"}
NEW = {name: str(Decimal(price) * 2 / 3) for name, price in OLD.items()}


def prices(models: int) -> str:
    """A price file of this world."""
    rows = []
    for number in range(models):
        for term, table in (("valid_to", OLD), ("valid_from", NEW)):
            told = ", ".join(f'{name} = "{Decimal(price) * (number + 1)}"' for name, price in table.items())
            above = ", ".join(f'{name} = "{Decimal(price) * (number + 1) * 2}"' for name, price in table.items())
            rows.append(
                f'[[rows]]\nmodels = ["m{number}"]\n{term} = 2026-04-15\nprices = {{ {told} }}\n'
                f'above = [{{ input_tokens = 20000, rule = "cliff", prices = {{ {above} }} }}]\n'
                'variants = [{ when = { batch = true }, times = "0.5" }]\n'
            )
    return "\n".join(['provider = "acme"', 'currency = "USD"', 'source = "made up"', *rows])


def make(folder: Path, calls: int, models: int, days: int, *, every: bool) -> None:
    """The lake of it."""
    (folder / "prices.toml").write_text(prices(models), encoding="utf-8")
    lake = Lake.create(folder / "lake")
    book = PriceBook([read_prices(folder / "prices.toml")])
    chance = random.Random(1)
    for number in range(days):
        day = (FIRST + timedelta(days=number)).date()
        _calls(lake, day, calls // days, number, models, chance)
        refresh_prices(lake, book, [day])
    lines = _bill(lake, every=every)
    lake.append("invoice_line", complete("invoice_line", lines))


def _calls(lake: Lake, day: date, calls: int, number: int, models: int, chance: random.Random) -> None:
    seed = chance.randrange(2**31)
    dice = pl.int_range(calls, eager=True).hash(seed)
    rows = pl.DataFrame({"attempt_hi": pl.int_range(calls, eager=True) + number * calls, "dice": dice}).with_columns(
        attempt_lo=pl.col("attempt_hi"), day=pl.lit(day), source=pl.lit("gateway"), revision=pl.lit(0),
        model=pl.format("m{}", pl.col("dice") % models), provider=pl.lit("acme"), api=pl.lit("acme"),
        verdict=pl.lit("PROVED"), ended=pl.lit("complete"), child=pl.lit(0), report=pl.lit(0),
        arrived_at=pl.lit(datetime(day.year, day.month, day.day, tzinfo=UTC))
        + pl.duration(microseconds=((pl.col("dice") // 8) % 86_399_000_000).cast(pl.Int64)),
        total_us=pl.lit(2_000_000), tenant=pl.lit("unassigned"), route=pl.lit("unassigned"), task=pl.lit("unassigned"),
        status=pl.when(pl.col("dice") % 97 == 0).then(pl.lit("failed")).otherwise(pl.lit("succeeded")),
        batch=pl.when(pl.col("dice") % 11 == 0).then(pl.lit(value=True)),
        input_uncached=(pl.col("dice") // 3 % 4000).cast(pl.Int64) + pl.when(pl.col("dice") % 50 == 0).then(30_000)
        .otherwise(0),
        cache_read=(pl.col("dice") // 5 % 3000).cast(pl.Int64),
        cache_write_5m=pl.when(pl.col("dice") % 7 == 0).then((pl.col("dice") // 7 % 900).cast(pl.Int64)).otherwise(0),
        cache_write_1h=pl.lit(0), cache_write_unknown=pl.lit(0), reasoning=pl.lit(0),
        output_visible=(pl.col("dice") // 11 % 700).cast(pl.Int64),
        **{str(cell.name): pl.lit(0) for cell in CROSSED_CELLS},
    )  # fmt: skip
    rows = rows.with_columns(
        input_total=pl.sum_horizontal(CLASSES[:5]), output_total=pl.sum_horizontal(CLASSES[5:])
    ).with_columns(total=pl.col("input_total") + pl.col("output_total"), model_served="model")
    for table in ("attempt", "reading"):
        schema = polars_schema(table)
        names = [name for name in schema if name in rows.columns]
        lake.append(table, rows.select(pl.col(name).cast(schema[name]) for name in names))


def _bill(lake: Lake, *, every: bool) -> pl.DataFrame:
    """Lines by day, model and class, with the ways of each model."""
    keys = ["attempt_hi", "attempt_lo"]
    about = lake.scan("attempt", columns=[*keys, "status"])
    read = lake.scan("reading", columns=[*keys, "day", "model", "batch", *CLASSES])
    paid = lake.scan("priced_amount", columns=[*keys, *AMOUNTS])
    rows = read.join(about, on=keys).join(paid, on=keys)
    way = pl.col("model").str.slice(1).cast(pl.Int64) % len(WAYS)
    way = pl.lit(WAYS.index("too_much")) if every else way
    rows = rows.with_columns(way=way).filter((pl.col("status") != "failed") | (pl.col("way") == WAYS.index("failed")))
    frames = []
    for name, amount in zip(CLASSES, AMOUNTS, strict=True):
        cost = pl.col(amount) * pl.when((pl.col("way") == WAYS.index("tier")) & pl.col("batch").fill_null(False)).then(
            2
        )
        cost = pl.coalesce(cost, amount)
        into = pl.lit(name)
        if name == "cache_write_5m":
            moved = pl.col("way") == WAYS.index("lifetime")
            into = pl.when(moved).then(pl.lit("cache_write_1h")).otherwise(pl.lit(name))
            cost = pl.when(moved).then(cost * 8 / 5).otherwise(cost)
        dated = (pl.col("way") == WAYS.index("date")) & (pl.col("day") >= date(2026, 4, 15))
        cost = pl.when(dated).then(cost * 3 / 2).otherwise(cost)
        frames.append(rows.select("day", "model", "way", token_class=into, tokens=name, amount=cost))
    summed = pl.concat(frames).group_by("day", "model", "way", "token_class").agg(pl.col("tokens", "amount").sum())
    lines = []
    ordered = summed.filter(pl.col("tokens") > 0).collect().sort("day", "model", "token_class")
    for number, row in enumerate(ordered.iter_rows(named=True)):
        paid_, tokens, name = Decimal(row["amount"]), row["tokens"], WAYS[row["way"]]
        if name == "rounded":
            paid_ = round(paid_, 4)
        if name == "unseen" and row["token_class"] == "input_uncached":
            price = (OLD if row["day"] < date(2026, 4, 15) else NEW)["input"]
            paid_ += 1000 * Decimal(price) * (int(row["model"][1:]) + 1) / 10**6
            tokens += 1000
        if name == "too_much":
            paid_ = round(paid_ * Decimal("1.003"), 12)
        start = datetime(row["day"].year, row["day"].month, row["day"].day, tzinfo=UTC)
        lines.append(
            {"invoice_id": "acme:2026-04", "line_id": f"l{number}", "provider": "acme", "category": "Usage",
             "kind": "tokens", "model": row["model"], "token_class": row["token_class"], "sku": row["token_class"],
             "currency": "USD", "period_start": start, "period_end": start + timedelta(days=1), "amount": paid_,
             "tokens": tokens, "segment": "a" * 64, "segment_row": number, "revision": 0}
        )  # fmt: skip
    schema = polars_schema("invoice_line")
    return pl.DataFrame([{name: line.get(name) for name in schema} for line in lines], schema=schema)


def floor(folder: Path) -> dict[str, object]:
    """Read and sum the columns that are needed."""
    lake = Lake.open(folder / "lake")
    paid = lake.scan("priced_amount", columns=["day", "amount", *AMOUNTS])
    paid.group_by("day").agg(pl.col("amount", *AMOUNTS).sum()).collect(engine="streaming")
    read = lake.scan("reading", columns=["day", "model", *CLASSES])
    read.group_by("day", "model").agg(pl.col(*CLASSES).sum()).collect(engine="streaming")
    lake.scan("attempt", columns=["status", "arrived_at"]).group_by("status").len().collect(engine="streaming")
    return {}


def compared(folder: Path) -> dict[str, object]:
    """The comparison."""
    lake = Lake.open(folder / "lake")
    books = Books({}, PriceBook([read_prices(folder / "prices.toml")]))
    (result,) = months_compared(lake, books, datetime(2026, 8, 1, tzinfo=UTC))
    told = {str(status): sum(cell.status is status for cell in result.cells) for status in Status}
    return {**{name: number for name, number in told.items() if number}, "bundles": len(result.ledger.calls.all)}


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    asked.add_argument("--calls", type=int, default=200_000)
    asked.add_argument("--models", type=int, default=8)
    asked.add_argument("--days", type=int, default=30)
    asked.add_argument("--every-cell", action="store_true")
    asked.add_argument("--only", choices=["floor", "compared"], help=argparse.SUPPRESS)
    asked.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    told = asked.parse_args()
    if told.only:
        begun = time.process_time()
        about = (floor if told.only == "floor" else compared)(told.folder)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(json.dumps({"cpu_s": round(time.process_time() - begun, 2), "peak_gib": round(peak, 2), **about}))
        return
    with tempfile.TemporaryDirectory() as name:
        make(Path(name), told.calls, told.models, told.days, every=told.every_cell)
        for only in ("floor", "compared"):
            command = [sys.executable, __file__, "--only", only, "--folder", name]
            print(f"{only:10}", subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())


if __name__ == "__main__":
    main()
