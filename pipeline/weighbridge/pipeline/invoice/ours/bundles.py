"""Calls put together into bundles, some days at a time; and the calls themselves, in a few narrow columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from weighbridge.pipeline.invoice.ours.bundle import DIRECTIONS, Bundle, Place
from weighbridge.pipeline.invoice.ours.clocks import clocks, span_numbers
from weighbridge.pipeline.invoice.ours.prices import Pricing
from weighbridge.pipeline.invoice.ours.usage import AMOUNTS, CLASSES, KEY
from weighbridge.pipeline.invoice.spans import Span
from weighbridge.pipeline.invoice.sums import guarded
from weighbridge.pipeline.invoice.zones import local_day
from weighbridge.pipeline.price.fee import SIZED
from weighbridge.pipeline.price.terms import AUTO
from weighbridge.schemas.enumerations import FeeKind
from weighbridge.schemas.lattice import CROSSED_CELLS, CROSSED_CLASSES

CELLS = tuple(str(cell.name) for cell in CROSSED_CELLS)
TOTALS = tuple(DIRECTIONS)
COUNTS = (*CLASSES, *CELLS, *TOTALS)
_ALIKE = ("provider", "model", "named", "tenant", "day", "failed", "superseded", "_tier", "batch", "region",
          "price_id", "currency", "price_status", "_minute", "_nulls", "_length", "_whole", "_alone")  # fmt: skip
_MONEY = (*AMOUNTS, "amount", "amount_fees")


@dataclass(frozen=True, slots=True)
class Bundling:
    """How calls of a month are put together.

    Attributes:
        spans: the periods, in order; zone: the billing zone, for days.
        folded: class of a token -> class of the line that charges it.
        pricing: the price book: what its rows hang on tells calls apart.
    """

    spans: tuple[Span, ...]
    zone: str
    folded: Mapping[str, str]
    pricing: Pricing

    def of(self, frames: Iterable[pl.DataFrame]) -> Bundles:
        """The bundles of all calls of some frames (rows of `usage.call_days`)."""
        bundles: list[Bundle] = []
        members: list[pl.DataFrame] = []
        for frame in frames:
            made, calls = self._put_together(frame, len(bundles))
            bundles += made
            members.append(calls)
        return Bundles(tuple(bundles), pl.concat(members) if members else pl.DataFrame())

    def _put_together(self, frame: pl.DataFrame, first: int) -> tuple[list[Bundle], pl.DataFrame]:
        rows = self._marked(frame).with_row_index("_row")
        for name in (*COUNTS, "total"):
            guarded(rows, name)
        placed = [f"{name}{each}" for name in clocks(self.zone) for each in ("/span", "/day")]
        told = {name: [c for c in CLASSES if self.folded[c] == name] for name in set(self.folded.values())}
        some = {name: pl.any_horizontal(_some(c) for c in own) for name, own in told.items()}
        held = rows.group_by(*_ALIKE, *placed, maintain_order=True).agg(
            pl.col("at", "ended", "fee_kinds", "fee_counts").first(),
            *(_sum(name) for name in (*COUNTS, "total", *_MONEY)),
            *(expression.sum().cast(pl.Int64).alias(f"told/{name}") for name, expression in some.items()),
            *(_some(cell).sum().cast(pl.Int64).alias(f"told/{cell}") for cell in CELLS),
            pl.len().cast(pl.Int64).alias("calls"),
            length=pl.col("input_total").first(),
            _row=pl.col("_row"),
        )
        held = held.with_row_index("number", offset=first)
        numbers = held.select("number", "_row").explode("_row").sort("_row")["number"]
        members = rows.select(
            *(*KEY, "at", "ended"),
            *(pl.col(name).cast(pl.Int64) for name in COUNTS),
            number=numbers,
        )
        return [self._bundle(row, list(told)) for row in held.drop("_row").iter_rows(named=True)], members

    def _marked(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The calls with where they lie by each clock, and with all that prices may tell them apart by."""
        rows = frame
        for name, moment in clocks(self.zone).items():
            at = rows.select(moment.alias("at"))["at"]
            days = pl.select(local_day(pl.lit(at), self.zone)).to_series()
            rows = rows.with_columns(span_numbers(at, self.spans).alias(f"{name}/span"), days.alias(f"{name}/day"))
        about = rows.select("provider", "model").unique().rows()
        lengths, alone, timed = self._hangs_on(about)
        tier = pl.coalesce("service_tier", "tier_requested")
        minute = pl.when(pl.col("model").is_in(timed)).then(pl.col("arrived_at").dt.truncate("1m"))
        nulls = [pl.col(name).is_null().cast(pl.Int64) * 2**place for place, name in enumerate(COUNTS)]
        rows = rows.with_columns(
            _tier=tier, _minute=minute.cast(pl.Datetime("us", "UTC")), _nulls=pl.sum_horizontal(nulls),
            _whole=pl.col("child") == 0, _length=_length(lengths),
        )  # fmt: skip
        by_itself = _odd() | pl.col("model").is_in(alone) | (tier == AUTO).fill_null(value=False)
        by_itself |= pl.col("model").is_in(timed) & pl.col("_minute").is_null()
        by_itself |= pl.col("model").is_in(list(lengths)) & pl.col("input_total").is_null()
        by_itself |= pl.len().over(KEY) > 1
        return rows.with_columns(_alone=pl.when(by_itself.fill_null(value=True)).then(pl.int_range(pl.len())))

    def _hangs_on(
        self, about: Collection[tuple[str | None, str | None]]
    ) -> tuple[dict[str, list[int]], list[str], list[str]]:
        """Model -> thresholds of its prices; models whose calls stand alone; models with prices by the hour."""
        lengths: dict[str, list[int]] = {}
        alone, timed = [], []
        for provider, model in about:
            rows = self.pricing.serving([(provider, model)])
            if model is None or not rows:
                continue
            turns = {bracket.beyond for row in rows for bracket in row.brackets[1:]}
            if turns:
                lengths[model] = sorted(turns)
            if any(row.marginal or row.counted or {FeeKind.REQUEST, *SIZED} & set(row.fees) for row in rows):
                alone.append(model)
            if any(row.terms.hours is not None for row in rows):
                timed.append(model)
        return lengths, alone, timed

    def _bundle(self, row: Mapping[str, Any], told: Collection[str]) -> Bundle:
        names = clocks(self.zone)
        counted = any(each.counted for each in self.pricing.serving([(row["provider"], row["model"])]))
        return Bundle(
            number=row["number"],
            **{name: row[name] for name in ("provider", "model", "named", "tenant", "day", "at", "failed",
                                            "superseded", "batch", "region", "total", "calls", "amount",
                                            "currency", "price_id")},
            places={name: Place(row[f"{name}/span"], row[f"{name}/day"]) for name in names},
            minute=row["_minute"],
            service_tier=row["_tier"],
            counts={name: row[name] for name in CLASSES},
            cells={name: row[name] for name in CELLS},
            totals={name: row[name] for name in TOTALS},
            length=None if counted or row["_alone"] is not None else row["length"],
            uses=dict(zip(row["fee_kinds"] or (), row["fee_counts"] or (), strict=True)),
            whole=row["_whole"],
            told={name: row[f"told/{name}"] for name in (*told, *CELLS)},
            costs={name: row[amount] for name, amount in zip(CLASSES, AMOUNTS, strict=True)},
            fees=row["amount_fees"],
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bundles:
    """The bundles of a month, and its calls: `number` of their bundle, `at`, `ended` and their counts."""

    all: tuple[Bundle, ...]
    members: pl.DataFrame = field(default_factory=pl.DataFrame)

    def __iter__(self) -> Iterator[Bundle]:
        """Over the bundles, in the order of their numbers."""
        return iter(self.all)


def _some(name: str) -> pl.Expr:
    """Whether a call has any of a class, or may have."""
    return (pl.col(name) != 0).fill_null(value=True)


def _sum(name: str) -> pl.Expr:
    """A sum that is not known where any part of it is not."""
    return pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum()).alias(name)


def _length(lengths: Mapping[str, list[int]]) -> pl.Expr:
    """How many thresholds of its model a call lies above."""
    found = pl.lit(0, pl.Int64)
    for model, turns in lengths.items():
        above = pl.sum_horizontal((pl.col("input_total") > turn).cast(pl.Int64) for turn in turns)
        found = pl.when(pl.col("model") == model).then(above).otherwise(found)
    return found


def _odd() -> pl.Expr:
    """Calls no sum can stand for: counts below nothing or beyond their whole, and what is charged by use."""
    odd = pl.any_horizontal((pl.col(name) < 0).fill_null(value=False) for name in COUNTS)
    for name in CROSSED_CLASSES:
        inside = pl.sum_horizontal(pl.col(str(cell.name)) for cell in CROSSED_CELLS if cell.token_class == name)
        odd |= (inside > pl.col(str(name))).fill_null(value=False)
    for total, classes in DIRECTIONS.items():
        odd |= (pl.sum_horizontal(pl.col(name) for name in classes) > pl.col(total)).fill_null(value=False)
    used = (pl.col("fee_kinds").list.len() > 0).fill_null(value=False)
    paid = (pl.col("amount_fees") != 0).fill_null(value=False)
    return odd | used | paid
