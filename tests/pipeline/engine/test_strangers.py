"""Attempts that are told under another name than their engine's: what is said of calls that seem to be nobody's."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pipeline.engine.test_worlds import Engine, lake_of

from weighbridge.pipeline.engine.engine import weigh_engines
from weighbridge.pipeline.engine.lives import told
from weighbridge.pipeline.engine.strangers import Strangers
from weighbridge.pipeline.lake import polars_schema
from weighbridge.schemas.finding import Finding

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
SECOND = timedelta(seconds=1)
Row = dict[str, Any]
CHECK = "--provider"


def weighed(tmp_path: Path, *others: Row, late: bool = False, unseen: int = 1) -> tuple[list[Row], dict[str, Finding]]:
    """A server with a call of its own and some that nobody saw, beside attempts of other names in the same minute.

    Returns:
        What is unobserved of its prompts, and its findings about them, by code.
    """
    engine = Engine()
    engine.scrape()
    engine.call(100, 10)
    for _ in range(unseen):
        engine.call(9, 4, kind="unseen")
    engine.scrape()
    lake = lake_of(engine, tmp_path / "lake", random.Random(0))
    begin = START + timedelta(hours=3) if late else START + 4 * SECOND
    common = {
        "attempt_hi": 1, "day": START.date(), "source": "client", "model_served": "m", "tenant": "unassigned",
        "task": "unassigned", "route": "unassigned", "status": "succeeded", "arrived_at": begin, "total_us": 1,
        "revision": 0,
    }  # fmt: skip
    rows = [{**common, "attempt_lo": number, **other} for number, other in enumerate(others)]
    lake.append("attempt", pl.DataFrame(rows, schema=polars_schema("attempt")))
    result = weigh_engines(lake)
    causes = lake.scan("engine_gap_cause").filter(cause="unobserved", counter="prompt_tokens").collect().to_dicts()
    of_prompts = [found for found in result.findings if found.subject["counter"] == "prompt_tokens"]
    return causes, {found.code: found for found in of_prompts}


OTHER: Row = {"framework": "httpx", "provider": "openai"}


NAMELESS: Row = {"provider": "openai", "input_computed": 9}


@pytest.mark.parametrize(("other", "unseen"), [(OTHER, 1), (NAMELESS, 2)])
def test_calls_of_nobody_are_not_certain_where_the_model_was_called_under_another_name(
    tmp_path: Path, other: Row, unseen: int
) -> None:
    """Under another provider it is not added up; under no framework it may or may not be the engine's."""
    (cause,), found = weighed(tmp_path, other, unseen=unseen)
    assert (cause["tokens"], cause["confidence"], cause["low"], cause["high"]) == (9, "probable", 0, None)
    finding = found["engine_unobserved"]
    assert (finding.difference, str(finding.confidence)) == (9, "probable")
    assert CHECK in finding.cure


def test_what_is_left_over_beside_an_attempt_of_no_name_says_what_to_check_first(tmp_path: Path) -> None:
    """It stands for the call that nobody saw and has two tokens less, which no cause explains."""
    causes, found = weighed(tmp_path, {**NAMELESS, "input_computed": 7})
    assert causes == []
    assert found["engine_gap_unexplained"].difference == 2
    assert CHECK in found["engine_gap_unexplained"].cure


@pytest.mark.parametrize(
    ("others", "late"),
    [([], False), ([{**OTHER, "model_served": "another"}], False), ([OTHER], True),
     ([{"framework": "vllm", "input_computed": 0}], True)],
)  # fmt: skip
def test_calls_of_nobody_are_certain_where_no_such_attempt_ran(tmp_path: Path, others: list[Row], late: bool) -> None:
    """Those of another model, and those that ran when the window was over, take nothing from it."""
    (cause,), found = weighed(tmp_path, *others, late=late)
    assert (cause["tokens"], cause["confidence"], cause["low"], cause["high"]) == (9, "certain", None, None)
    assert CHECK not in found["engine_unobserved"].cure


def test_an_attempt_that_its_engine_counted_is_its_own_whatever_the_client_called_it(tmp_path: Path) -> None:
    """The client's record comes first by name, and says `openai`; the engine's own says nine tokens."""
    both = {"attempt_hi": 1, "attempt_lo": 5}
    causes, found = weighed(
        tmp_path,
        {**both, **OTHER, "source": "a-client"},
        {**both, "source": "b-engine", "framework": "vllm", "input_computed": 9, "output_computed": 4},
    )
    assert (causes, found) == ([], {})


STRETCHES = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 8)), max_size=12)


@settings(max_examples=60, deadline=None)
@given(lived=STRETCHES, since=st.integers(0, 25), lasted=st.integers(0, 10))
def test_those_that_ran_during_a_stretch_are_those_that_touch_it(
    lived: list[tuple[int, int]], since: int, lasted: int
) -> None:
    rows = [{"begin": START + begin * SECOND, "end": START + (begin + took) * SECOND} for begin, took in lived]
    touching = sum(begin <= since + lasted and begin + took >= since for begin, took in lived)
    strangers = Strangers.of(told(rows)) if rows else Strangers()
    assert strangers.during(START + since * SECOND, START + (since + lasted) * SECOND) == touching
