"""A price file is used exactly as written, or refused with a message that says where and what to write."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from weighbridge.pipeline.price.price_file import read_prices
from weighbridge.pipeline.price.row import Match
from weighbridge.schemas.enumerations import Modality, TokenClass
from weighbridge.schemas.errors import ConfigError

HEAD = """
provider = "acme"
currency = "EUR"
source = "https://acme.example/prices"
checked_on = 2026-01-02
"""


def write(folder: Path, rows: str, head: str = HEAD) -> Path:
    path = folder / "acme.toml"
    path.write_text(head + rows, encoding="utf-8")
    return path


def refusal(folder: Path, rows: str, head: str = HEAD) -> str:
    with pytest.raises(ConfigError) as error:
        read_prices(write(folder, rows, head))
    return str(error.value)


def test_a_row_reads_as_written(tmp_path: Path) -> None:
    rows = """
    [[rows]]
    match = "prefix"
    models = ["a-", "b-"]
    valid_from = 2026-02-01
    valid_to = 2026-03-01
    up_to_input_tokens = 200000
    modalities = ["image"]
    prices = { input = "2.50", output = "10", reasoning = "12", cache_read = "0.000000000001", audio_in = "40" }
    """
    first, second = read_prices(write(tmp_path, rows))
    assert (first.model, second.model) == ("a-", "b-")
    assert first.match is Match.PREFIX
    assert (first.provider, first.currency, first.origin) == ("acme", "EUR", "https://acme.example/prices")
    assert (first.valid_from, first.valid_to, first.checked_on) == (
        date(2026, 2, 1),
        date(2026, 3, 1),
        date(2026, 1, 2),
    )
    assert first.up_to_input_tokens == 200_000
    text, image, audio = Modality.TEXT, Modality.IMAGE, Modality.AUDIO
    assert first.prices == {
        (TokenClass.INPUT_UNCACHED, text): Decimal("2.5"),
        (TokenClass.INPUT_UNCACHED, image): Decimal("2.5"),
        (TokenClass.INPUT_UNCACHED, audio): Decimal(40),
        (TokenClass.CACHE_READ, text): Decimal("0.000000000001"),
        (TokenClass.CACHE_READ, image): Decimal("0.000000000001"),
        (TokenClass.OUTPUT_VISIBLE, text): Decimal(10),
        (TokenClass.OUTPUT_VISIBLE, image): Decimal(10),
        (TokenClass.REASONING, text): Decimal(12),
    }


def test_output_serves_reasoning_where_it_has_no_price_of_its_own(tmp_path: Path) -> None:
    (row,) = read_prices(write(tmp_path, '[[rows]]\nmodels = ["m"]\nprices = { output = "10" }'))
    assert row.match is Match.EQUALS
    assert row.prices == {
        (TokenClass.OUTPUT_VISIBLE, Modality.TEXT): Decimal(10),
        (TokenClass.REASONING, Modality.TEXT): Decimal(10),
    }


PRICE = 'prices = { input = "1" }'


def one(*lines: str) -> str:
    return "\n".join(["[[rows]]", *lines])


def priced(price: str, *lines: str) -> str:
    return one('models = ["m"]', f"prices = {{ {price} }}", *lines)


def above(*parts: str) -> str:
    tier = ", ".join([*parts, PRICE])
    return one('models = ["m"]', PRICE, f"above = [{{ {tier} }}]")


def marginal() -> str:
    return f'above = [{{ input_tokens = 9, rule = "marginal", counts = ["input_uncached"], {PRICE} }}]'


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (priced("input = 2.5"), "row 1 (m): price 'input' is a float; a price is a decimal in quotes"),
        (priced("input = 2"), "row 1 (m): price 'input' is a int; a price is a decimal in quotes"),
        (priced('input = "0.0000000000001"'), "price 'input' is no plain decimal"),
        (priced('input = "-1"'), "price 'input' is below zero; what a provider gives back is a credit"),
        (priced('input = "٢"'), "price 'input' is no plain decimal"),
        (priced('input = "1e3"'), "price 'input' is no plain decimal"),
        (priced('input = "NaN"'), "price 'input' is no plain decimal"),
        (priced('input = "100000"'), "price 'input' is not below 100000"),
        (priced('cache_raed = "1"'), "unknown key 'cache_raed'; the nearest valid one is 'cache_read'"),
        (priced(""), "'prices' has no price"),
        (one('models = ["m"]'), "'prices' is missing"),
        (one(PRICE), "row 1: 'models' is missing"),
        (one("models = []", PRICE), "'models' is a list of at least one text"),
        (one('models = ["m", "m"]', PRICE), "'models' names one twice"),
        (one('models = "m"', PRICE), "'models' is a str; a list is expected"),
        (one('match = "regex"', 'models = ["m"]', PRICE), "'match' is 'regex'; it is one of equals, prefix, pattern"),
        (one('match = "pattern"', 'models = ["m("]', PRICE), "'m(' is no regular expression"),
        (one('models = ["m"]', "valid_form = 2026-01-01", PRICE), "the nearest valid one is 'valid_from'"),
        (one('models = ["m"]', 'valid_from = "2026-01-01"', PRICE), "'valid_from' is a str; a date such as"),
        (one('models = ["m"]', "valid_from = 2026-01-01T00:00:00Z", PRICE), "'valid_from' is a datetime; a date such"),
        (
            one('models = ["m"]', "valid_from = 2026-01-02", "valid_to = 2026-01-02", PRICE),
            "is not after 'valid_from' 2026-01-02",
        ),
        (one('models = ["m"]', "up_to_input_tokens = true", PRICE), "'up_to_input_tokens' is a bool; a whole number"),
        (one('models = ["m"]', 'modalities = ["smell"]', PRICE), "has 'smell'; it lists text, audio, image, video"),
        (one('models = ["m"]', 'currency = "euro"', PRICE), "'currency' is 'euro'; it must match [A-Z]{3}"),
        (one('models = ["m"]', "when = {}", PRICE), "'when' is empty"),
        (one('models = ["m"]', 'when = { tier = "flex" }', PRICE), "the nearest valid one is 'service_tier'"),
        (one('models = ["m"]', 'when = { service_tier = "default" }', PRICE), "without it is the price on the default"),
        (one('models = ["m"]', 'when = { service_tier = "batch" }', PRICE), "write batch = true"),
        (one('models = ["m"]', 'when = { batch = "yes" }', PRICE), "'batch' is a str; true or false is expected"),
        (one('models = ["m"]', 'when = { region = "global" }', PRICE), "'region' is 'global'"),
        (one('models = ["m"]', 'when = { hours = "8-20" }', PRICE), "is no span of hours such as"),
        (one('models = ["m"]', 'when = { hours = "08:00-08:00 UTC" }', PRICE), "ends when it begins"),
        (one('models = ["m"]', 'when = { hours = "08:00-20:00 Mars/Base" }', PRICE), "time zone that is not known"),
        (one('models = ["m"]', 'fees = { web_serch = "10" }', PRICE), "the nearest valid one is 'web_search'"),
        (one('models = ["m"]', "fees = { web_search = 10 }", PRICE), "fee 'web_search' is a int"),
        (above("input_tokens = 0", 'rule = "cliff"'), "'input_tokens' of 'above' is below one"),
        (above("input_tokens = 9"), "'rule' is missing"),
        (above("input_tokens = 9", 'rule = "step"'), "'rule' is 'step'; it is one of cliff, marginal"),
        (above("input_tokens = 9", 'rule = "cliff"', 'counts = ["output_visible"]'), "'counts' has 'output_visible'"),
        (above("input_tokens = 9", 'rule = "marginal"'), "the rule 'marginal' needs 'counts'"),
        (above("input_tokens = 9", 'rule = "marginal"', 'counts = ["cache_read"]'), "not of input_uncached"),
        (
            one('models = ["m"]', "up_to_input_tokens = 9", PRICE, marginal()),
            "'up_to_input_tokens' is about all of input and every token of it",
        ),
        (one('models = ["m"]', PRICE, f"variants = [{{ {PRICE} }}]"), "'when' is missing"),
        (
            one('models = ["m"]', PRICE, "variants = [{ when = { batch = true } }]"),
            "row 1 (m), variant 1: has one of 'times'",
        ),
        (
            one('models = ["m"]', PRICE, 'variants = [{ when = { batch = true }, times = "0" }]'),
            "'times' is '0'; a decimal above zero",
        ),
        (
            priced('input = "0.000000000001"', 'variants = [{ when = { batch = true }, times = "0.5" }]'),
            "'times' makes a price that is not below 100000 or has more than 12 places",
        ),
        (
            "curency = 'EUR'\n" + one('models = ["m"]', PRICE),
            "unknown key 'curency'; the nearest valid one is 'currency'",
        ),
        ("format = 2\n" + one('models = ["m"]', PRICE), "format is 2, this version reads 1; upgrade"),
        ("[[rows]\n", "is not TOML"),
        ("", "'rows' is missing"),
    ],
)
def test_a_fault_is_named_with_file_row_and_cure(tmp_path: Path, rows: str, said: str) -> None:
    message = refusal(tmp_path, rows)
    assert message.startswith("price file acme.toml")
    assert said in message


def test_a_missing_file_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.toml: cannot be read \(No such file"):
        read_prices(tmp_path / "gone.toml")


def test_a_missing_currency_is_not_guessed(tmp_path: Path) -> None:
    message = refusal(
        tmp_path, '[[rows]]\nmodels = ["m"]\nprices = { input = "1" }', 'provider = "acme"\nsource = "x"\n'
    )
    assert "'currency' is missing" in message


def test_the_id_names_the_content_and_not_the_day_it_was_checked(tmp_path: Path) -> None:
    rows = '[[rows]]\nmodels = ["m"]\nprices = { input = "1.0" }'
    (one,) = read_prices(write(tmp_path, rows))
    (later,) = read_prices(write(tmp_path, rows.replace("1.0", "1"), HEAD.replace("2026-01-02", "2026-05-02")))
    (dearer,) = read_prices(write(tmp_path, rows.replace("1.0", "1.1")))
    (shorter,) = read_prices(write(tmp_path, rows + "\nup_to_input_tokens = 5"))
    assert one.price_id == later.price_id
    assert len({one.price_id, dearer.price_id, shorter.price_id}) == 3
