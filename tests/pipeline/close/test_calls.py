"""A close of answers that were made with several model calls: each token once, each call at its price, made anew."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.close.conftest import FILE_A, Office, book

from weighbridge.pipeline.close.layout import FIGURES
from weighbridge.pipeline.close.verification import Proof
from weighbridge.pipeline.close.verify import verify_month
from weighbridge.pipeline.ingest.reading import parts_of
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.keys import expand
from weighbridge.pipeline.price.row import Match, PriceRow
from weighbridge.pipeline.reconcile.reconcile import reconcile

SMALL, LARGE, CLAUDE, ADVISOR = "llama-3.3-70b-versatile", "openai/gpt-oss-120b", "claude-x", "claude-opus-4-7"


def usage(prompt: int, completion: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def claude_call(kind: str, given: int, made: int, **more: str) -> dict[str, Any]:
    return {"type": kind, "input_tokens": given, "output_tokens": made, **more}


# 633 in and 10 out, all of it in the two calls; 100 in and 20 out, and an advisor's 50 and 10 beside it.
COMPOUND = {
    "usage": usage(633, 10),
    "usage_breakdown": {"models": [{"model": SMALL, "usage": usage(138, 4)}, {"model": LARGE, "usage": usage(495, 6)}]},
}
ADVISED = {
    "usage": {
        "input_tokens": 100,
        "output_tokens": 20,
        "iterations": [claude_call("message", 100, 20), claude_call("advisor_message", 50, 10, model=ADVISOR)],
    }
}


def priced(provider: str, model: str, given: str, made: str) -> PriceRow:
    return PriceRow(
        provider=provider,
        match=Match.EQUALS,
        model=model,
        prices=expand({"input": Decimal(given), "output": Decimal(made)}),
        currency="USD",
        origin="contract",
    )


BOOK = [
    *(priced("groq", model, *prices) for model, prices in ((SMALL, ("1", "2")), (LARGE, ("3", "4")))),
    *(priced("anthropic", model, *prices) for model, prices in ((CLAUDE, ("1", "5")), (ADVISOR, ("10", "50")))),
]


def answered(office: Office, number: int, about: tuple[str, str, str], body: Any, total: tuple[int, int]) -> None:
    """An attempt of `total` tokens and the report of its answer."""
    provider, api, model = about
    day = f"2026-03-0{number}T10:00:00"
    named: dict[str, Any] = {"provider": provider, "api": api}
    office.attempt(number, day, model_served=model, input_computed=total[0], output_computed=total[1], **named)
    (part,) = parts_of(api, response=body)
    leaves: dict[str, Any] = {
        "leaf_shape": part.flattened.shape,
        "leaf_integers": part.flattened.integers(),
        "leaf_texts": part.flattened.texts(),
    }
    office.report(number, day, model=model, **named, **leaves)


@pytest.fixture(scope="module")
def weighed(tmp_path_factory: pytest.TempPathFactory) -> Office:
    """Both answers beside a plain one, weighed."""
    prices = PriceBook([BOOK, book().rows])
    office = Office(tmp_path_factory.mktemp("calls") / "office", prices)
    office.file(FILE_A)
    answered(office, 1, ("groq", "openai_chat", "groq/compound"), COMPOUND, (633, 10))
    answered(office, 2, ("anthropic", "anthropic_messages", CLAUDE), ADVISED, (150, 30))
    office.both(3, "2026-03-03T10:00:00")
    office.weigh()
    return office


def test_children_are_part_of_their_attempt_and_no_gap(weighed: Office) -> None:
    rows = weighed.lake.scan("reconciled").sort("day", "direction").collect()
    told = rows.select("direction", "observed", "reported", "gap", "status").rows()
    assert told == [
        ("input", 633, 633, 0, "MATCHED"),
        ("output", 10, 10, 0, "MATCHED"),
        ("input", 150, 150, 0, "MATCHED"),
        ("output", 30, 30, 0, "MATCHED"),
        ("input", 100, 100, 0, "MATCHED"),
        ("output", 20, 20, 0, "MATCHED"),
    ]
    codes = {finding.code for finding in reconcile(weighed.lake).findings}
    assert not codes & {"duplicate_report", "unexplained_gap", "iterations_left_out", "breakdown_differs"}


def test_a_close_makes_every_figure_of_them_anew(weighed: Office, tmp_path: Path) -> None:
    """138 x 1 + 4 x 2 + 495 x 3 + 6 x 4 = 1,655 and 100 x 1 + 20 x 5 + 50 x 10 + 10 x 50 = 1,200 millionths."""
    office = weighed.copy(tmp_path / "office")
    done = office.close()
    assert done.closed, done.refused
    found = verify_month(office.lake, office.packs, "2026-03")
    assert found.sound, found.differences
    assert set(found.proofs.values()) == {Proof.RECOMPUTED}
    held = json.loads((office.pack() / FIGURES).read_text())["sections"]
    tokens = {entry["by"]["day"]: entry["values"] for entry in held["usage_by_day"]}
    told = [(tokens[day]["input_tokens"], tokens[day]["output_tokens"]) for day in ("2026-03-01", "2026-03-02")]
    assert told == [(633, 10), (150, 30)]
    money = {entry["by"]["day"]: entry["values"]["amount"] for entry in held["money_by_day"]}
    assert [money[day] for day in ("2026-03-01", "2026-03-02")] == ["0.001655", "0.0012"]
    assert {entry["by"]["status"] for entry in held["money_by_day"]} == {"priced"}
