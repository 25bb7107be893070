"""A server that is watched: what it delivered, to whom, and who went away; on a real socket."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket

from weighbridge.capture import reader, seal
from weighbridge.capture.adapters import asgi
from weighbridge.capture.adapters.asgi import CaptureMiddleware, key_name
from weighbridge.capture.context import Context
from weighbridge.capture.recorder import Recorder
from weighbridge.capture.wire.carried import answering
from weighbridge.capture.wire.once import Once
from weighbridge.capture.wire.recounts import Delivered, Recounted
from weighbridge.schemas.enumerations import Script
from weighbridge.schemas.identity import AttemptKey, pseudonym
from weighbridge.schemas.segment import read_table

PATH = "/v1/chat/completions"
KEY = "0190000000007000800000000000002a"
USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
seen_keys: list[AttemptKey] = []


def event(content: object) -> bytes:
    return b"data: " + json.dumps(content).encode() + b"\n\n"


async def words(count: int, pause: float) -> AsyncIterator[bytes]:
    for number in range(count):
        yield event({"id": "c-1", "model": "tiny", "choices": [{"index": 0, "delta": {"content": f"CANARY{number} "}}]})
        await asyncio.sleep(pause)
    yield event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    yield event({"choices": [], "usage": USAGE})
    yield b"data: [DONE]\n\n"


async def chat(request: Request) -> Response:
    stated = answering.get()
    if stated is not None:
        seen_keys.append(stated.key)
        stated.output_delivered, stated.withheld_stop_trimmed = 4, 2
    asked = await request.json()
    if asked.get("broken"):
        raise RuntimeError("broken")
    if asked.get("stream"):
        return StreamingResponse(words(asked.get("n", 3), asked.get("top_p", 0)), media_type="text/event-stream")
    return JSONResponse({"id": "c-2", "model": "tiny", "choices": [{"finish_reason": "stop"}], "usage": USAGE})


async def models(_: Request) -> Response:
    return JSONResponse([])


async def echo(websocket: WebSocket) -> None:
    await websocket.accept()
    await websocket.send_text(await websocket.receive_text())
    await websocket.close()


def served() -> Starlette:
    return Starlette(
        routes=[Route(PATH, chat, methods=["POST"]), Route("/v1/models", models), WebSocketRoute("/echo", echo)]
    )


@contextmanager
def listening(app: Any) -> Iterator[str]:
    """The application behind a real socket on loopback."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def rows(recorder: Recorder, tmp_path: Path, table: str = "attempt") -> list[dict[str, Any]]:
    """Close, seal, and read one table."""
    recorder.close()
    found: list[dict[str, Any]] = []
    for path in reader.journals(recorder.spool):
        segment = seal.seal(path, tmp_path / f"sealed-{table}")
        if (segment / f"{table}.parquet").exists():
            found += read_table(segment, table).to_pylist()
    return found


def test_whole_answers_failures_and_who_called(recorder: Recorder, tmp_path: Path, key: bytes) -> None:
    table = {key_name(key, "sk-acme"): "acme"}
    app = CaptureMiddleware(served(), recorder, tenant_header="x-tenant", api_keys=table)
    with listening(app) as url, httpx.Client(base_url=url) as http:
        plain = http.post(PATH, json={"model": "m"}, headers={"x-weighbridge-attempt": KEY, "x-tenant": "globex"})
        streamed = http.post(PATH, json={"model": "m", "stream": True}, headers={"authorization": "Bearer sk-acme"})
        assert http.get("/v1/models").json() == []
        # The last one on this connection: after an application's exception uvicorn closes it, sooner or later.
        broken = http.post(PATH, json={"broken": True}, headers={"authorization": "Bearer sk-other"})
    assert (plain.json()["usage"], broken.status_code) == (USAGE, 500)
    assert streamed.text.endswith("data: [DONE]\n\n")
    first, second, third = rows(recorder, tmp_path)
    assert AttemptKey(first["attempt_hi"], first["attempt_lo"]).to_hex() == KEY
    assert seen_keys[-3] == AttemptKey.from_hex(KEY)
    assert [row["status"] for row in (first, second, third)] == ["succeeded", "succeeded", "failed"]
    assert [row["tenant"] for row in (first, second, third)] == [
        pseudonym(key, "tenant", "globex"),
        pseudonym(key, "tenant", "acme"),
        "unassigned",
    ]
    assert (second["stream"], second["finish_reason"], second["http_status"]) == (True, "stop", 200)
    assert (first["output_delivered"], first["withheld_stop_trimmed"], first["withheld_aborted"]) == (4, 2, None)
    assert 0 < second["first_token_us"] <= second["total_us"]
    reports = rows(recorder, tmp_path, "usage_report")
    assert [(row["part_kind"], row["ended"]) for row in reports] == [("whole", "complete"), ("final", "complete")]
    assert not any(b"CANARY" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_a_client_that_goes_away_is_seen_to_the_word(recorder: Recorder, tmp_path: Path) -> None:
    """What the socket took before the disconnect is what is recounted, and not more."""
    counted: list[Delivered] = []

    def count(delivered: Delivered) -> Recounted:
        counted.append(delivered)
        return Recounted(output=len(delivered.text[0].split()), script=Script.OTHER)

    app = CaptureMiddleware(served(), recorder, recounter=count)
    asked = {"model": "m", "stream": True, "n": 200, "top_p": 0.02}
    with listening(app) as url, httpx.Client(base_url=url) as http:
        with http.stream("POST", PATH, json=asked) as answer:
            raw = answer.iter_raw()
            got = b"".join(next(raw) for _ in range(5))
        deadline = time.monotonic() + 5
        while not counted and time.monotonic() < deadline:
            time.sleep(0.02)
    (row,) = rows(recorder, tmp_path)
    assert (row["status"], row["finish_reason"]) == ("aborted", "abort")
    assert got.count(b"CANARY") <= row["output_recounted"] < 100
    assert (row["script"], row["recount_has_template"], row["recount_has_special"]) == ("other", None, None)
    assert rows(recorder, tmp_path, "usage_report") == []


def test_a_call_that_is_sent_twice_with_one_id_is_two_attempts(recorder: Recorder, tmp_path: Path) -> None:
    """A proxy that tries again sends the headers as they were: neither answer may stand in for the other."""
    with TestClient(CaptureMiddleware(served(), recorder)) as http:
        for _ in range(2):
            http.post(PATH, json={"model": "m"}, headers={"x-weighbridge-attempt": KEY})
    found = rows(recorder, tmp_path)
    keys = [AttemptKey(row["attempt_hi"], row["attempt_lo"]).to_hex() for row in found]
    assert (len(keys), len(set(keys)), keys.count(KEY)) == (2, 2, 1)


def test_keys_of_late_are_taken_once() -> None:
    once, keys = Once(), [AttemptKey(1, number) for number in range(9000)]
    assert [once.take(key) for key in keys] == keys
    assert [once.take(key) for key in keys[-4096:]] == [None] * 4096
    assert len(once._now) + len(once._before) <= 8192


def test_a_server_whose_clients_are_watched_stores_no_usage(recorder: Recorder, tmp_path: Path) -> None:
    with TestClient(CaptureMiddleware(served(), recorder, usage=False)) as http:
        http.post(PATH, json={"model": "m"})
    (row,) = rows(recorder, tmp_path)
    assert (row["status"], row["finish_reason"]) == ("succeeded", "stop")
    assert rows(recorder, tmp_path, "usage_report") == []


def test_websockets_and_the_lifespan_pass_untouched(recorder: Recorder, tmp_path: Path) -> None:
    with TestClient(CaptureMiddleware(served(), recorder)) as http, http.websocket_connect("/echo") as socket_:
        socket_.send_text("hello")
        assert socket_.receive_text() == "hello"
    assert rows(recorder, tmp_path) == []


def test_install_wraps_a_built_application_until_it_is_removed(recorder: Recorder, tmp_path: Path) -> None:
    app = served()
    with asgi.install(app, recorder, context=Context(provider="own")), TestClient(app) as http:
        http.post(PATH, json={"model": "m"})
    with TestClient(app) as http:
        http.post(PATH, json={"model": "m"})
    assert [row["provider"] for row in rows(recorder, tmp_path)] == ["own"]


def test_what_breaks_inside_does_not_break_the_server(
    recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIGHBRIDGE_CAPTURE_RAISE", "0")

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    for place in ("CaptureMiddleware.begin", "CaptureMiddleware.attempt_key", "_Watch._open", "_Watch._begin"):
        with monkeypatch.context() as patch, TestClient(CaptureMiddleware(served(), recorder)) as http:
            patch.setattr(f"weighbridge.capture.adapters.asgi.{place}", broken)
            assert http.post(PATH, json={"model": "m"}).json()["usage"] == USAGE, place
