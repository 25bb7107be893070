"""Causes by their evidence, and what an accusation takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from weighbridge.pipeline.audit.evidence import gathered
from weighbridge.pipeline.audit.labels import LABELS, UNKNOWN_LABEL, label_of
from weighbridge.pipeline.audit.spikes import per_message, spikes
from weighbridge.pipeline.audit.tolerance import Tolerance, nothing_tolerated
from weighbridge.pipeline.audit.verdict import identity, judged, threshold
from weighbridge.pipeline.audit.weighings import Weighings, is_pinned, predicted
from weighbridge.schemas.enumerations import AuditMeasure, AuditVerdict
from weighbridge.schemas.errors import ConfigError

SIZES = np.arange(40, 4_040, 20)  # 200 answers
CALIBRATED = Tolerance(500, np.full(4, 0.01), np.full(4, 0.01), np.zeros(()), np.zeros(()), np.zeros(()))


def told(gaps: Any, measure: AuditMeasure = AuditMeasure.OUTPUT, *, over: float = 99.0, **evidence: Any) -> Any:
    """What is said of 200 answers with these gaps, once the bet on too much has come so far."""
    own = Weighings.of(measure, np.broadcast_to(gaps, SIZES.shape).astype(np.int64), SIZES, **evidence)
    return judged(own, CALIBRATED, over, 0.0, 0.01)


def test_a_share_of_every_answer_is_accused_of_being_a_constant_factor() -> None:
    said = told(SIZES // 20)
    assert (said.verdict, said.label.code, said.lacking) == (AuditVerdict.ACCUSED, "constant_factor", ())
    assert said.lower > 0.049


def test_a_token_on_every_answer_is_a_convention_and_nobody_is_accused() -> None:
    said = told(1)
    assert (said.verdict, said.label.code) == (AuditVerdict.CONVENTION, "end_token_convention")


def test_ten_tokens_on_some_answers_are_a_router() -> None:
    said = told(np.tile([0, 10, 10, 0, 10], 40))
    assert (said.verdict, said.label.code) == (AuditVerdict.CONVENTION, "router_mixture")


def test_what_was_never_calibrated_is_never_accused() -> None:
    own = Weighings.of(AuditMeasure.OUTPUT, SIZES // 10, SIZES)
    said = judged(own, nothing_tolerated(), 99.0, 0.0, 0.01)
    assert (said.verdict, said.lacking) == (AuditVerdict.NOT_CALIBRATED, ("calibrated",))
    assert judged(own, nothing_tolerated(), 0.0, 0.0, 0.01).verdict is AuditVerdict.NOT_CALIBRATED


def test_a_bet_below_its_line_says_nothing_whatever_the_slope() -> None:
    assert threshold(0.01) == pytest.approx(np.log(1 / 0.009))
    assert told(SIZES // 20, over=threshold(0.01) - 0.001).verdict is AuditVerdict.CLEAN
    few = Weighings.of(AuditMeasure.OUTPUT, SIZES[:5], SIZES[:5])
    assert judged(few, CALIBRATED, 0.0, 0.0, 0.01).verdict is AuditVerdict.UNDECIDED


def test_the_slope_of_honest_traffic_is_not_held_against_anybody() -> None:
    own = Weighings.of(AuditMeasure.OUTPUT, SIZES // 20, SIZES)
    steep = replace(CALIBRATED, steepest=np.array(0.06))
    said = judged(own, steep, 99.0, 0.0, 0.01)
    assert (said.verdict, said.lacking) == (AuditVerdict.SUSPECTED, ("grows",))


def test_a_prediction_and_uncounted_messages_accuse_nobody() -> None:
    hidden = told(SIZES // 2, AuditMeasure.HIDDEN_REASONING)
    assert (hidden.verdict, hidden.lacking) == (AuditVerdict.SUSPECTED, ("hidden",))
    bare = told(SIZES // 20, AuditMeasure.INPUT)
    assert (bare.verdict, bare.lacking) == (AuditVerdict.SUSPECTED, ("messages",))
    counted = told(SIZES // 20, AuditMeasure.INPUT, messages=np.tile([1, 2], 100))
    assert counted.verdict is AuditVerdict.ACCUSED


def test_so_many_tokens_a_message_are_the_template_although_they_grow_with_the_size() -> None:
    messages = 1 + SIZES // 500
    said = told(3 + 4 * messages, AuditMeasure.INPUT, messages=messages)
    assert (said.verdict, said.label.code) == (AuditVerdict.CONVENTION, "template_not_applied")


@pytest.mark.parametrize(
    ("code", "evidence"),
    [
        ("retry_duplicated", {"repeated": SIZES // 20}),
        ("over_cap", {"limit": np.full(200, 39)}),
        ("discarded_drafts", {"rejected": SIZES // 20}),
        ("hidden_reasoning_inflation", {"unseen_reasoning": SIZES // 20}),
    ],
)
def test_what_stands_in_the_record_comes_before_the_shape_of_the_gaps(code: str, evidence: dict[str, Any]) -> None:
    assert told(SIZES // 20, **evidence).label.code == code


def test_too_little_is_never_an_accusation() -> None:
    gone = np.where(np.arange(200) % 10 == 0, -SIZES, 0)
    own = Weighings.of(AuditMeasure.OUTPUT, gone, SIZES, missing=(gone < 0).astype(np.int64))
    said = judged(own, CALIBRATED, 0.0, 99.0, 0.01)
    assert (said.verdict, said.side, said.label and said.label.code) == (AuditVerdict.UNDERBILLED, -1, "usage_missing")


def test_one_token_breaks_an_identity() -> None:
    gaps = np.where(np.arange(200) == 7, 1, 0)
    assert identity(Weighings.of(AuditMeasure.OUTPUT, gaps, SIZES), 0.01).verdict is AuditVerdict.IDENTITY_BROKEN
    assert identity(Weighings.of(AuditMeasure.OUTPUT, 0 * gaps, SIZES), 0.01).verdict is AuditVerdict.CLEAN
    nobody = np.empty(0, np.int64)
    assert identity(Weighings.of(AuditMeasure.OUTPUT, nobody, nobody), 0.01).verdict is AuditVerdict.UNDECIDED


def test_figures_that_fit_no_cause_are_unknown() -> None:
    jagged = np.random.default_rng(1).integers(-60, 70, 200)
    found = gathered(Weighings.of(AuditMeasure.OUTPUT, jagged, SIZES[::-1]), side=-1, variance=0.0, grows=False)
    assert label_of(replace(found, slope=-1.0, change=None), -1) is UNKNOWN_LABEL


def test_an_alpha_that_calibration_alone_may_use_up_is_refused() -> None:
    for wrong in (0.0019, 0.0, -1.0, 0.51, float("nan")):
        with pytest.raises(ConfigError, match=r"0\.002 to 0\.5 is allowed"):
            threshold(wrong)


def test_spikes_are_values_that_many_gaps_have() -> None:
    assert spikes(np.array([1] * 19 + [2])).values == (1,)
    assert spikes(np.array([0, -10] * 10)).values == (-10, 0)
    assert not spikes(np.arange(50)).clustered
    assert not spikes(np.empty(0, np.int64)).clustered


def test_a_line_over_messages_is_in_whole_numbers_or_is_none() -> None:
    line = per_message(np.array([7, 11, 11, 15, 15, 99]), np.array([1, 2, 2, 3, 3, 3]))
    assert line is not None
    assert (line.per_answer, line.per_message, round(line.share, 3)) == (3, 4, 0.833)
    assert per_message(np.array([7, 7]), np.array([1, 1])) is None
    assert per_message(np.array([7, 9]), np.array([-1, -1])) is None


def test_an_answer_billed_at_exactly_its_limit_tells_nothing() -> None:
    assert is_pinned(np.array([99, 100, 101, 5]), np.array([100, 100, 100, -1])).tolist() == [False, True, False, False]
    assert predicted(np.array([0, 10, 15]), 1.5).tolist() == [0, 15, 22]


def test_every_label_has_words_and_a_cure_of_its_own() -> None:
    assert len({label.code for label in LABELS}) == len(LABELS)
    for label in (*LABELS, UNKNOWN_LABEL):
        assert label.cure.endswith(".")
        assert label.sides
