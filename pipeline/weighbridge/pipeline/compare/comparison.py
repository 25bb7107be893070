"""A comparison: strategies beside one baseline, measured, judged, ranked by what they save."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from math import exp

from weighbridge.pipeline.compare.answer import Side
from weighbridge.pipeline.compare.bootstrap import Paired, paired
from weighbridge.pipeline.compare.effect import evidence, shown
from weighbridge.pipeline.compare.gate import Gate, loss_of
from weighbridge.pipeline.compare.judging import Held, Ruling, hold, judge
from weighbridge.pipeline.compare.mcnemar import McNemar, mcnemar
from weighbridge.pipeline.compare.measure import BY_NAME, MEASURES
from weighbridge.pipeline.compare.multiplicity import benjamini_hochberg
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
        hour: what an hour of the machine costs, null where not known.
        judgement: what is said of it.
        losses: measure of the gate -> loss with its limits, above zero where worse.
        touched: likewise over the pairs on which the strategy acted; empty where these are all, or none.
        held: what was judged; null before it is.
        ruling: what came of it; null before it is judged.
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
    hour: Decimal | None = None
    judgement: Judgement = Judgement.UNDECIDED
    losses: Mapping[str, Loss] = field(default_factory=dict)
    touched: Mapping[str, Loss] = field(default_factory=dict)
    held: Held | None = None
    ruling: Ruling | None = None

    @property
    def acted(self) -> int:
        """Pairs on which something shows that the strategy acted."""
        return len(self.pairs) - self.unshown

    def acted_on(self) -> Compared:
        """The pairs on which it acted, with what it saves there; its judgement and its measures are those of all."""
        pairs = tuple(pair for pair in self.pairs if shown(pair.off, pair.on))
        return replace(self, pairs=pairs, saved=savings(pairs, self.hour), losses=self.touched, unshown=0)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Strategies beside one baseline.

    Attributes:
        baseline: its side.
        floor_measured: whether the baseline was run twice; else equal answers are what is expected of it.
        unrepeated: pairs of which its second answer differed from its first.
        margins: what decided.
        resource: by what strategies are ranked; null where nothing is known of what they take.
        strategies: in the order of what they save, most first.
        recommended: the most saving one among those not worse; null where there is none.
    """

    baseline: Side
    floor_measured: bool
    unrepeated: int
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

    def without(self, refused: Container[str]) -> Comparison:
        """The same, and what is recommended is none of these."""
        return replace(self, recommended=_recommended(self.strategies, self.resource, refused))


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
    differing = off.unlike | {
        name
        for name, again in off.again.items()
        if name in off.answers and list(again.ids) != list(off.answers[name].ids)
    }
    return Comparison(
        off,
        bool(off.again) or bool(off.unlike),
        len(differing),
        gate,
        margins,
        named,
        ranked,
        _recommended(ranked, named),
    )


def _recommended(ranked: Sequence[Compared], resource: str | None, refused: Container[str] = ()) -> str | None:
    """The first that is not worse, saves something, and was not refused."""
    able = (each for each in ranked if each.judgement is Judgement.NOT_WORSE and (saved_by(each, resource) or 0.0) > 0)
    return next((each.side.name for each in able if each.side.name not in refused), None)


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
        passed={name: _passed(name, pairs) for name in PASSED if name in measured},
        parting=survival((pair.held.prefix, not pair.held.exact) for pair in pairs),
        floor=survival((pair.floor.prefix, not pair.floor.exact) for pair in pairs if pair.floor is not None),
        perplexity=_perplexity(pairs),
        saved=savings(pairs, hour),
        hour=hour,
    )


def _passed(name: str, pairs: Sequence[Pair]) -> McNemar:
    """Held against the second run of the baseline where what passes is to be like the first one."""
    measure = BY_NAME[name]
    both = [value for pair in pairs if (value := pair.once(measure)) is not None]
    off, on = ([measure.better * (side - _HALF) > 0 for side in column] for column in zip(*both, strict=True))
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
    """Judge each strategy."""
    drawn = [_held(each, gate, margins) for each in held]
    out = []
    for each, given, ruling in zip(held, drawn, judge(drawn, gate, margins), strict=True):
        losses, touched = (
            {name: loss_of(BY_NAME[name], found) for name, found in told.items()}
            for told in (given.whole, given.touched)
        )
        out.append(replace(each, judgement=ruling.judgement, losses=losses, touched=touched, held=given, ruling=ruling))
    return out


def _held(each: Compared, gate: Gate, margins: Mapping[str, float]) -> Held:
    values = [pair.values() for pair in each.pairs]
    lost = {
        name: [None if name not in value else value[name][1] - value[name][0] for value in values] for name in margins
    }
    acted = [shown(pair.off, pair.on) for pair in each.pairs]
    told_by = evidence(pair.on for pair in each.pairs)
    return hold(lost, [pair.cluster for pair in each.pairs], acted, told_by, gate)


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
