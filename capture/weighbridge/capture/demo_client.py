"""A client of the demonstration's servers, watched through httpx: the same few calls, each with its own peculiarity.

    python -m weighbridge.capture.demo_client SPOOL KEY_FILE ANSWERS PORT [SERVE_PORT]

PORT is that of `demo_server`, SERVE_PORT that of `transformers serve`. One JSON line per attempt is printed: which
server, what kind of call, and its id. A few calls are made without the agent; what a log of one's own would keep of
their answers goes to the file ANSWERS, and they are known by the answer's id alone.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from weighbridge.capture import scope
from weighbridge.capture.adapters import http_client
from weighbridge.capture.context import Context
from weighbridge.capture.demo_model import END, MODEL, SEED, tiny_tokenizer
from weighbridge.capture.recorder import Recorder
from weighbridge.capture.wire.apis import ATTEMPT_HEADER
from weighbridge.capture.wire.counting import Counting
from weighbridge.recount.transformers import TransformersRecounter
from weighbridge.schemas.enumerations import Stage
from weighbridge.schemas.identity import new_attempt_id

QUESTIONS: Final = (
    "what was delivered?",
    "compare the note with the scale, and say what the difference is and where it came from",
    "a lorry drives on",
)
OWN: Final = "own server"
SERVE: Final = "transformers serve"
LENGTH: Final = 24
CHOICES: Final = 3
_LEFT_AFTER: Final = 6  # pieces of a stream
# `transformers serve` has no lower limit of length; with these the end token is drawn never, or after a few words.
_ENDLESS: Final[dict[str, Any]] = {"logit_bias": {str(END): -100.0}, "seed": SEED}
_ENDING: Final[dict[str, Any]] = {"logit_bias": {str(END): 2.0}, "seed": SEED}
_WITH_USAGE: Final[dict[str, Any]] = {"stream": True, "stream_options": {"include_usage": True}}


class Caller:
    """Sends the calls to one server and remembers which attempt was of which kind."""

    def __init__(self, server: str, port: int, http: Any, bare: Any) -> None:
        """`http` is watched, `bare` is not."""
        self._server = server
        self._http = http
        self._bare = bare
        self._url = f"http://127.0.0.1:{port}/v1/chat/completions"
        self.sent: list[dict[str, str]] = []
        self.answers: list[dict[str, object]] = []

    def call(self, kind: str, question: str, *, leave_after: int | None = None, **asked: Any) -> str:
        """One call; the text of its answer. `leave_after` so many pieces of a stream."""
        answer = self._send(kind, self._request(question, asked, key=new_attempt_id().to_hex()))
        try:
            if leave_after is None:
                answer.read()
                return "" if asked.get("stream") else _text(answer)
            pieces = answer.iter_lines()
            for _ in range(2 * leave_after):
                next(pieces)
            return ""
        finally:
            answer.close()

    def call_again(self, kind: str, question: str, *, refuse: int, **asked: Any) -> None:
        """A call that is refused with an HTTP status, and the same call again: two attempts of one request."""
        metadata = {"refuse": str(refuse), "ticket": new_attempt_id().to_hex()}
        request = self._request(question, {**asked, "metadata": metadata}, key=new_attempt_id().to_hex())
        for each in (kind, "retry"):
            self._send(each, request).read()

    def call_unwatched(self, kind: str, question: str, **asked: Any) -> None:
        """A call that no agent sees and that carries no id; its answer is kept, without its text."""
        answer = self._bare.send(self._request(question, asked)).json()
        for choice in answer["choices"]:
            del choice["message"]
        self.sent.append({"server": self._server, "kind": kind, "response": answer["id"]})
        known = {"provider": "openai", "api_flavor": "openai_chat", "model": MODEL, "status": 200, "stream": False}
        self.answers.append({**known, "response": answer})

    def _request(self, question: str, asked: dict[str, Any], *, key: str | None = None) -> Any:
        body = {"model": MODEL, "messages": [{"role": "user", "content": question}], "max_tokens": LENGTH, **asked}
        headers = {} if key is None else {ATTEMPT_HEADER: key}
        return self._bare.build_request("POST", self._url, json=body, headers=headers)

    def _send(self, kind: str, request: Any) -> Any:
        answer = self._http.send(request, stream=True)
        self.sent.append({"server": self._server, "kind": kind, "attempt": request.headers[ATTEMPT_HEADER]})
        return answer


def _text(answer: Any) -> str:
    return str(answer.json()["choices"][0]["message"]["content"])


def _stop(text: str) -> str:
    """A word of an answer that does not come up before its middle.

    The model answers a question alike every time, so as a stop string this will occur.
    """
    words = text.split()
    late = [word for at, word in enumerate(words) if at >= len(words) // 2 and text.find(f" {word}") >= len(text) // 3]
    return f" {late[0] if late else words[-1]}"


def call_serve(caller: Caller) -> None:
    """What `transformers serve` does: plain answers and streams; it leaves stop strings in, and end tokens counted."""
    for question in QUESTIONS:
        text = caller.call("plain", question, **_ENDLESS)
        caller.call("stop string", question, stop=_stop(text), **_ENDLESS)
        caller.call("end token", question, max_tokens=400, **_ENDING)
        caller.call("stream", question, stream=True, **_ENDLESS)
        asked = {"max_tokens": 1500, **_WITH_USAGE, **_ENDLESS}
        caller.call("aborted stream", question, leave_after=_LEFT_AFTER, **asked)
        caller.call_unwatched("known by its answer", question, **_ENDLESS)


def call_own(caller: Caller, recorder: Recorder, context: Context, *, alone: bool) -> None:
    """What the small server does, and where it is `alone`, what the other would have done."""
    for question in QUESTIONS:
        text = caller.call("plain", question)
        caller.call("stop string", question, stop=_stop(text))
        caller.call("stream without usage", question, stream=True)
        caller.call("aborted stream", question, leave_after=_LEFT_AFTER, max_tokens=400, **_WITH_USAGE)
        caller.call("several choices", question, n=CHOICES)
        if alone:
            caller.call("stream", question, **_WITH_USAGE)
            caller.call_unwatched("known by its answer", question)
    for kind, question, status in (("refused", QUESTIONS[0], 429), ("failed", QUESTIONS[1], 500)):
        caller.call_again(kind, question, refuse=status)
    with ThreadPoolExecutor(len(QUESTIONS)) as pool, scope.request(recorder, context), scope.stage(Stage.MODEL_CALL):
        send = scope.carry(caller.call)
        metadata = {"batch": str(len(QUESTIONS))}
        list(pool.map(lambda question: send("padded batch", question, metadata=metadata), QUESTIONS))


def main(spool: Path, key: bytes, answers: Path, port: int, serve_port: int | None) -> None:
    """Run the calls and say which was which."""
    import httpx  # noqa: PLC0415 - frameworks are imported where they are used

    recorder = Recorder.start(spool, installation="demo-client", key=key)
    counter = TransformersRecounter(tiny_tokenizer())
    context = Context(
        provider="openai",
        tenant="demo-tenant",
        task="demonstration",
        tokenizer=counter.tokenizer,
        template=counter.template,
    )
    with httpx.Client(timeout=60) as http, httpx.Client(timeout=60) as bare:
        http_client.install(http, recorder, context=context, recounter=Counting({MODEL: counter}))
        callers = []
        if serve_port is not None:
            callers.append(Caller(SERVE, serve_port, http, bare))
            call_serve(callers[0])
        callers.append(Caller(OWN, port, http, bare))
        call_own(callers[-1], recorder, context, alone=serve_port is None)
    recorder.close()
    answers.write_text("".join(json.dumps(line) + "\n" for caller in callers for line in caller.answers), "utf-8")
    for line in (line for caller in callers for line in caller.sent):
        sys.stdout.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(
        Path(sys.argv[1]),
        bytes.fromhex(Path(sys.argv[2]).read_text(encoding="ascii")),
        Path(sys.argv[3]),
        int(sys.argv[4]),
        int(sys.argv[5]) if len(sys.argv) > 5 else None,
    )
