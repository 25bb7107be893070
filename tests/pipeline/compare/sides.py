"""Answers made for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from weighbridge.pipeline.compare.answer import Answer, Cost, Side

PRUNED = Cost(prompt_tokens=100, pruned=40, attended=500, attended_dense=1000)
WHOLE = Cost(prompt_tokens=100, pruned=0, attended=1000, attended_dense=1000)


def side(name: str, answers: Mapping[str, Sequence[int]], cost: Cost = WHOLE, **about: object) -> Side:
    """A side whose answers took the same each."""
    held = {pair: Answer(pair=pair, ids=ids, cost=cost) for pair, ids in answers.items()}
    return Side(name=name, answers=held, **about)  # type: ignore[arg-type]


def scored(name: str, scores: Sequence[float], cost: Cost = WHOLE, **about: object) -> Side:
    """A side of answers to which a task gives these scores."""
    held = {f"p{at}": Answer(pair=f"p{at}", ids=[at], score=score, cost=cost) for at, score in enumerate(scores)}
    return Side(name=name, answers=held, **about)  # type: ignore[arg-type]


def words(pairs: int, length: int, seed: int = 1) -> dict[str, list[int]]:
    """Answers of random ids."""
    source = Random(seed)
    return {f"p{at}": [source.randrange(1000) for _ in range(length)] for at in range(pairs)}
