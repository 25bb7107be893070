"""The causes an audit can name, by a documented procedure: the first whose evidence is there is the one.

What stands in the record by itself (a missing report, a repeated one, a limit that was passed) comes before shapes in
numbers, and a shape that is exact (a constant, so many tokens a message) before one that is likely.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from weighbridge.pipeline.audit.evidence import Evidence
from weighbridge.schemas.enumerations import AuditMeasure

HALF = 0.5
# More of the honest scatter is what a dice makes of every token, less is what a factor makes of an answer.
_DICE = 0.35
_SURE = 5.0
_FEW, _MOST_OF = 0.3, 0.8
_HISTORY = 0.15


@dataclass(frozen=True, slots=True)
class Label:
    """A cause that an audit names.

    Attributes:
        code: stable, snake_case.
        sides: 1 for too much, -1 for too little.
        fits: whether the evidence shows it; asked in the order of `LABELS`.
        says: what it means, as the end of a sentence that begins with how far reports are off.
        cure: one sentence that says what to do.
        accuses: whether it may stand in an accusation. What our own counting may have caused may not.
        constant: whether it is a convention: the same for every answer, or for every message.
    """

    code: str
    sides: tuple[int, ...]
    fits: Callable[[Evidence], bool]
    says: str
    cure: str
    accuses: bool = True
    constant: bool = False


def _drifted(found: Evidence) -> bool:
    change = found.change
    if change is None or change.sureness < _SURE or abs(change.before) > 0.2 * abs(change.after):
        return False
    return found.scatter > _DICE and found.of_large < _MOST_OF


def _few_values(found: Evidence) -> bool:
    shape = found.spikes.clustered and found.spikes.values != (0,)
    return shape and found.of_spikes >= HALF and (not found.grows or _apart(found))


def _apart(found: Evidence) -> bool:
    """Whether there is nothing between the values; what grows goes through all of them."""
    return max(np.diff(np.unique([0, *found.spikes.values])), default=0) > 2


def _end_token(found: Evidence) -> bool:
    return _few_values(found) and max(map(abs, found.spikes.values)) <= 2


def _in_bursts(found: Evidence) -> bool:
    return found.large <= _FEW and found.of_large >= _MOST_OF


LABELS: tuple[Label, ...] = (
    Label(
        "usage_missing",
        (-1,),
        lambda found: found.missing >= HALF,
        "because answers have no usage report",
        "Ask for usage in every answer (in streams too), or import the provider's own log of it.",
    ),
    Label(
        "retry_duplicated",
        (1,),
        lambda found: found.repeated >= HALF,
        "because answers were reported more than once",
        "Ask the provider to charge an answer once, and give every retry the same idempotency key.",
    ),
    Label(
        "hidden_reasoning_inflation",
        (1,),
        lambda found: found.measure is AuditMeasure.HIDDEN_REASONING or found.unseen_reasoning >= HALF,
        "in reasoning that nobody but the provider sees",
        "Ask the provider for evidence of the reasoning, and compare with another place that serves this model.",
    ),
    Label(
        "over_cap",
        (1,),
        lambda found: found.over_limit >= HALF,
        "because answers were billed above the limit of output tokens that was asked for",
        "Dispute what lies above the limit: no answer can be longer than it.",
    ),
    Label(
        "discarded_drafts",
        (1,),
        lambda found: found.rejected >= HALF,
        "by exactly the drafted tokens that were thrown away",
        "Ask for rejected drafts not to be charged, or turn speculation with predicted outputs off.",
    ),
    Label(
        "cached_as_fresh",
        (1,),
        lambda found: found.measure is AuditMeasure.UNCACHED_INPUT,
        "because cached tokens were charged as fresh ones",
        "Ask for the cached price of what the cache held, or keep prefixes unchanged if the cache was missed for real.",
    ),
    Label(
        "template_not_applied",
        (1, -1),
        lambda found: found.per_message is not None and found.per_message.holds,
        "by the same number of tokens for every message",
        "Count prompts with the chat template the server applies; this is no discrepancy.",
        accuses=False,
        constant=True,
    ),
    Label(
        "end_token_convention",
        (1, -1),
        _end_token,
        "by an end token for each answer",
        "Declare whether this API counts the end token, and calibrate the cell anew.",
        accuses=False,
        constant=True,
    ),
    Label(
        "router_mixture",
        (1, -1),
        _few_values,
        "by whole numbers that some answers have and others have not, as behind a router to servers of several kinds",
        "Pin the server behind the router, or audit each of them as a cell of its own.",
        accuses=False,
        constant=True,
    ),
    Label(
        "history_duplicated",
        (1,),
        lambda found: found.measure is AuditMeasure.INPUT and found.history >= _HISTORY,
        "by the history of each conversation, which is in the prompt twice",
        "Look at what is sent and what is billed for the second turn of one conversation; only one may hold it twice.",
    ),
    Label(
        "burst",
        (1,),
        _in_bursts,
        "on few answers, and by much on each of them",
        "Dispute these answers one by one; their ids are with the finding.",
    ),
    Label(
        "tokenizer_drift",
        (1, -1),
        _drifted,
        "from one day on, answer by answer differently: the tokenizer that counts is not the one that bills any more",
        "Find out what changed on that day, count with the tokenizer of now, and calibrate the cell anew.",
        accuses=False,
    ),
    Label(
        "random_split",
        (1,),
        lambda found: found.slope > 0 and found.scatter > _DICE,
        "as if tokens had been split here and there before they were counted",
        "Ask for the token ids, and hold them against the tokenizer's own division of the text.",
    ),
    Label(
        "constant_factor",
        (1, -1),
        lambda found: found.slope > 0,
        "by the same share of every answer",
        "Dispute the share: ask for the provider's own counts of some of these answers.",
    ),
)
UNKNOWN_LABEL = Label(
    "unknown",
    (1, -1),
    lambda _: True,
    "and no cause that is known here shows such figures",
    "Look at the answers with the largest gaps (`weighbridge explain`), and ask the provider about them.",
)


def label_of(found: Evidence, side: int) -> Label:
    """The first label whose evidence is there; `UNKNOWN_LABEL` where there is none."""
    return next((label for label in LABELS if side in label.sides and label.fits(found)), UNKNOWN_LABEL)
