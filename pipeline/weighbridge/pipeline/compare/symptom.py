"""What worse answers look like, each told by a measure, with what usually helps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from weighbridge.pipeline.compare.comparison import Compared
from weighbridge.pipeline.compare.measure import BY_NAME
from weighbridge.pipeline.compare.pairs import Pair
from weighbridge.pipeline.compare.ranks import rank_correlation
from weighbridge.schemas.enumerations import FinishReason, Judgement, Severity

SURE: Final = 0.05  # expected share of false symptoms among those that are told
_PAIRS: Final = 30
_REPEATS: Final = 0.1  # more of an answer's runs of four repeat than in the baseline's, to count as one


@dataclass(frozen=True, slots=True)
class Symptom:
    """A way in which answers are worse.

    Attributes:
        code: of its finding.
        severity: of its finding.
        cure: what to do, beside what the likely cause asks for.
        rows: pairs that have it; 0: it is not there.
    """

    code: str
    severity: Severity
    cure: str
    rows: Callable[[Compared], int]


def _is_more(each: Compared, name: str) -> bool:
    """Whether the strategy has more of a measure than its baseline, beyond chance."""
    held = each.measured.get(name)
    return held is not None and held.q is not None and held.q <= SURE and (held.found.mean or 0.0) > 0


def _incomplete(each: Compared) -> int:
    """Answers that end at the limit, of which the baseline's ended by themselves."""
    if not _is_more(each, "capped"):
        return 0
    return sum(
        pair.on.stop is FinishReason.LENGTH and pair.off.stop not in {FinishReason.LENGTH, None} for pair in each.pairs
    )


def _repeating(each: Compared) -> int:
    if not _is_more(each, "rep_4"):
        return 0
    return sum((pair.on_alone.rep_4 or 0.0) - (pair.off_alone.rep_4 or 0.0) > _REPEATS for pair in each.pairs)


def _longer_is_worse(each: Compared) -> int:
    """Whether the loss grows with the prompt: by ranks, so that a few long prompts do not decide."""
    known = [pair for pair in each.pairs if pair.off.cost.prompt_tokens is not None]
    if len(known) < _PAIRS:
        return 0
    lengths = [pair.off.cost.prompt_tokens or 0 for pair in known]
    losses = [_loss(pair) for pair in known]
    rho = rank_correlation(lengths, losses)
    if rho is None or rho <= 0 or rho * (len(known) - 1) ** 0.5 < 2.33:  # one-sided 1 %
        return 0
    half = float(np.median(lengths))
    return sum(length > half and loss > 0 for length, loss in zip(lengths, losses, strict=True))


def _loss(pair: Pair) -> float:
    agreement = pair.values().get("agreement")
    off, on = agreement if agreement is not None else pair.values()["similarity"]
    return off - on


def _worse(each: Compared) -> int:
    return len(each.pairs) if each.judgement is Judgement.WORSE else 0


SYMPTOMS: tuple[Symptom, ...] = (
    Symptom("strategy_worse", Severity.WARNING, "Do not use this strategy as it is set.", _worse),
    Symptom("answers_incomplete", Severity.WARNING,
            "Answers run into their limit instead of ending: the end token is lost.", _incomplete),
    Symptom("answers_repeat", Severity.WARNING, "Answers go in circles.", _repeating),
    Symptom("worse_with_length", Severity.NOTICE,
            "Use the strategy for short prompts only, or let its budget grow with the prompt.", _longer_is_worse),
)  # fmt: skip
assert all(name in BY_NAME for name in ("capped", "rep_4", "similarity", "agreement"))
