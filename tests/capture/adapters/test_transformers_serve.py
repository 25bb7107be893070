"""`transformers serve`, run in this process on loopback: engine and server write of the attempt the client named."""

from __future__ import annotations

import copy
import gc
import json
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.capture.adapters.conftest import served_model

from weighbridge.capture.adapters import transformers_serve as adapter
from weighbridge.capture.adapters._generate_call import leaving
from weighbridge.capture.context import Context
from weighbridge.capture.recorder import Limits, Recorder
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import AttemptKey

# Many models, months or demonstrations: with the tests of whole systems.
pytestmark = pytest.mark.system

Read = Callable[[Recorder, str], list[dict[str, Any]]]
PATH = "/v1/chat/completions"
KEY = "0190000000007000800000000000002a"
ENDLESS = {"logit_bias": {"0": -100.0}, "seed": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model as servers load it, or a skip that says what is missing."""
    return served_model(tmp_path_factory.mktemp("models"))


@pytest.fixture
def engine(tmp_path: Path, key: bytes) -> Iterator[Recorder]:
    """The recorder of the engine's side."""
    made = Recorder.start(tmp_path / "engine", installation="test-engine", key=key, limits=Limits(keeper_s=0.05))
    yield made
    made.close()


@contextmanager
def serving(preloaded: Path | None = None, **options: Any) -> Iterator[tuple[Any, httpx.Client]]:
    """What the command line runs with these options, on a free port, and a client for it."""
    from transformers.cli.serve import Serve  # noqa: PLC0415 - takes seconds

    class Served(Serve):  # type: ignore[misc]
        def start_server(self) -> None:  # its own leaves an event loop open, which is a warning
            self._thread = threading.Thread(target=self.server.run)
            self._thread.start()

    model = None if preloaded is None else str(preloaded)
    fixed = {"host": "127.0.0.1", "port": 0, "device": "cpu", "log_level": "error", "non_blocking": True}
    served = Served(model, **fixed, **options)
    try:
        while not served.server.started:
            time.sleep(0.01)
        port = served.server.servers[0].sockets[0].getsockname()[1]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
            yield served, http
    finally:
        served.kill_server()


def asked(folder: Path, **more: Any) -> dict[str, Any]:
    question = {"role": "user", "content": "CANARY what was delivered?"}
    return {"model": str(folder), "messages": [question], "max_tokens": 6, **ENDLESS, **more}


def keys(rows: list[dict[str, Any]]) -> list[str]:
    return [AttemptKey(row["attempt_hi"], row["attempt_lo"]).to_hex() for row in rows]


def test_engine_and_server_write_of_the_attempt_in_the_header(
    folder: Path, recorder: Recorder, engine: Recorder, written: Read
) -> None:
    other = KEY[:-1] + "b"
    with adapter.install(recorder, engine, context=Context(model_served="tiny")), serving(folder) as (_, http):
        plain = http.post(PATH, json=asked(folder), headers={"x-weighbridge-attempt": KEY}).json()
        stream = http.post(PATH, json=asked(folder, stream=True), headers={"x-weighbridge-attempt": other})
        http.post(PATH, json=asked(folder))
    at_server, at_engine = written(recorder, "attempt"), written(engine, "attempt")
    assert keys(at_server)[:2] == [KEY, other]
    assert keys(at_engine) == keys(at_server)
    assert stream.text.count('"usage"') == 1
    for row in at_engine:
        assert (row["status"], row["finish_reason"], row["model_served"]) == ("succeeded", "length", "tiny")
        assert row["input_computed"] == plain["usage"]["prompt_tokens"]
        assert row["output_computed"] == plain["usage"]["completion_tokens"] == 6
        assert row["tokenizer"] is not None
    assert [row["stream"] for row in at_server] == [False, True, False]
    assert [row["status"] for row in at_server] == ["succeeded"] * 3
    (report, _, _) = written(recorder, "usage_report")
    assert (report["attempt_hi"], report["attempt_lo"]) == AttemptKey.from_hex(KEY)


def said(line: str) -> str:
    """The text of a line of a stream."""
    choices = json.loads(line.removeprefix("data: "))["choices"]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


def test_a_stream_that_is_left_ends_on_both_sides(
    folder: Path, recorder: Recorder, engine: Recorder, written: Read
) -> None:
    """The server ends its engine by an exception, which says why: the tokens its streamer took, and the one refused."""
    with adapter.install(recorder, engine), serving(folder) as (served, http):
        with http.stream("POST", PATH, json=asked(folder, stream=True, max_tokens=1900)) as answer:
            # The first line comes before the engine begins.
            next(line for line in answer.iter_lines() if line.startswith("data: {") and said(line))
        manager = served._generation_state.get_manager(str(folder))
        manager.submit(lambda: None).result(timeout=60)  # behind the call that was left
    (left,), (ended,) = written(recorder, "attempt"), written(engine, "attempt")
    assert keys([left]) == keys([ended])
    assert (left["status"], left["finish_reason"]) == ("aborted", "abort")
    assert (ended["status"], ended["finish_reason"]) == ("aborted", "abort")
    assert 1 <= ended["output_computed"] < 1900
    assert leaving == {}, "removal takes it away"


def test_with_continuous_batching_an_aborted_stream_is_counted(
    folder: Path, recorder: Recorder, engine: Recorder, written: Read
) -> None:
    """The engine is told that a request is cancelled, and says how far it had come."""
    small = {"cb_block_size": 16, "cb_num_blocks": 256, "cb_max_batch_tokens": 64}  # else it takes half the memory
    with adapter.install(recorder, engine), serving(folder, continuous_batching=True, **small) as (served, http):
        plain = http.post(PATH, json=asked(folder), headers={"x-weighbridge-attempt": KEY}).json()
        with http.stream("POST", PATH, json=asked(folder, stream=True, max_tokens=1900)) as answer:
            lines = answer.iter_lines()
            pieces = [next(lines) for _ in range(9)]
        scheduler = served._generation_state.get_manager(str(folder), use_cb=True).scheduler
        deadline = time.monotonic() + 30
        while scheduler.active_requests and time.monotonic() < deadline:
            time.sleep(0.02)
    at_server, at_engine = written(recorder, "attempt"), written(engine, "attempt")
    assert keys(at_server) == keys(at_engine)
    assert keys(at_engine)[0] == KEY
    assert at_engine[0]["output_computed"] == plain["usage"]["completion_tokens"]
    assert [row["status"] for row in (at_server[1], at_engine[1])] == ["aborted"] * 2
    assert at_engine[1]["input_computed"] == plain["usage"]["prompt_tokens"]
    assert sum('"content"' in piece for piece in pieces) <= at_engine[1]["output_computed"] < 1900


def test_models_are_watched_as_they_are_loaded_and_let_go_with_the_server(
    folder: Path, recorder: Recorder, engine: Recorder, written: Read
) -> None:
    with adapter.install(recorder, engine), serving() as (served, http):
        for _ in range(2):
            assert http.post(PATH, json=asked(folder)).status_code == 200
        (timed,) = served._model_manager.loaded_models.values()
        model = weakref.ref(timed.model)
        assert "generate" in vars(timed.model)
        assert vars(copy.deepcopy(timed.model))["_weighbridge_installed"].installed is None
        http.post("/reset")
        gc.collect()
        assert model() is None
        assert http.post(PATH, json=asked(folder)).status_code == 200
    rows = written(engine, "attempt")
    assert [row.get("model_served") for row in rows] == [None] * 3  # a path is nobody's business


def test_removal_puts_back_what_was_there(folder: Path, recorder: Recorder, engine: Recorder, written: Read) -> None:
    import transformers.cli.serving.server as module  # noqa: PLC0415 - as above

    before = module.build_server
    installed = adapter.install(recorder, engine)
    with pytest.raises(ConfigError, match="watched already"):
        adapter.install(recorder, engine)
    with serving(folder) as (served, http):
        assert http.post(PATH, json=asked(folder)).status_code == 200
        models, generating = served._model_manager, served._generation_state
        (timed,) = models.loaded_models.values()
        manager = generating.get_manager(str(folder))
        touched = (models, generating, manager, timed.model)
        assert all(_added(each) for each in touched)
        installed.remove()
        assert [_added(each) for each in touched] == [set()] * 4
        assert http.post(PATH, json=asked(folder)).status_code == 200
    assert module.build_server is before
    assert (len(written(recorder, "attempt")), len(written(engine, "attempt"))) == (1, 1)


def _added(thing: Any) -> set[str]:
    """Methods that stand on an instance, and what the adapter keeps there."""
    own = {"load_model_and_processor", "get_manager", "submit", "async_submit", "generate", "_weighbridge_installed"}
    return own & set(vars(thing))


def test_one_name_for_both_sides_is_refused(recorder: Recorder) -> None:
    with pytest.raises(ConfigError, match="two installation names"):
        adapter.install(recorder, recorder)


def test_another_version_is_left_alone_and_said_so(
    recorder: Recorder, engine: Recorder, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import transformers.cli.serving.server as module  # noqa: PLC0415 - as above

    before = module.build_server
    monkeypatch.setattr(type(adapter.ADAPTER), "version", lambda _: "5.99.0")
    with adapter.install(recorder, engine) as installed:
        assert module.build_server is before
    assert not installed.supported
    assert recorder.losses.snapshot() == {"unsupported_version": 0}


def test_what_breaks_inside_does_not_break_the_server(
    folder: Path, recorder: Recorder, engine: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIGHBRIDGE_CAPTURE_RAISE", "0")

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(adapter._Server, "_watch_model", broken)
    with adapter.install(recorder, engine), serving() as (_, http):
        assert http.post(PATH, json=asked(folder)).json()["usage"]["completion_tokens"] == 6
