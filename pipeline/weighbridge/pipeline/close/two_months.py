"""Why two months differ: read by the same rules, scaled by the traffic, at the same prices; what is left is the mix."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

import polars as pl

from weighbridge.pipeline.close import pins
from weighbridge.pipeline.close.exact import NOTHING
from weighbridge.pipeline.close.parts import Parts
from weighbridge.pipeline.close.side import CLASS_NAMES, PRICED, Side, Sums, less, with_untold
from weighbridge.pipeline.close.usage_figures import REPORT, counted
from weighbridge.pipeline.ingest.readings import REPORT_READ, last_revisions, read_reports
from weighbridge.pipeline.price.arrival import arrivals_of
from weighbridge.pipeline.price.frame import price_readings
from weighbridge.pipeline.reconcile.period import ends
from weighbridge.schemas.enumerations import PriceStatus

PLACES = Decimal("1e-18")
_WIDE = Context(prec=120, rounding=ROUND_HALF_EVEN)


def two_months(before: Side, after: Side) -> Parts:
    """The parts; those of adjustments are added by `diff`."""
    parts = Parts()
    first, second, there = Sums(), Sums(), Sums()
    for reports in before.reports():
        first.add(reports)
    for reports in after.reports():
        second.add(reports)
        there.add(_repriced(reports, before, after))
    base = first
    if before.dialects != after.dialects:
        base = _reread(before, after)
        parts.notes.append("the dialects differ: the earlier month was read again by those of the later one")
    parts.money["rules"] = less(base.money, first.money)
    parts.money["prices"] = less(second.money, there.money)
    parts.models = less(second.models, there.models)
    change = less(there.money, base.money)
    parts.money["traffic"] = {
        name: _scaled(base.money.get(name, NOTHING), base.priced.get(name, 0), second.priced.get(name, 0), whole)
        for name, whole in change.items()
    }
    parts.money["mix"] = less(change, parts.money["traffic"])
    parts.add_tokens("rules", base.classes)
    parts.add_tokens("rules", first.classes, -1)
    _tokens(parts, base.classes, second.classes)
    parts.add_erased(before, first, -1)
    parts.add_erased(after, second, 1)
    return parts


def _scaled(base: Decimal, tokens_before: int, tokens_after: int, whole: Decimal) -> Decimal:
    """What the change of tokens alone makes of an amount; the whole change where there were none before."""
    if not tokens_before:
        return whole
    change = _WIDE.multiply(base, Decimal(tokens_after - tokens_before))
    return _WIDE.quantize(_WIDE.divide(change, Decimal(tokens_before)), PLACES)


def _tokens(parts: Parts, before: Mapping[str, int], after: Mapping[str, int]) -> None:
    one, other = sum(before.values()), sum(after.values())
    parts.tokens["traffic"] = shares(before, other - one) if one else dict(after)
    parts.tokens["mix"] = {name: after[name] - before[name] - parts.tokens["traffic"][name] for name in CLASS_NAMES}


def shares(counts: Mapping[str, int], change: int) -> dict[str, int]:
    """A change dealt out in proportion to counts, in whole numbers that add up to it: the largest remainders first."""
    whole = sum(counts.values())
    exact = {name: Fraction(count * change, whole) for name, count in counts.items()}
    dealt = {name: value.numerator // value.denominator for name, value in exact.items()}
    left = change - sum(dealt.values())
    for name in sorted(exact, key=lambda name: (dealt[name] - exact[name], name))[:left]:
        dealt[name] += 1
    return dealt


def _repriced(reports: pl.DataFrame, before: Side, after: Side) -> pl.DataFrame:
    """Reports at the prices of the earlier month, on the same day of it.

    A report keeps its own amount where the earlier month has no price for it: none at all, or only one of another line
    of the book (a longer prefix, other terms, another currency), which is another thing and no change of its price.
    """
    first, last = ends(before.period)
    days = {day: min(first + timedelta(days=day.day - 1), last) for day in reports["day"].unique()}
    moved = reports.with_columns(pl.col("day").replace_strict(days, return_dtype=pl.Date))
    there = price_readings(moved, before.book, arrivals_of(after.records, before.book)).select(
        *REPORT, "status", "currency", "amount", "price_id"
    )
    held = reports.join(there, on=list(REPORT), how="left", suffix="_there")
    pairs = held.select("price_id", "price_id_there").unique().to_dicts()
    alike = [pair | {"alike": _alike(before, after, **pair)} for pair in pairs]
    schema = {"price_id": pl.String, "price_id_there": pl.String, "alike": pl.Boolean}
    known = held.join(
        pl.DataFrame(alike, schema=schema), on=["price_id", "price_id_there"], how="left", nulls_equal=True
    )
    usable = pl.col("alike") & PRICED & (pl.col("status_there") == str(PriceStatus.PRICED))
    return known.with_columns(amount=pl.when(usable).then("amount_there").otherwise("amount"))


def _alike(before: Side, after: Side, price_id: str | None, price_id_there: str | None) -> bool:
    """Whether two price rows are the same line of the book, perhaps at another price."""
    one, other = before.prices.get(price_id_there or ""), after.prices.get(price_id or "")
    if one is None or other is None:
        return False
    lines = [(row.provider, row.match, row.model, row.terms, row.currency) for row in (one, other)]
    return lines[0] == lines[1]


def _reread(before: Side, after: Side) -> Sums:
    """What the earlier month comes to when its reports are read by the later month's dialects."""
    dialects = pins.dialects_of({"dialects": after.dialects})
    out = Sums()
    for days in before.days():
        rows = before.records.scan("usage_report", first=days[0], last=days[-1], columns=list(REPORT_READ))
        readings = read_reports(last_revisions(rows.filter(pl.col("day").is_in(days)).collect()), dialects)
        amounts = price_readings(readings, before.book, arrivals_of(before.records, before.book)).select(
            *REPORT, "status", "currency", "amount"
        )
        named = readings.with_columns(pl.col("provider", "model").fill_null("unknown"))
        out.add(with_untold(counted(named.join(amounts, on=list(REPORT), how="left"))))
    return out
