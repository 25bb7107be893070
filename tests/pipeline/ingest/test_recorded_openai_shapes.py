"""Every recorded answer in a shape of OpenAI's, whoever gave it, held against a second reader.

That one is written from the providers' rules and walks the raw JSON itself; it knows neither leaves nor dialects nor
the solver. It tries every way the numbers could be meant.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.pipeline.ingest.second_reader.compare import compared
from tests.pipeline.ingest.second_reader.reader import NO_USAGE, OPENAI, answers, shape_of

from weighbridge.schemas.enumerations import Verdict

pytestmark = pytest.mark.real


def test_answers_of_openai_and_azure(shared_real: Path) -> None:
    seen = compared(answers(shared_real), lambda one: _speaks(one, others=False))
    assert seen["openai", Verdict.PROVED] >= 900
    assert seen["azure", Verdict.PROVED] >= 58
    assert {verdict for _, verdict in seen} == {Verdict.PROVED, Verdict.UNKNOWN}


def test_answers_of_everybody_else(shared_real: Path) -> None:
    seen = compared(answers(shared_real), lambda one: _speaks(one, others=True))
    assert len({provider for provider, _ in seen}) >= 24
    assert sum(count for (_, verdict), count in seen.items() if verdict is Verdict.PROVED) >= 420
    # Cached and written tokens that together exceed the prompt; more reasoning than output, and then an error.
    assert seen["openrouter", Verdict.CONTRADICTORY] == 2
    assert {provider for provider, verdict in seen if verdict is Verdict.CONTRADICTORY} == {"openrouter"}
    assert {verdict for _, verdict in seen} == {Verdict.PROVED, Verdict.UNKNOWN, Verdict.CONTRADICTORY}


def _speaks(record: dict[str, object], *, others: bool) -> bool:
    if record["api_flavor"] in NO_USAGE or shape_of(record) is not OPENAI:
        return False
    return others == (record["provider"] not in {"openai", "azure"})
