"""Times of someone else's table as UTC microseconds: ISO 8601, epoch numbers, or a format that is spelled out."""

from __future__ import annotations

import polars as pl

from weighbridge.pipeline.ingest.call_days import FIRST_US, LAST_US
from weighbridge.pipeline.ingest.figures import Figures, integers
from weighbridge.schemas.enumerations import QuarantineReason

UTC = pl.Datetime("us", "UTC")
EPOCHS = {"epoch_s": 1_000_000, "epoch_ms": 1_000, "epoch_us": 1}
ISO = "iso"
_ISO = (
    r"^(?P<date>\d{4}-\d{2}-\d{2})(?:[T ](?P<time>\d{2}:\d{2}(?::\d{2})?)(?:[.,](?P<fraction>\d{1,12}))?)?"
    # No clock is further from UTC than 18 hours: a larger offset is damage, and the day it gives would be wrong.
    r"\s*(?P<zone>[zZ]|[+-](?:(?:0\d|1[0-7]):?[0-5]\d|18:?00))?$"
)


def moments(column: pl.Series, form: str, zone: str) -> Figures:
    """A column of times in UTC.

    Args:
        column: text, numbers, dates or times.
        form: `iso`, `epoch_s`, `epoch_ms`, `epoch_us`, or a strptime format such as `%m/%d/%y %H:%M`.
        zone: the IANA zone of times that name none. An hour that does not exist there, or exists twice, is refused.
    """
    if form in EPOCHS:
        return _from_numbers(column, EPOCHS[form])
    if isinstance(column.dtype, pl.Datetime | pl.Date):
        found = _localised(column.cast(pl.Datetime("us", getattr(column.dtype, "time_zone", None))), zone)
    else:
        texts = column.cast(pl.String, strict=False)
        found = _from_iso(texts, zone) if form == ISO else _from_format(texts, form, zone)
    return _told(column, found)


def _told(column: pl.Series, found: pl.Series) -> Figures:
    number = found.cast(pl.Int64)
    found = found.set(((number < FIRST_US) | (number >= LAST_US)).fill_null(value=False), None)
    bad = column.is_not_null() & found.is_null()
    none = pl.Series([None], dtype=pl.String).new_from_index(0, column.len())
    return Figures(found, none.set(bad, str(QuarantineReason.BAD_TIME)), bad & False)


def _from_numbers(column: pl.Series, factor: int) -> Figures:
    limit = LAST_US // factor
    numbers = integers(column, least=0, most=limit).values
    fractions = column.cast(pl.Float64, strict=False) if not column.dtype.is_integer() else None
    found = numbers * factor
    if fractions is not None and factor > 1:
        # 1700000000.25 is a time like any other: a float of seconds keeps six digits until the year 2100.
        exact = (fractions * factor).round(0).cast(pl.Int64, strict=False)
        found = pl.select(pl.coalesce(found, exact)).to_series()
    return _told(column, found.cast(UTC))


def _from_iso(texts: pl.Series, zone: str) -> pl.Series:
    parts = texts.to_frame("text").select(pl.col("text").str.extract_groups(_ISO).struct.unnest())
    clock = pl.col("time").fill_null("00:00")
    clock = pl.when(clock.str.len_bytes() == 5).then(clock + ":00").otherwise(clock)
    read = parts.select(
        naive=(pl.col("date") + "T" + clock).str.strptime(pl.Datetime("us"), "%Y-%m-%dT%H:%M:%S", strict=False),
        micros=pl.col("fraction").fill_null("0").str.pad_end(6, "0").str.head(6).cast(pl.Int64),
        offset=_minutes(pl.col("zone")),
    ).with_columns(naive=pl.col("naive") + pl.duration(microseconds="micros"))
    stated = read.select((pl.col("naive") - pl.duration(minutes="offset")).dt.replace_time_zone("UTC")).to_series()
    local = _localised(read["naive"].set(read["offset"].is_not_null(), None), zone)
    return pl.select(pl.coalesce(stated, local)).to_series()


def _minutes(zone: pl.Expr) -> pl.Expr:
    digits = zone.str.replace_all(r"[^0-9]", "")
    sign = pl.when(zone.str.starts_with("-")).then(-1).otherwise(1)
    number = digits.str.head(2).cast(pl.Int64, strict=False) * 60 + digits.str.tail(2).cast(pl.Int64, strict=False)
    return pl.when(zone.str.to_uppercase() == "Z").then(0).otherwise(sign * number)


def _from_format(texts: pl.Series, form: str, zone: str) -> pl.Series:
    dated = not any(code in form for code in ("%H", "%I", "%T", "%R", "%X", "%c", "%s", "%k", "%l"))
    read = texts.str.strptime(pl.Date if dated else pl.Datetime("us"), form, strict=False)
    if isinstance(read.dtype, pl.Datetime) and read.dtype.time_zone:
        return read.dt.convert_time_zone("UTC")
    return _localised(read.cast(pl.Datetime("us")), zone)


def _localised(times: pl.Series, zone: str) -> pl.Series:
    if isinstance(times.dtype, pl.Datetime) and times.dtype.time_zone:
        return times.dt.convert_time_zone("UTC")
    return times.dt.replace_time_zone(zone, ambiguous="null", non_existent="null").dt.convert_time_zone("UTC")
