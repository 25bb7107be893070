"""A comparison: strategies beside one baseline, measured, judged, ranked by what they save."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from math import exp

from weighbridge.pipeline.compare.answer import Side
from weighbridge.pipeline.compare.bootstrap import Paired, paired
from weighbridge.pipeline.compare.effect import shown
from weighbridge.pipeline.compare.gate import Gate, loss_of, p_not_worse, p_worse
from weighbridge.pipeline.compare.mcnemar import McNemar, mcnemar
from weighbridge.pipeline.compare.measure import BY_NAME, MEASURES
from weighbridge.pipeline.compare.multiplicity import benjamini_hochberg, holm
from weighbridge.pipeline.compare.pairs import Baseline, Pair, pair_up, unrelated
from weighbridge.pipeline.compare.saving import MONEY, RESOURCES, Saving, savings
from weighbridge.pipeline.compare.survival import Step, survival
from weighbridge.schemas.enumerations import Judgement
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import NAME

PASSED = ("exact", "score", "capped")  # measures of which a pair passes or not
_HALF = 0.5
Loss = tuple[float | None, float | None, float | None]


@dataclass(frozen=True, slots=True)
class Measured:
    """One measure of one strategy.

    Attributes:
        off, on: means of both sides, over pairs that know both.
        found: of the differences, on - off.
        q: p-value of no difference, adjusted over all measures and strategies (Benjamini-Hochberg); null where open.
        unrelated: its mean between answers to different prompts; null where it does not hold two answers together.
    """

    off: float
    on: float
    found: Paired
    q: float | None = None
    unrelated: float | None = None


@dataclass(frozen=True, slots=True)
class Compared:
    """One strategy beside the baseline.

    Attributes:
        side: its answers.
        pairs: of both sides.
        unpaired: answers without a partner, on either side.
        unshown: pairs that nothing shows the strategy to have touched.
        measured: by measure.
        passed: exact tests of measures that pass or not.
        parting: when its answers part from the baseline's.
        floor: when the baseline's second run parts from it; empty where there is none, or it never does.
        perplexity: of the baseline's answers, for the baseline and for the strategy; null where not known.
        saved: by resource.
        judgement: what is said of it.
        losses: measure of the gate -> loss with its limits, above zero where worse.
        p_gate: the largest p-value that it is not worse, over the gate's measures, adjusted over strategies (Holm).
    """

    side: Side
    pairs: tuple[Pair, ...]
    unpaired: int
    unshown: int
    measured: Mapping[str, Measured]
    passed: Mapping[str, McNemar]
    parting: tuple[Step, ...]
    floor: tuple[Step, ...]
    perplexity: tuple[float, float] | None
    saved: Mapping[str, Saving]
    judgement: Judgement = Judgement.UNDECIDED
    losses: Mapping[str, Loss] = field(default_factory=dict)
    p_gate: float | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Strategies beside one baseline.

    Attributes:
        baseline: its side.
        floor_measured: whether the baseline was run twice; else equal answers are what is expected of it.
        margins: what decided.
        resource: by what strategies are ranked; null where nothing is known of what they take.
        strategies: in the order of what they save, most first.
        recommended: the most saving one among those not worse; null where there is none.
    """

    baseline: Side
    floor_measured: bool
    gate: Gate
    margins: Mapping[str, float]
    resource: str | None
    strategies: tuple[Compared, ...]
    recommended: str | None

    @property
    def model(self) -> str | None:
        """The model, where it has a name that may stand in the lake; descriptions may not."""
        name = self.baseline.model
        return name if name is not None and NAME.fullmatch(name) else None


def compare(
    off: Side, on: Sequence[Side], gate: Gate, *, resource: str | None = None, hour: Decimal | None = None
) -> Comparison:
    """Compare strategies with a baseline.

    Args:
        off: the baseline.
        on: the strategies.
        gate: what decides.
        resource: by what to rank; null: the first of `RESOURCES` that is known of all.
        hour: what an hour of the machine costs, null where not known.

    Raises:
        ContractError: ids of different tokenizers, or no pair in common.
        ConfigError: the gate names a measure that is not known, or there is no such resource.
    """
    if resource is not None and resource not in (*RESOURCES, MONEY):
        raise ConfigError(f"nothing is ranked by {resource!r}; allowed are {', '.join((*RESOURCES, MONEY))}")
    baseline = Baseline(off)
    held = [_measure(baseline, side, gate, hour) for side in on]
    known = frozenset.intersection(*(frozenset(each.measured) for each in held))
    margins = gate.of(known)
    judged = _explored(_judged(held, gate, margins))
    if resource is not None and not any(resource in each.saved for each in judged):
        cure = "say what an hour costs (`hour`, --hour)" if resource == MONEY and hour is None else "rank by another"
        raise ConfigError(f"of no strategy is it known how much {resource} it takes, so none can be ranked; {cure}")
    named = resource or next((name for name in RESOURCES if all(name in each.saved for each in judged)), None)
    ranked = tuple(sorted(judged, key=lambda each: -(saved_by(each, named) or 0.0)))
    able = [each for each in ranked if each.judgement is Judgement.NOT_WORSE and (saved_by(each, named) or 0.0) > 0]
    return Comparison(off, bool(off.again), gate, margins, named, ranked, able[0].side.name if able else None)


def saved_by(each: Compared, resource: str | None) -> float | None:
    """The share of a resource a strategy saves, null where not known."""
    found = None if resource is None else each.saved.get(resource)
    return None if found is None else found.saved


def _measure(baseline: Baseline, side: Side, gate: Gate, hour: Decimal | None) -> Compared:
    pairs = pair_up(baseline, side)
    values = [pair.values() for pair in pairs]
    clusters = [pair.cluster for pair in pairs]
    null = unrelated(pairs, gate.seed)
    measured: dict[str, Measured] = {}
    for measure in MEASURES:
        have = [at for at, value in enumerate(values) if measure.name in value]
        if not have:
            continue
        both = [values[at][measure.name] for at in have]
        found = paired(
            [second - first for first, second in both],
            [clusters[at] for at in have],
            level=gate.level,
            resamples=gate.resamples,
            seed=gate.seed,
            worst=1.0 if measure.share else None,
        )
        before, after = (sum(values) / len(both) for values in zip(*both, strict=True))
        measured[measure.name] = Measured(before, after, found, unrelated=null.get(measure.name))
    return Compared(
        side=side,
        pairs=tuple(pairs),
        unpaired=len(baseline.side.answers.keys() ^ side.answers.keys()),
        unshown=sum(not shown(pair.off, pair.on) for pair in pairs),
        measured=measured,
        passed={name: _passed(name, values) for name in PASSED if name in measured},
        parting=survival((pair.held.prefix, not pair.held.exact) for pair in pairs),
        floor=survival((pair.floor.prefix, not pair.floor.exact) for pair in pairs if pair.floor is not None),
        perplexity=_perplexity(pairs),
        saved=savings(pairs, hour),
    )


def _passed(name: str, values: Sequence[Mapping[str, tuple[float, float]]]) -> McNemar:
    better = BY_NAME[name].better
    both = [value[name] for value in values if name in value]
    off, on = ([better * (side - _HALF) > 0 for side in column] for column in zip(*both, strict=True))
    return mcnemar(off, on)


def _perplexity(pairs: Sequence[Pair]) -> tuple[float, float] | None:
    known = [
        (pair.off.cost.nll, pair.off.cost.forced, pair.on.cost.nll, pair.on.cost.forced)
        for pair in pairs
        if None not in {pair.off.cost.nll, pair.off.cost.forced, pair.on.cost.nll, pair.on.cost.forced}
    ]
    off, off_places, on, on_places = (sum(column) for column in zip(*known, strict=True)) if known else (0, 0, 0, 0)
    return (exp(off / off_places), exp(on / on_places)) if off_places and on_places else None


def _judged(held: Sequence[Compared], gate: Gate, margins: Mapping[str, float]) -> list[Compared]:
    """Judge each strategy; that it is not worse is held to the gate's level over all of them."""
    tail = (1 - gate.level) / 2
    inside = [_inside(each, margins) for each in held]
    beyond = [_beyond(each, margins) for each in held]
    adjusted = holm([1.0 if p is None else p for p in inside])
    adjusted_beyond = holm([1.0 if p is None else p for p in beyond])
    out = []
    for each, p, p_beyond in zip(held, adjusted, adjusted_beyond, strict=True):
        if each.unshown == len(each.pairs):
            word = Judgement.NO_EFFECT
        elif len(each.pairs) < gate.pairs or not margins:
            word = Judgement.UNDECIDED
        elif p_beyond <= tail:
            word = Judgement.WORSE
        else:
            word = Judgement.NOT_WORSE if p <= tail else Judgement.UNDECIDED
        losses = {name: loss_of(BY_NAME[name], each.measured[name].found) for name in margins}
        out.append(replace(each, judgement=word, losses=losses, p_gate=p if margins else None))
    return out


def _inside(each: Compared, margins: Mapping[str, float]) -> float | None:
    """That no measure of the gate is worse is as sure as the least sure of them."""
    held = [p_not_worse(BY_NAME[name], each.measured[name].found, margin) for name, margin in margins.items()]
    known = [p for p in held if p is not None]
    return max(known) if known and len(known) == len(held) else None


def _beyond(each: Compared, margins: Mapping[str, float]) -> float | None:
    """That some measure of the gate is worse: the surest, adjusted for choosing it."""
    held = [p_worse(BY_NAME[name], each.measured[name].found, margin) for name, margin in margins.items()]
    known = [p for p in held if p is not None]
    return min(1.0, min(known) * len(known)) if known else None


def _explored(held: Sequence[Compared]) -> list[Compared]:
    """Say of every measure of every strategy how sure a difference is, at a share of false ones."""
    places = [(at, name) for at, each in enumerate(held) for name in each.measured]
    tested = []
    for at, name in places:
        passed = held[at].passed.get(name)
        tested.append(held[at].measured[name].found.p_zero() if passed is None else passed.p)
    known = [at for at, p in enumerate(tested) if p is not None]
    q = dict(zip(known, benjamini_hochberg([tested[at] or 0.0 for at in known]), strict=True))
    told: list[dict[str, Measured]] = [{} for _ in held]
    for number, (at, name) in enumerate(places):
        told[at][name] = replace(held[at].measured[name], q=q.get(number))
    return [replace(each, measured=measured) for each, measured in zip(held, told, strict=True)]
