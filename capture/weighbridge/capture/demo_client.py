"""A client of the demonstration's server, watched through httpx: the same few calls, each with a difference to explain.

python -m weighbridge.capture.demo_client SPOOL KEY_FILE PORT     prints one JSON line per call: its kind, its id
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
from weighbridge.capture.demo_server import MODEL
from weighbridge.capture.recorder import Recorder
from weighbridge.capture.wire.apis import ATTEMPT_HEADER
from weighbridge.schemas.enumerations import Stage
from weighbridge.schemas.identity import new_attempt_id

QUESTIONS: Final = (
    "what was delivered?",
    "compare the note with the scale, and say what the difference is and where it came from",
    "a lorry drives on",
)


class Caller:
    """Sends the calls and remembers which attempt was of which kind."""

    def __init__(self, http: Any, port: int) -> None:
        self._http = http
        self._url = f"http://127.0.0.1:{port}/v1/chat/completions"
        self.sent: list[dict[str, str]] = []

    def call(self, kind: str, question: str, *, leave_after: int | None = None, **asked: Any) -> str:
        """One call; the text of its answer. `leave_after` so many pieces of a stream."""
        key = new_attempt_id().to_hex()
        self.sent.append({"kind": kind, "attempt": key})
        body = {"model": MODEL, "messages": [{"role": "user", "content": question}], **asked}
        request = self._http.build_request("POST", self._url, json=body, headers={ATTEMPT_HEADER: key})
        answer = self._http.send(request, stream=True)
        try:
            if leave_after is None:
                answer.read()
                return "" if asked.get("stream") else str(answer.json()["choices"][0]["message"]["content"])
            pieces = answer.iter_lines()
            for _ in range(2 * leave_after):
                next(pieces)
            return ""
        finally:
            answer.close()


def run(caller: Caller, recorder: Recorder, context: Context) -> None:
    """All calls: plain ones, a pipeline of stages, and each of the differences."""
    for question in QUESTIONS:
        text = caller.call("plain", question, max_tokens=24)
        # The model always answers a question alike, so a piece of its answer is a stop string that will occur.
        caller.call("stop string", question, max_tokens=24, stop=text[len(text) // 2 : len(text) // 2 + 2])
        caller.call("stream", question, max_tokens=24, stream=True, stream_options={"include_usage": True})
        caller.call("stream without usage", question, max_tokens=24, stream=True)
        asked = {"max_tokens": 400, "stream": True, "stream_options": {"include_usage": True}}
        caller.call("aborted stream", question, leave_after=6, **asked)
    with ThreadPoolExecutor(len(QUESTIONS)) as pool, scope.request(recorder, context), scope.stage(Stage.MODEL_CALL):
        send = scope.carry(caller.call)
        metadata = {"batch": str(len(QUESTIONS))}
        list(pool.map(lambda question: send("padded batch", question, max_tokens=24, metadata=metadata), QUESTIONS))


def main(spool: Path, key: bytes, port: int) -> None:
    """Run the calls and say which was which."""
    import httpx  # noqa: PLC0415 - frameworks are imported where they are used

    recorder = Recorder.start(spool, installation="demo-client", key=key)
    context = Context(provider="openai", tenant="demo-tenant", task="demonstration")
    with httpx.Client(timeout=60) as http:
        http_client.install(http, recorder, context=context)
        caller = Caller(http, port)
        run(caller, recorder, context)
    recorder.close()
    for line in caller.sent:
        sys.stdout.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), bytes.fromhex(Path(sys.argv[2]).read_text(encoding="ascii")), int(sys.argv[3]))
