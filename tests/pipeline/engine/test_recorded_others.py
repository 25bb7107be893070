"""llama.cpp and `transformers serve`, recorded: streams without usage, end tokens left out, n that is ignored."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.pipeline.engine.recorded import KEY, lines

from weighbridge.pipeline.ingest.ingest import ingest
from weighbridge.pipeline.lake import Lake, polars_schema
from weighbridge.pipeline.reconcile.reconcile import reconcile

pytestmark = pytest.mark.real
DAY = date(2026, 11, 29)


def taken(path: Path, provider: str, root: Path) -> dict[str, dict[str, Any]]:
    """Case -> what is known of its call: the attempt with the totals of its usage report."""
    lake = Lake.create(root / "lake")
    ingest([path], lake, key=KEY, day=DAY, provider=provider)
    readings = lake.scan("reading", columns=["attempt_lo", "attempt_hi", "input_total", "output_total"]).collect()
    rows = lake.scan("attempt").collect().join(readings, on=["attempt_lo", "attempt_hi"], how="left")
    return {lines(path)[row["segment_row"]]["case"]: row for row in rows.to_dicts()}


def test_streams_of_llama_cpp_carry_no_usage_asked_or_not(shared_real: Path, tmp_path: Path) -> None:
    found = taken(shared_real / "engines" / "llamacpp" / "server_requests.jsonl", "llama_cpp", tmp_path)
    told = {case: (row["input_total"], row["output_total"], row["usage_expected"]) for case, row in found.items()}
    assert told["LS1-plain"] == (6, 8, True)
    assert told["LS3-stream"] == (None, None, None)
    assert told["LS4-stream-usage-asked"] == (None, None, True)  # so that its usage is missing
    assert (found["LS11-abort-5"]["status"], told["LS11-abort-5"][2]) == ("aborted", None)
    assert (found["LS13-own-id-not-uuid"]["status"], found["LS13-own-id-not-uuid"]["http_status"]) == ("rejected", 400)
    assert (found["LS7-n2"]["n"], told["LS7-n2"]) == (2, (6, 4, True))  # two were asked for, one came


def test_transformers_serve_ignores_n_and_answers_one_choice(shared_real: Path, tmp_path: Path) -> None:
    row = taken(shared_real / "engines" / "transformers" / "serve_requests.jsonl", "transformers", tmp_path)[
        "S07-chat-n2"
    ]
    assert (row["n"], row["input_total"], row["output_total"]) == (2, 12, 4)


def test_the_end_token_that_llama_cpp_computed_and_does_not_report(shared_real: Path, tmp_path: Path) -> None:
    """A chat that ended at once: a prompt of 14 tokens, one token was sampled (the end), and usage says 0."""
    calls = {call["case"]: call for call in lines(shared_real / "engines" / "llamacpp" / "calls.jsonl")}
    call = calls["L13-chat"]
    usage, finish = call["response"]["usage"], call["response"]["choices"][0]["finish_reason"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], finish) == (14, 0, "stop")
    lake = Lake.create(tmp_path / "lake")
    common = {
        "attempt_hi": 0,
        "attempt_lo": 1,
        "day": DAY,
        "provider": "llama_cpp",
        "api": "openai_chat",
        "revision": 0,
    }
    attempt = {
        **common, "source": "agent", "model_served": "gemma", "tenant": "unassigned", "task": "unassigned",
        "route": "unassigned", "status": "succeeded", "usage_expected": True, "finish_reason": finish,
        "input_computed": 14, "output_computed": 1, "withheld_end_token": 1,
    }  # fmt: skip
    reading = {
        **common, "source": "agent", "child": 0, "report": 0, "model": "gemma", "verdict": "PROVED",
        "ended": "complete", "input_total": usage["prompt_tokens"], "output_total": usage["completion_tokens"],
    }  # fmt: skip
    for table, row in (("attempt", attempt), ("reading", reading)):
        lake.append(table, pl.DataFrame([row], schema=polars_schema(table)))
    reconcile(lake)
    parts = lake.scan("gap_cause").select("direction", "cause", "tokens").collect().rows()
    assert parts == [("output", "end_token_convention", -1)]
