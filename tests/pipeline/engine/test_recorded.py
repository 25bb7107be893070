"""What vLLM did in three recorded configurations, on the product's own road: calls, finished requests, steps, scrapes.

Every number here was worked out by hand from the recordings: from `outcomes.jsonl` per case, and from
`group_totals.jsonl` per group, where `withheld` are calls that are not in these files and that nobody here recorded.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.pipeline.engine.recorded import CONFIGURATIONS, DAY, KEY, MODEL, Recorded, lines, recorded

from weighbridge.pipeline.engine.engine import weigh_engines
from weighbridge.pipeline.ingest.ingest import ingest
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.reconcile.reconcile import reconcile

pytestmark = pytest.mark.real
A, B, C = CONFIGURATIONS
Expected = dict[str, tuple[int | None, int | None, dict[str, int]]]

# Case -> observed, reported and causes, input first. What is not named here is equal on both sides.
INPUT: Expected = {
    "A13-n3": (1203, 401, {"parallel_choices": -802}),
    "A16-beam": (685, 40, {"parallel_choices": -645}),
    "A92-stop-n3": (18, 6, {"parallel_choices": -12}),
    "B58-stop-string-walk-n2": (4, 2, {"parallel_choices": -2}),
    "B60-stop-string-walk-n2": (4, 2, {"parallel_choices": -2}),
    "A40-stream-no-usage": (53, None, {"usage_missing": -53}),
    "A45-chat-stream-no-usage": (12, None, {"usage_missing": -12}),
    "B32-stream-no-usage": (61, None, {"usage_missing": -61}),
    "A48-abort-10": (172, None, {"aborted": -172}),
    "A49-abort-100": (189, None, {"aborted": -189}),
    "A54-abort-nonstream": (257, None, {"aborted": -257}),
    "A56-abort-chat-10": (12, None, {"aborted": -12}),
    "B39-abort-10": (172, None, {"aborted": -172}),
    "B40-abort-100": (189, None, {"aborted": -189}),
    "B43-abort-nonstream": (240, None, {"aborted": -240}),
    "B49-abort-among-others": (51, None, {"aborted": -51}),
    "C26-abort-in-prefill": (3912, None, {"aborted_in_prefill": -3912}),
    "C32-abort-among-others-nonstream": (61, None, {"aborted_in_prefill": -61}),
    "C65-tool-messages": (182, None, {"failed_after_generation": -182}),
}
OUTPUT: Expected = {
    "A16-beam": (16, 18, {"parallel_choices": 2}),
    "B14-stop-string": (4, 3, {"stop_trimmed": -1}),
    "B19-stop-string": (9, 7, {"stop_trimmed": -2}),
    "B21-stop-string-kept": (4, 3, {"stop_trimmed": -1}),
    "B38-messages-stop": (4, 3, {"stop_trimmed": -1}),
    "A40-stream-no-usage": (10, None, {"usage_missing": -10}),
    "A45-chat-stream-no-usage": (10, None, {"usage_missing": -10}),
    "B32-stream-no-usage": (40, None, {"usage_missing": -40}),
    "A48-abort-10": (10, None, {"aborted": -10}),
    "A49-abort-100": (100, None, {"aborted": -100}),
    "A54-abort-nonstream": (153, None, {"aborted": -153}),
    "A56-abort-chat-10": (9, None, {"aborted": -9}),
    "B39-abort-10": (34, None, {"aborted": -34}),
    "B40-abort-100": (484, None, {"aborted": -484}),
    "B43-abort-nonstream": (599, None, {"aborted": -599}),
    "B49-abort-among-others": (16, None, {"aborted": -16}),
    "C26-abort-in-prefill": (0, None, {}),
    "C32-abort-among-others-nonstream": (0, None, {}),
    "C65-tool-messages": (319, None, {"failed_after_generation": -319}),
}
# Aborted, and yet usage had said all by then: computed and reported are equal.
SAID = {"A50-abort-10-continuous-ids": (206, 10), "C25-abort-10-forced-usage": (172, 10),
        "C31-abort-among-others": (51, 20)}  # fmt: skip


_MADE: dict[str, Recorded] = {}


@pytest.fixture(params=CONFIGURATIONS)
def of_one(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, shared_real: Path) -> Recorded:
    """A configuration, ingested, weighed and reconciled; once for all tests, which only look."""
    name = str(request.param)
    if name not in _MADE:
        _MADE[name] = recorded(tmp_path_factory.mktemp("recorded"), name, shared_real)
        reconcile(_MADE[name].lake)
    return _MADE[name]


def cases(found: Recorded) -> set[str]:
    """The cases of a configuration that called a model, those under an id of two calls apart."""
    calls = lines(found.folder / "requests.jsonl")
    named = [call["request"]["headers"].get("X-Request-Id") for call in calls]
    model = re.compile(r"/v1/(?:completions|chat/completions|responses|messages)")
    return {
        call["case"]
        for call, name in zip(calls, named, strict=True)
        if named.count(name) == 1 and model.fullmatch(call["request"]["path"])
    }


def test_every_recorded_call_comes_out_with_its_causes_and_exact_amounts(of_one: Recorded) -> None:
    rows = of_one.lake.scan("reconciled").collect().to_dicts()
    parts = of_one.lake.scan("gap_cause").collect().to_dicts()
    seen = 0
    for case in sorted(cases(of_one)):
        key = of_one.attempt(case)
        for direction, expected in (("input", INPUT), ("output", OUTPUT)):
            place = (key.hi, key.lo, direction)
            (row,) = [r for r in rows if (r["attempt_hi"], r["attempt_lo"], r["direction"]) == place]
            causes = {
                p["cause"]: p["tokens"] for p in parts if (p["attempt_hi"], p["attempt_lo"], p["direction"]) == place
            }
            if case in expected:
                seen += 1
                assert (row["observed"], row["reported"], causes) == expected[case], (case, direction)
                assert (row["residual"], row["status"]) == (0, "EXPLAINED"), (case, direction)
                continue
            assert causes == {}, (case, direction)
            assert row["status"] in {"MATCHED", "NOT_COMPARED"}, (case, direction)
            if case in SAID:
                figure = SAID[case][direction == "output"]
                assert (row["observed"], row["reported"], row["gap"]) == (figure, figure, 0), case
    letter = of_one.folder.name[0].upper()
    assert seen == sum(case.startswith(letter) for expected in (INPUT, OUTPUT) for case in expected)


def test_counters_and_calls_agree_in_every_group(of_one: Recorded) -> None:
    """Of each group: finished calls that are here, aborted ones, those nobody recorded, and no residual."""
    groups = lines(of_one.folder / "group_totals.jsonl")
    for counter, name, told in (
        ("prompt_tokens", "prompt_tokens_total", "prompt_tokens"),
        ("generation_tokens", "generation_tokens_total", "generation_tokens"),
        ("prompt_tokens_cached", "prompt_tokens_cached_total", "cached_tokens"),
    ):
        rows = of_one.gaps("engine-metrics", counter)
        assert len(rows) == len(groups)
        for group, row in zip(groups, rows.values(), strict=True):
            place = (group["group"], counter)
            assert (row["counted"], row["residual"]) == (group["counters"][name], 0), place
            assert row["attempted"] + sum(of_one.causes(row).values()) == row["counted"], place
            finished = group["kept"][told] + group["withheld"][told]
            causes = of_one.causes(row)
            assert row["attempted"] + causes.get("unobserved", 0) == finished, place
            assert causes.get("aborted", 0) == row["counted"] - finished, place


def test_prompts_that_left_in_prefill_are_what_was_looked_up_and_never_counted(of_one: Recorded) -> None:
    """Exactly queries less prompt; a prompt of three tokens whose log probabilities were asked for is not looked up."""
    expected = {
        A: {"prompt_options": -3},
        B: {"spec_aborts": 4411 - 1030},
        C: {"aborts_mixed": 8355 - 741},
    }[of_one.folder.name]
    groups = lines(of_one.folder / "group_totals.jsonl")
    found = {}
    for group, row in zip(groups, of_one.gaps("engine-metrics", "prefix_cache_queries").values(), strict=True):
        causes = of_one.causes(row)
        assert row["residual"] == 0
        left = causes.get("aborted_in_prefill", 0) + causes.get("not_looked_up", 0)
        if left:
            found[group["group"]] = left
    assert found == expected


def test_tokens_computed_again_after_preemption_stand_in_no_usage(of_one: Recorded) -> None:
    """768 and 640 of the two requests that were preempted in these files (the third is not in them)."""
    rows = [row for row in of_one.gaps("engine-steps", "recomputed").values() if row["counted"]]
    assert [of_one.causes(row) for row in rows] == ([{"recomputed": 1408}] if of_one.folder.name == C else [])
    assert all(row["attempted"] == 0 and row["residual"] == 0 for row in rows)


def test_an_engine_that_died_has_no_scrape_afterwards_and_nothing_is_said_of_its_last_calls(of_one: Recorded) -> None:
    last = max(of_one.gaps("engine-metrics", "prompt_tokens"))
    died = [call for call in lines(of_one.folder / "requests.jsonl") if call["group"] == "engine_died"]
    assert bool(died) is (of_one.folder.name == A)
    for call in died:
        assert datetime.fromtimestamp(call["client"]["t_start_unix"], UTC) > last


def test_nothing_is_left_unexplained_but_what_an_id_of_two_calls_hides(of_one: Recorded) -> None:
    gaps = of_one.lake.scan("engine_gap").collect()
    assert gaps.filter((pl.col("residual") != 0) & ~pl.col("reset")).is_empty()
    open_ended: list[dict[str, Any]] = gaps.filter(pl.col("gap") != pl.col("explained") + pl.col("residual")).to_dicts()
    assert open_ended == []


def test_calls_that_were_said_to_be_another_providers_are_the_engines_all_the_same(
    tmp_path: Path, shared_real: Path
) -> None:
    """Of `b_spec_ngram`: 41 requests finished, 5 tokens of 4 answers were cut off with a stop string.

    That one of them was cut off only the counters of its engine show: its accepted drafts.
    """
    found = recorded(tmp_path, B, shared_real, client="openai")
    gaps = found.lake.scan("engine_gap").collect()
    assert gaps.filter(pl.col("residual") != 0).is_empty()
    finished = gaps.filter(source="engine-steps", counter="requests_finished")
    assert finished.select(pl.col("counted", "attempted").sum()).row(0) == (41, 41)
    reconcile(found.lake)
    assert found.lake.scan("reconciled").filter(status="UNEXPLAINED").collect().is_empty()
    trimmed = found.of("gap_cause", cause="stop_trimmed")
    assert sorted(row["tokens"] for row in trimmed) == [-2, -1, -1, -1]


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_steps_without_any_record_of_a_call_are_calls_that_nobody_recorded(
    tmp_path: Path, shared_real: Path, configuration: str
) -> None:
    """Also where calls were given up, and nothing finished in a window: no token is left without a reason."""
    lake = Lake.create(tmp_path / "lake")
    steps = shared_real / "engines" / "vllm" / configuration / "engine_steps.jsonl"
    ingest([steps], lake, key=KEY, day=DAY, model=MODEL)
    weigh_engines(lake)
    gaps = lake.scan("engine_gap").collect()
    assert gaps["gap"].sum() > 0
    assert gaps.filter((pl.col("residual") != 0) & ~pl.col("reset")).is_empty()
    causes = lake.scan("engine_gap_cause").collect()
    given_up = gaps.filter(counter="requests_finished", counted=0).select("since", "until").unique()
    unseen = causes.filter(cause="unobserved").join(given_up, on=["since", "until"], how="semi")
    assert set(unseen["counter"]) >= {"prompt_tokens", "generation_tokens"} if given_up.height else True
