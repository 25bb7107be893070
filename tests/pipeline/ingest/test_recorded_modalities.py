"""Audio, image and video tokens of the recorded answers: both readers agree, and the second one would notice."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from tests.pipeline.ingest.second_reader.compare import agree_on_cells, readings
from tests.pipeline.ingest.second_reader.modalities import KINDS, expected
from tests.pipeline.ingest.second_reader.reader import NO_USAGE, answers, has_tokens, shape_of, understood

pytestmark = pytest.mark.real


def test_what_answers_state_of_their_modalities_is_held_against_the_product(shared_real: Path) -> None:
    """Every cell with tokens, once as it is and once one more."""
    stated: Counter[tuple[str, str]] = Counter()
    for record in answers(shared_real):
        # Only answers that speak of a modality at all; all others are compared with the rest of their counts.
        said = str(record["usage_all"]).lower()
        if record["api_flavor"] in NO_USAGE or not any(kind in said for kind in KINDS):
            continue
        for usage, reading in zip(shape_of(record).calls(record), readings(record), strict=True):
            if usage is None or not has_tokens(usage):
                continue
            documented, _ = understood(record, usage)
            if documented is None:
                continue
            for name, count in expected(usage, documented).items():
                if count:
                    stated[record["provider"], name.rsplit("_", 1)[1]] += 1
                    wrong = replace(reading, cells={**reading.cells, name: count + 1})
                    with pytest.raises(AssertionError, match=record["id"]):
                        agree_on_cells(record, usage, documented, wrong)
    assert stated == {
        ("google", "audio"): 30,
        ("google", "image"): 38,
        ("google", "video"): 25,
        ("vertex", "audio"): 15,
        ("vertex", "image"): 19,
        ("vertex", "video"): 10,
        ("openai", "audio"): 2,
        ("openrouter", "video"): 1,
    }
