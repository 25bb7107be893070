"""The contract of every cause, and the worked example each of them carries in its docstring."""

from __future__ import annotations

import importlib
import re

import polars as pl
import pytest
from _pytest.mark import ParameterSet

from weighbridge.pipeline.reconcile import causes as folder
from weighbridge.pipeline.reconcile.explain import template
from weighbridge.pipeline.reconcile.explain.cause import Cause, all_causes, causes_of
from weighbridge.pipeline.reconcile.explain.explanation import explained
from weighbridge.pipeline.reconcile.explain.late import CHILDREN, RUNNING, nothing
from weighbridge.pipeline.reconcile.explain.requests import REQUESTS
from weighbridge.pipeline.reconcile.explain.template import learnt
from weighbridge.pipeline.reconcile.frames import Frame, collected, frame_of
from weighbridge.pipeline.reconcile.match.side import EVIDENCE, FIGURES, IDENTITY, SITUATION
from weighbridge.schemas.enumerations import Direction, Severity
from weighbridge.schemas.finding import CODE

CODES = [
    "aborted",
    "aborted_in_prefill",
    "failed_after_generation",
    "usage_missing",
    "retry",
    "fallback",
    "speculative_request",
    "capture_gap",
    "duplicate_report",
    "stream_merge",
    "retries_summed",
    "parallel_choices",
    "cache_convention",
    "iterations_left_out",
    "padding_counted",
    "reasoning_convention",
    "reasoning_not_delivered",
    "special_tokens",
    "history_duplicated",
    "tokenizer_version",
    "template_not_applied",
    "end_token_convention",
    "stop_trimmed",
    "sparse_counted",
    "over_cap",
    "draft_billed",
    "recomputed_after_preemption",
]
_TEXTS = {"provider", "api", "model", "template", "tenant", "task", "route", "direction"}
_TEXTS |= {"loss", "relation", "grade", "observer", "reporter", "finish_reason", "attempt_status"}
_FLAGS = {"seen", "missing", "compared", "recount_has_special", "recount_has_template"}
_OF_CHILDREN = ("ended_choices", *REQUESTS)
_LATE = {*_OF_CHILDREN, "learnt_template", "iterations", "running_first", "running_last", "running_sum"}


def kind(name: str) -> pl.DataType:
    """The type of a column of one direction."""
    if name in _TEXTS:
        return pl.String()
    return pl.Boolean() if name in _FLAGS else pl.Date() if name in {"day", "open_until"} else pl.Int64()


SCHEMA = {name: kind(name) for name in (*IDENTITY, *SITUATION, *FIGURES, *EVIDENCE)}


def example(cause: Cause) -> tuple[Direction, list[dict[str, str]]]:
    """The direction and the rows of the table in the docstring of a cause."""
    doc = importlib.import_module(f"{folder.__name__}.{cause.code}").__doc__ or ""
    found = re.search(r"Worked example \((\w+)\):\n\n(.+?)\n*\Z", doc, re.DOTALL)
    assert found, f"{cause.code} has no worked example"
    header, *lines = [line.replace("|", " ").split() for line in found[2].splitlines()]
    return Direction(found[1]), [dict(zip(header, line, strict=True)) for line in lines]


def value(name: str, text: str) -> object:
    """A cell of an example: `-` is null."""
    if text == "-":
        return None
    plain = kind(name) if name in SCHEMA else pl.Int64()
    return text == "true" if plain == pl.Boolean() else text if plain == pl.String() else int(text)


def one_row(direction: Direction, cells: dict[str, object]) -> dict[str, object]:
    """A row of `side` in which nothing is known but these cells and what follows from them."""
    row: dict[str, object] = dict.fromkeys(SCHEMA)
    row |= {
        "attempt_lo": 1,
        "attempt_hi": 1,
        "direction": str(direction),
        "grade": "G1",
        "missing": False,
        "seen": True,
    }
    row |= {"repeated": 0, "reports": 1, "tenant": "unassigned", "task": "unassigned", "route": "unassigned"} | cells
    observed, reported = row["observed"], row["reported"]
    if row["missing"]:
        row["gap"] = -int(str(observed))
    elif row["loss"] or row["relation"]:
        row["gap"] = reported
    else:
        row["gap"] = int(str(reported)) - int(str(observed))
    return row | {"compared": True}


def explain_row(direction: Direction, cells: dict[str, object]) -> dict[str, object]:
    """That row explained. What is fetched late is put in as a lesson or a count of choices."""
    late = {name: cells.pop(name, None) for name in _LATE}
    row = one_row(direction, cells)
    cell = {"cell_provider": "", "cell_model": "", "cell_template": "", "cell_counts_messages": False}
    lesson = {**cell, "per_request": late["learnt_template"], "per_message": 0, "fitting": 3, "pupils": 3}
    empty = collected(learnt(frame_of(template.NO_POINTS)))
    lessons = pl.DataFrame([lesson] if late["learnt_template"] else [], schema=empty.schema)
    names = {**{name: name for name in _OF_CHILDREN}, f"iterations_{direction}": "iterations"}
    children = late_row(CHILDREN, {column: late[name] for column, name in names.items()})
    running = late_row(
        RUNNING, {f"{which}_{direction}": late[f"running_{which}"] for which in ("first", "last", "sum")}
    )
    rows = frame_of(pl.DataFrame([row], schema=SCHEMA))
    return collected(explained(rows, direction, frame_of(lessons), children, running)).row(0, named=True)


def late_row(names: tuple[str, ...], cells: dict[str, object]) -> Frame:
    """Late evidence of the one attempt there is."""
    return frame_of(pl.DataFrame([{"attempt_lo": 1, "attempt_hi": 1, **cells}], schema=nothing(names).schema))


def every_example() -> list[ParameterSet]:
    """Each row of each example."""
    return [
        pytest.param(cause, example(cause)[0], row, id=f"{cause.code}-{number}")
        for cause in all_causes()
        for number, row in enumerate(example(cause)[1])
    ]


def test_the_registry_of_codes_is_frozen_and_in_the_documented_order() -> None:
    """A published code never changes; a new one is added where its order puts it."""
    assert [cause.code for cause in all_causes()] == CODES


@pytest.mark.parametrize("cause", all_causes(), ids=lambda cause: cause.code)
def test_a_cause_is_declared_whole(cause: Cause) -> None:
    """Its code is its module's name, its cure one sentence, and it can be asked in each of its directions."""
    assert CODE.fullmatch(cause.code)
    assert importlib.import_module(f"{folder.__name__}.{cause.code}").CAUSE is cause
    assert cause.cure.endswith(".")
    assert cause.title
    assert cause.severity is not Severity.ERROR  # an explained gap is no error; an unexplained one is
    for direction in cause.directions:
        assert cause in causes_of(direction, structural=cause.structural)
        assert len(cause.candidate(direction)) == 1 or not cause.structural


def test_no_two_causes_share_a_place_in_the_order() -> None:
    """Else the first of several explanations would depend on their names."""
    orders = [cause.order for cause in all_causes()]
    assert len(set(orders)) == len(orders)


@pytest.mark.parametrize(("cause", "direction", "cells"), every_example())
def test_the_worked_example_of_a_cause_comes_out(cause: Cause, direction: Direction, cells: dict[str, str]) -> None:
    """What the docstring says is what is computed: the tokens of the cause, and then no residual."""
    expected = value(cause.code, cells[cause.code])
    row = explain_row(direction, {name: value(name, text) for name, text in cells.items() if name != cause.code})
    assert row[f"tokens_{cause.code}"] == expected
    if expected is not None:
        assert row["explained"] == expected
        assert row["residual"] == 0


@pytest.mark.parametrize("direction", list(Direction))
def test_clean_rows_have_no_cause(direction: Direction) -> None:
    """Equal sides need no explanation, however much evidence lies about."""
    evidence: dict[str, object] = {"cache_read": 30, "cached_engine": 30, "reasoning": 5, "withheld_end_token": 1}
    evidence |= {"recount_special": 1, "recount_has_special": False, "recount_template": 8, "choices": 1}
    row = explain_row(direction, {"observed": 100, "reported": 100, "grade": "G3", **evidence})
    causes = [*causes_of(direction, structural=True), *causes_of(direction, structural=False)]
    assert [row[f"tokens_{cause.code}"] for cause in causes] == [None] * len(causes)
    assert (row["explained"], row["residual"], row["confidence"]) == (0, 0, None)
