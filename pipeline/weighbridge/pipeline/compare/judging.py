"""Is a strategy worse? Over the whole workload, and over the pairs on which it did anything at all.

Answers under a budget are those of the baseline: they are what the workload is like, and dilute what the strategy loses
where it acts. So "not worse" has to hold of both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

from weighbridge.pipeline.compare.bootstrap import Paired, paired
from weighbridge.pipeline.compare.effect import Evidence
from weighbridge.pipeline.compare.gate import Gate, p_not_worse, p_worse
from weighbridge.pipeline.compare.measure import BY_NAME
from weighbridge.pipeline.compare.multiplicity import holm
from weighbridge.pipeline.compare.power import Need, need
from weighbridge.schemas.enumerations import Judgement


@dataclass(frozen=True, slots=True)
class Held:
    """The differences of one strategy on the measures that decide.

    Attributes:
        pairs: all of them.
        acted: on which the strategy acted.
        evidence: what tells that.
        whole: measure -> over all pairs.
        touched: measure -> over those on which it acted; empty where these are all, or none.
    """

    pairs: int
    acted: int
    evidence: Evidence
    whole: Mapping[str, Paired]
    touched: Mapping[str, Paired]


@dataclass(frozen=True, slots=True)
class Ruling:
    """What is said of one strategy.

    Attributes:
        judgement: the word.
        p: that it is not worse: the largest p-value over measures and both sets of pairs, adjusted over strategies
            (Holm); null where it cannot be said.
        whole: what the margin takes over all pairs, of the measure that takes most; null where nothing decides.
        touched: likewise over the pairs on which it acted; null where these are all, or none.
    """

    judgement: Judgement
    p: float | None
    whole: Need | None
    touched: Need | None

    @property
    def shown(self) -> bool:
        """Whether there are as many pairs on which it acted as the margin takes at least."""
        held = self.touched or self.whole
        return held is not None and held.have >= held.least


def hold(
    values: Mapping[str, Sequence[float | None]],
    clusters: Sequence[str | None],
    acted: Sequence[bool],
    told_by: Evidence,
    gate: Gate,
) -> Held:
    """The differences of a strategy, over all pairs and over those it acted on.

    Args:
        values: measure that decides -> per pair the strategy's less the baseline's, null where one is not known.
        clusters: of the pairs.
        acted: whether the strategy acted on the pair.
        told_by: what tells that.
        gate: level, resamples, seed.
    """
    some = 0 < sum(acted) < len(acted)
    return Held(
        pairs=len(acted),
        acted=sum(acted),
        evidence=told_by,
        whole={name: _paired(name, each, clusters, [True] * len(acted), gate) for name, each in values.items()},
        touched={name: _paired(name, each, clusters, acted, gate) for name, each in values.items()} if some else {},
    )


def _paired(
    name: str, values: Sequence[float | None], clusters: Sequence[str | None], among: Sequence[bool], gate: Gate
) -> Paired:
    known = [
        (value, cluster) for value, cluster in compress(zip(values, clusters, strict=True), among) if value is not None
    ]
    return paired(
        [value for value, _ in known],
        [cluster for _, cluster in known],
        level=gate.level,
        resamples=gate.resamples,
        seed=gate.seed,
        worst=1.0 if BY_NAME[name].share else None,
        decides=True,
    )


def judge(held: Sequence[Held], gate: Gate, margins: Mapping[str, float]) -> list[Ruling]:
    """Judge strategies; what is said of them is held to the gate's level over all of them.

    Args:
        held: one per strategy.
        gate: what decides.
        margins: measure -> tolerated loss.
    """
    tail = (1 - gate.level) / 2
    inside = [_inside(each, gate, margins) for each in held]
    beyond = [_beyond(each, gate, margins) for each in held]
    adjusted = holm([1.0 if p is None else p for p in inside])
    adjusted_beyond = holm([1.0 if p is None else p for p in beyond])
    first = tail / max(1, len(held))  # the strictest step of Holm's method
    return [
        Ruling(
            _word(each, tail, p, p_beyond, known=known is not None),
            p if margins else None,
            _need(each.whole, gate, margins, first),
            _need(each.touched, gate, margins, first),
        )
        for each, p, p_beyond, known in zip(held, adjusted, adjusted_beyond, inside, strict=True)
    ]


def _word(each: Held, tail: float, p: float, p_beyond: float, *, known: bool) -> Judgement:
    # Where nothing could have told that it acted, worse answers are worse all the same.
    if not each.acted and not (each.evidence is Evidence.NOTHING and p_beyond <= tail):
        return Judgement.NO_EFFECT
    if p_beyond <= tail:
        return Judgement.WORSE
    return Judgement.NOT_WORSE if known and p <= tail else Judgement.UNDECIDED


def _inside(each: Held, gate: Gate, margins: Mapping[str, float]) -> float | None:
    """That no measure is worse is as sure as the least sure of them, on the set of pairs where it is least sure."""
    worst: list[float] = []
    for name, margin in margins.items():
        for found in (each.whole[name], each.touched.get(name)):
            if found is None:
                continue
            p = None if found.pairs < gate.pairs else p_not_worse(BY_NAME[name], found, margin)
            if p is None:
                return None
            worst.append(p)
    return max(worst) if worst else None


def _beyond(each: Held, gate: Gate, margins: Mapping[str, float]) -> float | None:
    """That some measure is worse on some set of pairs: the surest, adjusted for choosing it."""
    tried = [
        p_worse(BY_NAME[name], found, margin)
        for name, margin in margins.items()
        for found in (each.whole[name], each.touched.get(name))
        if found is not None and found.pairs >= gate.pairs
    ]
    known = [p for p in tried if p is not None]
    return min(1.0, min(known) * len(known)) if known else None


def _need(held: Mapping[str, Paired], gate: Gate, margins: Mapping[str, float], tail: float) -> Need | None:
    told = [
        need(name, held[name], margin, tail, share=BY_NAME[name].share, least=gate.pairs)
        for name, margin in margins.items()
        if name in held
    ]
    return max(told, key=lambda each: (each.pairs - each.have, each.pairs), default=None)
