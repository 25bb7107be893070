"""A chat server on loopback with faults built in. Every byte of a text is a token, every special token is one.

    <s><|im_start|>user\\nReply with the single word yes.<|im_end|>\\n<|im_start|>assistant\\n
    1 + 1 + 5 + 31 + 1 + 1 + 1 + 10 = 51 tokens

It counts by itself, with a pattern and the length of bytes: nothing of the product, and no tokenizer, is asked.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import floor
from typing import Any

from tests.pipeline.probe.other_apis import BODIES, STREAMS, as_chat

SPECIAL = re.compile(r"<s>|<\|im_start\|>|<\|im_end\|>")
TEMPLATE = (
    "<s>{% if tools %}<|im_start|>tools\n{{ tools | tojson }}<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
MODEL = "scale-1"
BLOCK = 16  # tokens of the cache


def tokens(text: str) -> int:
    """Bytes, special tokens one each."""
    found = len(SPECIAL.findall(text))
    return found + len(SPECIAL.sub("", text).encode())


@dataclass
class Faults:
    """What is wrong with the server; by default nothing is."""

    template: bool = True  # counted with it
    begin: int = 1  # begin tokens of a prompt
    history: int = 1  # how often earlier turns are sent
    resent: bool = False  # the prompts of earlier turns are added up
    system: int = 1  # how often the system message is rendered
    tools: bool = True  # counted
    special_as_text: bool = False
    summed: bool = False  # running totals of streams are added up
    silent: bool = False  # streams carry no usage
    mute: bool = False  # nothing carries usage
    end_token: int = 0  # of each answer in usage
    engine_end_token: int = 0  # of each answer in the engine's counter
    cache: str = "in"  # out, twice
    reasoning: str = "in"  # out
    hidden: bool = False  # the text of reasoning is not delivered
    choices: bool = False  # the prompt is counted once for each
    engine_choices: bool = False  # the engine works on it once for each
    one_answer: bool = False  # n is ignored
    factor: Fraction = Fraction(1)
    per_message: int = 0
    prefix: int = 0  # tokens put before every prompt
    chinese: int = 0  # tokens more for each Chinese letter
    counter: int = 0  # the counter of prompts is off by so many a request
    over: int = 0  # tokens more than the limit where an answer was cut off
    stop_counted: int = 0  # tokens of a stop string in usage
    others: int = 0  # requests of others, still to be served beside ours
    page: str | None = None  # in place of the counters
    refuse: dict[str, int] = field(default_factory=dict)  # key of a request -> status
    status: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)  # answers given first, each once


@dataclass
class Engine:
    """Counters, as vLLM shows them."""

    prompt: int = 0
    generated: int = 0
    finished: int = 0
    seen: set[str] = field(default_factory=set)
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def page(self) -> str:
        """The text of /metrics."""
        return "".join(
            f"# TYPE vllm:{name} counter\nvllm:{name}{{{label}}} {value}.0\n"
            for name, label, value in (
                ("prompt_tokens_total", f'model_name="{MODEL}"', self.prompt),
                ("generation_tokens_total", f'model_name="{MODEL}"', self.generated),
                ("request_success_total", f'finished_reason="stop",model_name="{MODEL}"', self.finished),
            )
        )


class Scale:
    """The server."""

    def __init__(self) -> None:
        self.faults = Faults()
        self.engine = Engine()
        self.port = 0

    def with_faults(self, **faults: Any) -> Scale:
        """Begin anew, with these faults."""
        self.faults, self.engine = Faults(**faults), Engine()
        return self

    @property
    def address(self) -> str:
        """Its base address."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def metrics(self) -> str:
        """Where its counters are."""
        return f"http://127.0.0.1:{self.port}/metrics"

    # -- counting, by hand ---------------------------------------------------------------------------------------------

    def prompt(self, asked: dict[str, Any]) -> int:
        """The tokens of a prompt as this server counts them."""
        faults = self.faults
        if "prompt" in asked:
            return faults.begin + self._special(asked["prompt"])
        messages = asked["messages"]
        system = [m for m in messages if m["role"] == "system"]
        turns = [m for m in messages if m["role"] != "system"]
        rendered = [*system * faults.system, *turns[:-1] * faults.history, turns[-1]]
        text = "".join(m["content"] for m in rendered)
        if not faults.template:
            return self._special(text)
        frames = sum(1 + tokens(m["role"] + "\n") + 1 + 1 for m in rendered)
        count = faults.begin + faults.prefix + frames + self._special(text) + 1 + tokens("assistant\n")
        count += faults.per_message * len(rendered)
        if "tools" in asked and faults.tools:
            count += 1 + tokens("tools\n" + json.dumps(asked["tools"], ensure_ascii=False)) + 1 + 1
        if faults.resent:
            for at, turn in enumerate(turns[:-1]):
                if turn["role"] == "user":
                    self.faults.resent = False
                    count += self.prompt({**asked, "messages": [*system, *turns[: at + 1]]})
                    self.faults.resent = True
        return count

    def _special(self, text: str) -> int:
        count = len(text.encode()) if self.faults.special_as_text else tokens(text)
        return count + self.faults.chinese * sum("一" <= letter <= "鿿" for letter in text)

    # -- answering -----------------------------------------------------------------------------------------------------

    def answer(self, asked: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any] | None, str]:
        """Choices, usage, and the text of the reasoning."""
        faults, engine = self.faults, self.engine
        limit = int(asked.get("max_tokens") or asked["max_completion_tokens"])
        choices = 1 if faults.one_answer else int(asked.get("n", 1))
        thought = "hmm" if "reasoning_effort" in asked else ""
        texts = ["three, " if "stop" in asked else "yes", "no"][:choices]
        cut = [(text[: limit - len(thought)], len(thought + text) > limit) for text in texts]
        ended = sum(not short for _, short in cut)
        trimmed = 4 if "stop" in asked else 0
        delivered = sum(len(text) for text, _ in cut) + len(thought)
        prompt = self.prompt(asked)
        computed = prompt * (choices if faults.engine_choices else 1)
        engine.prompt += computed + faults.counter
        engine.generated += delivered + trimmed + faults.engine_end_token * ended
        engine.finished += choices
        if faults.others:
            faults.others -= 1
            engine.prompt, engine.generated, engine.finished = (
                engine.prompt + 9,
                engine.generated + 5,
                engine.finished + 2,
            )
        told = json.dumps([asked.get("messages"), asked.get("tools"), asked.get("prompt")])
        cached = prompt // BLOCK * BLOCK if told in engine.seen else 0
        engine.seen.add(told)
        shown = prompt * (choices if faults.choices else 1)
        shown = {"in": shown, "out": shown - cached, "twice": shown + cached}[faults.cache]
        output = (
            delivered + faults.end_token * ended + faults.over * (choices - ended) + min(trimmed, faults.stop_counted)
        )
        output -= len(thought) if faults.reasoning == "out" else 0
        shown, output = floor(shown * faults.factor), floor(output * faults.factor)
        usage: dict[str, Any] = {"prompt_tokens": shown, "completion_tokens": output, "total_tokens": shown + output}
        usage["prompt_tokens_details"] = {"cached_tokens": cached}
        if thought:
            usage["completion_tokens_details"] = {"reasoning_tokens": len(thought)}
        made = [
            {"index": at, "text": text, "finish_reason": "length" if short else "stop"}
            for at, (text, short) in enumerate(cut)
        ]
        return made, None if faults.mute else usage, "" if faults.hidden else thought


def _body(scale: Scale, asked: dict[str, Any]) -> dict[str, Any]:
    choices, usage, thought = scale.answer(asked)
    shown = [
        {
            "index": one["index"],
            "message": {"role": "assistant", "content": one["text"], "reasoning_content": thought or None},
            "finish_reason": one["finish_reason"],
        }
        for one in choices
    ]
    return {"object": "chat.completion", "model": MODEL, "choices": shown} | ({"usage": usage} if usage else {})


def _events(scale: Scale, asked: dict[str, Any]) -> Iterator[str]:
    """One letter an event, which is one token."""
    choices, usage, _ = scale.answer(asked)
    (one,) = choices
    for letter in one["text"]:
        yield json.dumps(
            {"choices": [{"index": 0, "delta": {"content": letter}, "text": letter, "finish_reason": None}]}
        )
    yield json.dumps({"choices": [{"index": 0, "delta": {}, "finish_reason": one["finish_reason"]}]})
    wanted = (asked.get("stream_options") or {}).get("include_usage") and not scale.faults.silent
    if wanted and usage is not None:
        if scale.faults.summed:  # 1 + 2 + ... + n, and the prompt n times
            times = usage["completion_tokens"]
            usage["prompt_tokens"] *= times
            usage["completion_tokens"] = times * (times + 1) // 2
            usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]
        yield json.dumps({"choices": [], "usage": usage})
    yield "[DONE]"


def _handler(scale: Scale) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            scale.engine.headers.append({name.lower(): value for name, value in self.headers.items()})
            page = scale.engine.page() if scale.faults.page is None else scale.faults.page
            self._send(200 if self.path == "/metrics" else 404, page.encode(), "text/plain")

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            scale.engine.requests.append(asked)
            asked = as_chat(self.path, asked)
            scale.engine.headers.append({name.lower(): value for name, value in self.headers.items()})
            if scale.faults.status:
                status, headers, raw = scale.faults.status.pop(0)
                self._send(status, raw, "application/json", headers)
                return
            for key, status in scale.faults.refuse.items():
                if key in asked or any(m["content"] == key for m in asked.get("messages", ())):
                    self._send(status, b'{"error": {"message": "SECRET WORDS"}}', "application/json")
                    return
            if asked.get("stream"):
                stream = STREAMS.get(self.path)
                events = _events(scale, asked) if stream is None else stream(scale.answer(asked))
                text = "".join(f"data: {event}\n\n" for event in events)
                self._send(200, text.encode(), "text/event-stream")
                return
            body = BODIES.get(self.path)
            told = _body(scale, asked) if body is None else body(scale.answer(asked))
            self._send(200, json.dumps(told).encode(), "application/json")

        def _send(self, status: int, raw: bytes, kind: str, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {"Content-Type": kind, "Content-Length": str(len(raw)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: Any) -> None:
            """Nothing is printed."""

    return Handler


@contextmanager
def serving(scale: Scale) -> Iterator[Scale]:
    """The server, from its start to its end."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(scale))
    server.daemon_threads = True
    scale.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield scale
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
