"""Recorded vLLM servers through the plugin and the middleware: computed and delivered, call by call, to the token."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.capture.adapters.vllm_replay import CONFIGURATIONS, Replay, Row, generates, key_of, lines, pieces

from weighbridge.capture.binding import Attempt
from weighbridge.capture.content import Content, Run
from weighbridge.capture.traces import Traces
from weighbridge.schemas.identity import AttemptKey
from weighbridge.schemas.segment import read_table

pytestmark = pytest.mark.real


class Rows:
    """What a replay wrote, and what the recording says it should be."""

    def __init__(self, replay: Replay) -> None:
        self.replay = replay
        self.outcomes = {each["case"]: each for each in lines(replay.folder / "outcomes.jsonl")}
        self._tables: dict[str, list[Row]] = {}

    def table(self, name: str) -> list[Row]:
        """All rows of a table."""
        if name not in self._tables:
            self._tables[name] = [
                row
                for segment in sorted(self.replay.spool.glob("*.segment"))
                if (segment / f"{name}.parquet").exists()
                for row in read_table(segment, name).to_pylist()
            ]
        return self._tables[name]

    def of(self, table: str, side: str) -> dict[AttemptKey, Row]:
        """Rows of one side by attempt."""
        rows = [row for row in self.table(table) if row["source"] == f"replay-{side}"]
        found = {AttemptKey(row["attempt_hi"], row["attempt_lo"]): row for row in rows}
        assert len(found) == len(rows)
        return found


_MADE: dict[str, Rows] = {}


@pytest.fixture(params=CONFIGURATIONS)
def rows(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, shared_real: Path) -> Rows:
    """A configuration, played once for all tests, which only look."""
    name = str(request.param)
    if name not in _MADE:
        with pytest.MonkeyPatch.context() as patch:
            replay = Replay(shared_real / "engines" / "vllm" / name, tmp_path_factory.mktemp("spool") / "s", patch)
            replay.run()
        _MADE[name] = Rows(replay)
    return _MADE[name]


def test_the_engines_row_of_every_call_is_what_the_engine_counted(rows: Rows) -> None:
    engine = rows.of("attempt", "engine")
    seen = 0
    for call in rows.replay.calls:
        told = rows.outcomes[call["case"]]["engine_finished"]
        row = engine.pop(key_of(call["case"]), None)
        if told is None:
            assert row is None, call["case"]
            continue
        seen += 1
        assert row is not None, call["case"]
        figures = (row["input_computed"], row["cached_local"], row["output_computed"])
        assert figures == (told["prompt_tokens"], told["cached_tokens"], told["generation_tokens"]), call["case"]
        assert row["prefill_computed"] == told["prompt_tokens"] - told["cached_tokens"]
        assert row["recomputed"] == (None if told["preemptions"] else 0)
        reasons = set(told["finish_reasons"])
        assert row["finish_reason"] == (reasons.pop() if len(reasons) == 1 else None)
    assert seen >= 38
    assert engine == {}, "and no row is left that belongs to no call"
    assert {row["reason"] for row in rows.table("gap")} <= {"unsupported_version"}


def test_requests_of_one_call_are_its_children(rows: Rows) -> None:
    children: dict[AttemptKey, list[Row]] = {}
    for row in rows.table("child"):
        children.setdefault(AttemptKey(row["attempt_hi"], row["attempt_lo"]), []).append(row)
    for call in rows.replay.calls:
        told = rows.outcomes[call["case"]]["engine_finished"]
        found = children.pop(key_of(call["case"]), [])
        assert len(found) == (told["records"] if told and told["records"] > 1 else 0), call["case"]
        assert sum(row["output_computed"] for row in found) in (0, told["generation_tokens"] if told else 0)
        kinds = {row["kind"] for row in found}
        beams, prompt = call["request"]["body"], call["case"]
        if "use_beam_search" in beams:
            assert kinds == {"beam"}, prompt
        elif found:
            assert kinds == ({"choice"} if "n" in beams else {"prompt"}), prompt
    assert children == {}


def test_the_servers_row_of_every_call_is_what_was_delivered(rows: Rows) -> None:
    server = rows.of("attempt", "server")
    for call in filter(generates, rows.replay.calls):
        row = server.pop(key_of(call["case"]), None)
        told = rows.outcomes[call["case"]]
        if call["response"]["status"] is None and not call["client"]["aborted"]:
            assert row is None, "nobody answered"
            continue
        assert row is not None, call["case"]
        assert row["output_delivered"] == told["delivered"]["token_ids"], call["case"]
        left = call["client"]["aborted"]
        assert (row["status"] == "aborted") == left, call["case"]
        assert row["http_status"] == told["status"], call["case"]
    assert server == {}


def test_drafts_are_told_where_the_answer_tells_them(rows: Rows) -> None:
    engine = rows.of("attempt", "engine")
    told = 0
    for call in rows.replay.calls:
        drafts = _speculation(call)
        row = engine.get(key_of(call["case"]))
        if row is None or drafts is None:
            assert row is None or row["drafted"] is None, call["case"]
            continue
        told += 1
        steps = [row[f"accepted_steps_{length}"] for length in range(8)]
        accepted = drafts["num_accepted_draft_tokens"]
        assert (row["drafted"], row["accepted"]) == (drafts["num_draft_tokens"], accepted), call["case"]
        assert row["rejected"] == drafts["num_draft_tokens"] - accepted
        assert steps == [*drafts["acceptance_histogram"], 0, 0, 0], call["case"]
        assert sum(length * count for length, count in enumerate(steps)) == accepted
    assert (told > 20) == (rows.replay.folder.name == "b_spec_ngram")


def _speculation(call: Row) -> dict[str, Any] | None:
    answer = call["response"]
    bodies = [answer["body"], *(event["data"] for event in answer.get("events") or ())]
    metrics = [body.get("metrics") for body in bodies if isinstance(body, dict)]
    found = [each["speculative_decoding"] for each in metrics if each and each.get("speculative_decoding")]
    return found[-1] if found else None


def test_steps_say_what_no_finished_request_says(rows: Rows) -> None:
    """What the steps computed, less what finished requests say, is what was computed for those who left."""
    counters = [row for row in rows.table("engine_counter") if row["counter"] == "generation_tokens"]
    assert {row["source"] for row in counters} == {"replay-engine/engine-steps"}
    counted = 0
    previous = 0
    for row in sorted(counters, key=lambda row: row["scraped_at"]):
        counted += row["value"] - previous if row["value"] >= previous else row["value"]
        previous = row["value"]
    steps = [step for step in lines(rows.replay.folder / "engine_steps.jsonl") if step.get("iteration")]
    assert counted == sum(step["iteration"].get("num_generation_tokens", 0) for step in steps)
    finished = sum(row["output_computed"] for row in rows.of("attempt", "engine").values())
    unfinished = {"a_plain": 10 + 100 + 10 + 153 + 9, "b_spec_ngram": 34 + 484 + 599 + 16}
    expected = unfinished.get(rows.replay.folder.name)
    if expected is not None:
        assert counted - finished == expected


def _unasked(call: Row) -> Row:
    """A recorded call whose client does not ask for ids: the server gives them because the middleware asks."""
    if generates(call) and isinstance(call["request"]["body"], dict):
        call["request"]["body"].pop("return_token_ids", None)
    return call


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_ids_nobody_asked_for_are_counted_and_never_reach_the_client(
    name: str, tmp_path: Path, shared_real: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Byte for byte what vLLM writes where nobody asks: null in the place of every list of ids."""
    replay = Replay(shared_real / "engines" / "vllm" / name, tmp_path / "s", monkeypatch, change=_unasked)
    replay.run()
    rows = Rows(replay)
    server = rows.of("attempt", "server")
    counted = 0
    for call in filter(generates, replay.calls):
        case = call["case"]
        if case not in replay.played:
            continue
        delivered = rows.outcomes[case]["delivered"]["token_ids"]
        assert server[key_of(case)]["output_delivered"] == delivered, case
        counted += delivered or 0
        told = b"".join(body for _, body in pieces(call))
        expected = re.sub(rb'("(?:prompt_)?token_ids":)\[[\d,]*\]', rb"\1null", told)
        played = replay.played[case]
        assert played.body == (expected if played.status == 200 else told), case
        assert played.length in (None, len(played.body)), case
        asked = json.loads(call["asked"]) if case != "A34-bad-json" else {}
        askable = call["request"]["path"].endswith("completions") and case != "A34-bad-json"
        assert (asked.pop("return_token_ids", None) is True) is askable, case
        assert case == "A34-bad-json" or asked == call["request"]["body"], "and nothing else is changed"
    assert counted > 200


def test_ids_of_a_sample_are_those_the_engine_generated(
    tmp_path: Path, shared_real: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = tmp_path / "policy.json"
    cell = {"tenant": None, "route": None, "strategy": None, "level": 2, "purpose": "billing_audit"}
    policy.write_text(json.dumps({"version": 1, "cells": [{**cell, "expires": "2999-12-31"}]}), encoding="utf-8")
    offered: dict[tuple[AttemptKey, int, str], list[int]] = {}

    def offer(_: object, __: object, runs: Sequence[Run]) -> int:
        for run in runs:
            offered[AttemptKey(run.hi, run.lo), run.child, str(run.stream)] = list(run.ids)
        return sum(len(run.ids) for run in runs)

    monkeypatch.setattr(Content, "offer", offer)
    folder = shared_real / "engines" / "vllm" / "a_plain"
    replay = Replay(folder, tmp_path / "s", monkeypatch, policy_file=policy)
    replay.run()
    server = Rows(replay).of("attempt", "server")
    seen = 0
    for call in filter(generates, replay.calls):
        if call["case"] not in replay.played:
            continue
        prompt, outputs = _recorded_ids(call)
        key = key_of(call["case"])
        several = len(outputs) > 1
        found = {child: offered.pop((key, child, "output"), None) for child in (range(1, 4) if several else (0,))}
        assert {child: ids for child, ids in found.items() if ids} == {
            index + several: ids for index, ids in outputs.items() if ids
        }, call["case"]
        assert offered.pop((key, 0, "prompt"), None) == prompt, call["case"]
        total = len(prompt or ()) + sum(map(len, outputs.values()))
        assert (server[key]["ids_expected"] or 0) == total, call["case"]
        seen += bool(outputs)
    assert seen > 15
    assert offered == {}


def test_verify_steps_of_a_sample_are_those_the_answer_tells(
    tmp_path: Path, shared_real: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Per step drafted and accepted, as counts of level 2 and above; below nothing is handed over."""
    policy = tmp_path / "policy.json"
    cell = {"tenant": None, "route": None, "strategy": None, "level": 3, "purpose": "billing_audit"}
    policy.write_text(json.dumps({"version": 1, "cells": [{**cell, "expires": "2999-12-31"}]}), encoding="utf-8")
    traced: dict[AttemptKey, list[tuple[int, int]]] = {}

    def offer(_: object, attempt: Attempt, events: Any, *__: object) -> bool:
        traced[attempt.key] = [(event.n_universe, event.n_members) for event in events()]
        return True

    monkeypatch.setattr(Traces, "offer", offer)
    replay = Replay(shared_real / "engines" / "vllm" / "b_spec_ngram", tmp_path / "s", monkeypatch, policy_file=policy)
    replay.run()
    for call in replay.calls:
        told = _speculation(call) or {}
        steps = list(zip(told.get("per_step_drafted") or (), told.get("per_step_accepted") or (), strict=True))
        assert traced.pop(key_of(call["case"]), []) == steps, call["case"]
    assert traced == {}


def _recorded_ids(call: Row) -> tuple[list[int] | None, dict[int, list[int]]]:
    answer = call["response"]
    bodies = [answer["body"], *(event["data"] for event in answer.get("events") or ())]
    prompt: list[int] | None = None
    outputs: dict[int, list[int]] = {}
    for body in bodies:
        for choice in body.get("choices") or () if isinstance(body, dict) else ():
            prompt = prompt or choice.get("prompt_token_ids") or body.get("prompt_token_ids")
            if choice.get("token_ids"):
                outputs.setdefault(choice["index"], []).extend(choice["token_ids"])
    return prompt, outputs
