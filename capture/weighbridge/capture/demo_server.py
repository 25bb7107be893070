"""A small chat server around `generate()` of the tiny model, watched from both ends. For demonstrations.

    python -m weighbridge.capture.demo_server SPOOL KEY_FILE      prints a JSON line: its port; SIGTERM ends it

It speaks OpenAI chat completions on loopback and does what `transformers serve` does not: it cuts stop strings off,
sends usage in a stream only on request, gives several choices, answers calls together in a padded batch, and refuses
or fails a call once. As servers do, it reports the tokens that are left after a stop string was cut off, says nothing
to a client that has gone, and in a batch reports, as naive ones do, the width of the padded tensor.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from weighbridge.capture.adapters import transformers as engine
from weighbridge.capture.adapters.asgi import CaptureMiddleware
from weighbridge.capture.context import Context
from weighbridge.capture.demo_model import MODEL, SEED, tiny_model, tiny_tokenizer
from weighbridge.capture.recorder import Recorder
from weighbridge.capture.wire.carried import Answering, answering
from weighbridge.schemas.identity import new_attempt_id


class Engine:
    """The model behind the server. One call at a time."""

    def __init__(self) -> None:
        self.tokenizer = tiny_tokenizer()
        self.model = tiny_model(self.tokenizer)
        self._lock = threading.Lock()

    def prompts(self, chats: list[list[dict[str, str]]]) -> Any:
        """Token ids and attention mask of some chats, padded to the longest."""
        texts = [self.tokenizer.apply_chat_template(c, tokenize=False, add_generation_prompt=True) for c in chats]
        return self.tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False)

    def generate(self, given: Any, states: list[Answering], most: int, **more: Any) -> Any:
        """The ids of the answers, without the prompts. The same prompt is always answered alike."""
        import torch  # noqa: PLC0415 - frameworks are imported where they are used

        keys = [state.key for state in states]
        with self._lock, torch.inference_mode(), engine.attempt_keys(*keys):
            torch.manual_seed(SEED)
            out = self.model.generate(
                input_ids=given["input_ids"], attention_mask=given["attention_mask"], max_new_tokens=most,
                min_new_tokens=most, **more,
            )  # fmt: skip
        return out[:, given["input_ids"].shape[1] :]

    def text(self, ids: Any) -> str:
        """The text of some ids, special tokens left out."""
        return str(self.tokenizer.decode(ids, skip_special_tokens=True))

    def pieces(self, ids: list[int]) -> Iterator[str]:
        """The text token by token: what each one adds, and nothing while a character is still incomplete.

        `ids` grows between two pieces. No token is decoded alone: one byte of a character has no text.
        """
        shown = 0
        while True:
            text = self.text(ids)
            piece = "" if text.endswith("\ufffd") else text[shown:]
            shown += len(piece)
            yield piece

    def before(self, ids: list[int], stop: str) -> int:
        """How many of the ids stand whole before the stop string; all of them where it does not occur."""
        at = self.text(ids).find(stop)
        if at < 0:
            return len(ids)
        return max(count for count in range(len(ids) + 1) if len(self.text(ids[:count])) <= at)


class Streamer:
    """What `generate()` tells of a stream while it runs; stops the engine once the client has gone."""

    def __init__(self) -> None:
        self.tokens: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self.gone = False
        self._prompt = True

    def put(self, ids: Any) -> None:
        """The prompt first, then one token after the other."""
        if not self._prompt:
            for token in ids.flatten().tolist():
                self.tokens.put(token)
            time.sleep(0.004)  # a tiny model would be done before anybody could go away
        self._prompt = False

    def end(self) -> None:
        """The engine is done."""
        self.tokens.put(None)

    def __call__(self, ids: Any, _: Any, **__: Any) -> Any:
        """A stopping criterion: true for every row once nobody listens."""
        import torch  # noqa: PLC0415 - as above

        return torch.full((ids.shape[0],), self.gone, dtype=torch.bool)


class Batch:
    """Calls that asked to be answered together."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.chats: list[list[dict[str, str]]] = []
        self.states: list[Answering] = []
        self.ready: asyncio.Future[tuple[Any, int]] = asyncio.get_running_loop().create_future()


class Chat:
    """The endpoint."""

    def __init__(self, core: Engine) -> None:
        self.core = core
        self._batch: Batch | None = None
        self._refused: set[str] = set()

    async def answer(self, request: Any) -> Any:
        """Answer one call of `/v1/chat/completions`.

        `metadata` may ask for `batch`: so many calls are answered together; and for `refuse`: an HTTP status with
        which the call is refused the first time its `ticket` is seen.
        """
        from starlette.responses import JSONResponse, StreamingResponse  # noqa: PLC0415 - as above

        asked = await request.json()
        state = answering.get() or Answering(new_attempt_id())
        metadata = asked.get("metadata") or {}
        ticket = metadata.get("ticket")
        if ticket is not None and ticket not in self._refused:
            self._refused.add(ticket)
            return JSONResponse({"error": {"type": "try_again"}}, status_code=int(metadata["refuse"]))
        most = int(asked.get("max_tokens", 24))
        if asked.get("stream"):
            usage = bool((asked.get("stream_options") or {}).get("include_usage"))
            return StreamingResponse(
                self._stream(asked["messages"], state, most, usage), media_type="text/event-stream"
            )
        size = int(metadata.get("batch", 1))
        if size > 1:
            return JSONResponse(await self._together(asked["messages"], state, most, size))
        return JSONResponse(await asyncio.to_thread(self._alone, asked, state, most))

    def _alone(self, asked: dict[str, Any], state: Answering, most: int) -> dict[str, Any]:
        given = self.core.prompts([asked["messages"]])
        choices = self.core.generate(given, [state], most, num_return_sequences=int(asked.get("n") or 1)).tolist()
        told = asked.get("stop") or ""
        stop = told if isinstance(told, str) else str(told[0])  # a list, as clients send it, has one here
        kept = [self.core.before(ids, stop) if stop else len(ids) for ids in choices]
        state.output_delivered = sum(kept)
        state.withheld_stop_trimmed = sum(map(len, choices)) - sum(kept)
        shown = []
        for ids, whole in zip(choices, kept, strict=True):
            text = self.core.text(ids)
            cut = whole < len(ids)
            shown.append((text[: text.find(stop)] if cut else text, "stop" if cut else "length"))
        return _body(state, shown, given["input_ids"].shape[1], sum(kept))

    async def _together(self, messages: Any, state: Answering, most: int, size: int) -> dict[str, Any]:
        batch = self._batch = self._batch or Batch(size)
        at = len(batch.chats)
        batch.chats.append(messages)
        batch.states.append(state)
        if len(batch.chats) == batch.size:
            self._batch = None
            given = self.core.prompts(batch.chats)
            out = await asyncio.to_thread(self.core.generate, given, batch.states, most)
            batch.ready.set_result((out, given["input_ids"].shape[1]))
        out, width = await batch.ready
        ids = out[at].tolist()
        state.output_delivered = len(ids)
        return _body(state, [(self.core.text(ids), "length")], width, len(ids))

    async def _stream(self, messages: Any, state: Answering, most: int, usage: bool) -> AsyncIterator[str]:
        given = self.core.prompts([messages])
        streamer, made = Streamer(), [0]
        ids: list[int] = []
        pieces, sent = self.core.pieces(ids), 0

        def run() -> None:
            made[0] = self.core.generate(given, [state], most, streamer=streamer, stopping_criteria=[streamer]).shape[1]

        thread = threading.Thread(target=contextvars.copy_context().run, args=(run,))
        thread.start()
        try:
            while (token := await asyncio.to_thread(streamer.tokens.get)) is not None:
                ids.append(token)
                if piece := next(pieces):
                    yield _event(state, {"delta": {"content": piece}, "finish_reason": None})
                    sent = len(ids)
            yield _event(state, {"delta": {}, "finish_reason": "length"})
            if usage:
                yield _chunk(state, [], _usage(given["input_ids"].shape[1], len(ids)))
            yield "data: [DONE]\n\n"
        finally:
            streamer.gone = True
            thread.join(timeout=10)
            state.output_delivered, state.withheld_aborted = sent, made[0] - sent


def _usage(prompt: int, answer: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}


def _body(state: Answering, shown: list[tuple[str, str]], prompt: int, answer: int) -> dict[str, Any]:
    """An answer with its choices, each a text and why it ended."""
    return {
        "id": f"chatcmpl-{state.key.to_hex()}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": MODEL,
        "choices": [
            {"index": index, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
            for index, (text, finish) in enumerate(shown)
        ],
        "usage": _usage(prompt, answer),
    }


def _event(state: Answering, choice: dict[str, Any]) -> str:
    return _chunk(state, [{"index": 0, **choice}], None)


def _chunk(state: Answering, choices: list[dict[str, Any]], usage: dict[str, int] | None) -> str:
    content: dict[str, Any] = {
        "id": f"chatcmpl-{state.key.to_hex()}",
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": MODEL,
        "choices": choices,
    }
    if usage is not None:
        content["usage"] = usage
    return f"data: {json.dumps(content)}\n\n"


def main(spool: Path, key: bytes) -> None:
    """Serve on a free port of loopback until SIGTERM."""
    import uvicorn  # noqa: PLC0415 - frameworks are imported where they are used
    from starlette.applications import Starlette  # noqa: PLC0415 - as above
    from starlette.routing import Route  # noqa: PLC0415 - as above

    core = Engine()
    # An installation has one row per attempt: what the engine computed and what the server delivered are two.
    inner = Recorder.start(spool, installation="demo-engine", key=key)
    outer = Recorder.start(spool, installation="demo-server", key=key)
    about = Context(provider="openai", api="openai_chat", model_served=MODEL)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # the recorders are closed at exit
    app = Starlette(routes=[Route("/v1/chat/completions", Chat(core).answer, methods=["POST"])])
    with engine.install(core.model, inner, about, tokenizer=core.tokenizer), socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        watched = CaptureMiddleware(
            app, outer, context=Context(provider="openai", framework="transformers"), usage=False
        )
        sys.stdout.write(json.dumps({"port": listener.getsockname()[1]}) + "\n")
        sys.stdout.flush()
        uvicorn.Server(uvicorn.Config(watched, log_level="error", lifespan="off")).run(sockets=[listener])


if __name__ == "__main__":
    main(Path(sys.argv[1]), bytes.fromhex(Path(sys.argv[2]).read_text(encoding="ascii")))
