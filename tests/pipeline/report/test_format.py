"""How values are shown: unknown is said, small amounts keep their digits, rounding is half-even."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from weighbridge.pipeline.report.format import plain, shown
from weighbridge.pipeline.report.sheet import Kind, Value

SPACE = "\u202f"


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        ("0", "USD", "0.00"),
        ("0.000001", "USD", "0.000001"),
        ("0.00062", "USD", "0.00062"),
        ("0.000123456", "USD", "0.000123"),
        ("0.0996", "USD", "0.0996"),
        ("0.125", "USD", "0.12"),
        ("0.135", "USD", "0.14"),
        ("1234567.895", "USD", "1,234,567.90"),
        ("1234567.885", "USD", "1,234,567.88"),
        ("-1.5", "EUR", "\u22121.50"),
        ("-0.0000004", "EUR", "\u22120.0000004"),
        ("1234.5", "JPY", "1,234"),
        ("0.4", "JPY", "0.4"),
        ("1234.5678", "KWD", "1,234.568"),
        ("99999999999999999999.999999999999999999", "USD", "100,000,000,000,000,000,000.00"),
    ],
)
def test_money_is_rounded_half_even_and_never_shown_as_nothing(amount: str, currency: str, text: str) -> None:
    assert shown(Decimal(amount), Kind.MONEY, currency) == text


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (None, Kind.COUNT, "unknown"),
        (None, Kind.MONEY, "unknown"),
        (0, Kind.COUNT, "0"),
        (2**70, Kind.COUNT, "1,180,591,620,717,411,303,424"),
        (-7, Kind.SIGNED, "\u22127"),
        (1234, Kind.SIGNED, "+1,234"),
        (0, Kind.SIGNED, "0"),
        (Decimal("241.667"), Kind.MEAN, "241.7"),
        (Decimal("0.00000001"), Kind.SHARE, f"<{SPACE}0.1{SPACE}%"),
        (Decimal("0.99999"), Kind.SHARE, f">{SPACE}99.9{SPACE}%"),
        (Decimal("0.0005"), Kind.SHARE, f"0.0{SPACE}%"),
        (Decimal("0.3333"), Kind.SHARE, f"33.3{SPACE}%"),
        (Decimal(1), Kind.SHARE, f"100.0{SPACE}%"),
        (Decimal(0), Kind.SHARE, f"0.0{SPACE}%"),
        (date(2026, 3, 1), Kind.DAY, "2026-03-01"),
    ],
)
def test_unknown_is_said_and_a_little_is_not_nothing(value: Value, kind: Kind, text: str) -> None:
    assert shown(value, kind) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (0, "0"),
        (Decimal("0.000000000000000001"), "0.000000000000000001"),
        (Decimal("1E+3"), "1000"),
        (Decimal("12.500000000000000000"), "12.5"),
        (Decimal("-0.00"), "0"),
        (-5, "-5"),
    ],
)
def test_files_carry_exact_values(value: Value, text: str) -> None:
    assert plain(value) == text
