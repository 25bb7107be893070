"""A small chat server around `generate()` of a tiny random model, watched from both ends. For demonstrations.

    python -m weighbridge.capture.demo_server SPOOL KEY_FILE        prints the port it listens on; SIGTERM ends it

It speaks OpenAI chat completions on loopback: plain and streamed answers, stop strings, usage in streams on request,
and small batches. What it serves is no language: the weights are random, fixed by a seed. As servers do, it reports
the tokens that are left after a stop string was cut off, says nothing to a client that has gone, and in a batch
reports, as naive ones do, the width of the padded tensor.
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
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from weighbridge.capture.adapters import transformers as engine
from weighbridge.capture.adapters.asgi import CaptureMiddleware
from weighbridge.capture.context import Context
from weighbridge.capture.recorder import Recorder
from weighbridge.capture.wire.carried import Answering, answering
from weighbridge.schemas.identity import new_attempt_id

MODEL: Final = "tiny-random-llama"
SEED: Final = 7
_WORDS: Final = (
    "the scale weighs what was really served and compares it with the note that came along; a lorry drives on, "
    "a lorry drives off, and the difference is what was delivered. tokens are counted once, never guessed. "
)
_TEMPLATE: Final = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
_SPECIAL: Final = ("<|end|>", "<|pad|>", "<|user|>", "<|system|>", "<|assistant|>")


def tiny_model() -> tuple[Any, Any]:
    """A Llama with random weights and a byte-level tokenizer made on the spot; nothing is fetched."""
    import torch  # noqa: PLC0415 - frameworks are imported where they are used
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers  # noqa: PLC0415 - as above
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast  # noqa: PLC0415 - as above

    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=list(_SPECIAL), initial_alphabet=alphabet, show_progress=False
    )
    raw.train_from_iterator([_WORDS] * 4, trainer)
    named = {"eos_token": "<|end|>", "pad_token": "<|pad|>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, padding_side="left", **named)
    tokenizer.chat_template = _TEMPLATE
    torch.manual_seed(SEED)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=2048, eos_token_id=0, pad_token_id=1, bos_token_id=None,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval(), tokenizer


class Engine:
    """The model behind the server. One call at a time."""

    def __init__(self) -> None:
        self.model, self.tokenizer = tiny_model()
        self._lock = threading.Lock()

    def prompts(self, chats: list[list[dict[str, str]]]) -> Any:
        """Token ids and attention mask of some chats, padded to the longest."""
        texts = [self.tokenizer.apply_chat_template(c, tokenize=False, add_generation_prompt=True) for c in chats]
        return self.tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False)

    def generate(self, given: Any, states: list[Answering], most: int, **more: Any) -> Any:
        """The ids of the answers, without the prompts. The same prompt is always answered alike."""
        import torch  # noqa: PLC0415 - as above

        keys = [state.key for state in states]
        with self._lock, torch.inference_mode(), engine.attempt_keys(*keys):
            torch.manual_seed(SEED)
            out = self.model.generate(
                input_ids=given["input_ids"], attention_mask=given["attention_mask"], max_new_tokens=most,
                min_new_tokens=most, do_sample=True, temperature=1.0, top_k=0, **more,
            )  # fmt: skip
        return out[:, given["input_ids"].shape[1] :]

    def text(self, ids: Any) -> str:
        """The text of some ids, special tokens left out."""
        return str(self.tokenizer.decode(ids, skip_special_tokens=True))

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

    async def answer(self, request: Any) -> Any:
        """Answer one call of `/v1/chat/completions`."""
        from starlette.responses import JSONResponse, StreamingResponse  # noqa: PLC0415 - as above

        asked = await request.json()
        state = answering.get() or Answering(new_attempt_id())
        most = int(asked.get("max_tokens", 24))
        if asked.get("stream"):
            usage = bool((asked.get("stream_options") or {}).get("include_usage"))
            return StreamingResponse(
                self._stream(asked["messages"], state, most, usage), media_type="text/event-stream"
            )
        size = int((asked.get("metadata") or {}).get("batch", 1))
        if size > 1:
            return JSONResponse(await self._together(asked["messages"], state, most, size))
        return JSONResponse(await asyncio.to_thread(self._alone, asked, state, most))

    def _alone(self, asked: dict[str, Any], state: Answering, most: int) -> dict[str, Any]:
        given = self.core.prompts([asked["messages"]])
        ids = self.core.generate(given, [state], most)[0].tolist()
        stop = asked.get("stop") or ""
        kept = self.core.before(ids, stop) if stop else len(ids)
        state.output_delivered, state.withheld_stop_trimmed = kept, len(ids) - kept
        text = self.core.text(ids)
        shown = text[: text.find(stop)] if stop and stop in text else text
        return _body(state, shown, given["input_ids"].shape[1], kept, "stop" if kept < len(ids) else "length")

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
        return _body(state, self.core.text(ids), width, len(ids), "length")

    async def _stream(self, messages: Any, state: Answering, most: int, usage: bool) -> AsyncIterator[str]:
        given = self.core.prompts([messages])
        streamer, sent, made = Streamer(), 0, [0]

        def run() -> None:
            made[0] = self.core.generate(given, [state], most, streamer=streamer, stopping_criteria=[streamer]).shape[1]

        thread = threading.Thread(target=contextvars.copy_context().run, args=(run,))
        thread.start()
        try:
            while (token := await asyncio.to_thread(streamer.tokens.get)) is not None:
                yield _event(state, {"delta": {"content": self.core.text([token])}, "finish_reason": None})
                sent += 1
            yield _event(state, {"delta": {}, "finish_reason": "length"})
            if usage:
                yield _chunk(state, [], _usage(given["input_ids"].shape[1], sent))
            yield "data: [DONE]\n\n"
        finally:
            streamer.gone = True
            thread.join(timeout=10)
            state.output_delivered, state.withheld_aborted = sent, made[0] - sent


def _usage(prompt: int, answer: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}


def _body(state: Answering, text: str, prompt: int, answer: int, finish: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {
        "id": f"chatcmpl-{state.key.to_hex()}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
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
    import uvicorn  # noqa: PLC0415 - as above
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
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        uvicorn.Server(uvicorn.Config(watched, log_level="error", lifespan="off")).run(sockets=[listener])


if __name__ == "__main__":
    main(Path(sys.argv[1]), bytes.fromhex(Path(sys.argv[2]).read_text(encoding="ascii")))
