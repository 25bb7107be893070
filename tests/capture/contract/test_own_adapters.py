"""Our own adapters held against the contract they are sold with."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any

import httpx
import pytest
from tests.capture.adapters.conftest import END, PAD, PROMPT, needs_models, tiny

from weighbridge.capture.adapters import asgi, http_client, transformers
from weighbridge.capture.adapters.adapter import Installed
from weighbridge.capture.contract import CHECKS, Call, Engine, Outcome, Truth, prove
from weighbridge.capture.contract.as_tests import contract_tests
from weighbridge.capture.contract.engine import CANARY
from weighbridge.capture.recorder import Recorder
from weighbridge.schemas.enumerations import AttemptStatus, FinishReason

PATH = "/v1/chat/completions"


class Server(Engine):
    """An application behind the middleware, called as a server would call it: it sees what is delivered."""

    module = "weighbridge.capture.adapters.asgi"
    frameworks = ("starlette", "fastapi")

    def __init__(self) -> None:
        self.middleware_stack: Any = self.app

    def install(self, recorder: Recorder) -> Installed:
        return asgi.install(self, recorder)

    def touched(self) -> Sequence[object]:
        return (self,)

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        asked = json.loads((await receive())["body"])
        if asked.get("broken"):
            raise RuntimeError("broken")
        stream = asked.get("stream", False)
        kind = b"text/event-stream" if stream else b"application/json"
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
        usage = {"prompt_tokens": 9, "completion_tokens": 3}
        if not stream:
            body = {"id": "c-1", "choices": [{"finish_reason": "stop"}], "usage": usage}
            await send({"type": "http.response.body", "body": json.dumps(body).encode()})
            return
        for number in range(3):
            event = {"id": "c-1", "choices": [{"delta": {"content": f"w{number}"}, "finish_reason": None}]}
            await send({"type": "http.response.body", "body": _event(event), "more_body": True})
            if asked.get("leave") and (await receive())["type"] == "http.disconnect":
                return
        end = _event({"choices": [{"delta": {}, "finish_reason": "stop"}]}) + b"data: [DONE]\n\n"
        await send({"type": "http.response.body", "body": end})

    def _call(self, **asked: Any) -> list[bytes]:
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": CANARY}], **asked}).encode()
        messages = iter([{"type": "http.request", "body": body}])
        sent: list[bytes] = []

        async def receive() -> Any:
            return next(messages, {"type": "http.disconnect"})

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message.get("body", b""))

        async def served() -> None:
            scope = {"type": "http", "method": "POST", "path": PATH, "headers": []}
            await self.middleware_stack(scope, receive, send)

        asyncio.run(served())
        return sent

    def plain(self) -> Call:
        return Call([Truth(finish=FinishReason.STOP)], self._call())

    def stream(self) -> Call:
        return Call([Truth(finish=FinishReason.STOP)], self._call(stream=True))

    def abort(self) -> Call:
        sent = self._call(stream=True, leave=True)
        return Call([Truth(status=AttemptStatus.ABORTED, finish=FinishReason.ABORT)], sent)

    def failure(self) -> Call:
        with pytest.raises(RuntimeError, match="broken"):
            self._call(broken=True)
        return Call([Truth(status=AttemptStatus.FAILED)])


def _event(content: object) -> bytes:
    return b"data: " + json.dumps(content).encode() + b"\n\n"


def test_the_middleware() -> None:
    report = prove(Server())
    assert report.proved, report.text()
    not_offered = {check.name for check in report.checks if check.outcome is Outcome.NOT_OFFERED}
    assert not_offered == {"stop_string", "choices", "batch", "speculation", "cached"}


class Wrong(Server):
    """One whose maker is mistaken about a stream."""

    def stream(self) -> Call:
        return Call([Truth(finish=FinishReason.LENGTH)], self._call(stream=True))


def test_as_tests_of_pytest_a_check_holds_is_skipped_or_fails() -> None:
    test = contract_tests(Wrong)
    test("plain")
    with pytest.raises(pytest.skip.Exception, match="no speculation"):
        test("speculation")
    with pytest.raises(AssertionError, match="finish: the row says stop; it ended by length"):
        test("stream")


class Generation(Engine):
    """`generate()` of a tiny model: what is true is counted from the tensors it returns."""

    module = "weighbridge.capture.adapters.transformers"
    frameworks = ("torch", "transformers")
    forks = False  # torch's threads do not survive a fork

    def __init__(self, frameworks: tuple[Any, Any]) -> None:
        self.torch, self.transformers = frameworks
        self.model = tiny(frameworks)
        self.model.generation_config.max_new_tokens = 12

    def install(self, recorder: Recorder) -> Installed:
        return transformers.install(self.model, recorder, fingerprint=False)

    def touched(self) -> Sequence[object]:
        return (self.model,)

    def _run(self, prompts: Sequence[Sequence[int]], **more: Any) -> list[list[int]]:
        """Output ids of each row, up to and including its end token."""
        width = max(map(len, prompts))
        ids = self.torch.tensor([[PAD] * (width - len(prompt)) + list(prompt) for prompt in prompts])
        mask = self.torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
        rows = self.model.generate(input_ids=ids, attention_mask=mask, **more)[:, width:].tolist()
        return [row[: row.index(END) + 1] if END in row else row for row in rows]

    def _truth(self, prompt: Sequence[int], *rows: Sequence[int], **more: Any) -> Truth:
        ends = sum(row[-1] == END for row in rows)
        total = sum(map(len, rows))
        counts = {"input_computed": len(prompt), "output_computed": total, "withheld_end_token": ends}
        return Truth(counts={**counts, "output_delivered": total - ends, "cached_local": 0}, **more)

    def plain(self) -> Call:
        (row,) = rows = self._run([PROMPT], do_sample=False)
        return Call([self._truth(PROMPT, row, prompt_ids=PROMPT, output_ids=row)], rows)

    def batch(self) -> Call:
        prompts = [PROMPT, PROMPT[:3]]
        rows = self._run(prompts, do_sample=False)
        return Call([self._truth(prompt, row) for prompt, row in zip(prompts, rows, strict=True)], rows)

    def choices(self) -> Call:
        self.torch.manual_seed(3)
        rows = self._run([PROMPT], do_sample=True, num_return_sequences=3)
        return Call([self._truth(PROMPT, *rows, children=[{"output_computed": len(row)} for row in rows])])

    def speculation(self) -> Call:
        (row,) = self._run([PROMPT], do_sample=False, prompt_lookup_num_tokens=3)
        return Call([self._truth(PROMPT, row)])

    def failure(self) -> Call:
        def refuse(*_: Any) -> Any:
            raise RuntimeError("refused")

        with pytest.raises(RuntimeError, match="refused"):
            self._run([PROMPT], do_sample=False, stopping_criteria=[refuse])
        return Call([Truth(status=AttemptStatus.FAILED)])


@pytest.mark.system
def test_generate() -> None:
    """One report for all checks: loading the frameworks costs more than they do."""
    report = prove(Generation(needs_models()))
    assert report.proved, report.text()
    offered = {check.name for check in report.checks if check.outcome is Outcome.HELD}
    assert offered == set(CHECKS) - {"stream", "abort", "stop_string", "cached", "forks"}


class Client(Engine):
    """A client on httpx, against a transport that answers in process: it sees what is reported."""

    module = "weighbridge.capture.adapters.http_client"
    frameworks = ("httpx",)

    def __init__(self) -> None:
        self.client = httpx.Client(transport=httpx.MockTransport(self._answer), base_url="http://model.test")

    def install(self, recorder: Recorder) -> Installed:
        return http_client.install(self.client, recorder)

    def touched(self) -> Sequence[object]:
        return (self.client,)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        asked = json.loads(request.content)
        if asked.get("broken"):
            raise httpx.ConnectError("broken")
        usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
        if not asked.get("stream"):
            choice = {"message": {"content": CANARY}, "finish_reason": "stop"}
            return httpx.Response(200, json={"id": "c-1", "choices": [choice], "usage": usage})
        words = [{"id": "c-1", "choices": [{"delta": {"content": CANARY}, "finish_reason": None}]} for _ in range(3)]
        last = [{"choices": [{"delta": {}, "finish_reason": "stop"}]}, {"choices": [], "usage": usage}]
        body = b"".join(map(_event, [*words, *last])) + b"data: [DONE]\n\n"
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=_Chunks(body))

    def _ask(self, **asked: Any) -> dict[str, Any]:
        return {"model": "m", "messages": [{"role": "user", "content": CANARY}], **asked}

    def plain(self) -> Call:
        answer = self.client.post(PATH, json=self._ask())
        return Call([Truth(finish=FinishReason.STOP)], answer.content)

    def stream(self) -> Call:
        with self.client.stream("POST", PATH, json=self._ask(stream=True)) as answer:
            lines = list(answer.iter_lines())
        return Call([Truth(finish=FinishReason.STOP)], lines)

    def abort(self) -> Call:
        with self.client.stream("POST", PATH, json=self._ask(stream=True)) as answer:
            next(answer.iter_raw())
        return Call([Truth(status=AttemptStatus.ABORTED, finish=FinishReason.ABORT)])

    def failure(self) -> Call:
        with pytest.raises(httpx.ConnectError, match="broken"):
            self.client.post(PATH, json=self._ask(broken=True))
        return Call([Truth(status=AttemptStatus.FAILED)])


class _Chunks(httpx.SyncByteStream):
    """A body in pieces of forty bytes."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        yield from (self._body[at : at + 40] for at in range(0, len(self._body), 40))


def test_the_client() -> None:
    report = prove(Client())
    assert report.proved, report.text()
    not_offered = {check.name for check in report.checks if check.outcome is Outcome.NOT_OFFERED}
    assert not_offered == {"stop_string", "choices", "batch", "speculation", "cached"}
