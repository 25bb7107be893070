"""One row per attempt, whoever described it and however often; the last revision counts."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.pipeline.report.conftest import GPT, TENANT_A, TENANT_B, World

from weighbridge.pipeline.report.facts import facts
from weighbridge.pipeline.report.view import View

Viewed = Callable[..., View]


def test_what_one_source_does_not_know_another_may(bare: World, march: Viewed) -> None:
    bare.attempt(1, "2026-03-01T10:00:00", source="caller", task="unassigned", input_recounted=90, status="unknown")
    bare.attempt(1, "2026-03-01T10:00:01", source="engine", task="batch", input_computed=100, tenant=TENANT_B)
    frame = facts(march(bare))
    assert frame.height == 1
    row = frame.row(0, named=True)
    assert (row["task"], row["status"], row["input_computed"], row["input_recounted"]) == (
        "batch",
        "succeeded",
        100,
        90,
    )
    assert row["tenant"] == TENANT_A  # both say; the first source by name is believed


def test_the_last_revision_counts(bare: World, march: Viewed) -> None:
    for revision, into in ((1, 70), (0, 50), (2, 60)):
        bare.attempt(1, "2026-03-01T10:00:00", input_computed=into, revision=revision)
        bare.reading(1, "2026-03-01", into, 5, input_uncached=into, output_visible=5, revision=revision)
        bare.price(1, "2026-03-01", f"0.{into}", revision=revision)
    row = facts(march(bare)).row(0, named=True)
    assert (row["input_computed"], row["input"], row["reports"], str(row["amount_usd"])[:4]) == (60, 60, 1, "0.60")


def test_a_report_without_an_attempt_record_is_an_attempt_too(bare: World, march: Viewed) -> None:
    bare.reading(1, "2026-03-01", 10, 5)
    row = facts(march(bare)).row(0, named=True)
    assert (row["observed"], row["model"], row["task"], row["tenant"]) == (False, GPT, "unassigned", "unassigned")


@pytest.mark.parametrize("verdict", ["CONTRADICTORY", "UNKNOWN"])
def test_counts_that_cannot_be_trusted_are_unknown(bare: World, march: Viewed, verdict: str) -> None:
    bare.reading(1, "2026-03-01", 10, 5, verdict=verdict)
    row = facts(march(bare)).row(0, named=True)
    assert (row["reports"], row["input"], row["output"], row["tokens"]) == (1, None, None, None)


def test_a_call_beside_the_answer_adds_its_tokens_and_money_and_not_its_model(bare: World, march: Viewed) -> None:
    """The advisor's model comes later in the alphabet than the one that answered."""
    bare.attempt(1, "2026-03-01T10:00:00")
    for child, (model, into, price) in enumerate((("a-model", 10, "0.10"), ("z-advisor", 30, "0.60"))):
        bare.reading(1, "2026-03-01", into, 5, child=child, model=model)
        bare.price(1, "2026-03-01", price, child=child)
    row = facts(march(bare)).row(0, named=True)
    assert (row["model"], row["input"], row["output"], str(row["amount_usd"])[:4]) == ("a-model", 40, 10, "0.70")
