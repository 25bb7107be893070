"""`transformers serve` held against the contract: two recorders, one attempt, on loopback with a tiny random model."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.capture.adapters.conftest import served_model

from weighbridge.capture import demo_model
from weighbridge.capture.adapters import transformers_serve
from weighbridge.capture.adapters.adapter import Installed
from weighbridge.capture.contract import CHECKS, Call, Engine, Outcome, Truth, prove
from weighbridge.capture.contract.engine import CANARY
from weighbridge.capture.recorder import Limits, Recorder
from weighbridge.schemas.enumerations import AttemptStatus, FinishReason

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("models")]

PATH = "/v1/chat/completions"
TOKENS, ENDLESS = 6, 1900
ASKED = {
    "messages": [{"role": "user", "content": f"{CANARY} weighs a lorry"}],
    "max_tokens": TOKENS,
    "logit_bias": {"0": -100.0},
    "seed": 1,
}


class Served(Engine):
    """What the command line runs; a server lives from one installation to the next, so that it outlives a removal."""

    module = "weighbridge.capture.adapters.transformers_serve"
    frameworks = ("torch", "transformers", "fastapi", "starlette")
    forks = False  # a server's threads do not survive a fork

    def __init__(self, model: Path) -> None:
        self.model = str(model)
        self.tokenizer = demo_model.tiny_tokenizer()
        self._lock = threading.Lock()
        self._serve: Any = None
        self._http: httpx.Client | None = None

    def install(self, recorder: Recorder) -> Installed:
        beside = Recorder.start(
            recorder.spool, installation="contract-server", key=recorder.key, limits=Limits(keeper_s=3600.0)
        )
        try:
            installed = transformers_serve.install(beside, recorder)
        except BaseException:
            beside.close()
            raise
        # Undone first: what was asked for is answered, and its rows are written, before the recorders close.
        installed.undo(beside.close)
        installed.undo(self.idle)
        self.stop()
        return installed

    def touched(self) -> Sequence[object]:
        import transformers.cli.serving.server as module  # noqa: PLC0415 - takes seconds

        return (module,)  # what it puts on a living server is looked at in its own tests

    def _models(self) -> list[Any]:
        return [timed.model for timed in self._serve._model_manager.loaded_models.values()]

    @property
    def http(self) -> httpx.Client:
        """A client of the server, which is started where none runs."""
        with self._lock:
            if self._http is None:
                self._start()
            assert self._http is not None
            return self._http

    def _start(self) -> None:
        from transformers.cli.serve import Serve  # noqa: PLC0415 - as above

        class Quiet(Serve):  # type: ignore[misc]
            def start_server(self) -> None:  # its own leaves an event loop open, which is a warning
                self._thread = threading.Thread(target=self.server.run)
                self._thread.start()

        fixed = {"host": "127.0.0.1", "port": 0, "device": "cpu", "log_level": "error", "non_blocking": True}
        self._serve = Quiet(self.model, **fixed)
        while not self._serve.server.started:
            time.sleep(0.005)
        port = self._serve.server.servers[0].sockets[0].getsockname()[1]
        self._http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)

    def stop(self) -> None:
        """Stop the server, if one runs."""
        if self._http is not None:
            self._http.close()
            self._serve.kill_server()
            self._http = self._serve = None

    def idle(self) -> None:
        """Wait until the engine has nothing more to do."""
        if self._serve is not None:
            self._serve._generation_state.get_manager(self.model).submit(lambda: None).result(timeout=60)

    def _post(self, **more: Any) -> dict[str, Any]:
        answer = self.http.post(PATH, json={"model": self.model, **ASKED, **more})
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told

    def _truth(self, text: str, **more: Any) -> Truth:
        # The model draws whole words: its text, tokenised again, is what it drew.
        prompt = self.tokenizer.apply_chat_template(ASKED["messages"], add_generation_prompt=True)["input_ids"]
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        counts = {"input_computed": len(prompt), "output_computed": len(ids), "withheld_end_token": 0}
        return Truth(counts=counts, prompt_ids=prompt, output_ids=ids, **more)

    def plain(self) -> Call:
        told = self._post()
        text = told["choices"][0]["message"]["content"]
        truth = self._truth(text, finish=FinishReason.LENGTH)
        assert truth.counts["output_computed"] == told["usage"]["completion_tokens"] == TOKENS
        return Call([truth], text)

    def stream(self) -> Call:
        with self.http.stream("POST", PATH, json={"model": self.model, **ASKED, "stream": True}) as answer:
            events = [line[6:] for line in answer.iter_lines() if line.startswith("data: {")]
        return Call([self._truth(_text(events), finish=FinishReason.LENGTH)])

    def abort(self) -> Call:
        computed: list[int] = []
        with self._counting(computed):
            asked = {"model": self.model, **ASKED, "stream": True, "max_tokens": ENDLESS}
            with self.http.stream("POST", PATH, json=asked) as answer:
                lines = answer.iter_lines()
                for _ in range(9):
                    next(lines)
            self.idle()
        assert 1 < len(computed) < ENDLESS
        counts = {**self._truth("").counts, "output_computed": len(computed)}
        del counts["withheld_end_token"]
        return Call([Truth(counts=counts, status=AttemptStatus.ABORTED, finish=FinishReason.ABORT)])

    @contextlib.contextmanager
    def _counting(self, computed: list[int]) -> Iterator[None]:
        """Count the tokens of a call by the model's forward passes: the prompt's gives the first one."""
        assert self.http is not None
        (model,) = self._models()
        handle = model.register_forward_pre_hook(lambda *_: computed.append(1))
        try:
            yield
        finally:
            handle.remove()

    def stop_string(self) -> Call:
        # It stops, and leaves the stop string in the text.
        whole = self.plain().result
        assert isinstance(whole, str)
        word = whole.split()[2]
        told = self._post(stop=word)
        text = told["choices"][0]["message"]["content"]
        truth = self._truth(text, finish=FinishReason.STOP)
        assert text.split()[-1].startswith(word)
        return Call([self._truth(whole, finish=FinishReason.LENGTH), truth])

    def failure(self) -> Call:
        answer = self.http.post(PATH, json={"model": self.model, **ASKED, "unheard_of": CANARY})
        assert answer.status_code == 422
        return Call([Truth(status=AttemptStatus.REJECTED)])


def _text(events: Sequence[str]) -> str:
    choices = [each for event in events for each in json.loads(event)["choices"]]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return served_model(tmp_path_factory.mktemp("models"))


def test_transformers_serve(folder: Path) -> None:
    """One report for all checks: loading the frameworks costs more than they do."""
    engine = Served(folder)
    try:
        report = prove(engine)
    finally:
        engine.stop()
    assert report.proved, report.text()
    held = {check.name for check in report.checks if check.outcome is Outcome.HELD}
    assert held == set(CHECKS) - {"choices", "batch", "speculation", "cached", "forks"}
