"""Which row prices a model on a day."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from weighbridge.pipeline.lake import shaped
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.keys import expand
from weighbridge.pipeline.price.price_file import read_prices
from weighbridge.pipeline.price.row import Match, PriceRow
from weighbridge.pipeline.price.terms import Served
from weighbridge.schemas.enumerations import Modality, TokenClass
from weighbridge.schemas.errors import ConfigError

DAY = date(2026, 5, 1)


def row(
    model: str,
    price: str,
    match: Match = Match.EQUALS,
    start: date | None = None,
    end: date | None = None,
    provider: str = "p",
) -> PriceRow:
    return PriceRow(
        provider=provider,
        match=match,
        model=model,
        prices=expand({"input": Decimal(price)}),
        currency="USD",
        origin="test",
        valid_from=start,
        valid_to=end,
        where=f"test row {price}",
    )


def found(book: PriceBook, model: str | None, day: date = DAY, provider: str | None = "p") -> Decimal | None:
    hit = book.find(provider, model, day)
    return None if hit is None else hit.prices[TokenClass.INPUT_UNCACHED, Modality.TEXT]


def test_equals_goes_before_the_longest_prefix_and_a_prefix_before_a_pattern() -> None:
    book = PriceBook(
        [
            [
                row("gpt-4o-mini", "1"),
                row("gpt-4o", "2", Match.PREFIX),
                row("gpt-", "3", Match.PREFIX),
                row(r"[go].*", "4", Match.PATTERN),
            ]
        ]
    )
    assert found(book, "gpt-4o-mini") == 1
    assert found(book, "gpt-4o-mini-2") == 2
    assert found(book, "gpt-5") == 3
    assert found(book, "o3") == 4
    assert found(book, "xgpt") is None  # a pattern matches the whole name
    assert found(book, "gpt-5", provider="q") is None
    assert found(book, None) is None
    assert found(book, "gpt-5", provider=None) is None


def test_an_unknown_start_is_before_every_day_and_a_known_one_wins() -> None:
    march, june = date(2026, 3, 1), date(2026, 6, 1)
    book = PriceBook([[row("m", "1"), row("m", "2", start=march, end=june), row("m", "3", start=june)]])
    assert found(book, "m", date(1999, 1, 1)) == 1
    assert found(book, "m", date(2026, 2, 28)) == 1
    assert found(book, "m", march) == 2
    assert found(book, "m", date(2026, 5, 31)) == 2
    assert found(book, "m", june) == 3


def test_after_the_end_there_is_no_price() -> None:
    book = PriceBook([[row("m", "1", end=DAY)]])
    assert found(book, "m", date(2026, 4, 30)) == 1
    assert found(book, "m", DAY) is None


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ((None, None), (None, None)),
        ((None, date(2026, 1, 1)), (None, date(2026, 6, 1))),
        ((date(2026, 1, 1), None), (date(2026, 2, 1), None)),
        ((date(2026, 1, 1), date(2026, 2, 2)), (date(2026, 2, 1), date(2026, 3, 1))),
    ],
)
def test_two_rows_of_one_model_on_one_day_are_an_error(
    one: tuple[date | None, date | None], two: tuple[date | None, date | None]
) -> None:
    rows = [row("m", "1", start=one[0], end=one[1]), row("m", "2", start=two[0], end=two[1])]
    with pytest.raises(ConfigError, match=r"test row . and test row . both hold for equals 'm' on the same days"):
        PriceBook([rows])
    PriceBook([[rows[0]], [rows[1]]])  # in different layers the first one simply goes before


def test_rows_that_meet_do_not_overlap() -> None:
    day = date(2026, 2, 1)
    book = PriceBook([[row("m", "1", start=date(2026, 1, 1), end=day), row("m", "2", start=day)]])
    assert found(book, "m", date(2026, 1, 31)) == 1
    assert found(book, "m", day) == 2


def test_two_patterns_that_fit_one_model_are_refused_when_it_is_asked_for() -> None:
    book = PriceBook([[row("m.*", "1", Match.PATTERN), row(".*1", "2", Match.PATTERN)]])
    assert found(book, "m2") == 1
    with pytest.raises(ConfigError, match="fit the same model equally well"):
        found(book, "m1")


FILE = """
provider = "openai"
currency = "USD"
source = "contract"
[[rows]]
models = ["{model}"]
valid_from = 2026-05-01
prices = {{ input = "{price}" }}
"""


def test_a_wider_name_says_nothing_of_a_model_that_a_narrower_one_is_for(tmp_path: Path) -> None:
    """A batch job of m-mini does not cost what one of m costs, only because m-mini has no price for batches."""
    own = tmp_path / "acme.toml"
    own.write_text(
        'provider = "p"\ncurrency = "USD"\nsource = "a list"\n'
        '[[rows]]\nmodels = ["m"]\nmatch = "prefix"\nprices = { input = "8" }\n'
        'variants = [{ when = { batch = true }, times = "0.5" }]\n'
        '[[rows]]\nmodels = ["m-mini"]\nprices = { input = "1" }\n',
        encoding="utf-8",
    )
    book, batch = PriceBook([read_prices(own)]), Served(batch=True)
    assert [book.find("p", name, DAY, batch) is not None for name in ("m-maxi", "m-mini")] == [True, False]
    assert book.knows("p", "m-mini", DAY)


def test_a_user_file_overrides_what_it_matches_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(FILE.format(model="gpt-4o", price="1.9"), encoding="utf-8")
    book = PriceBook.load([tmp_path])
    assert found(book, "gpt-4o", date(2026, 5, 1), "openai") == Decimal("1.9")
    assert found(book, "gpt-4o", date(2026, 4, 30), "openai") == Decimal("2.5")
    assert found(book, "gpt-4o-mini", date(2026, 5, 1), "openai") == Decimal("0.15")


def test_of_two_user_files_the_later_one_goes_before(tmp_path: Path) -> None:
    paths = [tmp_path / "a.toml", tmp_path / "b.toml"]
    for path, price in zip(paths, ("1", "2"), strict=True):
        path.write_text(FILE.format(model="gpt-4o", price=price), encoding="utf-8")
    assert found(PriceBook.load(paths), "gpt-4o", DAY, "openai") == 2
    assert found(PriceBook.load(paths[::-1]), "gpt-4o", DAY, "openai") == 1


def test_the_frame_has_one_row_for_each_priced_cell() -> None:
    shared = row("m", "1.5")
    frame = PriceBook([[shared], [shared, row("n", "2", end=DAY)]]).frames()["price"]
    assert shaped("price", frame).equals(frame)
    assert frame.select("model", "token_class", "modality", "per_million", "valid_to").rows() == [
        ("m", "input_uncached", "text", Decimal("1.5"), None),
        ("n", "input_uncached", "text", Decimal(2), DAY),
    ]


def test_the_shipped_book_loads_and_no_two_rows_share_an_id() -> None:
    book = PriceBook.load()
    frame = book.frames()["price"]
    assert frame.height > 500
    assert not frame.select("price_id", "token_class", "modality").is_duplicated().any()
    assert {row.provider for row in book.rows} >= {"openai", "azure", "anthropic", "google", "xai"}
