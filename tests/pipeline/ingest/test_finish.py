"""Why generation stopped, where an answer tells it in more than one place."""

from __future__ import annotations

import pytest

from weighbridge.pipeline.ingest.finish import finish_reason
from weighbridge.schemas.enumerations import FinishReason


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        # vLLM: beside why it ended stands what ended it, a text or the number of a token.
        ({"finish_reason": "stop", "stop_reason": "four"}, FinishReason.STOP),
        ({"finish_reason": "stop", "stop_reason": 151645}, FinishReason.STOP),
        ({"finish_reason": "length", "stop_reason": None}, FinishReason.LENGTH),
        ({"finish_reason": None, "stop_reason": "end_turn"}, FinishReason.STOP),
        ({"finish_reason": "four"}, FinishReason.OTHER),
        ({"finish_reason": None}, None),
    ],
)
def test_what_stopped_an_answer_is_no_reason_beside_one(
    choice: dict[str, object], expected: FinishReason | None
) -> None:
    assert finish_reason([{"choices": [choice]}]) is expected
