"""Two sides, pair by pair: every measure of both answers, and how far they went together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from weighbridge.pipeline.compare.alone import Alone, alone
from weighbridge.pipeline.compare.answer import Answer, Side
from weighbridge.pipeline.compare.measure import MEASURES, Basis, Measure
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
        again_alone: the second run by itself; null where there is none.
        unlike: whether the second run is known to differ, and not how.
        open: whether the baseline is known to differ from itself elsewhere, so that nothing can be taken for granted
            of a pair it answered once.
    """

    off: Answer
    on: Answer
    held: Pairwise
    again: Answer | None
    floor: Pairwise | None
    off_alone: Alone
    on_alone: Alone
    again_alone: Alone | None = None
    unlike: bool = False
    open: bool = False

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
                off = self._repeated(measure) if self.floor is None else measure.against(self.floor)
                on = measure.against(self.held)
            elif measure.basis is Basis.MEANING:
                # The baseline is like itself; its second run may be less so.
                off = self._repeated(measure) if self.again is None else self.again.alike.get(measure.name)
                on = self.on.alike.get(measure.name)
            else:
                assert measure.own is not None
                off, on = self._own(measure), measure.own(self.on, self.on_alone)
            if off is not None and on is not None:
                out[measure.name] = (off, on)
        return out

    def _repeated(self, measure: Measure) -> float | None:
        """What the baseline is to itself where it was run once: it is taken to repeat itself unless it is known not to.

        Null where that is open: an answer is neither held against one that would not come again, nor against the
        strategy what the baseline does not do itself.
        """
        if self.unlike:
            return 0.0 if measure.name == "exact" else None
        return None if self.open else 1.0

    def once(self, measure: Measure) -> tuple[float, float] | None:
        """The values of one run of each side, null where one is not known.

        To ask who passes more often takes one run of each: of two that have to agree, a side passes less often.
        """
        if measure.own is None:
            return self.values().get(measure.name)
        off, on = measure.own(self.off, self.off_alone), measure.own(self.on, self.on_alone)
        return None if off is None or on is None else (off, on)

    def _own(self, measure: Measure) -> float | None:
        """Of two runs of the baseline their mean, for neither of them is what it is like.

        What the model says of the first run's ids is certain of that run; there the second one is the floor.
        """
        assert measure.own is not None
        first = measure.own(self.off, self.off_alone)
        alone = self.again_alone
        second = None if self.again is None or alone is None else measure.own(self.again, alone)
        if first is None or second is None:
            return first
        return second if measure.basis is Basis.MODEL else (first + second) / 2


class Baseline:
    """The baseline's answers, measured once for all strategies.

    Attributes:
        side: its answers.
        repeats: whether each of its second runs was equal; true where it was run once.
    """

    def __init__(self, side: Side) -> None:
        self.side = side
        self.repeats = not side.unlike and all(
            list(answer.ids) == list(side.answers[pair].ids)
            for pair, answer in side.again.items()
            if pair in side.answers
        )
        self._alone: dict[str, Alone] = {}
        self._again: dict[str, Alone] = {}
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

    def again_alone(self, pair: str) -> Alone | None:
        """The answer of the second run by itself, null where there is none."""
        again = self.side.again.get(pair)
        if again is None:
            return None
        if pair not in self._again:
            first = self.side.answers[pair].ids
            self._again[pair] = self.alone(pair) if list(again.ids) == list(first) else alone(again.ids)
        return self._again[pair]


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
                baseline.again_alone(name),
                unlike=name in off.unlike,
                open=not baseline.repeats,
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
