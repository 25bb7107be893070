"""The price step of a night: exactly the days it is given, the same again when it runs twice."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from weighbridge.pipeline.lake import Lake, polars_schema, shaped
from weighbridge.pipeline.price import frame
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.frame import price_readings, refresh_prices
from weighbridge.pipeline.price.keys import expand
from weighbridge.pipeline.price.row import Match, PriceRow
from weighbridge.schemas.lattice import CROSSED_CELLS, REPORTED_CLASSES

FIRST, SECOND, THIRD = date(2026, 5, 1), date(2026, 5, 2), date(2026, 5, 3)


def row(price: str, start: date | None = None) -> PriceRow:
    return PriceRow(
        provider="p",
        match=Match.EQUALS,
        model="m",
        prices=expand({"input": Decimal(price), "output": Decimal(4)}),
        currency="EUR",
        origin="test",
        valid_from=start,
    )


def reading(day: date, attempt: int, tokens: int | None, model: str | None = "m") -> dict[str, object]:
    counts = dict.fromkeys(REPORTED_CLASSES, None if tokens is None else 0) | {"input_uncached": tokens}
    return {
        **dict.fromkeys(polars_schema("reading")),
        **counts,
        **{cell.name: 0 for cell in CROSSED_CELLS},
        "attempt_hi": 0,
        "attempt_lo": attempt,
        "day": day,
        "source": "s",
        "child": 0,
        "report": 0,
        "revision": 0,
        "provider": "p",
        "model": model,
        "verdict": "PROVED" if tokens is not None else "UNKNOWN",
        "input_total": tokens,
        "output_total": None if tokens is None else 0,
        "ended": "complete",
        "flags": [],
    }


def readings(*rows: dict[str, object]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=polars_schema("reading"))


def amounts(lake: Lake) -> list[tuple[object, ...]]:
    columns = ["day", "attempt_lo", "amount", "status", "currency"]
    return lake.scan("priced_amount", columns=columns).sort("day", "attempt_lo").collect().rows()


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake.create(tmp_path / "lake")
    lake.append(
        "reading",
        readings(
            reading(FIRST, 1, 10), reading(FIRST, 2, None), reading(SECOND, 3, 20), reading(SECOND, 4, 5, "other")
        ),
    )
    return lake


def test_readings_of_the_given_days_are_priced_at_the_price_of_their_day(lake: Lake) -> None:
    book = PriceBook([[row("2"), row("3", SECOND)]])
    assert refresh_prices(lake, book, [SECOND, FIRST]) == 4
    assert amounts(lake) == [
        (FIRST, 1, Decimal("0.00002"), "priced", "EUR"),
        (FIRST, 2, None, "no_counts", "EUR"),
        (SECOND, 3, Decimal("0.00006"), "priced", "EUR"),
        (SECOND, 4, None, "no_price", None),
    ]
    assert lake.rows("price") == 2 * 3  # two rows of the book, each with input, visible output and reasoning


def test_running_twice_changes_nothing(lake: Lake) -> None:
    book = PriceBook([[row("2")]])
    refresh_prices(lake, book, [FIRST, SECOND])
    before = (lake.digests(), lake.version("priced_amount"), lake.version("price"))
    assert refresh_prices(lake, book, [FIRST, SECOND]) == 4
    assert (lake.digests(), lake.version("priced_amount"), lake.version("price")) == before


def test_other_days_keep_their_amounts_and_the_prices_these_name(lake: Lake) -> None:
    refresh_prices(lake, PriceBook([[row("2")]]), [FIRST, SECOND])
    refresh_prices(lake, PriceBook([[row("7")]]), [SECOND])
    assert [each[2] for each in amounts(lake)] == [Decimal("0.00002"), None, Decimal("0.00014"), None]
    named = lake.scan("priced_amount").select("price_id").unique().collect()["price_id"].drop_nulls()
    known = lake.scan("price").select("price_id").unique().collect()["price_id"]
    assert named.n_unique() == 2
    assert set(named) == set(known)


def test_amounts_of_a_day_without_readings_go(lake: Lake) -> None:
    book = PriceBook([[row("2")]])
    refresh_prices(lake, book, [FIRST])
    lake.replace("reading", readings(), days=[FIRST])
    assert refresh_prices(lake, book, [FIRST, THIRD]) == 0
    assert amounts(lake) == []


def test_days_are_priced_in_batches_of_bounded_size(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = PriceBook([[row("2")]])
    refresh_prices(lake, whole, [FIRST, SECOND])
    digest = lake.digest("priced_amount")
    lake.replace("priced_amount", pl.DataFrame(schema=polars_schema("priced_amount")), days=None)
    monkeypatch.setattr(frame, "BATCH", 1)
    refresh_prices(lake, whole, [FIRST, SECOND])
    assert lake.digest("priced_amount") == digest


def test_priced_rows_keep_the_order_of_the_readings_and_the_shape_of_the_table() -> None:
    frame = readings(reading(SECOND, 9, 1), reading(FIRST, 8, 2, "other"), reading(FIRST, 7, 3))
    priced = price_readings(frame.lazy(), PriceBook([[row("2")]]))
    assert priced["attempt_lo"].to_list() == [9, 8, 7]
    assert shaped("priced_amount", priced).equals(priced)
    assert price_readings(frame.clear(), PriceBook([[row("2")]])).schema == priced.schema


def test_sums_of_amounts_are_exact() -> None:
    many = readings(*(reading(FIRST, attempt, 1) for attempt in range(1000)))
    priced = price_readings(many, PriceBook([[row("0.000000000001")]]))
    assert priced["amount"].sum() == Decimal("0.000000000000001")
