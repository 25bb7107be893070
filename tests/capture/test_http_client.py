"""Clients through httpx: every attempt becomes one record, and the host gets exactly the bytes that were sent."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import struct
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from weighbridge.capture import reader, scope, seal
from weighbridge.capture.adapters import http_client
from weighbridge.capture.context import Context
from weighbridge.capture.guard import RAISE_VARIABLE
from weighbridge.capture.layout import RECOUNT_SCRIPT_SHIFT, SCRIPTS, SLOT, Kind
from weighbridge.capture.recorder import Recorder
from weighbridge.capture.wire.carried import names
from weighbridge.capture.wire.recounts import Delivered, Recounted
from weighbridge.schemas.enumerations import Script, Stage
from weighbridge.schemas.identity import AttemptKey
from weighbridge.schemas.segment import read_table

URL = "http://api.openai.com/v1/chat/completions"
USAGE = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
BODY = {
    "id": "chatcmpl-7",
    "object": "chat.completion",
    "created": 1,
    "model": "tiny-2026",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "CANARY answer"}}],
    "usage": USAGE,
}
ASKED = {"model": "tiny", "messages": [{"role": "user", "content": "CANARY question"}], "temperature": 0.25}
Handler = Callable[[httpx.Request], httpx.Response]


def rows(recorder: Recorder, tmp_path: Path, table: str) -> list[dict[str, Any]]:
    """Close, seal, and read one table."""
    recorder.close()
    out = tmp_path / "sealed"
    found: list[dict[str, Any]] = []
    for path in reader.journals(recorder.spool):
        segment = out / f"{path.stem}.segment"
        if not segment.exists():
            segment = seal.seal(path, out)
        if (segment / f"{table}.parquet").exists():
            found += read_table(segment, table).to_pylist()
    return found


def one(recorder: Recorder, tmp_path: Path, table: str = "attempt") -> dict[str, Any]:
    (row,) = rows(recorder, tmp_path, table)
    return row


def leaves(row: dict[str, Any]) -> dict[str, int]:
    """The leaves of a usage report."""
    return dict(zip(row["leaf_shape"].split(), row["leaf_integers"], strict=True))


def no_text(tmp_path: Path) -> bool:
    """Whether no word of the prompts and answers stands anywhere below the folder."""
    return not any(b"CANARY" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


class Chunks(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A streamed body; may break after some chunks."""

    def __init__(self, chunks: list[bytes], error: Exception | None = None) -> None:
        self.chunks = chunks
        self.error = error
        self.closed = False

    def __iter__(self) -> Iterator[bytes]:
        yield from self.chunks
        if self.error:
            raise self.error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self.chunks:
            yield chunk
            await asyncio.sleep(0)
        if self.error:
            raise self.error

    def close(self) -> None:
        self.closed = True

    async def aclose(self) -> None:
        self.closed = True


def client(recorder: Recorder, handler: Handler, **settings: Any) -> httpx.Client:
    """A client with the adapter on a transport of the test's own."""
    made = httpx.Client(transport=httpx.MockTransport(handler))
    http_client.install(made, recorder, **settings)
    return made


def sse(*events: dict[str, Any], done: bool = True) -> bytes:
    parts = [f"data: {json.dumps(event, ensure_ascii=False)}\n\n" for event in events]
    return ("".join(parts) + ("data: [DONE]\n\n" if done else "")).encode()


def delta(text: str, finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "tiny", "choices": [choice]}


STREAM = sse(delta(""), delta("CANARY grüße "), delta("🙂語"), delta("", "length"), {"choices": [], "usage": USAGE})


def streamed(raw: bytes, seed: int = 1, **headers: str) -> Handler:
    """A handler that answers with `raw`, cut anywhere."""
    dice = random.Random(seed)
    cuts = sorted(dice.sample(range(1, len(raw)), min(len(raw) - 1, 40)))
    chunks = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    return lambda _: httpx.Response(
        200, headers={"content-type": "text/event-stream; charset=utf-8", **headers}, stream=Chunks(chunks)
    )


def test_a_plain_answer_becomes_an_attempt_a_report_and_an_identifier(recorder: Recorder, tmp_path: Path) -> None:
    sent: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, json=BODY)

    with client(recorder, handler, context=Context(tenant="acme", task="chat")) as http:
        answer = http.post(URL, json=ASKED)
    assert answer.json() == BODY
    row = one(recorder, tmp_path)
    wanted = {
        "provider": "openai", "api": "openai_chat", "model_requested": "tiny", "model_served": "tiny-2026",
        "status": "succeeded", "http_status": 200, "finish_reason": "stop", "temperature": 0.25, "messages": 1,
        "task": "chat", "stream": False, "usage_expected": True, "attempt_number": 1, "first_token_us": None,
    }  # fmt: skip
    assert {name: row[name] for name in wanted} == wanted
    assert row["total_us"] > 0
    assert row["tenant"].startswith("t_")
    key = AttemptKey.from_hex(sent[0].headers["x-weighbridge-attempt"])
    assert (row["attempt_hi"], row["attempt_lo"]) == key
    report = one(recorder, tmp_path, "usage_report")
    assert leaves(report) == {f"usage.{name}": count for name, count in USAGE.items()}
    assert (report["part_kind"], report["ended"], report["model"]) == ("whole", "complete", "tiny-2026")
    identifier = one(recorder, tmp_path, "foreign_id")
    assert (identifier["kind"], identifier["value"]) == ("provider_response_id", "chatcmpl-7")
    assert (identifier["attempt_hi"], identifier["attempt_lo"]) == key
    assert no_text(tmp_path)


@pytest.mark.parametrize("seed", range(8))
def test_a_stream_passes_unchanged_and_its_last_chunk_is_the_report(
    recorder: Recorder, tmp_path: Path, seed: int
) -> None:
    asked = {**ASKED, "stream": True, "stream_options": {"include_usage": True}}
    with client(recorder, streamed(STREAM, seed)) as http, http.stream("POST", URL, json=asked) as answer:
        assert b"".join(answer.iter_raw()) == STREAM
    row = one(recorder, tmp_path)
    assert (row["status"], row["finish_reason"], row["stream"], row["usage_expected"]) == (
        "succeeded", "length", True, True,
    )  # fmt: skip
    assert 0 < row["first_token_us"] <= row["total_us"]
    report = one(recorder, tmp_path, "usage_report")
    assert leaves(report)["usage.completion_tokens"] == 4
    assert (report["part_kind"], report["ended"]) == ("final", "complete")
    assert no_text(tmp_path)


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_compressed_streams_are_read_through_a_decoder_of_their_own(
    recorder: Recorder, tmp_path: Path, encoding: str
) -> None:
    raw = gzip.compress(STREAM) if encoding == "gzip" else zlib.compress(STREAM)
    handler = streamed(raw, 2, **{"content-encoding": encoding})
    with client(recorder, handler) as http, http.stream("POST", URL, json={**ASKED, "stream": True}) as answer:
        assert b"".join(answer.iter_bytes()) == STREAM
    assert leaves(one(recorder, tmp_path, "usage_report"))["usage.prompt_tokens"] == 9


def test_a_damaged_encoding_is_the_hosts_error_and_leaves_a_record(recorder: Recorder, tmp_path: Path) -> None:
    handler = streamed(b"this is no gzip at all, none", 2, **{"content-encoding": "gzip"})
    with client(recorder, handler) as http, pytest.raises(httpx.DecodingError):
        http.post(URL, json={**ASKED, "stream": True})
    assert one(recorder, tmp_path)["http_status"] == 200
    assert [row["reason"] for row in rows(recorder, tmp_path, "gap")] == ["not_seen"]


def test_a_client_that_goes_away_leaves_an_aborted_attempt_without_usage(recorder: Recorder, tmp_path: Path) -> None:
    handler = streamed(STREAM, 3)
    with client(recorder, handler) as http, http.stream("POST", URL, json={**ASKED, "stream": True}) as answer:
        next(answer.iter_raw())
    row = one(recorder, tmp_path)
    assert (row["status"], row["finish_reason"]) == ("aborted", "abort")
    assert rows(recorder, tmp_path, "usage_report") == []


def test_a_stream_without_usage_is_recorded_as_one_that_has_none(recorder: Recorder, tmp_path: Path) -> None:
    raw = sse(delta("a"), delta("b", "stop"))
    with client(recorder, streamed(raw)) as http:
        http.post(URL, json={**ASKED, "stream": True})
    row = one(recorder, tmp_path)
    assert (row["status"], row["usage_expected"]) == ("succeeded", None)
    assert rows(recorder, tmp_path, "usage_report") == []


@pytest.mark.parametrize(
    ("error", "http", "status"),
    [
        (httpx.ConnectError("refused"), None, "failed"),
        (httpx.ReadTimeout("slow"), None, "failed"),
        (httpx.ReadError("reset"), 200, "failed"),
        (None, 503, "failed"),
        (None, 429, "rejected"),
    ],
)
def test_failures_are_attempts_without_usage(
    recorder: Recorder, tmp_path: Path, error: Exception | None, http: int | None, status: str
) -> None:
    def handler(_: httpx.Request) -> httpx.Response:
        if error is not None and http is None:
            raise error
        stream = Chunks([sse(delta("a"), done=False)], error)
        return httpx.Response(http or 200, headers={"content-type": "text/event-stream"}, stream=stream)

    with client(recorder, handler) as caller:
        if error is None:
            assert caller.post(URL, json=ASKED).status_code == http
        else:
            with pytest.raises(type(error)):
                caller.post(URL, json=ASKED)
    row = one(recorder, tmp_path)
    assert (row["status"], row["http_status"]) == (status, http)
    assert rows(recorder, tmp_path, "usage_report") == []


def test_the_retries_of_the_sdk_are_attempts_of_one_request(recorder: Recorder, tmp_path: Path) -> None:
    """The official SDK works unchanged on a client with the adapter, and its retries are told apart."""
    openai = pytest.importorskip("openai")
    answers = iter([httpx.Response(429, headers={"retry-after-ms": "1"}), httpx.Response(500), None])
    carried: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        carried.append(request.headers["x-weighbridge-attempt"])
        return next(answers, None) or httpx.Response(200, json=BODY)

    sdk = openai.OpenAI(api_key="none", base_url="http://api.openai.com/v1", http_client=client(recorder, handler))
    for _ in range(2):
        made = sdk.chat.completions.create(model="tiny", messages=[{"role": "user", "content": "CANARY"}])
        assert made.usage is not None
        assert made.usage.completion_tokens == 4
    found = sorted(rows(recorder, tmp_path, "attempt"), key=lambda row: carried.index(key_of(row)))
    assert [row["attempt_number"] for row in found] == [1, 2, 3, 1]
    assert [row["status"] for row in found] == ["rejected", "failed", "succeeded", "succeeded"]
    requests = [(row["request_hi"], row["request_lo"]) for row in found]
    assert len(set(requests[:3])) == 1
    assert requests[3] != requests[0]
    assert len(set(carried)) == 4


def test_the_header_of_the_sdks_alone_tells_a_retry(recorder: Recorder, tmp_path: Path) -> None:
    with client(recorder, lambda _: httpx.Response(200, json=BODY)) as http:
        for retry in ("0", "1", "2", "0"):
            http.post(URL, json=ASKED, headers={"x-stainless-retry-count": retry})
    found = rows(recorder, tmp_path, "attempt")
    assert [row["attempt_number"] for row in found] == [1, 2, 3, 1]
    first, second, third, fourth = ((row["request_hi"], row["request_lo"]) for row in found)
    assert first == second == third != fourth


def key_of(row: dict[str, Any]) -> str:
    return AttemptKey(row["attempt_hi"], row["attempt_lo"]).to_hex()


def test_the_sdk_reads_a_stream_and_closes_it_early(recorder: Recorder, tmp_path: Path) -> None:
    openai = pytest.importorskip("openai")
    sdk = openai.OpenAI(api_key="none", base_url="http://127.0.0.1/v1", http_client=client(recorder, streamed(STREAM)))
    whole = sdk.chat.completions.create(model="tiny", messages=[{"role": "user", "content": "x"}], stream=True)
    text = "".join(event.choices[0].delta.content or "" for event in whole if event.choices)
    assert text == "CANARY grüße 🙂語"
    with sdk.chat.completions.create(model="tiny", messages=[{"role": "user", "content": "x"}], stream=True) as cut:
        next(iter(cut))
    assert [row["status"] for row in rows(recorder, tmp_path, "attempt")] == ["succeeded", "aborted"]


def test_an_async_client_is_watched_and_a_cancelled_task_is_an_abort(recorder: Recorder, tmp_path: Path) -> None:
    class Slow(Chunks):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield sse(delta("a"), done=False)
            await asyncio.sleep(30)

    async def handler(request: httpx.Request) -> httpx.Response:
        headers = {"content-type": "text/event-stream"}
        slow = b'"slow"' in request.content
        return httpx.Response(200, headers=headers, stream=Slow([]) if slow else Chunks([STREAM[:99], STREAM[99:]]))

    async def main() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(handler)) as http:
            with http_client.install(http, recorder):
                answer = await http.post(URL, json={**ASKED, "stream": True})
                assert answer.content == STREAM
                task = asyncio.create_task(http.post(URL, json={**ASKED, "stream": True, "model": "slow"}))
                await asyncio.sleep(0.05)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task

    asyncio.run(main())
    found = {row["model_requested"]: row for row in rows(recorder, tmp_path, "attempt")}
    assert found["tiny"]["status"] == "succeeded"
    assert found["slow"]["status"] == "aborted"


def test_anthropic_parts_are_reports_of_their_own(recorder: Recorder, tmp_path: Path) -> None:
    opened = {"input_tokens": 25, "output_tokens": 1, "cache_read_input_tokens": 8}
    raw = sse(
        {"type": "message_start", "message": {"id": "msg_1", "model": "claude-x", "usage": opened}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "CANARY"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 15}},
        {"type": "message_stop"},
        done=False,
    )
    with client(recorder, streamed(raw)) as http:
        http.post("https://api.anthropic.com/v1/messages", json={**ASKED, "stream": True})
    assert one(recorder, tmp_path)["provider"] == "anthropic"
    reports = sorted(rows(recorder, tmp_path, "usage_report"), key=lambda row: int(row["part"]))
    assert [(row["part"], row["part_kind"], leaves(row)) for row in reports] == [
        (0, "start", {f"message.usage.{name}": count for name, count in opened.items()}),
        (1, "delta", {"usage.output_tokens": 15}),
    ]


def test_the_callers_own_attempt_id_is_taken_once(recorder: Recorder, tmp_path: Path) -> None:
    """A loop that repeats the call with the same header sends two attempts, and they must not share a key."""
    key = "0190000000007000800000000000002a"
    carried: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        carried.append(request.headers["x-weighbridge-attempt"])
        return httpx.Response(200, json=BODY)

    with client(recorder, handler) as http:
        for value in (key, key, "no id"):
            http.post(URL, json=ASKED, headers={"x-weighbridge-attempt": value, "x-weighbridge-request": key})
    assert carried[0] == key
    assert len(set(carried)) == 3
    found = rows(recorder, tmp_path, "attempt")
    assert [key_of(row) for row in found] == carried
    assert [row["attempt_number"] for row in found] == [1, 2, 1]
    assert {AttemptKey(row["request_hi"], row["request_lo"]).to_hex() for row in found} == {key}


def test_a_redirect_is_an_attempt_of_the_same_request(recorder: Recorder, tmp_path: Path) -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        if request.url.host == "api.openai.com":
            return httpx.Response(307, headers={"location": "http://other.example/v1/chat/completions"})
        return httpx.Response(200, json=BODY)

    with httpx.Client(transport=httpx.MockTransport(handler), follow_redirects=True) as http:
        http_client.install(http, recorder)
        http.post(URL, json=ASKED)
    found = rows(recorder, tmp_path, "attempt")
    assert [row["http_status"] for row in found] == [307, 200]
    assert [row["status"] for row in found] == ["rejected", "succeeded"]
    assert len({key_of(row) for row in found}) == 2
    assert len({row["request_lo"] for row in found}) == 1


def test_calls_inside_a_scope_belong_to_its_request_and_names_can_be_given(recorder: Recorder, tmp_path: Path) -> None:
    with (
        client(recorder, lambda _: httpx.Response(200, json=BODY)) as http,
        scope.request(recorder, Context(tenant="acme")) as request,
        scope.stage(Stage.MODEL_CALL) as stage,
        names(tenant="acme", task="summary", route="/v2/chat"),
    ):
        http.post(URL, json=ASKED)
    assert stage is not None
    row = one(recorder, tmp_path)
    assert (row["request_hi"], row["request_lo"], row["scope"]) == (*request.key, stage.number)
    assert (row["task"], row["route"]) == ("summary", "/v2/chat")
    assert {seen["tenant"] for seen in rows(recorder, tmp_path, "request_scope")} == {row["tenant"]}


def test_delivered_text_is_counted_off_the_path_and_dropped(recorder: Recorder, tmp_path: Path) -> None:
    seen: list[Delivered] = []

    def count(delivered: Delivered) -> Recounted:
        seen.append(delivered)
        return Recounted(
            input=11,
            template=2,
            special=1,
            output=len(delivered.text[0].split()),
            has_template=True,
            script=Script.LATIN,
        )

    with client(recorder, lambda _: httpx.Response(200, json=BODY), recounter=count) as http:
        http.post(URL, json=ASKED)
    row = one(recorder, tmp_path)
    assert seen[0].text == ("CANARY answer",)
    assert seen[0].asked == ASKED
    assert (row["input_recounted"], row["recount_template"], row["recount_special"], row["output_recounted"]) == (
        11, 2, 1, 2,
    )  # fmt: skip
    assert (row["recount_has_template"], row["recount_has_special"], row["script"]) == (True, False, "latin")
    assert no_text(tmp_path)


def test_a_recount_whose_script_no_reader_knows_is_a_damaged_record(recorder: Recorder, tmp_path: Path) -> None:
    """An earlier writer's -1, which knew no script, is not."""
    words = (Kind.RECOUNT, 1, 2, 1_700_000_000_000_000, -1, -1, -1, 5)
    for flags in (-1, len(SCRIPTS) << RECOUNT_SCRIPT_SHIFT, -1 << 40):
        recorder.put_slot(struct.pack(f"<9q{SLOT - 72}x", *words, flags))
    row = one(recorder, tmp_path)
    told = (row["script"], row["output_recounted"], row["recount_has_template"])
    assert told == (None, 5, None)
    (path,) = reader.journals(recorder.spool)
    assert reader.read_journal(path).damaged == 2


def test_install_leaves_other_calls_alone_and_remove_puts_back_what_was_there(
    recorder: Recorder, tmp_path: Path
) -> None:
    inner = httpx.MockTransport(lambda request: httpx.Response(200, json={"path": request.url.path}))
    with httpx.Client(transport=inner, mounts={"https://": inner}) as http:
        mounts = dict(http._mounts)
        installed = http_client.install(http, recorder)
        assert http.get("http://api.openai.com/v1/models").json() == {"path": "/v1/models"}
        http.post("https://api.openai.com/v1/embeddings", json={"model": "e", "input": ["a", "b"]})
        installed.remove()
        assert http._transport is inner
        assert http._mounts == mounts
        http.post(URL, json=ASKED)
    assert one(recorder, tmp_path)["api"] == "openai_embeddings"


def test_nothing_is_raised_into_the_host(recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever breaks inside, the answer arrives."""
    monkeypatch.setenv(RAISE_VARIABLE, "0")
    for place in ("begin", "bound"):
        with monkeypatch.context() as patch, client(recorder, lambda _: httpx.Response(200, json=BODY)) as http:

            def broken(*_: object, **__: object) -> None:
                raise RuntimeError("broken")

            patch.setattr(f"weighbridge.capture.wire.exchange.Exchanges.{place}", broken)
            assert http.post(URL, json=ASKED).json() == BODY
    for method in ("opened", "feed"):
        with monkeypatch.context() as patch, client(recorder, lambda _: httpx.Response(200, json=BODY)) as http:
            patch.setattr("weighbridge.capture.wire.answer.Answer.feed", broken)
            patch.setattr("weighbridge.capture.wire.answer.Answer.close", broken)
            assert http.post(URL, json=ASKED).json() == BODY, method
