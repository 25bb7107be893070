"""What is read off the wire: events cut anywhere, bodies of any length, usage of every API, and no text."""

from __future__ import annotations

import json
import random
import tracemalloc
from collections.abc import Iterator

import pytest

from weighbridge.capture.wire.answer import Answer
from weighbridge.capture.wire.apis import APIS, api_of, provider_of
from weighbridge.capture.wire.call import call_of
from weighbridge.capture.wire.recounts import texts
from weighbridge.capture.wire.sieve import LONG, PLAIN, Sieve
from weighbridge.capture.wire.sse import EventStream
from weighbridge.schemas.enumerations import Ended, FinishReason, ReportPart

CHAT, COMPLETIONS, RESPONSES, EMBEDDINGS, MESSAGES, GEMINI = APIS


def pieces(raw: bytes, seed: int, most: int) -> Iterator[bytes]:
    """`raw` in random pieces of 1 to `most` bytes."""
    dice = random.Random(seed)
    at = 0
    while at < len(raw):
        size = dice.randint(1, most)
        yield raw[at : at + size]
        at += size


def stream(*events: object, newline: str = "\n", done: bool = True) -> bytes:
    """Events as they stand in a body."""
    blocks = [f"data: {json.dumps(event, ensure_ascii=False)}{newline}{newline}" for event in events]
    if done:
        blocks.append(f"data: [DONE]{newline}{newline}")
    return "".join(blocks).encode()


def chunk(text: str, finish: str | None = None, **more: object) -> dict[str, object]:
    """One event of a chat stream."""
    return {
        "id": "chatcmpl-1",
        "model": "tiny",
        "usage": None,
        "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}],
        **more,
    }


USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("most", [1, 3, 50, 10_000])
def test_events_come_out_the_same_wherever_the_bytes_are_cut(newline: str, most: int) -> None:
    """Inside a line, an event, a character of several bytes, or between a carriage return and its newline."""
    raw = f": ping{newline}{newline}event: a{newline}data: {{{newline}data: }}{newline}{newline}".encode() + stream(
        chunk('grüße 🙂 \\ " 語'), newline=newline
    )
    for seed in range(20):
        seen: list[bytes] = []
        events = EventStream(seen.append)
        for piece in pieces(raw, seed, most):
            events.feed(piece)
        events.close()
        assert seen[0] == b"{\n}"
        assert json.loads(seen[1])["choices"][0]["delta"]["content"] == 'grüße 🙂 \\ " 語'
        assert seen[2:] == [b"[DONE]"]


@pytest.mark.parametrize("most", [1, 7, 5_000])
def test_the_sieve_drops_long_strings_only_and_what_is_left_parses_the_same(most: int) -> None:
    """Escapes, quotes and strings just at the limit included."""
    body = {
        "a": "x" * LONG,
        "b": "y" * (LONG + 1),
        "c": '\\"' * PLAIN,
        "d": 'short \\" \\\\',
        "usage": {"prompt_tokens": 12, "details": [1, 2.5, None, True]},
        "e": "\\" * 5,
    }
    raw = json.dumps(body).encode()
    sieve = Sieve()
    for piece in pieces(raw, 3, most):
        sieve.feed(piece)
    assert json.loads(sieve.take()) == {**body, "b": "", "c": ""}
    sieve.feed(b"[1]")
    assert sieve.take() == b"[1]"


def test_ten_megabytes_are_read_in_little_memory() -> None:
    """As one body, as one event, and as the closing event of a Responses stream that repeats the whole answer."""
    text = "so much \\n text " * 650_000
    body = json.dumps(
        {"id": "r1", "choices": [{"finish_reason": "stop", "message": {"content": text}}], "usage": USAGE}
    )
    whole = json.dumps(
        {
            "type": "response.completed",
            "response": {"object": "response", "status": "completed", "output": [{"text": text}], "usage": USAGE},
        }
    )
    for api, raw, streamed in ((CHAT, body.encode(), False), (RESPONSES, f"data: {whole}\n\n".encode(), True)):
        assert len(raw) > 10_000_000
        tracemalloc.start()
        answer = Answer(api, streamed=streamed)
        for at in range(0, len(raw), 65_536):
            answer.feed(raw[at : at + 65_536])
        answer.close(whole=True)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert answer.parts[0].usage == USAGE
        assert answer.finish is FinishReason.STOP
        assert answer.ended is Ended.COMPLETE
        assert peak < 2_000_000


def test_a_chat_stream_tells_usage_finish_and_its_end() -> None:
    answer = Answer(CHAT, streamed=True)
    answer.feed(stream(chunk(""), chunk("Hi"), chunk("", "length"), {"choices": [], "usage": USAGE}))
    answer.close(whole=True)
    assert [(part.kind, part.root, part.usage) for part in answer.parts] == [(ReportPart.FINAL, "usage", USAGE)]
    assert (answer.finish, answer.ended, answer.identifier, answer.model) == (
        FinishReason.LENGTH,
        Ended.COMPLETE,
        "chatcmpl-1",
        "tiny",
    )
    assert answer.began


def test_a_running_total_keeps_its_last_report() -> None:
    answer = Answer(CHAT, streamed=True)
    for count in range(1, 100):
        answer.feed(stream(chunk("x", usage={**USAGE, "completion_tokens": count}), done=False))
    answer.close(whole=False)
    assert [part.usage for part in answer.parts] == [{**USAGE, "completion_tokens": 99}]
    assert answer.ended is Ended.CUT


def test_an_anthropic_stream_has_a_part_for_its_start_and_for_each_revision() -> None:
    answer = Answer(MESSAGES, streamed=True)
    opened = {"input_tokens": 25, "output_tokens": 1}
    answer.feed(
        stream(
            {"type": "message_start", "message": {"id": "msg_1", "model": "claude-x", "usage": opened}},
            {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "usage: none"}},
            {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 15}},
            {"type": "message_stop"},
            done=False,
        )
    )
    answer.close(whole=True)
    assert [(part.kind, part.root, part.usage) for part in answer.parts] == [
        (ReportPart.START, "message.usage", opened),
        (ReportPart.DELTA, "usage", {"output_tokens": 15}),
    ]
    assert (answer.finish, answer.ended, answer.identifier) == (FinishReason.LENGTH, Ended.COMPLETE, "msg_1")


def test_a_stream_that_lacks_its_closing_event_is_cut() -> None:
    answer = Answer(MESSAGES, streamed=True)
    answer.feed(stream({"type": "message_start", "message": {"usage": {"input_tokens": 5}}}, done=False))
    answer.close(whole=True)
    assert answer.ended is Ended.CUT


def test_an_error_event_is_an_error_and_not_a_stop() -> None:
    answer = Answer(CHAT, streamed=True)
    answer.feed(stream(chunk("a"), {"error": {"message": "boom"}}))
    answer.close(whole=True)
    assert answer.ended is Ended.ERROR


def test_gemini_answers_are_read_as_body_and_as_list() -> None:
    one = {
        "responseId": "g1",
        "modelVersion": "gemini-x",
        "candidates": [{"finishReason": "MAX_TOKENS"}],
        "usageMetadata": {"promptTokenCount": 4, "totalTokenCount": 9},
    }
    for body in (one, [{"candidates": [{}]}, one]):
        answer = Answer(GEMINI, streamed=False)
        answer.feed(json.dumps(body).encode())
        answer.close(whole=True)
        assert [(part.root, part.usage) for part in answer.parts] == [("usageMetadata", one["usageMetadata"])]
        assert (answer.finish, answer.model, answer.identifier) == (FinishReason.LENGTH, "gemini-x", "g1")


def test_a_body_that_is_no_json_is_unread_and_one_cut_short_is_cut() -> None:
    answer = Answer(CHAT, streamed=False)
    answer.feed(b"<html>")
    answer.close(whole=True)
    assert answer.unread
    assert answer.ended is Ended.UNKNOWN
    answer = Answer(CHAT, streamed=False)
    answer.feed(b'{"usage": ')
    answer.close(whole=False)
    assert answer.ended is Ended.CUT


def test_apis_and_hosts_are_told_by_path_and_table() -> None:
    paths = {
        "/v1/chat/completions": "openai_chat",
        "/openai/deployments/d/chat/completions": "openai_chat",
        "/v1/completions": "openai_completions",
        "/v1/responses": "openai_responses",
        "/v1/messages": "anthropic_messages",
        "/v1beta/models/gemini-x:streamGenerateContent": "gemini_generate_content",
        "/v1/messages/count_tokens": None,
        "/v1/models": None,
    }
    assert {path: getattr(api_of(path), "name", None) for path in paths} == paths
    assert provider_of("api.openai.com", None, {}) == "openai"
    assert provider_of("acme.openai.azure.com", 443, {}) == "azure"
    assert provider_of("evil-openai.azure.com.example", None, {}) is None
    assert provider_of("127.0.0.1", 8000, {"127.0.0.1:8000": "own"}) == "own"


def test_a_call_becomes_numbers() -> None:
    body = {
        "model": "gpt-x",
        "messages": [{"role": "user", "content": "z" * 100_000}] * 3,
        "max_completion_tokens": 50,
        "temperature": 0.5,
        "top_p": 1,
        "n": 2,
        "stop": ["a", "b"],
        "tools": [{}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    call = call_of(CHAT, "/v1/chat/completions", json.dumps(body).encode())
    assert (call.model, call.stream, call.usage_expected) == ("gpt-x", True, True)
    assert call.parameters.entry() == {
        "max_tokens": 50, "temperature": 0.5, "top_p": 1.0, "n": 2, "stop_strings": 2, "messages": 3, "tools": 1,
    }  # fmt: skip
    del body["stream_options"]
    assert call_of(CHAT, "/x", json.dumps(body).encode()).usage_expected is None
    assert call_of(MESSAGES, "/x", json.dumps(body).encode()).usage_expected is True
    assert call_of(GEMINI, "/v1/models/gemini-x:generateContent", b"{}").model == "gemini-x"
    assert call_of(CHAT, "/x", b'{"model": "/srv/secret/model.gguf", "max_tokens": NaN, "top_k": true}').model is None
    assert call_of(CHAT, "/x", b"no json").parameters.entry() == {}


def test_the_text_of_every_choice_is_put_together_for_a_recount() -> None:
    def event(index: int, text: str) -> bytes:
        return json.dumps({"choices": [{"index": index, "delta": {"content": text}}]}).encode()

    assert list(texts([event(1, "b"), event(0, "a"), event(1, "c")], streamed=True)) == ["a", "bc"]
    body = json.dumps({"content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]}).encode()
    assert list(texts([body[:9], body[9:]], streamed=False)) == ["xy"]
