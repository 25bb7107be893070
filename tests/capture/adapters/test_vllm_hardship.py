"""The vLLM adapter where things go wrong: forks, clocks that go back, a half that is missing, odd statistics."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.capture.adapters import test_vllm
from tests.capture.adapters.test_vllm import CONFIG, IDS, Served, chunk, finished, iteration, scheduler
from tests.capture.adapters.vllm_replay import compact
from tests.capture.recording import gaps, rows, started

from weighbridge.capture import reader, seal
from weighbridge.capture.adapters import vllm
from weighbridge.capture.adapters._token_ids import speculation
from weighbridge.capture.adapters._vllm_desk import MOST, Desk, ServedCall
from weighbridge.capture.adapters.vllm import EngineWatch, Middleware
from weighbridge.capture.guard import RAISE_VARIABLE
from weighbridge.schemas.identity import new_attempt_id

PATH = "/v1/completions"
plugin, settings = test_vllm.plugin, test_vllm.settings


def in_child(work: Any) -> int:
    """The exit code of a forked child that does some work; 1 where it raises, 14 where it hangs."""
    child = os.fork()
    if not child:
        code = 1
        try:
            import signal  # noqa: PLC0415 - in the child

            signal.alarm(10)
            work()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def all_rows(spool: Path, table: str) -> list[dict[str, Any]]:
    """Rows of every process that wrote into a spool."""
    return [row for path in reader.journals(spool) for row in seal.rows_of(reader.read_journal(path)).get(table, [])]


def test_a_forked_child_writes_nothing_of_what_its_parent_holds(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool")
    watch = EngineWatch(recorder, Desk(), model="tiny")
    watch.record(scheduler(1), iteration(1000.0, finished()))

    def work() -> None:
        watch.record(scheduler(), iteration(2000.0, finished(request_id="cmpl-child-0", num_generation_tokens=7)))
        recorder.do_chores(last=True)
        recorder.close()

    assert in_child(work) == 0
    assert in_child(recorder.close) == 0, "nor one that serves nothing"
    recorder.do_chores(last=True)
    recorder.close()
    assert sorted(row["output_computed"] for row in all_rows(tmp_path / "spool", "attempt")) == [5, 7]
    told = [row for row in all_rows(tmp_path / "spool", "engine_counter") if row["counter"] == "generation_tokens"]
    assert max(row["value"] for row in told) == 5, "each counts the steps it saw"


def test_a_child_that_is_forked_in_the_middle_of_a_step_does_not_wait_for_it(tmp_path: Path) -> None:
    recorder, desk = started(tmp_path / "spool"), Desk()
    watch = EngineWatch(recorder, desk, model="tiny")
    held, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with watch._lock, watch.calls._lock, desk.lock:
            held.set()
            go_on.wait(20)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(20)

    def work() -> None:
        desk.open(ServedCall(new_attempt_id(), 0))
        watch.record(scheduler(), iteration(1000.0, finished()))

    try:
        assert in_child(work) == 0
    finally:
        go_on.set()
        holder.join()


@pytest.mark.parametrize("back", [1.0, 3600.0])
def test_a_clock_that_goes_back_during_a_call_parts_no_call_from_its_engine(back: float, tmp_path: Path) -> None:
    recorder, desk = started(tmp_path / "spool"), Desk()
    watch = EngineWatch(recorder, desk, model="tiny", clock=lambda: 5.0)
    call = ServedCall(new_attempt_id(), 1_000_000_000, client="a", max_tokens=5)
    desk.open(call)
    # It arrived a moment after the call; then the clock went back, and the step is of a time before it.
    watch.record(scheduler(), iteration(1000.5 - back, finished(e2e_latency=0.45 - back)))
    desk.close(call, int((1000.6 - back) * 1_000_000), 4.0)
    watch.settle()
    (row,) = rows(recorder, tmp_path / "out", "attempt")
    assert (row["attempt_hi"], row["attempt_lo"]) == tuple(call.key)
    assert gaps(recorder, tmp_path / "gaps") == {}


def test_requests_that_fit_no_call_of_their_id_say_so(tmp_path: Path) -> None:
    """Their clocks are not one: they are written alone, and that is said."""
    recorder, desk = started(tmp_path / "spool"), Desk()
    watch = EngineWatch(recorder, desk, model="tiny", clock=lambda: 5.0)
    call = ServedCall(new_attempt_id(), 2_000_000_000, client="a", max_tokens=5)
    desk.open(call)
    watch.record(scheduler(), iteration(1000.0, finished()))
    watch.settle(last=True)
    (row,) = rows(recorder, tmp_path / "out", "attempt")
    assert (row["attempt_hi"], row["attempt_lo"]) != tuple(call.key)
    assert gaps(recorder, tmp_path / "gaps") == {"ambiguous": 0}


@pytest.mark.parametrize("half", ["plugin", "middleware"])
def test_a_half_that_is_missing_is_named(
    half: str, settings: Path, plugin: type[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever forgot `--middleware`, or `VLLM_PLUGINS`, hears of it."""
    if half == "middleware":
        plugin(CONFIG, 0).record(scheduler(), iteration(1000.0, finished()))
    else:

        async def app(_: Any, receive: Any, send: Any) -> None:
            await receive()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": compact({"id": "cmpl-a", "choices": []})})

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b'{"model":"m"}'}

        async def send(_: Any) -> None:
            """Nobody listens."""

        asyncio.run(Middleware(app)({"type": "http", "method": "POST", "path": PATH, "headers": []}, receive, send))
    process = vllm.process
    assert process.engine is not None
    assert process.server is not None
    missing, there = (process.server, process.engine) if half == "middleware" else (process.engine, process.server)
    missing.close()
    there.close()
    told = {(row["source"], row["reason"], row["attempts"]) for row in all_rows(tmp_path / "spool", "gap")}
    assert {each for each in told if each[1] == "never_called"} == {(missing.installation, "never_called", 0)}
    if half == "middleware":
        assert len(all_rows(tmp_path / "spool", "attempt")) == 1, "and the other half works on its own"


def test_one_odd_request_of_a_step_costs_no_other_and_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(RAISE_VARIABLE)
    recorder = started(tmp_path / "spool")
    watch = EngineWatch(recorder, Desk(), model="tiny")
    odd: Any = object()
    watch.record(scheduler(), iteration(1000.0, odd, finished(), odd, finished(request_id="cmpl-b-0")))
    assert [row["output_computed"] for row in rows(recorder, tmp_path / "out", "attempt")] == [5, 5]
    assert gaps(recorder, tmp_path / "gaps") == {"serialise": 2}
    told = [
        row["value"]
        for row in rows(recorder, tmp_path / "c", "engine_counter")
        if row["counter"] == "generation_tokens"
    ]
    assert max(told) == 5, "what the step counted is counted"


def test_many_calls_that_met_no_engine_do_not_push_out_the_last_one() -> None:
    desk = Desk()
    for number in range(MOST + 1):
        call = ServedCall(new_attempt_id(), number, client=f"c{number}")
        desk.open(call)
        if 0 < number < MOST:
            desk.close(call, number, 0.0)
    last = MOST - 1
    assert len(desk.fitting(f"cmpl-c{last}", last, None)) == 1, "it is over, and its engine may not have told yet"
    assert len(desk.fitting("cmpl-c0", 5, None)) == 1, "and one that is under way stays longest"
    assert desk.fitting("cmpl-c1", 1, None) == []


def test_bytes_nobody_has_to_leave_anything_out_of_are_not_held_back(tmp_path: Path) -> None:
    """A client that asks for ids itself gets every piece when the server sends it, whatever its form."""
    given = [b'{"id":"cmpl-x","choices":[{"index":0,"token_', b'ids":[11,12,13', b",14,15]}]}"]
    seen: list[int] = []

    async def app(_: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        for piece in given:
            await send({"type": "http.response.body", "body": piece, "more_body": piece is not given[-1]})
            seen.append(len(b"".join(served.sent)))

    recorder = started(tmp_path / "spool")
    served = Served(app, recorder)
    body = served.call(b'{"model":"m","return_token_ids":true}')
    assert body == b"".join(given)
    assert seen == [len(b"".join(given[: count + 1])) for count in range(3)]
    (row,) = rows(recorder, tmp_path / "out", "attempt")
    assert row["output_delivered"] == len(IDS)


def test_a_stream_that_is_left_between_two_of_its_bytes_counts_whole_events(tmp_path: Path) -> None:
    whole, half = chunk(IDS[:2]), chunk(IDS[2:])[:-3]

    async def app(_: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        await send({"type": "http.response.body", "body": whole + half, "more_body": True})
        assert (await receive())["type"] == "http.disconnect"

    recorder = started(tmp_path / "spool")
    assert Served(app, recorder).call(b'{"stream":true,"model":"m"}') == chunk(None)
    (row,) = rows(recorder, tmp_path / "out", "attempt")
    assert (row["output_delivered"], row["status"]) == (2, "aborted")


@pytest.mark.parametrize(
    "steps",
    [
        {"per_step_drafted": [2, 2], "per_step_accepted": [3, 2]},
        {"per_step_drafted": [2, 7], "per_step_accepted": [2, 3]},
        {"per_step_drafted": [-1, 10], "per_step_accepted": [2, 3]},
        {"per_step_drafted": ["2", "7"], "per_step_accepted": [2, 3]},
        {"per_step_drafted": [4, 5], "per_step_accepted": [2, 2]},
    ],
)
def test_steps_that_cannot_be_are_no_steps_of_a_trace(steps: dict[str, Any]) -> None:
    """Three of four accepted out of nine, and steps that say otherwise: what the totals say is kept."""
    told = speculation(
        {"num_draft_tokens": 9, "num_accepted_draft_tokens": 5, "acceptance_histogram": [0, 0, 1, 1], **steps}
    )
    assert told is not None
    assert (told.drafted, told.accepted_tokens) == (9, 5)
    fits = json.dumps(steps) == json.dumps({"per_step_drafted": [2, 7], "per_step_accepted": [2, 3]})
    assert bool(told.per_step) == fits


def test_a_full_spool_loses_every_call_of_both_sides_and_says_how_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(RAISE_VARIABLE)
    engine = started(tmp_path / "engine", spool_bytes=1 << 16)
    server = started(tmp_path / "server", spool_bytes=1 << 16)
    watch = EngineWatch(engine, Desk(), model="tiny")

    async def app(_: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        await send({"type": "http.response.body", "body": chunk(IDS), "more_body": False})

    for number in range(3):
        watch.record(scheduler(), iteration(1000.0 + number, finished(request_id=f"cmpl-{number}-0")))
        assert Served(app, server).call(b'{"stream":true,"model":"m"}') == chunk(None), "the client hears nothing of it"
    assert gaps(engine, tmp_path / "gaps") == {"quota": 3}
    assert gaps(server, tmp_path / "gaps-2") == {"quota": 3}
