"""A probe of a server that really computes: the demonstration's own, around a tiny random model, on loopback."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.pipeline.probe.conftest import DAY, NO_PRICES

from weighbridge.capture.demo_model import tiny_tokenizer
from weighbridge.pipeline.probe.run import Wanted, run
from weighbridge.schemas.enumerations import Direction

START_S = 90.0

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Where it listens; it is ended by its own process id."""
    for package in ("torch", "transformers", "starlette", "uvicorn"):
        pytest.importorskip(package, reason=f"the extras `models` and `serving` ({package}) are not installed")
    folder = tmp_path_factory.mktemp("live")
    key = folder / "key"
    key.write_text("00" * 32, encoding="ascii")
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    with (folder / "log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "weighbridge.capture.demo_server", str(folder / "spool"), str(key)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, **offline, "OMP_NUM_THREADS": "1"},
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline() if select.select([process.stdout], [], [], START_S)[0] else ""
            assert line, (folder / "log").read_text(encoding="utf-8")[-500:]
            yield json.loads(line)["port"]
        finally:
            process.terminate()
            process.wait(20)
            if process.stdout is not None:
                process.stdout.close()


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model's tokenizer and template, as files."""
    folder = tmp_path_factory.mktemp("tiny")
    tiny_tokenizer().save_pretrained(folder)
    return folder


def test_a_server_around_a_real_model_is_consistent_with_its_own_tokenizer(port: int, tokenizer: Path) -> None:
    wanted = Wanted(
        endpoint=f"http://127.0.0.1:{port}/v1", model="tiny-random-llama", provider="openai", tokenizer=str(tokenizer)
    )
    result = run(wanted, NO_PRICES, DAY)
    assert result.left_out == {}
    assert [
        (one.step, one.cause.code, one.difference) for one in result.partings if str(one.severity) == "warning"
    ] == []
    assert result.verdict == "consistent"
    assert all(one.told(Direction.INPUT) == one.counted(Direction.INPUT) for one in result.seen if one.usage.input)


def test_another_tokenizer_than_the_servers_is_found(port: int, tokenizer: Path, tmp_path: Path) -> None:
    for name in ("tokenizer_config.json", "chat_template.jinja"):
        if (tokenizer / name).exists():
            (tmp_path / name).write_bytes((tokenizer / name).read_bytes())
    content = json.loads((tokenizer / "tokenizer.json").read_text(encoding="utf-8"))
    content["model"]["merges"] = []  # every byte is a token: another vocabulary under the same name
    (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    wanted = Wanted(
        endpoint=f"http://127.0.0.1:{port}/v1", model="tiny-random-llama", provider="openai", tokenizer=str(tmp_path)
    )
    result = run(wanted, NO_PRICES, DAY)
    assert result.verdict == "parts"
    assert result.first is not None
    assert (result.first.step, result.first.cause.code) == ("plain", "tokenizer_version")
