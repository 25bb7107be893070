"""Months of traffic for baselines: lengths drawn from given ones, daily and weekly season, and incidents put in.

What is drawn is drawn per line and day from a seed of its own, so a month with incidents is the clean month everywhere
else. Rows are those of the tables `attempt`, `reading`, `priced_amount` and `price`, ready to be stored.

    template        prompts grow to `size` times their length
    key_burst       `size` times the ordinary requests come on top, all by one key
    retry_storm     the part `size` of the requests is tried again, once or twice
    cache_breaker   nothing is read from the prefix cache any more
    model_swap      all requests of the line go to the model `to`
    output_growth   answers grow to `size` times their length
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum

import numpy as np
import polars as pl

from weighbridge.pipeline.lake.shape import polars_schema
from weighbridge.pipeline.simulate.world import HOURS, WEEKDAYS, Ints
from weighbridge.schemas.enumerations import TokenClass

Lengths = tuple[Ints, Ints]
SOURCE = "sim-month"
BURST_KEY = 255  # no ordinary request has it
_MICROSECONDS = 10**6
_MILLION = Decimal(10) ** 6
_CLASSES = (TokenClass.INPUT_UNCACHED, TokenClass.CACHE_READ, TokenClass.OUTPUT_VISIBLE, TokenClass.REASONING)
_WRITES = (TokenClass.CACHE_WRITE_5M, TokenClass.CACHE_WRITE_1H, TokenClass.CACHE_WRITE_UNKNOWN)


class IncidentKind(StrEnum):
    """What can happen to a line."""

    TEMPLATE = "template"
    KEY_BURST = "key_burst"
    RETRY_STORM = "retry_storm"
    CACHE_BREAKER = "cache_breaker"
    MODEL_SWAP = "model_swap"
    OUTPUT_GROWTH = "output_growth"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One tenant's requests of one task to one model.

    Attributes:
        lengths: name of the lengths they are drawn from.
        requests: of a Monday.
        cached: part of the requests that find half of their prompt in the prefix cache.
        retried: part of the requests that are tried once more.
        keys: how many keys send them.
        prices: of a million input tokens, cached ones, and output tokens.
        season: how far prompts of the busiest hour are longer than those of the calmest, as a part.
        days_differ: standard deviation of the logarithm of a day's volume beyond counting.
    """

    tenant: str
    task: str
    model: str
    lengths: str
    requests: float
    cached: float = 0.4
    retried: float = 0.02
    keys: int = 20
    prices: tuple[Decimal, Decimal, Decimal] = (Decimal(2), Decimal("0.5"), Decimal(8))
    season: float = 0.1
    days_differ: float = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Something that happens to a line from a day on.

    Attributes:
        line: its number.
        first, days: number of its first day, and how many days it lasts.
        size: see the module.
        to: of a swap: name and prices of the other model.
    """

    kind: IncidentKind
    line: int
    first: int
    days: int
    size: float = 1.0
    to: tuple[str, tuple[Decimal, Decimal, Decimal]] | None = None


@dataclass(frozen=True, slots=True)
class Day:
    """The rows of one day, by table."""

    day: date
    tables: Mapping[str, pl.DataFrame]


def made_up_lengths(seed: int, rows: int = 20_000) -> Lengths:
    """Lengths as skewed, spiky and bounded as real ones, for where no recorded ones are at hand."""
    rng = np.random.default_rng([seed, 77])
    prompt = np.exp(6.8 + 0.9 * rng.standard_normal(rows))
    prompt = np.where(rng.random(rows) < 0.12, rng.choice([318.0, 877.0, 2048.0], rows), prompt)
    answer = np.exp(4.6 + 0.8 * rng.standard_normal(rows))
    return np.clip(np.rint(prompt), 1, 16_000).astype(np.int64), np.clip(np.rint(answer), 1, 2048).astype(np.int64)


def prices(lines: Sequence[Line], incidents: Sequence[Incident] = ()) -> pl.DataFrame:
    """Rows of `price` for every model."""
    models = {line.model: line.prices for line in lines} | {i.to[0]: i.to[1] for i in incidents if i.to}
    rows = [
        {
            "price_id": price_id(model),
            "provider": "simulated",
            "match": "equals",
            "model": model,
            "token_class": str(token_class),
            "modality": "text",
            "per_million": _of_class(of_model)[token_class],
            "currency": "USD",
            "origin": "made up",
        }
        for model, of_model in sorted(models.items())
        for token_class in (*_CLASSES, *_WRITES)
    ]
    return pl.DataFrame(rows, schema=polars_schema("price"))


def price_id(model: str) -> str:
    """The id of a model's price row."""
    return hashlib.sha256(model.encode()).hexdigest()[:32]


def month(
    lengths: Mapping[str, Lengths],
    lines: Sequence[Line],
    incidents: Sequence[Incident] = (),
    *,
    seed: int,
    start: date,
    days: int,
) -> Iterator[Day]:
    """Draw `days` days of traffic from `start` on.

    Args:
        lengths: name -> tokens of prompts and answers, to be drawn in pairs.
        lines: who sends what.
        incidents: what happens.
        seed: the same arguments give the same rows.
        start: the first UTC day.
        days: how many.
    """
    for number in range(days):
        day = start + timedelta(days=number)
        parts = [
            _requests(
                np.random.default_rng([seed, number, zlib.crc32(f"{line.tenant}/{line.task}/{line.model}".encode())]),
                line,
                lengths[line.lengths],
                [i for i in incidents if i.line == place and i.first <= number < i.first + i.days],
                day,
            )
            for place, line in enumerate(lines)
        ]
        rows = pl.concat(parts)
        yield Day(day, {"attempt": _attempts(rows), "reading": _readings(rows), "priced_amount": _amounts(rows)})


def _requests(
    rng: np.random.Generator, line: Line, lengths: Lengths, incidents: Sequence[Incident], day: date
) -> pl.DataFrame:
    """Attempts of one line on one day, with their tokens."""
    sizes = {incident.kind: incident for incident in incidents}
    ordinary = line.requests * WEEKDAYS[day.weekday()] * float(np.exp(line.days_differ * rng.standard_normal()))
    count = int(rng.poisson(ordinary))
    burst = sizes.get(IncidentKind.KEY_BURST)
    more = int(rng.poisson(ordinary * burst.size)) if burst else 0
    rows = count + more
    hour = rng.choice(24, rows, p=np.array(HOURS) / sum(HOURS))
    pick = rng.integers(0, len(lengths[0]), rows)
    wave = 1 + line.season * (np.cos((hour - 11) / 24 * 2 * np.pi) - 1) / 2
    week = 1 + line.season * (0.0 if day.weekday() < 5 else -0.5)
    prompt = np.maximum(np.rint(lengths[0][pick] * wave * week * _size(sizes, IncidentKind.TEMPLATE)), 1)
    answer = np.rint(lengths[1][pick] * _size(sizes, IncidentKind.OUTPUT_GROWTH))
    found = rng.random(rows) < line.cached
    cached = np.where(found & (IncidentKind.CACHE_BREAKER not in sizes), prompt // 2, 0)
    storm = sizes.get(IncidentKind.RETRY_STORM)
    again = rng.random(rows)
    tries = 1 + (again < (storm.size if storm else line.retried)) + ((again < storm.size / 2) if storm else 0)
    swap = sizes.get(IncidentKind.MODEL_SWAP)
    model, of_model = swap.to if swap and swap.to else (line.model, line.prices)
    key = np.where(np.arange(rows) < count, rng.integers(0, line.keys, rows), BURST_KEY)
    at = hour * 3600 + rng.random(rows) * 3600
    each = np.repeat(np.arange(rows), tries)
    number = np.arange(len(each)) - np.repeat(np.cumsum(tries) - tries, tries) + 1
    midnight = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
    return pl.DataFrame(
        {
            "attempt_hi": rng.integers(0, 1 << 62, len(each)),
            "attempt_lo": rng.integers(-(1 << 63), (1 << 63) - 1, len(each)),
            "attempt_number": number.astype(np.int32),
            "subject_bucket": key[each].astype(np.int32),
            "at": (midnight * _MICROSECONDS + at[each] * _MICROSECONDS).astype(np.int64),
            str(TokenClass.INPUT_UNCACHED): (prompt - cached)[each].astype(np.int64),
            str(TokenClass.CACHE_READ): cached[each].astype(np.int64),
            str(TokenClass.OUTPUT_VISIBLE): answer[each].astype(np.int64),
        }
    ).with_columns(
        pl.lit(day).alias("day"),
        *(
            pl.lit(value).alias(name)
            for name, value in (("tenant", line.tenant), ("task", line.task), ("model", model))
        ),
        *(
            pl.lit(price, dtype=pl.Decimal(38, 18)).alias(f"price_{token_class}")
            for token_class, price in _of_class(of_model).items()
        ),
        pl.lit(price_id(model)).alias("price_id"),
        pl.lit(0, dtype=pl.Int64).alias(str(TokenClass.REASONING)),
    )


def _size(sizes: Mapping[IncidentKind, Incident], kind: IncidentKind) -> float:
    return sizes[kind].size if kind in sizes else 1.0


def _of_class(of_model: tuple[Decimal, Decimal, Decimal]) -> dict[TokenClass, Decimal]:
    fresh, cached, answer = of_model
    written = dict.fromkeys(_WRITES, fresh)
    return {
        TokenClass.INPUT_UNCACHED: fresh,
        TokenClass.CACHE_READ: cached,
        TokenClass.OUTPUT_VISIBLE: answer,
        TokenClass.REASONING: answer,
        **written,
    }


def _shaped(table: str, rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select([name for name in polars_schema(table) if name in rows.columns])


def _attempts(rows: pl.DataFrame) -> pl.DataFrame:
    return _shaped(
        "attempt",
        rows.with_columns(
            source=pl.lit(SOURCE),
            model_served="model",
            route=pl.lit("main"),
            status=pl.lit("succeeded"),
            arrived_at=pl.col("at").cast(pl.Datetime("us", "UTC")),
            revision=pl.lit(0, dtype=pl.Int32),
        ),
    )


def _readings(rows: pl.DataFrame) -> pl.DataFrame:
    zero = pl.lit(0, dtype=pl.Int64)
    inputs = pl.col(TokenClass.INPUT_UNCACHED) + pl.col(TokenClass.CACHE_READ)
    return _shaped(
        "reading",
        rows.with_columns(
            _numbered(),
            *(zero.alias(str(name)) for name in _WRITES),
            provider=pl.lit("simulated"),
            source=pl.lit(SOURCE),
            verdict=pl.lit("PROVED"),
            ended=pl.lit("complete"),
            input_total=inputs,
            output_total=pl.col(TokenClass.OUTPUT_VISIBLE),
            total=inputs + pl.col(TokenClass.OUTPUT_VISIBLE),
        ).unnest("numbers"),
    )


def _numbered() -> pl.Expr:
    zero = pl.lit(0, dtype=pl.Int32)
    return pl.struct(child=zero, report=zero, revision=zero).alias("numbers")


def _amounts(rows: pl.DataFrame) -> pl.DataFrame:
    million = pl.lit(_MILLION, dtype=pl.Decimal(38, 0))
    costs = [
        (pl.col(name).cast(pl.Decimal(38, 0)) * pl.col(f"price_{name}") / million)
        .cast(pl.Decimal(38, 18))
        .alias(f"amount_{name}")
        for name in map(str, _CLASSES)
    ]
    nothing = [pl.lit(Decimal(0), dtype=pl.Decimal(38, 18)).alias(f"amount_{name}") for name in _WRITES]
    priced = rows.with_columns(
        _numbered(),
        *costs,
        *nothing,
        source=pl.lit(SOURCE),
        basis=pl.lit("reported"),
        currency=pl.lit("USD"),
        status=pl.lit("priced"),
    ).unnest("numbers")
    whole = pl.sum_horizontal(f"amount_{name}" for name in map(str, _CLASSES)).cast(pl.Decimal(38, 18))
    return _shaped("priced_amount", priced.with_columns(amount=whole))
