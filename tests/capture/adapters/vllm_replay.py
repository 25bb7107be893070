"""A recorded vLLM server, played again through the plugin's and the middleware's own objects, in recorded order.

Steps become objects with the attributes of vLLM's statistics; calls become ASGI messages at the times they were
recorded at. Time is the recording's: nothing waits. Each call carries an attempt id of our own, so that its rows can be
found again.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import json
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from weighbridge.capture.adapters._vllm_desk import Desk
from weighbridge.capture.adapters.vllm import EngineWatch, watched
from weighbridge.capture.recorder import Limits, Recorder
from weighbridge.capture.spool import main as spool
from weighbridge.schemas.identity import AttemptKey, keyed_key

CONFIGURATIONS = ("a_plain", "b_spec_ngram", "c_reasoning_tools_small_pool")
MODEL = "tiny-qwen3"
KEY = bytes(range(32))
Row = dict[str, Any]
_GENERATES = ("/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages")


def lines(path: Path) -> list[Row]:
    """The records of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def key_of(case: str) -> AttemptKey:
    """The attempt id a recorded call is sent with."""
    return keyed_key(KEY, "case", case)


@dataclass
class Clock:
    """The recording's time."""

    us: int = 0

    def seconds(self) -> float:
        return self.us / 1_000_000

    def micros(self) -> int:
        return self.us

    def nanos(self) -> int:
        return self.us * 1000


@dataclass
class Played:
    """A call as its client saw it: what the server sent after the middleware."""

    status: int | None = None
    length: int | None = None
    bodies: list[bytes] = field(default_factory=list)

    @property
    def body(self) -> bytes:
        return b"".join(self.bodies)


def compact(value: object) -> bytes:
    """JSON as the server writes it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def pieces(call: Row) -> list[tuple[float, bytes]]:
    """What the recorded server sent: milliseconds after the begin, and bytes."""
    answer = call["response"]
    if answer.get("events"):
        return [(event["ms"], _event(event)) for event in answer["events"]]
    return [(call["client"]["end_ms"], compact(answer["body"]))] if answer["body"] is not None else []


def _event(event: Row) -> bytes:
    head = f"event: {event['event']}\n".encode() if event.get("event") else b""
    data = event["data"]
    return head + b"data: " + (data.encode() if isinstance(data, str) else compact(data)) + b"\n\n"


def space(fields: Row, lists: tuple[str, ...] = ()) -> SimpleNamespace:
    """Statistics as an object; what the recording leaves out is zero, as it is there."""
    return SimpleNamespace(**dict.fromkeys(lists), **fields)


def statistics(step: Row, done: list[Row]) -> tuple[Any, Any]:
    """SchedulerStats and IterationStats of a recorded step."""
    told = step["scheduler"]
    cache = {**dict.fromkeys(("queries", "hits", "preempted_queries", "preempted_hits"), 0)}
    scheduler = None if told is None else SimpleNamespace(
        **{**dict.fromkeys(("num_running_reqs", "num_waiting_reqs", "num_skipped_waiting_reqs"), 0), **told,
           "prefix_cache_stats": SimpleNamespace(**{**cache, **(told.get("prefix_cache_stats") or {})}),
           "spec_decoding_stats": None if "spec_decoding_stats" not in told
           else SimpleNamespace(**{**dict.fromkeys(("num_drafts", "num_draft_tokens", "num_accepted_tokens"), 0),
                                   **told["spec_decoding_stats"]})})  # fmt: skip
    told = step["iteration"]
    if told is None or "iteration_timestamp" not in told:
        return scheduler, None
    prompts = dict.fromkeys(("total", "computed", "cached_tokens", "local_cache_hit", "external_kv_transfer"), 0)
    iteration = SimpleNamespace(
        **{"num_generation_tokens": 0, "num_preempted_reqs": 0, "time_to_first_tokens_iter": [], **told,
           "prompt_token_stats": SimpleNamespace(**{**prompts, **(told.get("prompt_token_stats") or {})}),
           "finished_requests": [SimpleNamespace(**each) for each in done]})  # fmt: skip
    return scheduler, iteration


class Replay:
    """One configuration. After `run` its rows are in segments in `spool`."""

    def __init__(
        self, folder: Path, spool_folder: Path, monkeypatch: pytest.MonkeyPatch, *,
        name: str = "replay", change: Callable[[Row], Row] = lambda call: call, **recorder: Any,
    ) -> None:  # fmt: skip
        self.folder = folder
        self.spool = spool_folder
        self.clock = Clock()
        self.played: dict[str, Played] = {}
        self._order = itertools.count()
        self._events: list[tuple[int, int, Callable[[], object]]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._change = change
        monkeypatch.setattr("weighbridge.capture.binding._now", self.clock.nanos)
        timer = SimpleNamespace(perf_counter_ns=self.clock.nanos)
        monkeypatch.setattr("weighbridge.capture.wire.exchange.time", timer)
        limits = Limits(keeper_s=3600.0)
        start = {"key": KEY, "limits": limits, **recorder}
        self.engine = Recorder.start(spool_folder, installation=f"{name}-engine", role="engine", **start)
        self.server = Recorder.start(spool_folder, installation=f"{name}-server", role="server", **start)
        desk = Desk()
        self.watch = EngineWatch(
            self.engine, desk, model=MODEL, version="0.32.0", clock=self.clock.seconds, wall=self.clock.micros
        )
        self.app = watched(self._serve, self.server, desk, clock=self.clock.seconds, wall=self.clock.micros)
        self._due: dict[str, asyncio.Queue[tuple[str, bytes]]] = {}
        self.calls = [change(call) for call in lines(folder / "requests.jsonl") if call["client"]]
        self.seen = {each["x_request_id"]: each for each in lines(folder / "gateway.jsonl")}

    def run(self) -> None:
        """Play all of it, close, and seal."""
        asyncio.run(self._run())
        self.engine.close()
        self.server.close()
        assert spool(["seal", str(self.spool)]) == 0

    async def _run(self) -> None:
        for call in self.calls:
            self._plan_call(call)
        self._plan_steps()
        while self._events:
            at, _, action = heapq.heappop(self._events)
            self.clock.us = max(self.clock.us, at)
            action()
            for _ in range(12):
                await asyncio.sleep(0)
        await asyncio.gather(*self._tasks)

    def _at(self, us: int, action: Callable[[], object]) -> None:
        heapq.heappush(self._events, (us, next(self._order), action))

    def _plan_call(self, call: Row) -> None:
        client = call["client"]
        began = int(client["t_start_unix"] * 1_000_000)
        case = call["case"]
        if call["response"]["status"] is None and not client["aborted"]:
            return  # nobody was there to answer
        self._at(began, lambda: self._tasks.append(asyncio.get_running_loop().create_task(self._call(call))))
        for ms, body in pieces(call):
            self._at(began + int(ms * 1000), lambda body=body: self._due[case].put_nowait(("body", body)))  # type: ignore[misc]
        end = began + int(client["end_ms"] * 1000) + 1
        self._at(end + 300_000, self.watch.settle)  # as the keeper does, every second
        self._at(end, lambda: self._due[case].put_nowait(("leave" if client["aborted"] else "end", b"")))

    def _plan_steps(self) -> None:
        done: dict[int, list[Row]] = {}
        for each in lines(self.folder / "engine_finished.jsonl"):
            done.setdefault(each["step"], []).append(each)
        at = 0
        missing = False
        for step in lines(self.folder / "engine_steps.jsonl"):
            if "withheld_steps" in step:
                missing = True
                continue
            if missing and (step["iteration"] or {}).get("iteration_timestamp"):
                # Steps of others are not here: to the plugin that is an engine that counts anew from here on.
                waits = max(step["iteration"].get("time_to_first_tokens_iter", [0]))
                since = int((step["iteration"]["iteration_timestamp"] - waits) * 1_000_000)
                self._at(max(at + 1, since - 3), self.watch.restarted)
                missing = False
            at = int(((step["iteration"] or {}).get("iteration_timestamp") or at / 1_000_000) * 1_000_000)
            told = statistics(step, done.get(step["step"], []))
            self._at(at, lambda told=told: self.watch.record(*told))  # type: ignore[misc]

    async def _call(self, call: Row) -> None:
        case = call["case"]
        self._due[case] = asyncio.Queue()
        asked = call["request"]
        played = self.played[case] = Played()
        body = asked["body"].encode() if isinstance(asked["body"], str) else compact(asked["body"])
        headers = [(name.lower().encode(), value.encode()) for name, value in asked["headers"].items()]
        headers.append((b"x-weighbridge-attempt", key_of(case).to_hex().encode()))
        scope = {"type": "http", "method": asked["method"], "path": asked["path"], "headers": headers}
        gone = asyncio.Event()
        messages: Iterator[Row] = iter(({"type": "http.request", "body": body, "more_body": False},))

        async def receive() -> Row:
            for message in messages:
                return message
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                played.status = message["status"]
                length = dict(message["headers"]).get(b"content-length")
                played.length = None if length is None else int(length)
            elif message["body"]:
                played.bodies.append(message["body"])

        scope["state"] = {"call": call, "gone": gone}
        await self.app(scope, receive, send)

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        """The recorded server."""
        call, gone = scope["state"]["call"], scope["state"]["gone"]
        first = await receive()
        call["asked"] = first["body"]
        answer = call["response"]
        due = self._due[call["case"]]
        started = False
        while True:
            kind, body = await due.get()
            if kind == "leave":
                gone.set()
                assert (await receive())["type"] == "http.disconnect"
                return
            if not started:
                started = True
                headers = [(name.lower().encode(), value.encode()) for name, value in answer["headers"].items()]
                if not answer.get("events"):
                    headers.append((b"content-length", str(len(body)).encode()))
                await send({"type": "http.response.start", "status": answer["status"], "headers": headers})
            if kind == "end":
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                return
            await send({"type": "http.response.body", "body": body, "more_body": True})


def generates(call: Row) -> bool:
    """Whether a recorded call is one of an API that generates."""
    return call["request"]["path"] in _GENERATES
