"""The ledger of a month with one provider: their lines and our calls in the same cells, however they are billed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl

from weighbridge.pipeline.invoice.billing import Billing, Figure, Part, discounted, rounded
from weighbridge.pipeline.invoice.cells import Grouping, Key
from weighbridge.pipeline.invoice.contract import Contract
from weighbridge.pipeline.invoice.rates import Rates, converted
from weighbridge.pipeline.invoice.spans import MOMENT, Span, placed
from weighbridge.pipeline.invoice.sums import guarded
from weighbridge.pipeline.invoice.usage import AMOUNTS, CLASSES
from weighbridge.pipeline.invoice.zones import day_of, last_day_of, local_day, span_of
from weighbridge.schemas.enumerations import ChargedBy, LineKind
from weighbridge.schemas.lattice import INPUT_CLASSES, OUTPUT_CLASSES

Reprice = Callable[[pl.DataFrame], pl.DataFrame]
_CELL = ("start", "end", "model", "tenant", "token_class")
_PARTS = ("start", "end", "model", "tenant", "token_class", "day", "of_model", "of_class", "currency")
_NOTHING = pl.lit(Decimal(0), pl.Decimal(38, 18))
# Total of a direction -> its classes, first the one that a bill which splits nothing charges.
DIRECTIONS = {
    "input_total": tuple(str(name) for name in INPUT_CLASSES),
    "output_total": tuple(str(name) for name in OUTPUT_CLASSES),
}
MILLION = Decimal(10) ** 6


@dataclass(frozen=True, slots=True)
class Charged:
    """Their side of a cell: sums of its lines, and what they say beside them."""

    tokens: int | None
    money: Decimal | None
    lines: int
    open: bool
    closed: bool
    segments: tuple[str, ...]
    tiers: tuple[str, ...] = ()
    issued_on: date | None = None
    off_list: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Ledger:
    """One month with one provider.

    Attributes:
        contract, month, against: what is compared.
        grouping, spans: the cells.
        charged: cell -> their side.
        calls: our side: rows of `usage.calls`.
        currency: what they charge in; null where they charge tokens only.
        rates: of currencies.
        reprice: prices calls anew after something of them was changed.
        month_end: the UTC moment the month ends at, by the billing zone.
        turns: days whose prices may have been taken for others: beside each change of a price.
        tiers: service tiers that are priced at all.
        lengths: "above" or "below" -> prices calls as if all lay there.
        counted: cell -> tokens the provider's usage page counts in it, where that is known.
        prices: id of a price row -> class -> what a million tokens of its text cost.
    """

    contract: Contract
    month: str
    against: ChargedBy
    grouping: Grouping
    spans: Sequence[Span]
    charged: Mapping[Key, Charged]
    calls: pl.DataFrame
    currency: str | None
    rates: Rates
    reprice: Reprice
    month_end: datetime
    turns: tuple[date, ...] = ()
    tiers: tuple[str, ...] = ()
    lengths: Mapping[str, Reprice] = field(default_factory=dict)
    counted: Mapping[Key, int] = field(default_factory=dict)
    prices: Mapping[str, Mapping[str, Decimal]] = field(default_factory=dict)

    @property
    def agreed(self) -> Billing:
        """How the provider bills by contract."""
        contract = self.contract
        if self.against is ChargedBy.USAGE_PAGE:
            return Billing(self.calls)
        return Billing(self.calls, rates_on=contract.rates_on, discounts=contract.discounts, rounding=contract.rounding)

    def predicted(self, billing: Billing) -> dict[Key, Figure]:
        """Cell -> what it would be charged this way; cells without any call are left out."""
        sums: defaultdict[Key, list[Part]] = defaultdict(list)
        for part in self.parts(billing):
            sums[part.key].append(part)
        for key in billing.added:
            sums.setdefault(key, [])
        return {key: self._figure(key, parts, billing) for key, parts in sums.items()}

    def attempts(self, billing: Billing) -> dict[Key, int]:
        """Cell -> how many calls it has."""
        frame = self._long(billing)
        counted = frame.group_by("start", "end", "model", "tenant", "token_class").agg(pl.col("call").n_unique())
        return {self._key(*row[:5]): int(row[5]) for row in counted.iter_rows()}

    def parts(self, billing: Billing) -> list[Part]:
        """The sums of every cell, by day, model and class."""
        frame = self._long(billing)
        known = [pl.col(name).null_count() == 0 for name in ("tokens", "money")]
        summed = frame.group_by(_PARTS, maintain_order=True).agg(
            tokens=pl.when(known[0]).then(pl.col("tokens").sum()), money=pl.when(known[1]).then(pl.col("money").sum())
        )
        found = [
            Part(self._key(*row[:5]), row[5], row[6], row[7], row[9], row[10], row[8]) for row in summed.iter_rows()
        ]
        return [*found, *self._fees(billing)] if self.against is ChargedBy.INVOICE else found

    def tail(self, billing: Billing, gaps: Mapping[Key, tuple[Figure, datetime]]) -> dict[Key, datetime]:
        """Cell -> the latest moment from which on its calls make up exactly so many tokens and so much money.

        Args:
            billing: how calls are charged.
            gaps: cell -> what they should make up, as far as it is known, and the earliest moment to begin at.
        """
        if not gaps:
            return {}
        wanted = pl.DataFrame(
            [(*key[1:], figure.tokens, figure.money, first) for key, (figure, first) in gaps.items()],
            schema={**dict.fromkeys(_CELL[:2], MOMENT), **dict.fromkeys(_CELL[2:], pl.String), "of_tokens": pl.Int64,
                    "of_money": pl.Decimal(38, 18), "earliest": MOMENT},
            orient="row",
        )  # fmt: skip
        own = self._long(billing).join(wanted, on=_CELL, nulls_equal=True).filter(pl.col("at") >= pl.col("earliest"))
        moments = own.group_by(*_CELL, "at", "of_tokens", "of_money").agg(
            tokens=_known_sum("tokens"), money=_known_sum("money")
        )
        from_end = moments.sort("at", descending=True).with_columns(
            pl.col(name).cum_sum().over(_CELL) for name in ("tokens", "money")
        )
        same = pl.all_horizontal(
            (pl.col(f"of_{name}").is_null() | (pl.col(name) == pl.col(f"of_{name}"))).fill_null(value=False)
            for name in ("tokens", "money")
        )
        told = pl.col("of_tokens").is_not_null() | pl.col("of_money").is_not_null()
        found = from_end.filter(same & told).group_by(_CELL).agg(pl.col("at").max())
        return {self._key(*row[:5]): row[5] for row in found.iter_rows()}

    def _key(
        self, start: datetime, end: datetime, model: str | None, tenant: str | None, token_class: str | None
    ) -> Key:
        return Key(LineKind.TOKENS.value, start, end, model, tenant, token_class)

    def _long(self, billing: Billing) -> pl.DataFrame:
        """One row per charged call and class (or per call where the bill names no classes), in its cell."""
        rows = placed(charged_calls(billing), self.spans).filter(pl.col("start").is_not_null())
        rows = rows.with_row_index("call").with_columns(day=local_day(pl.col("at"), self.contract.zone))
        named = self.grouping.named
        about: list[pl.Expr | str] = [
            *("call", "start", "end", "at", "day", "currency"),
            (pl.col("named") if "model" in named else pl.lit(None, pl.String)).alias("model"),
            (pl.col("tenant") if "tenant" in named else pl.lit(None, pl.String)).alias("tenant"),
            pl.col("named").alias("of_model"),
        ]
        fees = pl.col("amount_fees").fill_null(Decimal(0))
        if "token_class" not in named:
            money = pl.col("amount") if billing.fees_inside else pl.col("amount") - fees
            whole = pl.sum_horizontal(pl.col(name) for name in CLASSES)
            tokens = pl.when(pl.all_horizontal(pl.col(n).is_not_null() for n in CLASSES)).then(whole).otherwise("total")
            none = pl.lit(None, pl.String)
            frame = rows.select(*about, token_class=none, of_class=none, tokens=tokens, money=money)
        else:
            rows = self._wholes(rows)
            frame = pl.concat(
                rows.select(
                    *about,
                    token_class=pl.lit(self.grouping.folded[name]),
                    of_class=pl.lit(self.grouping.folded[name]),
                    tokens=pl.col(name),
                    money=pl.when(pl.col(name) == 0).then(_NOTHING).otherwise(amount),
                )
                for name, amount in zip(CLASSES, AMOUNTS, strict=True)
            ).filter((pl.col("tokens") != 0) | pl.col("tokens").is_null() | (pl.col("money") != 0))
        return guarded(_cut(frame, billing), "tokens", "money")

    def _wholes(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Calls of which only the total of a direction is known, as its first class, where the bill charges it as one.

        Anthropic's answers do not split their output and its bills do not either: nothing has to be split. What the
        direction costs is what the call costs without its fees and without the other direction.
        """
        for total, classes in DIRECTIONS.items():
            first, *others = classes
            if any(self.grouping.folded[name] != first for name in classes):
                continue
            outside = [name for name in CLASSES if name not in classes]
            apart = pl.any_horizontal(pl.col(name).is_null() for name in classes) & pl.col(total).is_not_null()
            money = pl.col("amount") - pl.col("amount_fees").fill_null(Decimal(0))
            for name in outside:
                money -= pl.when(pl.col(name) == 0).then(_NOTHING).otherwise(f"amount_{name}")
            whole = {first: pl.col(total), f"amount_{first}": money}
            whole |= dict.fromkeys(others, pl.lit(0, pl.Int64)) | {f"amount_{name}": _NOTHING for name in others}
            rows = rows.with_columns(
                pl.when(apart).then(told).otherwise(pl.col(name)).alias(name) for name, told in whole.items()
            )
        return rows

    def _fees(self, billing: Billing) -> list[Part]:
        """What is charged by use, beside tokens: one cell of the month."""
        if billing.fees_inside and "token_class" not in self.grouping.named:
            return []
        rows = placed(charged_calls(billing), self.spans).filter(pl.col("start").is_not_null())
        rows = rows.with_columns(day=local_day(pl.col("at"), self.contract.zone))
        whole = Key(LineKind.TOOL_FEE.value, *span_of(self.month, self.contract.zone))
        # A use without a price is not free: what uses of its day cost is not known.
        unknown = pl.col("amount_fees").is_null()
        if "fee_kinds" in rows.columns:
            unknown &= (pl.col("fee_kinds").list.len() > 0).fill_null(value=False)
        fees = rows.filter((pl.col("amount_fees") != 0).fill_null(unknown))
        paid_ = pl.when(pl.col("amount_fees").null_count() == 0).then(pl.col("amount_fees").sum())
        summed = fees.group_by("day", "currency", maintain_order=True).agg(paid_.alias("amount_fees"))
        return [Part(whole, day, None, None, None, paid, currency) for day, currency, paid in summed.iter_rows()]

    def _figure(self, key: Key, parts: Sequence[Part], billing: Billing) -> Figure:
        """A cell's tokens, and its money after currency, discounts and rounding."""
        extra = billing.added.get(key, Figure(0, Decimal(0)))
        tokens = _sum([*(part.tokens for part in parts), extra.tokens or 0])
        if not self.currency:
            return Figure(tokens, None)
        by_day: dict[date, Decimal | None] = defaultdict(Decimal)
        for part in parts:
            paid = self._in_currency(key, part, billing)
            before = by_day[part.day]
            by_day[part.day] = None if before is None or paid is None else before + paid
        how = billing.rounding
        if how is not None and how.per == "day":
            by_day = {day: None if paid is None else rounded(paid, how) for day, paid in by_day.items()}
        money = _sum([*by_day.values(), extra.money or Decimal(0), billing.off_list.get(key, Decimal(0))])
        if money is not None and how is not None and how.per == "line":
            money = rounded(Decimal(money), how)
        return Figure(None if tokens is None else int(tokens), None if money is None else Decimal(money))

    def _in_currency(self, key: Key, part: Part, billing: Billing) -> Decimal | None:
        """What a part costs in the currency of the bill, after discounts."""
        paid = discounted(part, billing.discounts)
        if paid is None or part.currency is None or self.currency is None:
            return None if paid is None or paid else paid
        on = self.rate_day(key, part.day, billing.rates_on)
        if on is None:
            return None
        nearest = self.contract.rates_missing == "nearest_before"
        rate = self.rates.rate(part.currency, self.currency, on, nearest_before=nearest)
        return None if rate is None else converted(paid, rate)

    def more(self, key: Key, tokens: int, billing: Billing) -> list[Decimal]:
        """What so many tokens more may cost in a cell, like any that are there, in the currency of the bill.

        Nothing where the cell has several models that discounts, or several days that discounts or rates, tell apart.
        """
        if key.token_class is None:
            return []
        own = billing.calls.filter(pl.col("at") >= key.start, pl.col("at") < key.end)
        own = own if key.model is None else own.filter(pl.col("named") == key.model)
        zone = self.contract.zone
        first, last = day_of(key.start, zone), last_day_of(key.start, key.end, zone)
        model = key.model if key.model is not None else _only(own["named"])
        found: list[Decimal] = []
        for row, currency in sorted(own.select("price_id", "currency").unique().drop_nulls().rows()):
            price = self.prices.get(row, {}).get(key.token_class)
            dated = currency != self.currency or any(each.first or each.end for each in billing.discounts)
            if price is None or (dated and first != last) or (billing.discounts and model is None):
                continue
            part = Part(key, first, model, key.token_class, tokens, price * tokens / MILLION, currency)
            paid = self._in_currency(key, part, billing)
            found += [] if paid is None or paid in found else [paid]
        return found

    def rate_day(self, key: Key, day: date, on: str) -> date | None:
        """The day whose rate converts a part; null where that is not known."""
        if on == "charge_day":
            return day
        if on == "period_end":
            return day_of(self.month_end - timedelta(microseconds=1), self.contract.zone)
        their = self.charged.get(key)
        return None if their is None else their.issued_on


def charged_calls(billing: Billing) -> pl.DataFrame:
    """The calls that are charged."""
    kept = pl.lit(value=True)
    if not billing.failed:
        kept &= ~pl.col("failed")
    if not billing.superseded:
        kept &= ~pl.col("superseded") | pl.col("failed")
    return billing.calls.filter(kept)


def _cut(frame: pl.DataFrame, billing: Billing) -> pl.DataFrame:
    """Calls a provider had not counted yet are taken out of their cell; those it counted late come into the next."""
    names = ("start", "end", "model", "tenant", "token_class")
    moved = [
        _from(frame, source, moment).with_columns(
            pl.lit(getattr(key, name)).cast(frame.schema[name]).alias(name) for name in names
        )
        for key, (source, moment) in billing.moved.items()
    ]
    call = ["call", "of_class"]
    for key, moment in billing.dropped.items():
        late = _from(frame, key, moment).select(call)
        frame = frame.join(late, on=call, how="anti", nulls_equal=True, maintain_order="left")
    return pl.concat([frame, *moved]) if moved else frame


def _from(frame: pl.DataFrame, key: Key, moment: object) -> pl.DataFrame:
    """The calls of a cell from a moment on."""
    own = pl.col("at") >= pl.lit(moment)
    for name in ("start", "end", "model", "tenant", "token_class"):
        own &= pl.col(name).eq_missing(pl.lit(getattr(key, name)))
    return frame.filter(own)


def _known_sum(name: str) -> pl.Expr:
    """A sum that is not known where any part of it is not."""
    return pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum())


def _only(names: pl.Series) -> str | None:
    """The one name there is; null where there are several."""
    told = names.unique().to_list()
    return told[0] if len(told) == 1 else None


def _sum(values: Sequence[Any]) -> Any:
    """The sum, unknown where any part of it is."""
    total: Any = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total
