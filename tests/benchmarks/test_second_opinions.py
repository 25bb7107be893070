"""What another reader makes of the same answers differs in the documented kinds, and in no others."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from weighbridge.pipeline import read_usage

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchmarks" / "second_opinions.py"


@pytest.fixture(scope="module")
def script() -> Any:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("second_opinions", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.real
def test_the_kinds_of_difference_are_those_of_the_documentation(script: Any, shared_real: Path) -> None:
    usages = shared_real / "prices" / "genai_prices_usages.json.gz"
    opinions = script.opinions(usages, shared_real / "api_responses_all.jsonl.gz")
    kinds = Counter(kind for opinion in opinions for kind in script.differences(opinion))
    assert set(kinds) == set(script.EXPLAINED)
    assert script.table(kinds) in (ROOT / "docs" / "second-opinions.md").read_text(encoding="utf-8")


USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "num_cached_tokens": 4}


@pytest.mark.parametrize(
    ("theirs", "kinds"),
    [
        ({"input_tokens": 10, "output_tokens": 5, "cache_read_tokens": 4}, ["agree"]),
        ({"input_tokens": 10, "output_tokens": 5}, ["cache_read_tokens, mistral openai_chat"]),
        (None, ["no extractor"]),
        (
            {"input_tokens": 9, "output_tokens": 6, "cache_read_tokens": 4, "input_audio_tokens": 1},
            [f"{name}_tokens, mistral openai_chat" for name in ("input", "output", "input_audio")],
        ),
    ],
)
def test_a_difference_is_named_by_its_count(script: Any, theirs: dict[str, int] | None, kinds: list[str]) -> None:
    ours = read_usage({"provider": "mistral", "api": "openai_chat", "usage": USAGE})
    assert script.differences(script.Opinion("mistral", "openai_chat", theirs, ours)) == kinds
