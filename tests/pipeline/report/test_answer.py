"""Is the bill right? The first sentence of the report, for every state a month can be in."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest
from tests.pipeline.report.conftest import World

from weighbridge.pipeline.report.answer import answer, key_figures
from weighbridge.pipeline.report.format import shown
from weighbridge.pipeline.report.sheet import Figure, Prose
from weighbridge.pipeline.report.view import View
from weighbridge.schemas.enumerations import Severity

Viewed = Callable[..., View]


def said(prose: Prose) -> str:
    """The sentence as it is read."""
    return "".join(
        shown(part.value, part.kind, part.currency) if isinstance(part, Figure) else part for part in prose.parts
    )


def matched(world: World) -> None:
    """One attempt that agrees."""
    world.attempt(1, "2026-03-01T10:00:00")
    world.compare(1, "2026-03-01", "input", 10, 10)


def explained(world: World) -> None:
    """Two more that differ, with a cause."""
    for number in (2, 3):
        world.attempt(number, "2026-03-01T10:00:00")
        world.compare(number, "2026-03-01", "input", 10, 20, {"duplicate_report": 10})


def called_a_fault(world: World) -> None:
    """A finding that asks for a correction."""
    explained(world)
    world.find("duplicate_report", Severity.WARNING, {"provider": "openai"})


def several_faults(world: World) -> None:
    """More of them."""
    called_a_fault(world)
    world.find("verdict_contradictory", Severity.ERROR, {"provider": "openai"})
    world.find("verdict_contradictory", Severity.ERROR, {"provider": "google"})


def unexplained(world: World) -> None:
    """One that no cause explains."""
    called_a_fault(world)
    world.attempt(4, "2026-03-01T10:00:00")
    world.compare(4, "2026-03-01", "input", 10, 11, {})


def one_side(world: World) -> None:
    """One that has only a report."""
    world.reading(5, "2026-03-01", 10, 5)
    world.compare(5, "2026-03-01", "input", None, 10, due=False)


def not_reconciled(world: World) -> None:
    """One that was never compared."""
    world.attempt(6, "2026-03-01T10:00:00")


@pytest.mark.parametrize(
    ("state", "headline", "tone"),
    [
        (lambda world: None, "Nothing was observed or reported in this period.", "open"),
        (not_reconciled, "Not known yet: this period has not been reconciled.", "open"),
        (one_side, "Not known: no attempt has both an observed and a reported count.", "open"),
        (matched, "Yes. 1 attempt agrees to the token; none differs.", "good"),
        (explained, "Yes. 2 attempts differ for a known reason, and no open finding calls that a fault.", "good"),
        (called_a_fault, "Not as it stands. Every difference has a known reason; 1 warning is open.", "warn"),
        (
            several_faults,
            "Not as it stands. Every difference has a known reason; 2 errors and 1 warning are open.",
            "warn",
        ),
        (unexplained, "Not yet. 1 attempt differs for no known reason.", "bad"),
    ],
)
def test_the_answer_comes_first_and_the_worst_news_first(
    bare: World, march: Viewed, state: Callable[[World], None], headline: str, tone: str
) -> None:
    state(bare)
    found = answer(march(bare))
    assert (said(found.headline), found.tone) == (headline, tone)


def test_an_open_period_is_called_so(bare: World, march: Viewed) -> None:
    matched(bare)
    bare.put["reconciled"][0]["status"] = "PROVISIONAL"
    assert said(answer(march(bare)).headline) == "So far, yes. The period is still open, and data may still come."


def test_a_yes_does_not_speak_for_a_direction_that_was_never_compared(bare: World, march: Viewed) -> None:
    matched(bare)
    bare.reading(1, "2026-03-01", 10, 5)
    found = answer(march(bare))
    expected = "Yes for the input; the output was not compared. 1 attempt agrees to the token; none differs."
    assert (said(found.headline), found.tone) == (expected, "open")
    assert "Output: 5 tokens reported; none was compared." in [said(detail) for detail in found.details]


def test_attempts_that_a_report_alone_tells_of_are_told_beside_all(world: World, bare: World, march: Viewed) -> None:
    """So that the number of all attempts and that of the recorded ones are understood together."""
    tile = key_figures(march(world)).tiles[0]
    assert (tile.figure.value, said(tile.remark)) == (9, "7 with a usage report; 1 told by a report alone")
    matched(bare)
    assert "alone" not in said(key_figures(march(bare)).tiles[0].remark)


def test_what_the_answer_rests_on(world: World, march: Viewed) -> None:
    assert [said(detail) for detail in answer(march(world)).details] == [
        "The answer covers 6 of 9 attempts (66.7\u202f%), those that could be compared.",
        "3 attempts differ from what was observed, for a known reason.",
        "1 attempt differs from what was observed, for no known reason.",
        "1 attempt has no usage report although one was expected.",
        "Input: 1,800 tokens reported, 2,620 observed; \u221210 remain unexplained.",
        "Output: 735 tokens reported, 1,055 observed; 0 remain unexplained.",
        "Open findings name EUR\u00a01.50 charged too little.",
        "Open findings name USD\u00a00.00062 charged too much.",
        "No invoice is imported: the bill stands for reported usage at the prices of its days.",
    ]


def test_both_signs_of_one_currency_are_named_in_one_sentence(bare: World, march: Viewed) -> None:
    bare.find("first_one", Severity.ERROR, {"provider": "a"}, amount=Decimal(2), currency="USD")
    bare.find("second_one", Severity.ERROR, {"provider": "a"}, amount=Decimal("-0.5"), currency="USD")
    bare.find("third_one", Severity.ERROR, {"provider": "a"}, amount=Decimal(0), currency="EUR")
    details = [said(detail) for detail in answer(march(bare)).details]
    assert details[0] == "Open findings name USD\u00a02.00 charged too much and USD\u00a00.50 charged too little."
    assert not [detail for detail in details if "EUR" in detail]
