"""Real attempts, served and weighed: every difference has the cause its call was made for."""

from __future__ import annotations

from pathlib import Path

import pytest

from weighbridge.capture.demo_client import QUESTIONS
from weighbridge.pipeline.run.live import EXPECTED, LiveResult, Weighed, as_expected, as_frame, live, missing_packages
from weighbridge.schemas.errors import ConfigError


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> LiveResult:
    """One live demonstration."""
    if missing_packages():
        pytest.skip(f"not installed: {', '.join(missing_packages())}")
    return live(tmp_path_factory.mktemp("live") / "home")


def test_every_attempt_is_weighed_on_both_sides_and_explained(served: LiveResult) -> None:
    assert len(served.weighed) == 36
    assert {row.kind for row in served.weighed} == set(EXPECTED)
    assert served.unexplained == []
    assert all(row.computed for row in served.weighed)
    for row in served.weighed:
        if row.difference is not None and not row.causes:
            assert row.difference == 0
        if row.kind == "plain":
            assert row.computed == row.reported
    assert served.seconds < 120


def test_the_differences_are_real(served: LiveResult) -> None:
    """Stop strings cut something off, streams were really left, and only the shorter prompts were padded."""
    differences = {(row["kind"], row["direction"]): row for row in as_frame(served.weighed).iter_rows(named=True)}
    assert differences["stop string", "output"]["difference"] < 0
    assert 0 < differences["aborted stream", "output"]["computed"] < 3 * 400
    assert differences["aborted stream", "output"]["reported"] is None
    padded = [row.difference for row in served.weighed if (row.kind, row.direction) == ("padded batch", "input")]
    assert sorted(bool(difference) for difference in padded) == [False, True, True]
    assert {row["severity"] for row in served.home.lake().scan("finding").collect().to_dicts()} <= {"notice", "warning"}


def test_no_text_of_the_calls_is_anywhere(served: LiveResult) -> None:
    words = [question.encode() for question in QUESTIONS] + [b"demo-tenant"]
    files = [path for path in served.home.root.rglob("*") if path.is_file()]
    assert len(files) > 20
    assert not [path for path in files for word in words if word in path.read_bytes()]


def test_another_cause_or_a_missing_one_is_not_as_expected() -> None:
    def row(*causes: str, difference: int = -2) -> Weighed:
        return Weighed("stop string", "0" * 32, "output", 9, 7, difference, causes, 0)

    assert as_expected(row("stop_trimmed"))
    assert not as_expected(row())
    assert not as_expected(row("stop_trimmed", "end_token_convention"))
    assert as_expected(row(difference=0))


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    if missing_packages():
        pytest.skip("not installed")
    (tmp_path / "mine").write_text("x")
    with pytest.raises(ConfigError, match="not empty"):
        live(tmp_path)
