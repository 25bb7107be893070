"""What an attempt adds to the counters of its engine, where its figures are such as no attempt can have."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.retention.world import frame, row

from weighbridge.pipeline.engine.lives import lives
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.lake.figures import LARGEST, LONGEST_US

DAY = date(2026, 3, 2)
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
KEYS = {"attempt_lo": 1, "attempt_hi": 1, "source": "agent", "revision": 0}


def lived(tmp_path: Path, children: tuple[int, ...] = (), **attempt: Any) -> dict[str, Any]:
    """The life of one attempt."""
    lake = Lake.create(str(tmp_path / "lake"))
    told = {"arrived_at": NOON, "status": "succeeded", **KEYS, **attempt}
    lake.append("attempt", frame("attempt", [row("attempt", DAY, **told)]))
    if children:
        rows = [
            row("child", DAY, **KEYS, child=number, kind="choice", input_computed=size, output_computed=1)
            for number, size in enumerate(children, start=1)
        ]
        lake.append("child", frame("child", rows))
    return lives(lake, DAY, DAY).row(0, named=True)


@pytest.mark.parametrize("took", [LONGEST_US + 1, 2**63 - 1, -1, -(2**63)])
def test_a_life_longer_than_any_has_an_end_nobody_knows(tmp_path: Path, took: int) -> None:
    assert lived(tmp_path, total_us=took)["end"] == NOON


def test_figures_no_attempt_can_have_are_not_known(tmp_path: Path) -> None:
    """Two of them would wrap around if they were added up."""
    life = lived(tmp_path, (2**63 - 1, 2**63 - 1), input_computed=LARGEST + 1, output_computed=LARGEST)
    assert (life["input"], life["output"], life["prompts"], life["outputs"]) == (None, LARGEST, None, 2)


def test_figures_are_added_up_to_the_largest(tmp_path: Path) -> None:
    assert lived(tmp_path, (LARGEST, LARGEST))["prompts"] == 2 * LARGEST


Told = tuple[str, dict[str, Any]]
CLIENT: Told = ("http-client", {"provider": "openai"})
ENGINE: Told = ("vllm-engine", {"framework": "vllm", "provider": "vllm", "input_computed": 7, "output_computed": 6})


@pytest.mark.parametrize(
    ("sources", "engines", "unsaid"),
    [
        ([CLIENT], {"openai"}, True),
        ([ENGINE], {"vllm"}, False),
        ([CLIENT, ENGINE], {"vllm"}, False),
        # The engine's own word stands alone, whatever a client took it for.
        ([("a", {"provider": "sglang", "framework": "httpx"}), ENGINE], {"vllm"}, False),
        # Where no engine speaks, each source may be right.
        ([("a", {"framework": "httpx"}), ("b", {"framework": "vllm"})], {"httpx", "vllm"}, False),
        ([("a", {"framework": "llama.cpp"}), ("b", {"provider": "llama_cpp"})], {"llamacpp"}, False),
        # An engine that counts and does not say its name leaves it to others.
        ([CLIENT, ("b", {"input_computed": 7})], {"openai"}, True),
        ([("a", {})], set(), True),
    ],
)  # fmt: skip
def test_what_computed_an_attempt_is_told_by_the_engine_before_anyone_else(
    tmp_path: Path, sources: list[Told], engines: set[str], unsaid: bool
) -> None:
    for number, order in enumerate((sources, sources[::-1])):
        lake = Lake.create(str(tmp_path / str(number)))
        rows = [
            row("attempt", DAY, **{**KEYS, "source": name, "arrived_at": NOON, "status": "succeeded", **words})
            for name, words in order
        ]
        lake.append("attempt", frame("attempt", rows))
        (life,) = lives(lake, DAY, DAY).to_dicts()
        assert (set(life["engines"]), life["unsaid"]) == (engines, unsaid)
