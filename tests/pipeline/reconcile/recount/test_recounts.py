"""What recounts teach: the constant of a cell, how sure it is, how it is kept, and that its moving is found."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from tests.pipeline.reconcile.conftest import Core, Row, World, weighed

from weighbridge.pipeline.reconcile.frames import collected
from weighbridge.pipeline.reconcile.reconcile import reconcile
from weighbridge.pipeline.reconcile.recount.median_ranks import median_ranks
from weighbridge.pipeline.reconcile.recount.recount_constants import constants
from weighbridge.pipeline.reconcile.recount.recounts import CELL, points
from weighbridge.schemas.enumerations import Severity

MARCH, APRIL = date(2026, 3, 2), date(2026, 4, 6)
FITTED = {"recount_has_template": True, "recount_has_special": True, "tokenizer": "tok-1", "template": "t-1"}


def inputs(world: World, first: int, differences: list[int], day: date = MARCH, **more: Any) -> None:
    """Attempts recounted with 100 prompt tokens, of which the reports differ by so many."""
    for number, difference in enumerate(differences, first):
        world.attempt(number, day=day, input_recounted=100, **{**FITTED, **more})
        world.reading(number, day=day, input_total=100 + difference)


def outputs(world: World, first: int, reported: list[tuple[int, int | None]], **more: Any) -> None:
    """Attempts whose answers were recounted with 50 tokens, of which so much beside the reasoning was reported."""
    for number, (difference, thought) in enumerate(reported, first):
        columns = {"finish_reason": "stop", "tokenizer": "tok-1", "output_recounted": 50, **more}
        world.attempt(number, day=MARCH, **columns)
        world.reading(number, day=MARCH, output_total=50 + difference + (thought or 0), reasoning=thought)


def learnt(world: World) -> list[Row]:
    return weighed(world).lake.scan("recount_constant").sort("period", "direction", "thinking").collect().to_dicts()


def told(row: Row, *names: str) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def test_the_commonest_difference_is_the_constant(world: World) -> None:
    inputs(world, 1, [0, 0, 0, -1, 0, 0, 2], tools=0)
    (row,) = learnt(world)
    assert told(row, *CELL) == ("input", "openai", "m-1", "tok-1", "t-1", True, False, None)
    assert told(row, "constant", "per_message", "attempts", "exact", "median") == (0, 0, 7, 5, 0)
    assert told(row, "lower", "upper", "coverage") == (-1, 2, 1 - 2 / 2**7)
    assert told(row, "period", "first_day", "last_day") == ("2026-03", MARCH, MARCH)


def test_of_equally_common_differences_the_least_is_the_constant(world: World) -> None:
    inputs(world, 1, [3, 1, 3, 1])
    (row,) = learnt(world)
    assert told(row, "constant", "exact", "median", "lower") == (1, 2, 1, None)


def test_models_templates_tokenizers_and_tools_are_cells_of_their_own(world: World) -> None:
    inputs(world, 1, [0] * 3, tools=0)
    inputs(world, 11, [7] * 3, tools=2)
    inputs(world, 21, [1] * 3, tools=0, tokenizer="tok-2")
    inputs(world, 31, [2] * 3, tools=0, template="t-2")
    inputs(world, 41, [5] * 3, tools=0, model_served="m-2")
    found = {told(row, "model", "tokenizer", "template", "tools"): row["constant"] for row in learnt(world)}
    assert found == {
        ("m-1", "tok-1", "t-1", False): 0,
        ("m-1", "tok-1", "t-1", True): 7,
        ("m-1", "tok-2", "t-1", False): 1,
        ("m-1", "tok-1", "t-2", False): 2,
        ("m-2", "tok-1", "t-1", False): 5,
    }


def test_two_attempts_teach_nothing(world: World) -> None:
    inputs(world, 1, [4, 4])
    assert learnt(world) == []


def test_bare_recounts_teach_what_a_request_and_what_a_message_adds(world: World) -> None:
    """The published formula says 3 a message; the records say 4."""
    bare = {"recount_has_template": False, "tokenizer": "tok-1"}
    for number, (messages, text, reported) in enumerate(((1, 10, 17), (2, 20, 31), (5, 50, 73)), 1):
        world.attempt(number, input_recounted=text, messages=messages, **bare)
        world.reading(number, input_total=reported)
    (row,) = learnt(world)
    assert told(row, "templated", "per_message", "constant", "exact", "attempts") == (False, 4, 3, 3, 3)


def test_parts_counted_beside_a_recount_belong_to_it(world: World) -> None:
    """With its template's 8 tokens added the recount is whole, and agrees."""
    beside: Row = {"recount_has_template": False, "recount_template": 8}
    beside |= {"recount_has_special": False, "recount_special": 1}
    inputs(world, 1, [9, 9, 9], messages=1, **beside)
    (row,) = learnt(world)
    assert told(row, "templated", "constant", "per_message") == (True, 0, 0)


def test_end_tokens_with_and_without_reasoning(world: World) -> None:
    outputs(world, 1, [(1, 0), (1, 0), (1, 0)])
    outputs(world, 11, [(3, 64), (3, 128), (4, 64)])
    outputs(world, 21, [(0, None), (0, None), (0, None)])
    found = {row["thinking"]: told(row, "constant", "exact", "attempts", "template") for row in learnt(world)}
    assert found == {False: (1, 3, 3, None), True: (3, 2, 3, None), None: (0, 3, 3, None)}


@pytest.mark.parametrize(
    "unfit",
    [{"finish_reason": "length"}, {"n": 2}, {"output_recounted": None}],
    ids=["cut off", "several choices", "not recounted"],
)
def test_answers_without_one_end_of_their_own_teach_nothing_about_end_tokens(world: World, unfit: Row) -> None:
    outputs(world, 1, [(1, 0), (1, 0), (1, 0)], **unfit)
    assert learnt(world) == []


def test_reports_that_cannot_be_read_teach_nothing(world: World) -> None:
    inputs(world, 1, [0, 0])
    world.attempt(9, input_recounted=100, **FITTED)
    world.reading(9, input_total=None, verdict="CONTRADICTORY")
    assert learnt(world) == []


def test_what_a_repetition_adds_is_taken_off(world: World) -> None:
    inputs(world, 1, [0, 0, 0])
    world.reading(1, input_total=100, report=1)
    (row,) = learnt(world)
    assert told(row, "constant", "exact") == (0, 3)


def test_running_again_changes_nothing_and_a_month_that_teaches_nothing_more_is_emptied(world: World) -> None:
    inputs(world, 1, [0] * 3)
    inputs(world, 11, [0] * 3, APRIL)
    lake = weighed(world).lake
    version, before = lake.version("recount_constant"), lake.digest("recount_constant")
    reconcile(lake)
    assert (lake.version("recount_constant"), lake.digest("recount_constant")) == (version, before)
    lake.replace("reading", pl.DataFrame(schema=lake.scan("reading").collect_schema()), days=[APRIL])
    reconcile(lake)
    assert lake.scan("recount_constant").collect()["period"].to_list() == ["2026-03"]


def found(world: World) -> list[tuple[str, int | None, int | None]]:
    findings = [f for f in weighed(world).result.findings if f.code == "recount_constant_moved"]
    assert all(f.severity is Severity.WARNING and f.amount is None and f.cure for f in findings)
    return [(f.period, f.expected, f.observed) for f in findings]


def test_a_constant_that_moved_is_a_finding_of_the_month_it_moved_in(world: World) -> None:
    inputs(world, 1, [0] * 5)
    inputs(world, 11, [-1] * 4 + [0], APRIL)
    inputs(world, 21, [-1] * 5, date(2026, 5, 4))
    assert found(world) == [("2026-04", 0, -1)]


def test_a_month_without_the_cell_is_passed_over(world: World) -> None:
    inputs(world, 1, [0] * 3)
    inputs(world, 21, [2] * 3, date(2026, 5, 4))
    assert found(world) == [("2026-05", 0, 2)]


def test_a_constant_that_stays_and_a_new_cell_are_no_findings(world: World) -> None:
    inputs(world, 1, [0] * 5)
    inputs(world, 11, [0] * 4 + [9], APRIL)
    inputs(world, 21, [4] * 5, APRIL, template="t-2")
    assert found(world) == []


def test_where_differences_scatter_the_median_is_held_to_the_interval(world: World) -> None:
    inputs(world, 1, list(range(10)))
    inputs(world, 21, list(range(2, 12)), APRIL)
    assert found(world) == []
    inputs(world, 41, list(range(20, 30)), date(2026, 5, 4))
    # Ten values: the median is the fifth, 6 in April and 24 in May; the constants would be 2 and 20.
    assert found(world) == [("2026-05", 6, 24)]


def test_a_finding_states_the_figure_that_moved(world: World) -> None:
    """The constant stays at 0 in both, the median goes from 0 (between 0 and 0) to 1; then 3 a message become 4."""
    inputs(world, 1, [0] * 8 + [5])
    inputs(world, 21, [0, 0, 0, 1, 1, 2, 3], APRIL)
    bare: Row = {"recount_has_template": False, "recount_has_special": False, "template": None}
    for day, first, each in ((MARCH, 41, 3), (APRIL, 51, 4)):
        for number, messages in enumerate((1, 2, 5), first):
            inputs(world, number, [3 + each * messages], day, messages=messages, **bare)
    moved = [f for f in weighed(world).result.findings if f.code == "recount_constant_moved"]
    assert {(f.expected, f.observed, f.difference, f.cure.partition(".")[0]) for f in moved} == {
        (
            0,
            1,
            1,
            (
                "Reports differ from recounts by a median of 1 token, in 2026-03 by 0 tokens: outside 0 to 0, where "
                "that of 2026-03 lies"
            ),
        ),
        (
            3,
            4,
            1,
            "Reports differ from recounts by 3 tokens, in 2026-03 by 3 tokens (and 4 a message, before 3)",
        ),
    }


@pytest.mark.parametrize("values", [*range(1, 40), 100, 333, 1000])
def test_the_ranks_enclose_the_median_so_surely_and_no_pair_inside_them_does(values: int) -> None:
    """Held against the binomial in whole numbers."""

    def below(rank: int) -> Fraction:
        return Fraction(sum(comb(values, k) for k in range(rank)), 2**values)

    ranks = median_ranks(values)
    spare = Fraction(1, 40)
    if ranks is None:
        assert below(1) > spare
        return
    assert ranks.upper == values + 1 - ranks.lower
    assert below(ranks.lower) <= spare < below(ranks.lower + 1)
    assert ranks.coverage == pytest.approx(float(1 - 2 * below(ranks.lower)), abs=1e-12)


def test_the_ranks_of_many_values_stay_on_the_safe_side() -> None:
    ranks = median_ranks(4_000_000)
    assert ranks is not None
    assert 0.95 <= ranks.coverage < 0.951
    # The normal approximation: n/2 - 1.96 sqrt(n)/2.
    assert abs(ranks.lower - (2_000_000 - 1_960)) < 3


def test_duckdb_learns_the_same(world: World, polars_core: Core, duckdb_core: Core) -> None:
    inputs(world, 1, [0, 0, -1, 0], tools=0)
    inputs(world, 11, [3, 3, 3], recount_has_template=False, messages=1)
    outputs(world, 31, [(1, 0), (1, None), (3, 64)])
    cores = [polars_core, duckdb_core]
    seen = [collected(points(core.engine(core.compared(world)))) for core in cores]
    assert_frame_equal(*(constants(rows, "2026-03") for rows in seen))
    assert constants(seen[0], "2026-03").height == 2


@pytest.mark.real
def test_what_the_recorded_answers_teach_is_what_was_worked_out_beside_them(shared_real: Path, world: World) -> None:
    """339 recorded answers, counted again with the real tokenizers; the expected differences stand beside them."""
    rows = [json.loads(line) for line in (shared_real / "retokenise_expected.jsonl").read_text().splitlines()]
    expected: dict[tuple[str, str, str, bool | None], Counter[int]] = {}
    for number, row in enumerate(rows, 1):
        tokenizer, thought = row["tokenizer"].split(" ")[0], row["reported_reasoning"]
        text = row.get("recount_completion_text", 0) + (0 if thought else row.get("recount_reasoning_text", 0))
        world.attempt(
            number,
            provider=row["provider"],
            model_served=row["model"],
            tokenizer=tokenizer,
            input_recounted=row.get("recount_prompt"),
            recount_has_template=True,
            recount_has_special=True,
            output_recounted=text if row.get("diff_completion") is not None else None,
            finish_reason=row["finish"][0],
            n=row["n_choices"],
        )
        world.reading(
            number,
            provider=row["provider"],
            model=row["model"],
            input_total=row["reported_prompt"],
            output_total=row["reported_completion"],
            reasoning=thought,
        )
        about = (row["provider"], row["model"], tokenizer)
        if row.get("diff_prompt") is not None:
            expected.setdefault((*about, None), Counter())[row["diff_prompt"]] += 1
        if row.get("diff_completion") is not None and row["finish"] == ["stop"] and row["n_choices"] == 1:
            expected.setdefault((*about, thought > 0), Counter())[row["diff_completion"]] += 1
    assert len(rows) == 339
    found = {told(row, "provider", "model", "tokenizer", "thinking"): row for row in learnt(world)}
    enough = {cell: seen for cell, seen in expected.items() if seen.total() >= 3}
    assert found.keys() == enough.keys()
    for cell, seen in enough.items():
        row = found[cell]
        best = max(seen.values())
        assert row["constant"] == min(value for value, times in seen.items() if times == best), cell
        assert (row["exact"], row["attempts"]) == (best, seen.total()), cell
    shown = {cell: found[cell]["constant"] for cell in found}
    assert shown["openai", "gpt-3.5-turbo-0125", "cl100k_base", None] == 0
    assert shown["openai", "o3-mini-2025-01-31", "o200k_base", None] == -1
    assert shown["azure", "gpt-4.1-mini-2025-04-14", "o200k_base", False] == 1
    assert shown["mistral", "mistral-medium-latest", "tekken_240911", False] == 1
    assert shown["deepseek", "deepseek-reasoner", "deepseek", True] == 1


@pytest.mark.real
def test_the_overhead_a_message_of_the_shared_case_is_learnt_and_nothing_is_left(
    shared_real: Path, world: World
) -> None:
    lines = (shared_real / "bug_cases.jsonl").read_text(encoding="utf-8").splitlines()
    (case,) = [json.loads(line) for line in lines if json.loads(line)["id"] == "B109"]
    for number, record in enumerate(case["input"]["records"], 1):
        told_of = {"messages": record["messages"], "recount_has_template": False}
        world.attempt(number, input_recounted=record["local_text_tokens"], **told_of)
        world.reading(number, input_total=record["usage"]["prompt_tokens"])
    done = weighed(world)
    row = done.lake.scan("recount_constant").collect().row(0, named=True)
    expected = case["expect"]["learnt"]
    assert told(row, "per_message", "constant") == (expected["per_message"], expected["per_request"])
    for number, record in enumerate(case["input"]["records"], 1):
        whole = expected["per_request"] + expected["per_message"] * record["messages"]
        assert done.causes(number) == {"template_not_applied": whole}
        assert done.row(number)["residual"] == case["expect"]["residual"]
