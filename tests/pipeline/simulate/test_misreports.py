"""Ways of misreporting: every one says what it is, does what it says, and rounds so that its expectation is exact."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.pipeline.audit.labels import LABELS
from weighbridge.pipeline.simulate.answers import LIMIT, exact, honest, rounded
from weighbridge.pipeline.simulate.misreport import Misreport, all_misreports, misreport_of
from weighbridge.pipeline.simulate.misreported import write_misreported
from weighbridge.schemas.enumerations import AuditMeasure, AuditVerdict
from weighbridge.schemas.errors import ConfigError

EVERY = list(all_misreports().values())


def test_there_are_m0_to_m17_each_in_a_file_of_its_own() -> None:
    assert [each.code for each in EVERY] == [f"M{number}" for number in range(18)]


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.code)
def test_every_misreport_keeps_the_contract(kind: Misreport) -> None:
    shape = (5, 120)
    answers = kind.draw(np.random.default_rng(1), shape, kind.factor)
    again = kind.draw(np.random.default_rng(1), shape, kind.factor)
    for name in ("observed", "reported", "served", "messages", "limit", "repeated", "rejected", "missing", "cached"):
        values = getattr(answers, name)
        assert values.shape == shape
        assert values.dtype == (bool if name == "missing" else np.int64), name
        assert values.tolist() == getattr(again, name).tolist(), "the same seed gives the same answers"
    assert AuditMeasure(answers.measure)
    assert (answers.observed > 0).all()
    assert (answers.reported >= 0).all()
    assert ((answers.reported > 0) | answers.missing).all()
    assert AuditVerdict(kind.verdict)
    assert (kind.expected is None) == (kind.verdict == "clean")
    assert kind.expected is None or kind.expected in {label.code for label in LABELS}
    assert kind.rounding


@given(amount=st.floats(0, 1_000), seed=st.integers(0, 100))
def test_rounding_goes_to_a_neighbour(amount: float, seed: int) -> None:
    (found,) = rounded(np.random.default_rng(seed), np.array([amount]))
    assert found in {int(np.floor(amount)), int(np.floor(amount)) + 1}


def test_028_percent_of_100_tokens_is_028_tokens_on_average() -> None:
    """Of 100,000 bills 28,000 get a token; six standard deviations are 852."""
    extra = rounded(np.random.default_rng(1), np.full(100_000, 100 * 0.0028))
    assert set(extra.tolist()) == {0, 1}
    assert abs(int(extra.sum()) - 28_000) < 852


def test_an_honest_recount_is_off_by_002_tokens_on_average() -> None:
    answers = honest(np.random.default_rng(1), (1, 100_000))
    assert float(answers.gaps.mean()) == pytest.approx(0.02, abs=0.01)
    assert float((answers.gaps == 0).mean()) == pytest.approx(0.935, abs=0.01)
    assert float(np.median(answers.observed)) == pytest.approx(300, rel=0.02)
    assert answers.limit.max() == LIMIT


def test_over_generation_is_served_and_reported_alike() -> None:
    answers = misreport_of("M16").draw(np.random.default_rng(1), (1, 2_000), 10.0)
    assert answers.served.tolist() == answers.observed.tolist(), "what was counted is what was served"
    assert float(np.median(answers.served)) == pytest.approx(3_000, rel=0.1)
    assert abs(float(answers.gaps.mean())) < 0.1


def test_the_history_of_every_first_turn_is_nothing() -> None:
    answers = misreport_of("m15").draw(np.random.default_rng(1), (2, 30), 1.0)
    first = answers.messages == 1
    assert first.sum() == 8
    assert answers.gaps[first].tolist() == [0] * 8
    assert (answers.gaps[~first] > 0).all()


def test_a_misreport_nobody_knows_is_refused_with_all_there_are() -> None:
    with pytest.raises(ConfigError, match=r"no misreport 'M18'.*M5 a constant factor"):
        misreport_of("M18")


def test_answers_of_which_both_sides_count_the_same_have_no_gap() -> None:
    assert exact(np.array([[3, 4]])).gaps.tolist() == [[0, 0]]


def test_segments_are_half_honest_and_say_what_was_done(tmp_path: Path) -> None:
    kind = misreport_of("M11")
    out = [tmp_path / name for name in ("one", "two")]
    made = [
        write_misreported(folder, kind, factor=0.5, attempts=40, seed=1, start=date(2026, 3, 30), days=4, key=b"k" * 32)
        for folder in out
    ]
    assert made[0].honest == (date(2026, 3, 30), date(2026, 3, 31))
    assert made[0].misreported == (date(2026, 4, 1), date(2026, 4, 2))
    told = json.loads((out[0] / "expected.json").read_text())
    assert (told["misreport"], told["cause"], told["factor"]) == ("M11", "usage_missing", 0.5)
    first, second = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()} for folder in out
    )
    assert first == second
    with pytest.raises(ConfigError, match="holds segments already"):
        write_misreported(out[0], kind, factor=0.5, attempts=40, seed=1, start=date(2026, 3, 30), days=4, key=b"k" * 32)
    with pytest.raises(ConfigError, match="at least 2"):
        write_misreported(
            tmp_path, kind, factor=0.5, attempts=1, seed=1, start=date(2026, 3, 30), days=4, key=b"k" * 32
        )
