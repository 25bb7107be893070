"""Columns of someone else's table, read as integers, decimals, flags: what fits exactly, or the reason why not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

import polars as pl

from weighbridge.schemas.enumerations import QuarantineReason
from weighbridge.schemas.leaves import INT64_MAX, INT64_MIN, MAX_EXPONENT, decimal_text

# Stands for a value that cannot even be text: not UTF-8, or a list where a number belongs.
UNREADABLE = "\ufffd"
_INTEGER = r"^[+-]?[0-9]+$"
_DECIMAL = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?$"
_NOT_FINITE = r"(?i)^[+-]?(nan|inf|infinity)$"
_REASON = pl.String


@dataclass(frozen=True, slots=True)
class Figures:
    """One column, read.

    Attributes:
        values: the values; null where the source has none or it cannot be read.
        reasons: why a value cannot be read, null where it can or is not there.
        integral: which integers came as floats without a fraction.
    """

    values: pl.Series
    reasons: pl.Series
    integral: pl.Series


def integers(column: pl.Series, *, least: int = INT64_MIN, most: int = INT64_MAX) -> Figures:
    """A column as Int64. Text is read digit by digit; nothing is rounded.

    Args:
        column: text, integers, floats, decimals or booleans.
        least, most: values beyond are refused (RANGE).
    """
    kind = column.dtype
    if isinstance(kind, pl.Null):
        return _unread(column, None)
    if kind.is_integer():
        found = _whole(column)
    elif kind.is_float():
        found = _floats(column)
    elif isinstance(kind, pl.Decimal | pl.String):
        found = _texts(column.cast(pl.String))
    else:
        return _unread(column, QuarantineReason.TYPE)
    if (least, most) == (INT64_MIN, INT64_MAX):
        return found
    beyond = (found.values < least) | (found.values > most)
    reasons = _refuse(found.reasons, beyond, QuarantineReason.RANGE)
    return Figures(found.values.set(beyond.fill_null(value=False), None), reasons, found.integral)


def decimals(column: pl.Series) -> Figures:
    """A column of measures as plain decimal text; what is no number is left out, as a free string is."""
    texts = _as_text(column)
    fits = texts.str.contains(_DECIMAL).fill_null(value=False)
    known = {text: _plain(text) for text in texts.filter(fits).unique()}
    values = texts.replace_strict(known, default=None, return_dtype=pl.String) if known else _empty(texts, pl.String)
    return Figures(values, _empty(texts, _REASON), _false(texts))


def reals(column: pl.Series) -> Figures:
    """A column of floating-point parameters."""
    texts = _as_text(column)
    values = texts.cast(pl.Float64, strict=False)
    finite = values.is_finite().fill_null(value=False)
    odd = texts.is_not_null() & ~finite
    not_finite = odd & texts.str.contains(_NOT_FINITE)
    reasons = _refuse(_empty(texts, _REASON), odd, QuarantineReason.TYPE)
    reasons = _refuse(reasons, not_finite, QuarantineReason.NOT_A_NUMBER)
    return Figures(values.set(~finite, None), reasons, _false(texts))


def flags(column: pl.Series) -> Figures:
    """A column of yes and no: booleans, true and false, 1 and 0."""
    texts = _as_text(column).str.to_lowercase()
    words = {"true": True, "false": False, "1": True, "0": False}
    values = texts.replace_strict(words, default=None, return_dtype=pl.Boolean)
    odd = texts.is_not_null() & values.is_null()
    return Figures(values, _refuse(_empty(texts, _REASON), odd, QuarantineReason.TYPE), _false(texts))


def members(column: pl.Series, allowed: list[str]) -> Figures:
    """A column whose values come from a closed enumeration."""
    texts = _as_text(column)
    odd = texts.is_not_null() & ~texts.is_in(allowed)
    reasons = _refuse(_empty(texts, _REASON), odd, QuarantineReason.TYPE)
    return Figures(texts.set(odd.fill_null(value=False), None), reasons, _false(texts))


def names(column: pl.Series, pattern: re.Pattern[str]) -> tuple[pl.Series, pl.Series]:
    """A column of names: those that match the pattern whole, and where one was left out because it does not."""
    texts = _as_text(column)
    fits = texts.str.contains(f"^(?:{pattern.pattern})$").fill_null(value=False)
    return texts.set(~fits, None), texts.is_not_null() & ~fits


def _as_text(column: pl.Series) -> pl.Series:
    if column.dtype in (pl.String, pl.Null):
        return column.cast(pl.String)
    if column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Categorical, pl.Enum):
        return column.cast(pl.String)
    return pl.select(pl.when(column.is_not_null()).then(pl.lit(UNREADABLE)).alias(column.name)).to_series()


def _whole(column: pl.Series) -> Figures:
    values = column.cast(pl.Int64, strict=False)
    lost = values.is_null() & column.is_not_null()
    return Figures(values, _refuse(_empty(column, _REASON), lost, QuarantineReason.RANGE), _false(column))


def _floats(column: pl.Series) -> Figures:
    wide = column.cast(pl.Float64)
    finite = wide.is_finite()
    fits = finite & (wide >= float(INT64_MIN)) & (wide < float(INT64_MAX))
    whole = fits & (wide == wide.floor())
    reasons = _refuse(_empty(column, _REASON), ~finite, QuarantineReason.NOT_A_NUMBER)
    reasons = _refuse(reasons, finite & ~fits, QuarantineReason.RANGE)
    reasons = _refuse(reasons, fits & ~whole, QuarantineReason.FRACTION)
    integral = whole.fill_null(value=False)
    return Figures(wide.set(~integral, None).cast(pl.Int64), reasons, integral)


def _texts(texts: pl.Series) -> Figures:
    plain = texts.str.contains(_INTEGER)
    values = texts.str.strip_prefix("+").cast(pl.Int64, strict=False).set(~plain.fill_null(value=False), None)
    reasons = _refuse(_empty(texts, _REASON), plain & values.is_null(), QuarantineReason.RANGE)
    odd = texts.is_not_null() & ~plain
    if not odd.any():
        return Figures(values, reasons, _false(texts))
    read = {text: _odd(text) for text in texts.filter(odd).unique()}
    number = texts.replace_strict({t: v for t, (v, _) in read.items()}, default=None, return_dtype=pl.Int64)
    reason = texts.replace_strict({t: r and str(r) for t, (_, r) in read.items()}, default=None, return_dtype=_REASON)
    integral = odd & number.is_not_null()
    frame = pl.DataFrame({"values": values, "number": number, "reasons": reasons, "reason": reason})
    both = frame.select(values=pl.coalesce("values", "number"), reasons=pl.coalesce("reasons", "reason"))
    return Figures(both["values"].alias(texts.name), both["reasons"], integral.fill_null(value=False))


def _odd(text: str) -> tuple[int | None, QuarantineReason | None]:
    """What is not plain digits: a decimal or exponent form, NaN, or no number at all."""
    if re.fullmatch(_NOT_FINITE, text):
        return None, QuarantineReason.NOT_A_NUMBER
    if not re.fullmatch(_DECIMAL, text):
        return None, QuarantineReason.TYPE
    value = Decimal(text)
    if value.adjusted() > MAX_EXPONENT or not INT64_MIN <= value <= INT64_MAX:
        return None, QuarantineReason.RANGE
    if value != value.to_integral_value():
        return None, QuarantineReason.FRACTION
    return int(value), None


def _plain(text: str) -> str | None:
    value = Decimal(text)
    return decimal_text(value) if abs(value.adjusted()) <= MAX_EXPONENT else None


def _unread(column: pl.Series, reason: QuarantineReason | None) -> Figures:
    reasons = _empty(column, _REASON)
    if reason is not None:
        reasons = _refuse(reasons, column.is_not_null(), reason)
    return Figures(_empty(column, pl.Int64), reasons, _false(column))


def _refuse(reasons: pl.Series, where: pl.Series, reason: QuarantineReason) -> pl.Series:
    return reasons.set(where.fill_null(value=False), str(reason))


def _empty(like: pl.Series, kind: type[pl.DataType]) -> pl.Series:
    return pl.Series(like.name, [None], dtype=kind).new_from_index(0, like.len())


def _false(like: pl.Series) -> pl.Series:
    return pl.Series(like.name, [False], dtype=pl.Boolean).new_from_index(0, like.len())
