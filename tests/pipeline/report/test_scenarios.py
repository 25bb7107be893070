"""Where tokens and money go: the same attempts cut in four ways, each adding up to the whole."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest
from tests.pipeline.report.conftest import CLAUDE, GEMINI, GPT, QWEN, World

from weighbridge.pipeline.report.query import scenarios
from weighbridge.pipeline.report.sheet import Sheet
from weighbridge.pipeline.report.view import View

Viewed = Callable[..., View]


def test_by_task(world: World, march: Viewed) -> None:
    sheet = scenarios.by_task(march(world))
    assert [row[:5] for row in sheet.rows] == [
        ("batch", 2, 990, 400, 1390),
        ("chat", 4, 510, 215, 725),
        ("unassigned", 2, 500, 100, 600),
        ("摘要与翻译", 1, 300, 120, 420),
    ]
    # Chat: attempts 1, 2, 7 and 10 with 150, 560, 15 and unknown tokens; one report without a price, one missing none.
    chat = sheet.row(task="chat")
    assert chat is not None
    assert chat[5:] == (
        Decimal("0.23125997"),  # 725 of 3135
        None,  # nothing in EUR is known, and attempt 10 is not priced
        None,
        Decimal("0.00154"),
        Decimal("0.25496689"),  # of 0.00604
        Decimal("241.667"),  # 725 over the three that are known
        150,
        560,
        0,
        1,
    )


def test_money_decides_the_order_where_there_is_one_currency(bare: World, march: Viewed) -> None:
    for number, task, size, amount in ((1, "large", 900, "0.1"), (2, "dear", 10, "0.2"), (3, "unpriced", 999, None)):
        bare.attempt(number, "2026-03-01T10:00:00", task=task)
        bare.reading(number, "2026-03-01", size, 0, input_uncached=size)
        bare.price(number, "2026-03-01", amount)
    assert scenarios.by_task(march(bare)).cells("task") == ["dear", "large", "unpriced"]


@pytest.mark.parametrize(
    "cut",
    [scenarios.by_task, scenarios.by_route, scenarios.by_model, scenarios.by_tenant],
    ids=lambda cut: cut.__name__,
)
def test_every_cut_adds_up_to_the_whole(world: World, march: Viewed, cut: Callable[[View], Sheet]) -> None:
    sheet = cut(march(world))
    for column, whole in (("attempts", 9), ("tokens", 3135), ("amount_usd", Decimal("0.00604"))):
        known = [value for value in sheet.cells(column) if value is not None]
        assert sum(known) == whole  # type: ignore[arg-type]
        assert sheet.foot(column).value == whole


def test_by_model_names_who_answered(world: World, march: Viewed) -> None:
    sheet = scenarios.by_model(march(world))
    assert [row[:3] for row in sheet.rows] == [
        (QWEN, "vllm", 2),
        (GPT, "openai", 4),
        (GEMINI, "google", 1),
        (CLAUDE, "anthropic", 1),
        ("unknown", "unknown", 1),
    ]
