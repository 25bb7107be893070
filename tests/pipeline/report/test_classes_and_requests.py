"""Classes that add up to their total, the money of each, and the largest single calls."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from tests.pipeline.report.conftest import GEMINI, GPT, World

from weighbridge.pipeline.report.query.classes import class_money, modalities, token_classes
from weighbridge.pipeline.report.query.requests import top_requests
from weighbridge.pipeline.report.view import View

Viewed = Callable[..., View]


def test_classes_and_the_unknown_split_add_up_to_the_total(world: World, march: Viewed) -> None:
    sheet = token_classes(march(world))
    gpt, gemini = sheet.row(model=GPT), sheet.row(model=GEMINI)
    # Reports of attempts 1, 2, 2 and 7: 60 + 200 + 200 + 10 uncached, 40 read; 30 + 80 + 80 + 5 visible, 20 reasoning.
    assert gpt is not None
    assert gpt[2:] == (4, 470, 40, 0, 0, 0, 195, 20, 0, 0, Decimal("0.07843137"), Decimal("0.09302326"))
    # 500 in, of which only 100 are told (read from cache): the share of hits is not known.
    assert gemini is not None
    assert gemini[2:] == (1, None, 100, 0, 0, 0, 60, 40, 400, 0, None, Decimal("0.40000000"))


def test_money_by_class_adds_up_to_the_amount(world: World, march: Viewed) -> None:
    rows = class_money(march(world)).rows
    assert [(row[0], row[1], row[3]) for row in rows] == [
        ("EUR", "input_uncached", Decimal("0.004")),
        ("EUR", "reasoning", Decimal("0.006")),
        ("USD", "input_uncached", Decimal("0.00333")),
        ("USD", "cache_read", Decimal("0.00001")),
        ("USD", "output_visible", Decimal("0.00262")),
        ("USD", "reasoning", Decimal("0.00008")),
    ]


def test_an_amount_whose_split_is_not_known_belongs_to_no_class(bare: World, march: Viewed) -> None:
    """Two readings of 0.5: one is told (0.3 and 0.2), of the other only the output (0.1) is."""
    told = {f"{name}": "0" for name in ("cache_read", "cache_write_5m", "cache_write_1h", "cache_write_unknown")}
    told |= {"input_uncached": "0.3", "output_visible": "0.2", "reasoning": "0"}
    for number, amounts in ((1, told), (2, {"output_visible": "0.1", "reasoning": "0"})):
        bare.reading(number, "2026-03-01", 100, 10, input_uncached=100, output_visible=10)
        bare.price(number, "2026-03-01", "0.5", amounts=amounts)
    costs = {row[1]: row[3] for row in class_money(march(bare)).rows if row[3]}
    assert costs == {
        "input_uncached": Decimal("0.3"),
        "output_visible": Decimal("0.3"),
        "class_not_told": Decimal("0.4"),
    }


def test_only_modalities_that_reports_tell_are_listed(world: World, march: Viewed) -> None:
    assert modalities(march(world)).rows == (("input_uncached", "audio", 30, 1),)


def test_one_list_for_each_currency_and_one_by_tokens(world: World, march: Viewed) -> None:
    sheet = top_requests(march(world))
    wanted = ("list", "rank", "attempt_id", "amount", "input_tokens")
    assert [tuple(row[sheet.index(name)] for name in wanted) for row in sheet.rows] == [
        ("EUR", 1, "0195000000007006fffffffffffffffa", Decimal("0.01"), 500),
        ("USD", 1, "0195000000007003fffffffffffffffd", Decimal("0.0045"), 300),
        ("USD", 2, "0195000000007002fffffffffffffffe", Decimal("0.00124"), 400),
        ("USD", 3, "0195000000007001ffffffffffffffff", Decimal("0.00027"), 100),
        ("USD", 4, "0195000000007007fffffffffffffff9", Decimal("0.00003"), 10),
        ("not priced", 1, "0195000000007005fffffffffffffffb", None, 990),
    ]
    assert sheet.cells("short_id")[0] == "0195000000007006"


def test_at_most_ten_and_ties_are_broken_by_the_id(bare: World, march: Viewed) -> None:
    for number in (5, 3, 12, 1, 9, 7, 2, 11, 4, 10, 8, 6):
        bare.reading(number, "2026-03-01", 100, 0, input_uncached=100)
        bare.price(number, "2026-03-01", "0.5")
    ids = [str(value)[12:16] for value in top_requests(march(bare)).cells("attempt_id")]
    assert ids == [f"70{number:02x}" for number in range(1, 11)]


def test_half_an_id_is_shown_only_where_it_tells_attempts_apart(bare: World, march: Viewed) -> None:
    for number in (1, 2):
        bare.reading(number, "2026-03-01", 100, 0, input_uncached=100, attempt_hi=1)
    assert [len(str(value)) for value in top_requests(march(bare)).cells("short_id")] == [32, 32]
