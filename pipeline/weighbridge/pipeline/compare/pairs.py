"""Two sides, pair by pair: every measure of both answers, and how far they went together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from weighbridge.pipeline.compare.alone import Alone, alone
from weighbridge.pipeline.compare.answer import Answer, Side
from weighbridge.pipeline.compare.measure import MEASURES, Basis
from weighbridge.pipeline.compare.pairwise import Pairwise, pairwise
from weighbridge.schemas.errors import ContractError

UNRELATED: Final = 200  # pairs of answers to different prompts the null value is made of, at most


@dataclass(frozen=True, slots=True)
class Pair:
    """One prompt, answered by both sides.

    Attributes:
        off, on: the answers.
        held: the two side by side.
        again: the baseline's second run; null where there is none.
        floor: the baseline beside it.
        off_alone, on_alone: each by itself.
    """

    off: Answer
    on: Answer
    held: Pairwise
    again: Answer | None
    floor: Pairwise | None
    off_alone: Alone
    on_alone: Alone

    @property
    def cluster(self) -> str | None:
        """Its task or session."""
        return self.off.cluster or self.on.cluster

    def values(self) -> dict[str, tuple[float, float]]:
        """Measure -> value of the baseline and of the strategy, where both are known."""
        out: dict[str, tuple[float, float]] = {}
        for measure in MEASURES:
            off: float | None
            on: float | None
            if measure.basis is Basis.AGAINST:
                assert measure.against is not None
                off = 1.0 if self.floor is None else measure.against(self.floor)
                on = measure.against(self.held)
            elif measure.basis is Basis.MEANING:
                # The baseline is like itself; its second run may be less so.
                off = 1.0 if self.again is None else self.again.alike.get(measure.name)
                on = self.on.alike.get(measure.name)
            else:
                assert measure.own is not None
                off, on = measure.own(self.off, self.off_alone), measure.own(self.on, self.on_alone)
            if off is not None and on is not None:
                out[measure.name] = (off, on)
        return out


class Baseline:
    """The baseline's answers, measured once for all strategies."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self._alone: dict[str, Alone] = {}
        self._floor: dict[str, Pairwise] = {}

    def alone(self, pair: str) -> Alone:
        """The answer by itself."""
        if pair not in self._alone:
            self._alone[pair] = alone(self.side.answers[pair].ids)
        return self._alone[pair]

    def floor(self, pair: str) -> Pairwise | None:
        """The answer beside that of the second run, null where there is none."""
        again = self.side.again.get(pair)
        if again is None:
            return None
        if pair not in self._floor:
            self._floor[pair] = pairwise(self.side.answers[pair].ids, again.ids)
        return self._floor[pair]


def pair_up(baseline: Baseline, on: Side) -> list[Pair]:
    """The pairs both sides have, by name.

    Raises:
        ContractError: the ids are of different tokenizers, or the sides have no pair in common.
    """
    off = baseline.side
    check_comparable(off, on)
    out = []
    for name in sorted(off.answers.keys() & on.answers.keys()):
        first, second = off.answers[name], on.answers[name]
        out.append(
            Pair(
                first,
                second,
                pairwise(first.ids, second.ids),
                off.again.get(name),
                baseline.floor(name),
                baseline.alone(name),
                alone(second.ids),
            )
        )
    return out


def check_comparable(off: Side, on: Side) -> None:
    """See that ids of both sides mean the same tokens, and that there is something to compare.

    Raises:
        ContractError: they do not, or there is nothing.
    """
    if off.tokenizer and on.tokenizer and off.tokenizer != on.tokenizer:
        raise ContractError(
            f"{off.name} has ids of the tokenizer {off.tokenizer}, {on.name} of {on.tokenizer}: the same id is another "
            "token there, so no measure on ids means anything. Run both with one tokenizer, or compare text instead."
        )
    if not off.answers.keys() & on.answers.keys():
        raise ContractError(
            f"{off.name} and {on.name} have no pair in common; give the answers to one prompt the same `pair` on both"
        )


def unrelated(pairs: Sequence[Pair], seed: int) -> Mapping[str, float]:
    """What measures come to between answers to different prompts: the value below which likeness means nothing.

    Returns:
        Measure -> mean; empty for a single pair.
    """
    if len(pairs) < 2:
        return {}
    source = Random(seed)  # noqa: S311 - a sample, not a secret
    sums: dict[str, list[float]] = {}
    for _ in range(min(UNRELATED, len(pairs) * (len(pairs) - 1))):
        first, second = source.sample(range(len(pairs)), 2)
        held = pairwise(pairs[first].off.ids, pairs[second].on.ids)
        for measure in MEASURES:
            value = None if measure.against is None else measure.against(held)
            if value is not None:
                sums.setdefault(measure.name, []).append(value)
    for measure in MEASURES:
        told = [pair.on.alike.get(f"{measure.name}_unrelated") for pair in pairs]
        if measure.basis is Basis.MEANING and any(value is not None for value in told):
            sums[measure.name] = [value for value in told if value is not None]
    return {name: sum(values) / len(values) for name, values in sums.items()}
