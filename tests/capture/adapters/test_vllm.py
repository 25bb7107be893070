"""The vLLM adapter without vLLM: loaded by name, inert without settings, never raising, exact at every cut."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import tomllib
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from tests.capture.adapters.vllm_replay import compact
from tests.capture.recording import KEY, rows, started
from tests.conftest import ROOT

from weighbridge.capture import host as host_settings
from weighbridge.capture.adapters import vllm
from weighbridge.capture.adapters._token_ids import speculation
from weighbridge.capture.adapters._vllm_desk import Desk, ServedCall
from weighbridge.capture.adapters.vllm import EngineWatch, Middleware, Server, watched
from weighbridge.capture.guard import RAISE_VARIABLE
from weighbridge.capture.host import VARIABLE, Host
from weighbridge.capture.recorder import Recorder
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import new_attempt_id

PATH = "/v1/completions"
IDS = [11, 12, 13, 14, 15]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A settings file the environment names, and a process of its own that has read nothing yet."""
    (tmp_path / "key").write_bytes(KEY)
    path = tmp_path / "capture.toml"
    path.write_text(
        f'spool = "{tmp_path}/spool"\ninstallation = "gpu-1"\nkey_file = "{tmp_path}/key"\n', encoding="utf-8"
    )
    monkeypatch.setenv(VARIABLE, str(path))
    monkeypatch.setattr(host_settings, "_read", {})
    process = Server()
    monkeypatch.setattr(vllm, "process", process)
    yield path
    for recorder in (process.engine, process.server):
        if recorder is not None:
            recorder.close()


class Base:
    """Stands for vLLM's StatLoggerBase."""


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> type[Any]:
    """The class vLLM gets, as its loader gets it: the attribute of a module that an entry point names."""
    for name in ("vllm", "vllm.v1", "vllm.v1.metrics"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    loggers: Any = ModuleType("vllm.v1.metrics.loggers")
    loggers.StatLoggerBase = Base
    monkeypatch.setitem(sys.modules, loggers.__name__, loggers)
    monkeypatch.delitem(vars(vllm), "StatLogger", raising=False)
    named = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    module, _, attribute = named["project"]["entry-points"]["vllm.stat_logger_plugins"]["weighbridge"].partition(":")
    made: type[Any] = getattr(importlib.import_module(module), attribute)
    monkeypatch.delitem(vars(vllm), "StatLogger")
    return made


CONFIG = SimpleNamespace(model_config=SimpleNamespace(served_model_name=["tiny", "other"]))


def finished(**fields: Any) -> SimpleNamespace:
    """FinishedRequestStats of vLLM 0.32."""
    return SimpleNamespace(
        **{
            "finish_reason": "length", "request_id": "cmpl-a-0", "e2e_latency": 0.5, "num_prompt_tokens": 9,
            "num_preemptions": 0, "num_generation_tokens": 5, "max_tokens_param": 5, "queued_time": 0.0,
            "prefill_time": 0.1, "inference_time": 0.4, "decode_time": 0.3, "num_cached_tokens": 0, **fields,
        }
    )  # fmt: skip


def iteration(at: float, *done: SimpleNamespace, tokens: int = 5) -> SimpleNamespace:
    """IterationStats of a step."""
    return SimpleNamespace(
        iteration_timestamp=at, finished_requests=list(done), num_generation_tokens=tokens, num_preempted_reqs=0,
        time_to_first_tokens_iter=[0.1], prompt_token_stats=SimpleNamespace(total=9, computed=9, cached_tokens=0),
    )  # fmt: skip


def scheduler(running: int = 0) -> SimpleNamespace:
    """SchedulerStats after a step."""
    return SimpleNamespace(num_running_reqs=running, num_waiting_reqs=0, num_skipped_waiting_reqs=0)


def test_the_plugin_is_of_vllms_own_base_and_writes_what_it_is_told(
    settings: Path, plugin: type[Any], tmp_path: Path
) -> None:
    logger: Any = plugin(CONFIG, 0)
    assert issubclass(type(logger), Base)
    logger.log_engine_initialized()
    logger.record(scheduler(), iteration(1000.0, finished()), mm_cache_stats=None, engine_idx=0)
    assert vllm.process.engine is not None
    (row,) = rows(vllm.process.engine, tmp_path / "out", "attempt")
    assert (row["source"], row["framework"], row["model_served"]) == ("gpu-1-engine", "vllm", "tiny")
    assert (row["input_computed"], row["output_computed"], row["total_us"]) == (9, 5, 500_000)


def test_without_settings_plugin_and_middleware_do_nothing(plugin: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(vllm, "process", Server())
    plugin(CONFIG, 0).record(scheduler(), iteration(1000.0, finished()))
    assert vllm.process.engine is None
    seen: list[Any] = []

    async def app(*connection: Any) -> None:
        seen.append(connection)

    connection = ({"type": "http", "method": "POST", "path": PATH, "headers": []}, object(), object())
    asyncio.run(Middleware(app)(*connection))  # type: ignore[arg-type]
    assert seen == [connection]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('spool = "s"\ninstallation = "i"', "key_file is missing"),
        ('spool = "s"\ninstallation = "i"\nkey_file = "no-such-file"', "key_file cannot be read"),
        ('spool = "s"\ninstallation = "a b"\nkey_file = "k"', "installation must match"),
        ('spool = 1\ninstallation = "i"\nkey_file = "k"', "spool must be a string"),
        ('spool = "s"\ninstallation = "i"\nkey_file = "k"\ntoken_ids = "yes"', "token_ids must be a boolean"),
        ('spool = "s"\ninstallation = "i"\nkey_file = "k"\ntenant = "x"', "unknown setting 'tenant'"),
        ("spool = ", "cannot be read as TOML"),
    ],
)
def test_settings_that_cannot_be_used_say_so_once_and_the_server_runs_on(
    text: str, says: str, settings: Path, plugin: type[Any], monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    settings.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=says):
        Host.read(settings)
    monkeypatch.delenv(RAISE_VARIABLE)
    monkeypatch.setattr("weighbridge.capture.guard._said", {})
    plugin(CONFIG, 0).record(scheduler(), iteration(1000.0, finished()))
    plugin(CONFIG, 0)
    assert len(caplog.records) == 1
    assert vllm.process.engine is None


def test_statistics_of_another_form_never_reach_the_engine_as_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(RAISE_VARIABLE)
    recorder = started(tmp_path / "spool")
    watch = EngineWatch(recorder, Desk(), model="tiny")
    no_request: Any = object()
    no_time = SimpleNamespace(iteration_timestamp="x", finished_requests=3)
    for odd in (None, object(), no_time, iteration(1.0, no_request)):
        watch.record(odd, odd)
    watch.record(scheduler(), iteration(1000.0, finished(request_id=None, num_cached_tokens=None)))
    found = rows(recorder, tmp_path / "out", "attempt")
    assert [(row["output_computed"], row["cached_local"]) for row in found] == [(5, None)]


def test_requests_that_may_be_of_either_of_two_calls_are_given_to_neither(tmp_path: Path) -> None:
    """One client id, two calls at once, one limit: nothing tells them apart, and the gap says so."""
    recorder = started(tmp_path / "spool")
    desk, now = Desk(), [1000.0]
    watch = EngineWatch(recorder, desk, model="tiny", clock=lambda: now[0], wall=lambda: int(now[0] * 1e6))
    calls = [ServedCall(new_attempt_id(), 999_000_000, client="a", max_tokens=5) for _ in range(2)]
    for call in calls:
        desk.open(call)
    watch.record(scheduler(1), iteration(1000.0, finished(e2e_latency=0.9)))
    watch.record(scheduler(), iteration(1000.1, finished(e2e_latency=0.95)))
    for call in calls:
        desk.close(call, 1_000_200_000, now[0])
    now[0] += 1
    watch.settle()
    recorder.close()
    found = rows(recorder, tmp_path / "out", "attempt")
    assert len(found) == 2
    assert not {(row["attempt_hi"], row["attempt_lo"]) for row in found} & {tuple(call.key) for call in calls}
    assert [(row["reason"], row["attempts"]) for row in rows(recorder, tmp_path / "gaps", "gap")] == [("ambiguous", 0)]


def test_requests_nobody_tells_of_are_written_when_the_engine_rests(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool")
    now = [1000.0]
    watch = EngineWatch(recorder, Desk(), model="tiny", clock=lambda: now[0])
    done = finished(request_id="chatcmpl-b")
    watch.record(scheduler(1), iteration(1000.0, done))
    now[0] += 0.1
    watch.record(scheduler(0), iteration(1000.1, finished(request_id="chatcmpl-b", e2e_latency=0.6)))
    watch.settle()
    assert recorder.written_slow == 0, "not yet: another choice might follow"
    now[0] += 0.3
    watch.settle()
    found = rows(recorder, tmp_path / "out", "attempt")
    assert [(row["input_computed"], row["output_computed"]) for row in found] == [(18, 10)]
    named = rows(recorder, tmp_path / "names", "foreign_id")
    assert {(row["kind"], row["value"]) for row in named} == {
        ("provider_response_id", "chatcmpl-b"), ("client_request_id", "b"), ("record_id", "chatcmpl-b@999500000"),
    }  # fmt: skip


def test_what_an_answer_says_about_drafts_is_taken_only_where_it_adds_up() -> None:
    good = {"num_draft_tokens": 9, "num_accepted_draft_tokens": 5, "acceptance_histogram": [1, 1, 2]}
    told = speculation({**good, "per_step_drafted": [2, 2, 3, 2], "per_step_accepted": [0, 1, 2, 2]})
    assert told is not None
    assert (told.drafted, told.accepted_tokens, list(told.per_step)) == (9, 5, [(2, 0), (2, 1), (3, 2), (2, 2)])
    for wrong in ({}, {**good, "num_accepted_draft_tokens": 4}, {**good, "num_draft_tokens": 4},
                  {**good, "per_step_drafted": [1]}, {**good, "acceptance_histogram": None}):  # fmt: skip
        assert speculation(wrong) is None


class Served:
    """One call through both middlewares, its bytes cut where the test says."""

    def __init__(self, app: Any, recorder: Recorder, *, ask: bool = True) -> None:
        self.sent: list[bytes] = []
        self.start: dict[str, Any] = {}
        self._app = watched(app, recorder, Desk(), ask=ask)

    def call(self, body: bytes, *, cut: int | None = None) -> bytes:
        parts = [body] if cut is None else [body[:cut], body[cut:]]
        messages = iter([{"type": "http.request", "body": part, "more_body": part is not parts[-1]} for part in parts])

        async def receive() -> dict[str, Any]:
            return next(messages, {"type": "http.disconnect"})

        async def send(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self.start = dict(message)
            else:
                self.sent.append(message["body"])

        async def served() -> None:
            await self._app({"type": "http", "method": "POST", "path": PATH, "headers": []}, receive, send)

        asyncio.run(served())
        return b"".join(self.sent)


def chunk(ids: list[int] | None, index: int = 0) -> bytes:
    choice = {"index": index, "text": 'says "token_ids":[7]', "prompt_token_ids": None, "token_ids": ids}
    return b"data: " + compact({"id": "cmpl-x", "choices": [choice]}) + b"\n\n"


@pytest.mark.parametrize("cut", [1, 7, 60, 61, 130, 200])
def test_a_stream_is_the_same_wherever_its_bytes_are_cut(cut: int, tmp_path: Path) -> None:
    given = chunk(IDS[:2]) + chunk(IDS[2:]) + b"data: [DONE]\n\n"

    async def app(_: Any, receive: Any, send: Any) -> None:
        assert json.loads((await receive())["body"]) == {"model": "tiny", "stream": True, "return_token_ids": True}
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        for at in range(0, len(given), cut):
            await send({"type": "http.response.body", "body": given[at : at + cut], "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    recorder = started(tmp_path / "spool")
    served = Served(app, recorder)
    assert served.call(compact({"model": "tiny", "stream": True}), cut=5) == chunk(None) * 2 + b"data: [DONE]\n\n"
    (row,) = rows(recorder, tmp_path / "out", "attempt")
    assert (row["output_delivered"], row["status"]) == (5, "succeeded")


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        (b'{"model":"m"}', b'{"model":"m","return_token_ids":true}'),
        (b'{"model":"m"} \n', b'{"model":"m","return_token_ids":true}'),
        (b'{"return_token_ids": false, "model":"m"}', b'{"return_token_ids": true, "model":"m"}'),
        (b'{"return_token_ids": true}', b'{"return_token_ids": true}'),
        (b'{"a":"\\"return_token_ids\\": true"}', b'{"a":"\\"return_token_ids\\": true","return_token_ids":true}'),
        (b"{}", b"{}"),
        (b'{"model":"m",}', b'{"model":"m",}'),
        (b"[1]", b"[1]"),
        (b"not json", b"not json"),
        (b"", b""),
    ],
)  # fmt: skip
def test_ids_are_asked_for_without_touching_anything_else(asked: bytes, given: bytes, tmp_path: Path) -> None:
    seen: list[bytes] = []
    answer = compact({"id": "cmpl-x", "choices": [{"index": 0, "token_ids": IDS}]})

    async def app(_: Any, receive: Any, send: Any) -> None:
        seen.append((await receive())["body"])
        head = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": answer})

    recorder = started(tmp_path / "spool")
    served = Served(app, recorder)
    body = served.call(asked)
    assert seen == [given]
    assert body == (answer if asked == given or b": true}" in asked else answer.replace(compact(IDS), b"null"))
    assert dict(served.start["headers"])[b"content-length"] == str(len(body)).encode()
    (row,) = rows(recorder, tmp_path / "out", "attempt")
    assert row["output_delivered"] == 5


def test_where_ids_are_not_to_be_asked_for_those_a_client_asked_for_are_still_counted(tmp_path: Path) -> None:
    answer = compact({"id": "cmpl-x", "choices": [{"index": 0, "token_ids": IDS}]})

    async def app(_: Any, receive: Any, send: Any) -> None:
        assert (await receive())["body"] == b'{"model":"m"}'
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": answer})

    recorder = started(tmp_path / "spool")
    assert Served(app, recorder, ask=False).call(b'{"model":"m"}') == answer
    (row,) = rows(recorder, tmp_path / "out", "attempt")
    assert row["output_delivered"] == 5


def test_a_socket_that_breaks_takes_nothing_that_was_not_sent(tmp_path: Path) -> None:
    async def app(_: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        await send({"type": "http.response.body", "body": chunk(IDS[:2]), "more_body": True})
        await send({"type": "http.response.body", "body": chunk(IDS[2:]), "more_body": True})

    recorder = started(tmp_path / "spool")
    served = Served(app, recorder)

    class Full(list[bytes]):
        def append(self, item: bytes) -> None:
            if self:
                raise OSError("gone")
            super().append(item)

    served.sent = Full()
    with pytest.raises(OSError, match="gone"):
        served.call(b'{"stream":true,"model":"m"}')
    (row,) = rows(recorder, tmp_path / "out", "attempt")
    assert (row["output_delivered"], row["status"]) == (2, "aborted")


def test_a_process_of_ones_own_watches_the_application_it_has_built(tmp_path: Path) -> None:
    """And a call the middleware saw and the engine finished is one attempt of two sources."""

    async def app(_: Any, receive: Any, send: Any) -> None:
        await receive()
        answer = compact({"id": "cmpl-a", "choices": [{"index": 0, "token_ids": IDS}]})
        await send({"type": "http.response.start", "status": 200, "headers": []})
        watch.record(scheduler(), iteration(desk_now[0], finished(e2e_latency=0.0)))
        await send({"type": "http.response.body", "body": answer})

    recorder, engine = started(tmp_path / "spool"), started(tmp_path / "engine")
    desk, desk_now, host_app = Desk(), [1000.0], SimpleNamespace(middleware_stack=app)
    watch = EngineWatch(engine, desk, model="tiny", clock=lambda: desk_now[0], wall=lambda: int(desk_now[0] * 1e6))
    settings: dict[str, Any] = {
        "desk": desk, "clock": lambda: desk_now[0], "wall": lambda: int(desk_now[0] * 1e6)
    }  # fmt: skip
    with vllm.install(host_app, recorder, **settings):
        served = Served(app, recorder)
        served._app = host_app.middleware_stack
        served.call(b'{"model":"m","max_tokens":5}')
    assert host_app.middleware_stack is app
    desk_now[0] += 1
    watch.settle()
    (ours,) = rows(recorder, tmp_path / "out", "attempt")
    (theirs,) = rows(engine, tmp_path / "engine-out", "attempt")
    assert (ours["attempt_hi"], ours["attempt_lo"]) == (theirs["attempt_hi"], theirs["attempt_lo"])
    assert (ours["output_delivered"], theirs["output_computed"]) == (5, 5)
