"""The server with faults, the tokenizer that counts as it does, and a probe of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.probe.served import MODEL, TEMPLATE, Scale, serving

from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.probe.result import ProbeResult
from weighbridge.pipeline.probe.run import Wanted, run

DAY = date(2026, 11, 30)
NO_PRICES = PriceBook([])
Probed = Callable[..., ProbeResult]


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tokenizer of bytes, which begins a text with <s>, and with the server's template."""
    tokenizers = pytest.importorskip("tokenizers", reason="the extra `models` (tokenizers) is not installed")
    pytest.importorskip("transformers", reason="the extra `models` (transformers) is not installed")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    made = tokenizers.Tokenizer(tokenizers.models.BPE({letter: at for at, letter in enumerate(alphabet)}, []))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.add_special_tokens(["<s>", "<|im_start|>", "<|im_end|>"])
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", made.token_to_id("<s>"))]
    )
    folder = tmp_path_factory.mktemp("tokenizer")
    made.save(str(folder / "tokenizer.json"))
    about = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(about), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def _server() -> Iterator[Scale]:
    with serving(Scale()) as scale:
        yield scale


@pytest.fixture
def scale(_server: Scale) -> Scale:
    """The server, without any fault."""
    return _server.with_faults()


@pytest.fixture
def probed(scale: Scale, tokenizer: Path) -> Probed:
    """Probe the server: `with_recount` with its tokenizer, `with_engine` with its counters; faults by name."""

    def probe(
        *, with_recount: bool = True, with_engine: bool = False, wanted: Any = None, **faults: Any
    ) -> ProbeResult:
        scale.with_faults(**faults)
        asked = {
            "endpoint": scale.address,
            "model": MODEL,
            "tokenizer": str(tokenizer) if with_recount else None,
            "metrics": scale.metrics if with_engine else None,
        } | (wanted or {})
        return run(Wanted(**asked), NO_PRICES, DAY, sleep=lambda _: None)

    return probe
