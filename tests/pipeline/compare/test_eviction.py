"""Where evicted positions lie, and whether answers part behind them: on prompts small enough to count by hand."""

from __future__ import annotations

import pytest

from weighbridge.pipeline.compare.eviction import (
    Visible,
    evicted_by_decile,
    evicted_by_origin,
    forgotten,
    parting_by_eviction,
    parting_with_eviction,
    shared_beginnings,
    visibility_of_shared,
)

ORIGINS = (("system", 0, 4), ("user", 4, 6))
LOST = Visible(pair="a", kept=[0.0] * 4 + [1.0] * 6, origins=ORIGINS, divergence=2, cluster="chat")
HALF = Visible(pair="b", kept=[0.5] * 4 + [1.0] * 5 + [0.0], origins=ORIGINS, divergence=7, cluster="chat")
WHOLE = Visible(pair="c", kept=[1.0] * 10, origins=ORIGINS, cluster="chat")


def test_shares_are_told_by_origin_and_by_tenth() -> None:
    assert evicted_by_origin([LOST, HALF, WHOLE]) == pytest.approx({"system": 0.5, "user": 1 / 18})
    assert evicted_by_decile([LOST, HALF]) == pytest.approx([0.75] * 4 + [0.0] * 5 + [0.5])
    assert evicted_by_decile([Visible(pair="s", kept=[0.0, 1.0])])[:2] == [1.0, None]


def test_a_system_prompt_of_which_nearly_nothing_is_left_is_forgotten() -> None:
    found = forgotten("window", [LOST, HALF, WHOLE])
    assert found is not None
    assert (found.strategy, found.answers) == ("window", 1)
    assert forgotten("window", [HALF, WHOLE]) is None
    assert forgotten("window", [Visible(pair="d", kept=[0.0, 0.0], origins=(("user", 0, 2),))]) is None


def test_answers_that_lost_more_part_earlier() -> None:
    assert parting_by_eviction([LOST, HALF, WHOLE]) == {"evicted": (2, 2), "whole": (1, 0)}
    assert parting_with_eviction([LOST, HALF, WHOLE]) == pytest.approx(1.0)
    assert parting_with_eviction([WHOLE, WHOLE]) is None
    assert parting_with_eviction([LOST]) is None


def test_a_shared_beginning_is_seen_by_each_of_its_answers() -> None:
    prompts = {"a": [1, 2, 3, 4, 9], "b": [1, 2, 3, 4, 7], "c": [1, 2, 3, 4], "d": [5], "e": [5, 6], "f": [8]}
    clusters = {"a": "chat", "b": "chat", "c": "chat", "d": "code", "e": None, "f": "code"}
    shared = shared_beginnings(prompts, clusters)
    assert shared == {"chat": 4}
    assert visibility_of_shared([LOST, HALF, WHOLE], shared) == {"chat": [0.0, 0.5, 1.0]}
