"""What a scheduler is handed when a task fails: our own words, and none of the exceptions that led to them."""

from __future__ import annotations

import runpy
import traceback
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from tests.conftest import ROOT

from weighbridge.pipeline.lake.failure import told
from weighbridge.schemas.errors import LakeError, WeighbridgeError

CANARY = "canary-4711"
Guarded = Callable[[Callable[[], object]], Callable[[], object]]


@pytest.fixture(scope="module")
def guarded() -> Guarded:
    """The guard alone: its package sets up the environment of whatever imports it."""
    whole: dict[str, Any] = runpy.run_path(str(ROOT / "dags/weighbridge/dags/safety.py"))
    return whole["guarded"]  # type: ignore[no-any-return]


def value_of_a_row() -> None:
    """A cell that an engine quotes in the text of its error."""
    pl.Series([CANARY]).cast(pl.Int64)


def chained() -> None:
    try:
        value_of_a_row()
    except pl.exceptions.PolarsError as error:
        raise LakeError("the lake cannot be read; restore it") from error


def in_passing() -> None:
    try:
        value_of_a_row()
    except pl.exceptions.PolarsError:
        raise LakeError("the lake cannot be read; restore it")  # noqa: B904 - the context is what is looked for


def of_the_lake() -> None:
    with told("writing attempt", "/there/lake"):
        value_of_a_row()


def shown(work: Callable[[], object]) -> str:
    """The traceback of what is raised; what is not shown of it must not be held by it either."""
    with pytest.raises(WeighbridgeError) as caught:
        work()
    error: BaseException = caught.value
    text = "".join(traceback.format_exception(error))
    while (error.__cause__ or error.__context__) is not None:
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
        text += str(error)
    return text


@pytest.mark.parametrize("work", [chained, in_passing, of_the_lake, value_of_a_row])
def test_no_word_of_an_exception_that_led_to_another_leaves_a_task(
    guarded: Guarded, work: Callable[[], object]
) -> None:
    with pytest.raises((LakeError, pl.exceptions.PolarsError)) as caught:
        work()
    assert CANARY in f"{caught.value}{caught.value.__context__}", "it is there to be found"
    assert CANARY not in shown(guarded(work))


def test_errors_of_the_lake_show_no_word_of_the_engine_below_it() -> None:
    with pytest.raises(LakeError, match="InvalidOperationError while writing attempt") as caught:
        of_the_lake()
    assert CANARY not in "".join(traceback.format_exception(caught.value))
