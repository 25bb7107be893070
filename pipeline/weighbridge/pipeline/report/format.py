"""How exact values are shown to people: thousands separators, half-even rounding, `unknown` for null."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from weighbridge.pipeline.report.exact import CONTEXT
from weighbridge.pipeline.report.sheet import Kind, Value

UNKNOWN = "unknown"
NARROW_SPACE = "\u202f"
MINUS = "\u2212"
# Minor units of ISO 4217 that are not two.
MINOR = {
    **dict.fromkeys(
        "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF".split(),
        0,
    ),
    **dict.fromkeys("BHD IQD JOD KWD LYD OMR TND".split(), 3),
}
# Digits that are kept of an amount below one, so that a small amount is never shown as nothing.
SIGNIFICANT, ENOUGH = 3, 2


def minor_units(currency: str | None) -> int:
    """How many decimals amounts of a currency have."""
    return MINOR.get(currency or "", 2)


def rounded(amount: Decimal, currency: str | None) -> Decimal:
    """An amount rounded half-even to its currency's minor unit; one that would keep less than two digits, to three."""
    places = minor_units(currency)
    if amount and amount.adjusted() + 1 + places < ENOUGH:
        places = SIGNIFICANT - 1 - amount.adjusted()
    return CONTEXT.quantize(amount, Decimal(1).scaleb(-places))


def money(amount: Decimal, currency: str | None) -> str:
    """A rounded amount without its currency: `1,234.50`, `0.000001`."""
    text = f"{rounded(amount, currency):,f}"
    whole, _, decimals = text.partition(".")
    least = minor_units(currency)
    decimals = decimals[:least] + decimals[least:].rstrip("0")
    return _signed(f"{whole}.{decimals}" if decimals else whole)


def percentage(value: Decimal) -> str:
    """A fraction in per cent with one decimal; a share that is not nothing is not shown as nothing, nor as all."""
    per_cent = CONTEXT.multiply(value, Decimal(100))
    if 0 < per_cent < Decimal("0.05"):
        return f"<{NARROW_SPACE}0.1{NARROW_SPACE}%"
    if Decimal("99.95") <= per_cent < 100:
        return f">{NARROW_SPACE}99.9{NARROW_SPACE}%"
    return _signed(f"{CONTEXT.quantize(per_cent, Decimal('0.1')):,f}{NARROW_SPACE}%")


def changed(value: Decimal) -> str:
    """A change as a fraction in per cent with its sign; one that is not nothing is not shown as nothing."""
    per_cent = CONTEXT.multiply(value, Decimal(100))
    sign = "+" if value > 0 else MINUS if value < 0 else ""
    if 0 < abs(per_cent) < Decimal("0.05"):
        return f"{sign}<{NARROW_SPACE}0.1{NARROW_SPACE}%"
    return f"{sign}{CONTEXT.quantize(abs(per_cent), Decimal('0.1')):,f}{NARROW_SPACE}%"


def shown(value: Value, kind: Kind = Kind.TEXT, currency: str | None = None) -> str:
    """A value as it stands on the page."""
    if value is None:
        return UNKNOWN
    if isinstance(value, str):
        return value
    if isinstance(value, date):
        return value.isoformat()
    return _number(Decimal(value), kind, currency)


def _number(value: Decimal, kind: Kind, currency: str | None) -> str:
    if kind is Kind.MONEY:
        return money(value, currency)
    if kind is Kind.SHARE:
        return percentage(value)
    if kind is Kind.CHANGE:
        return changed(value)
    if kind is Kind.MEAN:
        return _signed(f"{CONTEXT.quantize(value, Decimal('0.1')):,f}")
    if kind is Kind.DECIMAL:
        return _signed(_trimmed(f"{value:,f}"))
    text = _signed(f"{value:,f}")
    return f"+{text}" if kind is Kind.SIGNED and value > 0 else text


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _signed(text: str) -> str:
    return MINUS + text[1:] if text.startswith("-") else text


def plain(value: Value) -> str:
    """A value as it stands in a CSV file: exact, without separators; empty where it is null."""
    if value is None:
        return ""
    if isinstance(value, Decimal):
        text = _trimmed(f"{value:f}")
        return "0" if text == "-0" else text
    return str(value)
