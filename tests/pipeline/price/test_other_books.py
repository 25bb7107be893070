"""Books of others are taken over to the digit, or what is left out is named; and two books are held side by side."""

from __future__ import annotations

import gzip
import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from weighbridge.pipeline.lake import Lake, polars_schema
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.difference import Change, differences, rows_on
from weighbridge.pipeline.price.other_books import OtherBook, genai_prices, litellm, short_decimal
from weighbridge.pipeline.price.price_file import read_prices
from weighbridge.pipeline.price.repriced import Repriced, repriced, write_repriced
from weighbridge.pipeline.price.row import PriceRow
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.lattice import CROSSED_CELLS, REPORTED_CLASSES


@pytest.mark.parametrize(
    ("value", "short"),
    [
        (1.25e-06, "0.00000125"),
        (3e-07, "0.0000003"),
        (4.1400000000000003e-05, "0.0000414"),
        (0.1 + 0.2, "0.3"),
        (5, "5"),
        (0.0, "0"),
        (0.08333333333333334, None),
        (1.23456789012345e-06, None),
        (-1.0, None),
        (float("nan"), None),
        (float("inf"), None),
    ],
)
def test_a_float_is_taken_for_the_decimal_it_is_short_for(value: float, short: str | None) -> None:
    assert short_decimal(value) == (None if short is None else Decimal(short))


def rows(folder: Path, book: OtherBook, provider: str) -> list[PriceRow]:
    path = folder / "other.toml"
    path.write_text(book.toml(provider, "theirs"), encoding="utf-8")
    return read_prices(path)


def test_litellm_is_taken_over_with_terms_and_tiers(tmp_path: Path) -> None:
    entry = {
        "litellm_provider": "anthropic",
        "input_cost_per_token": 3e-06,
        "output_cost_per_token": 1.5e-05,
        "cache_creation_input_token_cost": 3.75e-06,
        "input_cost_per_token_above_200k_tokens": 6e-06,
        "input_cost_per_token_batches": 1.5e-06,
        "input_cost_per_token_priority": 6e-06,
        "input_cost_per_token_above_200k_tokens_priority": 1.2e-05,
        "ocr_cost_per_page": 0.001,
        "max_tokens": 4096,
    }
    book = tmp_path / "litellm.json"
    book.write_text(json.dumps({"sample_spec": {}, "m": entry, "n": {"litellm_provider": "x"}}), encoding="utf-8")
    taken = litellm(book)
    assert taken.left_out == [
        ("m", "ocr_cost_per_page", "no key of a price file says this"),
        ("n", "", "it has no price per token"),
    ]
    told = {
        str(row.terms): [
            {cell[0].value: str(price) for cell, price in bracket.prices.items()} for bracket in row.brackets
        ]
        for row in rows(tmp_path, taken, "anthropic")
    }
    base = {"output_visible": "15", "reasoning": "15", "cache_write_5m": "3.75"}
    assert told == {
        "": [base | {"input_uncached": "3"}, base | {"input_uncached": "6"}],
        "tier=priority": [{"input_uncached": "6"}, {"input_uncached": "12"}],
        "batch": [{"input_uncached": "1.5"}],
    }


def test_genai_prices_is_taken_over_without_what_hangs_on_a_date(tmp_path: Path) -> None:
    tiered = {"base": 1.25, "tiers": [{"start": 200000, "price": 2.5}]}
    dated = [{"prices": {"input_mtok": 1}}, {"constraint": {"start_date": "2026-01-01"}, "prices": {"input_mtok": 2}}]
    models = [
        {"id": "a", "prices": {"input_mtok": tiered, "output_mtok": 10, "requests_kcount": 5}},
        {"id": "b", "prices": dated},
        {"id": "c", "prices": {"input_mtok": 0.08333333333333334}},
    ]
    book = tmp_path / "data.json"
    book.write_text(json.dumps([{"id": "p", "models": models}]), encoding="utf-8")
    taken = genai_prices(book)
    first, second = rows(tmp_path, taken, "p")
    assert [(each.tier, sorted(map(str, each.prices.values()))) for each in first.brackets] == [
        (0, ["1.25", "10", "10"]),
        (200_000, ["10", "10", "2.5"]),
    ]
    assert (second.model, [str(price) for price in second.prices.values()]) == ("b", ["1"])
    assert [(name, what) for name, what, _ in taken.left_out] == [
        ("p/a", "requests_kcount"),
        ("p/b", "constraint"),
        ("p/c", "input_mtok"),
        ("p/c", ""),
    ]


@pytest.mark.parametrize("content", ["[]", "{", '{"a": 1'])
def test_what_is_no_book_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"is no (book of litellm|JSON)"):
        litellm(path)


@pytest.mark.real
def test_whole_books_are_taken_over_and_load(shared_real: Path, tmp_path: Path) -> None:
    unpacked = tmp_path / "litellm.json"
    unpacked.write_bytes(gzip.decompress((shared_real / "prices" / "litellm_model_prices.json.gz").read_bytes()))
    for book, least in ((litellm(unpacked), 3000), (genai_prices(shared_real / "prices/genai_prices_data.json"), 1200)):
        loaded = [PriceBook([rows(tmp_path, book, provider)]) for provider in book.rows]
        assert sum(len(each.rows) for each in loaded) >= least


HEAD = 'provider = "p"\ncurrency = "USD"\nsource = "a list"\n'
OLD = '[[rows]]\nmodels = ["m"]\nprices = { input = "2", output = "8" }\nfees = { web_search = "10" }\n'
NEW = OLD.replace('"2"', '"3"').replace('output = "8"', 'output = "8", cache_read = "1"').replace("10", "5")


def read(folder: Path, text: str) -> list[PriceRow]:
    path = folder / "p.toml"
    path.write_text(HEAD + text, encoding="utf-8")
    return read_prices(path)


def test_each_price_that_differs_is_told_with_its_percent(tmp_path: Path) -> None:
    new = NEW + "up_to_input_tokens = 9\n" + OLD.replace('"m"', '"n"')
    found = differences(read(tmp_path, OLD), read(tmp_path, new))
    assert [(str(d.change), d.model, d.item, d.before, d.after, d.percent) for d in found] == [
        ("added", "m", "cache_read", None, "1", None),
        ("changed", "m", "fee web_search", "10", "5", Decimal("-50.00")),
        ("changed", "m", "input_uncached", "2", "3", Decimal("50.00")),
        ("terms", "m", "up_to_input_tokens", None, "9", None),
        ("added", "n", "", None, None, None),
    ]
    assert [str(d.change) for d in differences(read(tmp_path, new), read(tmp_path, new))] == []
    back = differences(read(tmp_path, new), read(tmp_path, OLD))
    assert sorted(str(d.change) for d in back) == ["changed", "changed", "removed", "removed", "terms"]


def test_a_book_on_two_days_is_compared_line_by_line(tmp_path: Path) -> None:
    text = OLD.replace("prices", "valid_to = 2026-05-01\nprices") + NEW.replace(
        "prices", "valid_from = 2026-05-01\nprices"
    )
    held = read(tmp_path, text)
    before, after = (rows_on(held, date(2026, month, 1)) for month in (4, 6))
    told = {d.item: d.change for d in differences(before, after, dated=False)}
    assert (told["input_uncached"], told["valid_to"]) == (Change.CHANGED, Change.TERMS)


def reading(attempt: int, model: str, **own: Any) -> dict[str, Any]:
    counts = dict.fromkeys(map(str, REPORTED_CLASSES), 0) | {cell.name: 0 for cell in CROSSED_CELLS}
    key = {"attempt_hi": 0, "attempt_lo": attempt, "source": "s", "child": 0, "report": 0, "revision": 0}
    named = {"provider": "p", "model": model, "verdict": "PROVED", "ended": "complete", "day": date(2026, 5, 2)}
    totals = {"input_uncached": 1_000_000, "input_total": 1_000_000, "output_total": 0, "total": 1_000_000}
    return {**counts, **key, **named, **totals, **own}


def test_what_another_book_changes_on_a_month_is_a_finding_and_no_amount(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake")
    readings = [reading(1, "m"), reading(2, "m"), reading(3, "n"), reading(4, "m", day=date(2026, 6, 1))]
    lake.append("reading", pl.DataFrame(readings, schema=polars_schema("reading")))
    old = PriceBook([read(tmp_path, OLD + OLD.replace('"m"', '"n"'))])
    new = PriceBook([read(tmp_path, NEW)])
    found = write_repriced(lake, "2026-05", old, new)
    assert [(f.code, f.subject["model"], f.rows, f.amount, f.currency) for f in found] == [
        ("price_changed", "m", 2, Decimal(2), "USD"),
        ("price_missing", "n", 1, None, None),
    ]
    assert lake.scan("finding").sort("code").collect()["code"].to_list() == ["price_changed", "price_missing"]
    assert lake.rows("priced_amount") == 0
    assert repriced(lake, "2026-05", old, old) == []
    assert repriced(lake, "2026-04", old, new) == []


def test_a_difference_of_large_amounts_is_exact_to_the_last_place() -> None:
    before, after = (Decimal(f"123456789012345.00000000000000000{digit}") for digit in (1, 3))
    assert Repriced.of(before, after, closed=True) == Repriced(before, Decimal("0.000000000000000002"), kept=True)


def test_a_close_keeps_its_amount_and_an_open_period_does_not() -> None:
    then, now = Decimal("2472.81"), Decimal("1923.92")
    assert Repriced.of(then, now, closed=True) == Repriced(then, Decimal("-548.89"), kept=True)
    assert Repriced.of(then, now, closed=False) == Repriced(now, Decimal("-548.89"), kept=False)
    assert Repriced.of(then, then, closed=True) == Repriced(then, Decimal(0), kept=False)
