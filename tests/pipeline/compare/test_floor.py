"""A baseline that differs from itself: what it does not repeat is no loss, and nothing is taken for granted of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.pipeline.compare.sides import PRUNED, scored, side, words

from weighbridge.pipeline.compare.answer import Answer, Cost, Side
from weighbridge.pipeline.compare.comparison import compare
from weighbridge.pipeline.compare.gate import Gate
from weighbridge.pipeline.compare.recording import read_recording
from weighbridge.pipeline.compare.why import why
from weighbridge.schemas.enumerations import Judgement

EXACT = Gate(margins={"exact": 0.1})


def test_answers_as_unlike_as_the_baseline_s_own_are_not_worse() -> None:
    """A third of the baseline's second answers differ, and a third of the strategy's: other ones."""
    answers = words(300, 6)
    again = {
        pair: Answer(pair=pair, ids=[9999, *ids[1:]] if at % 3 == 0 else ids)
        for at, (pair, ids) in enumerate(answers.items())
    }
    on = {pair: [*ids[:-1], 9999] if at % 3 == 1 else ids for at, (pair, ids) in enumerate(answers.items())}
    once = compare(side("dense", answers), [side("s", on, PRUNED)], EXACT)
    twice = compare(side("dense", answers, again=again), [side("s", on, PRUNED)], EXACT)
    assert once.strategies[0].judgement is Judgement.WORSE
    assert twice.strategies[0].judgement is Judgement.NOT_WORSE
    assert (twice.unrepeated, twice.strategies[0].passed["exact"].p) == (100, 1.0)
    assert once.strategies[0].passed["exact"].p < 1e-9
    assert "the baseline differed from itself in 100 of 300 pairs" in why(twice, twice.strategies[0])
    assert "run once, and is taken to repeat itself" in why(once, once.strategies[0])


def test_what_was_run_once_is_open_where_the_baseline_is_known_not_to_repeat_itself() -> None:
    answers = words(100, 6)
    again = {f"p{at}": Answer(pair=f"p{at}", ids=[1] if at < 5 else answers[f"p{at}"]) for at in range(40)}
    (each,) = compare(side("dense", answers, again=again), [side("s", answers, PRUNED)], EXACT).strategies
    assert each.measured["exact"].found.pairs == 40
    assert each.measured["length"].found.pairs == 100


def test_fewer_pairs_with_a_floor_than_are_judged_leave_it_open() -> None:
    answers = words(100, 6)
    again = {f"p{at}": Answer(pair=f"p{at}", ids=[1]) for at in range(20)}
    on = {pair: [7] for pair in answers}
    (each,) = compare(side("dense", answers, again=again), [side("s", on, PRUNED)], EXACT).strategies
    assert each.judgement is Judgement.UNDECIDED


def test_a_recording_that_says_its_second_run_differed_is_believed(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text(
        "\n".join(
            json.dumps({"pair": f"p{at}", "strategy": name, "output_ids": [at, number if at % 2 else 7],
                        "attended": 5 * (2 - number), "attended_dense": 10,
                        **({"baseline_rerun_identical": at % 2 == 0} if name == "dense" else {})})
            for at in range(80) for number, name in enumerate(("dense", "s"))
        )
    )  # fmt: skip
    off, on = read_recording(path)
    assert len(off.unlike) == 40
    found = compare(off, [on], EXACT)
    exact = found.strategies[0].measured["exact"]
    assert (found.unrepeated, exact.off, exact.on, exact.found.mean) == (40, 0.5, 0.5, 0.0)
    assert found.strategies[0].measured["similarity"].found.pairs == 40, "how unlike they were is not known"


def test_of_two_runs_a_score_is_their_mean_and_the_exact_test_takes_one() -> None:
    off = scored("dense", [1.0, 0.0] * 50)
    again = {pair: Answer(pair=pair, ids=each.ids, score=0.0) for pair, each in off.answers.items()}
    second = Side(name="dense", answers=off.answers, again=again)
    (each,) = compare(second, [scored("s", [1.0, 0.0] * 50, Cost(events=1))], Gate(margins={"score": 0.1})).strategies
    assert each.measured["score"].off == pytest.approx(0.25)
    assert each.passed["score"] == (50, 50, 0, 0, 1.0)
