"""What speaks for one cause or another in the answers of a cell: sums, shares and shapes, nothing that is guessed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weighbridge.pipeline.audit.scales import Floats, Ints, Mask
from weighbridge.pipeline.audit.spikes import PerMessage, Spikes, per_message, spikes
from weighbridge.pipeline.audit.weighings import UNKNOWN, Weighings
from weighbridge.schemas.enumerations import AuditMeasure

_LARGE_TOKENS, _LARGE_SHARE = 8, 0.2
_GROUPS = 12  # conversations of more messages go together
_NEARLY_NOTHING = 0.2
_WITHIN = 3  # tokens by which an answer honestly differs beside a cause that adds an exact number


@dataclass(frozen=True, slots=True)
class Change:
    """A time from which on gaps are others.

    Attributes:
        at: the first answer after it.
        before, after: gap per observed token on either side.
        sureness: their difference in standard errors.
    """

    at: int
    before: float
    after: float
    sureness: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """Of one side of a cell, with the gaps turned so that what is looked for is positive.

    Attributes:
        measure: what was weighed.
        rows: answers.
        total: the gaps added up, tokens.
        positive: of them, the positive ones.
        over_limit, repeated, missing, rejected, unseen_reasoning: share of `positive` on answers that were billed above
            their limit, had a repeated report, had none, show exactly the rejected tokens, exactly unseen reasoning.
        large: share of answers with a gap that is large beside their size.
        of_large: share of `positive` on them.
        spikes: values the gaps stand at.
        per_message: the line over messages.
        of_spikes: share of `positive` on answers whose gap is a spike.
        messages_known: share of the answers whose number of messages is known.
        history: how far the gap per token is told by the number of messages, rising from nearly nothing: 1 - what that
            leaves, against what one ratio for all leaves; 0 where messages are not known, or it does not rise so.
        grows: whether gaps grow with the size, beyond doubt and beyond honest traffic.
        slope: of the line through the gaps over the sizes.
        scatter: variance around it, in excess of rounding and honest traffic, per token that the line adds.
        change: the likeliest time of a change; null where there are too few answers.
    """

    measure: AuditMeasure
    rows: int
    total: int
    positive: int
    over_limit: float
    repeated: float
    missing: float
    rejected: float
    unseen_reasoning: float
    large: float
    of_large: float
    spikes: Spikes
    per_message: PerMessage | None
    of_spikes: float
    messages_known: float
    history: float
    grows: bool
    slope: float
    scatter: float
    change: Change | None


def gathered(weighed: Weighings, *, side: int, variance: float, grows: bool) -> Evidence:
    """The evidence of these answers.

    Args:
        weighed: answers of a cell, in the order of their arrival.
        side: 1 where too much is looked for, -1 where too little.
        variance: of gaps around their line on honest traffic.
        grows: whether they grow with the size (`verdict.rises`).
    """
    gaps = side * weighed.gaps
    positive = np.where(gaps > 0, gaps, 0)
    total = int(positive.sum())

    def share(rows: Mask) -> float:
        return float(positive[rows].sum() / total) if total else 0.0

    large = gaps > np.maximum(_LARGE_TOKENS, _LARGE_SHARE * weighed.sizes)
    slope, scatter = _scatter(gaps, weighed.sizes, variance)
    return Evidence(
        measure=weighed.measure,
        rows=weighed.rows,
        total=int(gaps.sum()),
        positive=total,
        over_limit=share((weighed.limit != UNKNOWN) & (weighed.reported > weighed.limit)),
        repeated=share(weighed.repeated > 0),
        missing=share(weighed.missing),
        rejected=share(_equal(gaps, weighed.rejected)),
        unseen_reasoning=share(_equal(gaps, weighed.unseen_reasoning)),
        large=float(large.mean()) if weighed.rows else 0.0,
        of_large=share(large),
        spikes=spikes(gaps),
        per_message=per_message(gaps, weighed.messages),
        of_spikes=share(np.isin(gaps, spikes(gaps).values)),
        messages_known=float((weighed.messages != UNKNOWN).mean()) if weighed.rows else 0.0,
        history=_history(gaps, weighed.sizes, weighed.messages),
        grows=grows,
        slope=slope,
        scatter=scatter,
        change=_change(gaps, weighed.sizes),
    )


def _equal(gaps: Ints, figure: Ints) -> Mask:
    found: Mask = (figure > _WITHIN) & (np.abs(gaps - figure) <= _WITHIN)
    return found


def _scatter(gaps: Ints, sizes: Ints, variance: float) -> tuple[float, float]:
    """The slope, and the variance that rounding (a quarter at most) and honest traffic do not account for."""
    if len(gaps) < 3 or np.ptp(sizes) == 0:
        return 0.0, 0.0
    slope, intercept = np.polyfit(sizes, gaps, 1)
    left = float(np.square(gaps - intercept - slope * sizes).mean())
    added = float(slope * sizes.mean())
    return float(slope), (left - 0.25 - variance) / added if added > 0 else 0.0


def _history(gaps: Ints, sizes: Ints, messages: Ints) -> float:
    known = messages > 0
    gap, size, number = gaps[known].astype(np.float64), sizes[known].astype(np.float64), messages[known]
    place = np.minimum(number, _GROUPS)
    groups = [np.flatnonzero(place == each) for each in np.unique(place)]
    if len(groups) < 3:
        return 0.0
    ratios = [_ratio(gap[own], size[own]) for own in groups]
    if abs(ratios[0]) > _NEARLY_NOTHING * ratios[-1] or ratios[-1] <= 0:
        return 0.0
    apart = sum(_left(gap[own], size[own], ratio) for own, ratio in zip(groups, ratios, strict=True))
    together = _left(gap, size, _ratio(gap, size))
    return 1.0 - apart / together if together > 0 else 0.0


def _ratio(values: Floats, beside: Floats) -> float:
    """The line through the origin."""
    return float((values * beside).sum() / max(float(np.square(beside).sum()), 1.0))


def _left(values: Floats, beside: Floats, ratio: float) -> float:
    return float(np.square(values - ratio * beside).sum())


def _change(gaps: Ints, sizes: Ints) -> Change | None:
    """The split of time that tells most of the gaps per observed token, a twentieth of the answers on each side."""
    rows = len(gaps)
    edge = max(5, rows // 20)
    if rows < 3 * edge:
        return None
    ratio = gaps / np.maximum(sizes, 1)
    at = np.arange(edge, rows - edge)
    sums, squares = np.cumsum(ratio), np.cumsum(ratio * ratio)
    before, after = sums[at - 1] / at, (sums[-1] - sums[at - 1]) / (rows - at)
    scatter = squares[-1] - at * before**2 - (rows - at) * after**2
    best = int(np.argmin(scatter))
    cut = int(at[best])
    error = np.sqrt(max(float(scatter[best]), 1e-30) / rows * (1.0 / cut + 1.0 / (rows - cut)))
    low, high = float(before[best]), float(after[best])
    return Change(cut, low, high, abs(high - low) / float(error))
