"""The contract of every cause of this room, and the worked example each of them carries in its docstring."""

from __future__ import annotations

import importlib
import re
from datetime import UTC, datetime

import pytest
from _pytest.mark import ParameterSet

from weighbridge.pipeline.engine import causes as folder
from weighbridge.pipeline.engine.cause import Cause, all_causes
from weighbridge.pipeline.engine.facts import FIGURES, PROMPT, Facts, Part
from weighbridge.pipeline.engine.found import PREFIX, finding_codes
from weighbridge.pipeline.engine.gaps import explained
from weighbridge.pipeline.engine.servers import Series
from weighbridge.pipeline.engine.windows import Window
from weighbridge.schemas.enumerations import Severity
from weighbridge.schemas.finding import CODE

CODES = [
    "health_checks",
    "warm_up",
    "children",
    "aborted",
    "aborted_in_prefill",
    "not_looked_up",
    "unobserved",
    "recomputed",
    "counter_reset",
    "failed_after_generation",
    "figure_unknown",
    "edge",
]
SINCE, UNTIL = datetime(2026, 3, 2, 10, tzinfo=UTC), datetime(2026, 3, 2, 11, tzinfo=UTC)


def example(cause: Cause) -> list[dict[str, str]]:
    """The rows of the table in the docstring of a cause."""
    doc = importlib.import_module(f"{folder.__name__}.{cause.code}").__doc__ or ""
    found = re.search(r"Worked example:\n\n(.+?)\n*\Z", doc, re.DOTALL)
    assert found, f"{cause.code} has no worked example"
    header, *lines = [line.replace("|", " ").split() for line in found[1].splitlines()]
    return [dict(zip(header, line, strict=True)) for line in lines]


def facts_of(cells: dict[str, str]) -> Facts:
    """A row of an example: `-` is nothing, null or without a bound."""

    def number(name: str) -> int | None:
        text = cells.get(name, "-")
        return None if text == "-" else int(text)

    figure = next(figure for figure in FIGURES if figure.series[0] == cells["counter"] and figure.series[1] is None)
    counts: dict[Series, int] = {figure.series: int(cells["counted"])}
    if number("prompt") is not None:
        counts[PROMPT] = int(cells["prompt"])
    window = Window(SINCE, UNTIL, counts, cells.get("reset") == "true", cells.get("starts") == "true")
    parts: dict[str, Part] = {}
    for kind in ("done", "health", "warm_up", "across"):
        if kind in cells and number(kind) is not None:
            parts[kind] = Part(attempts=1, known=number(kind) or 0)
    if number("unknown_done"):
        parts["done"] = Part(2, number("done") or 0, number("unknown_done") or 0, 0, number("high_done"))
    if "unfinished" in cells:
        unknown = number("unknown") or 0
        parts["unfinished"] = Part(1, number("unfinished") or 0, unknown, number("low") or 0, number("high"))
    if number("failed"):
        parts["failed"] = Part(number("failed") or 0, 0, number("failed") or 0, 0, None)
    return Facts(
        figure, int(cells["counted"]), window, **parts, more=number("more") or 0, several=number("several") or 0,
        scored=number("scored") or 0, finished=number("finished"), unseen=number("unseen"),
        strangers=number("strangers") or 0,
    )  # fmt: skip


def every_example() -> list[ParameterSet]:
    return [
        pytest.param(cause, row, id=f"{cause.code}-{number}")
        for cause in all_causes()
        for number, row in enumerate(example(cause))
    ]


def test_the_registry_of_codes_is_frozen_and_in_the_documented_order() -> None:
    assert [cause.code for cause in all_causes()] == CODES
    assert finding_codes() == {*(f"engine_{code}" for code in CODES), "engine_gap_unexplained"}
    assert all(CODE.fullmatch(code) for code in finding_codes())


@pytest.mark.parametrize("cause", all_causes(), ids=lambda cause: cause.code)
def test_a_cause_is_declared_whole(cause: Cause) -> None:
    assert importlib.import_module(f"{folder.__name__}.{cause.code}").CAUSE is cause
    assert CODE.fullmatch(PREFIX + cause.code)
    assert cause.cure.endswith(".")
    assert cause.title
    assert cause.severity is not Severity.ERROR  # what is explained is no error


def test_no_two_causes_share_a_place_in_the_order() -> None:
    orders = [cause.order for cause in all_causes()]
    assert len(set(orders)) == len(orders)


@pytest.mark.parametrize(("cause", "cells"), every_example())
def test_the_worked_example_of_a_cause_comes_out(cause: Cause, cells: dict[str, str]) -> None:
    expected = cells[cause.code]
    gap = explained(facts_of(cells))
    found = {part.cause.code: part.amount for part in gap.causes}
    assert found.get(cause.code) == (None if expected == "-" else int(expected))
    assert gap.attempted + sum(found.values()) + gap.residual == int(cells["counted"])


def test_what_two_causes_may_hold_is_ambiguous_and_both_are_named() -> None:
    """An aborted attempt of which nothing is known, and one that runs on: 60 tokens may be of either."""
    cells = {"counter": "generation_tokens", "counted": "160", "done": "100", "across": "80", "unfinished": "-"}
    gap = explained(facts_of({**cells, "unknown": "1", "low": "10", "high": "200"}))
    ((part),) = gap.causes
    assert (part.cause.code, part.amount, part.confidence, part.alternatives) == ("aborted", 60, "ambiguous", ("edge",))
    assert (gap.residual, gap.confidence, gap.status) == (0, "ambiguous", "EXPLAINED")


def test_an_edge_makes_it_provisional_and_states_its_interval() -> None:
    gap = explained(facts_of({"counter": "generation_tokens", "counted": "160", "done": "100", "across": "80"}))
    (part,) = gap.causes
    assert part.bounds is not None
    assert (part.cause.code, part.amount, part.bounds.low, part.bounds.high) == ("edge", 60, 0, 80)
    assert (gap.status, gap.confidence, gap.residual) == ("PROVISIONAL", "probable", 0)


def test_known_and_unknown_aborted_attempts_are_one_part() -> None:
    """Thirty tokens of one are known; of the other between 10 and 200: 70 of both."""
    cells = {"counter": "generation_tokens", "counted": "170", "done": "100", "unfinished": "30"}
    (part,) = explained(facts_of({**cells, "unknown": "1", "low": "10", "high": "200"})).causes
    assert part.bounds is not None
    assert (part.amount, part.bounds.low, part.bounds.high, part.confidence) == (70, 40, 230, "probable")


def test_what_no_cause_holds_stays_a_residual_as_a_whole() -> None:
    gap = explained(facts_of({"counter": "generation_tokens", "counted": "90", "done": "100"}))
    assert (gap.causes, gap.residual, gap.status, gap.confidence) == ((), -10, "UNEXPLAINED", "none")
