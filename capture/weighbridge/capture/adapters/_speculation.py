"""What speculation drafted and what of it was accepted: noted per verify step, counted once the call is over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from weighbridge.capture.adapters._counts import UNKNOWN
from weighbridge.capture.guard import Guard
from weighbridge.capture.layout import ACCEPTED_STEPS

_EXACT: Final = 8  # accepted lengths below it have a bin of their own
_LONG: Final = 16
_NOTHING: Final = dict.fromkeys(("drafted", "accepted", "rejected", "bonus", *ACCEPTED_STEPS), 0)


@dataclass(slots=True)
class Drafts:
    """What speculation proposed in each verify step, in order.

    Attributes:
        keep: whether the proposed ids are wanted.
        starts: length of the sequence before the step.
        drafted, accepted: tokens per step; of a step that was not verified any more only the first is there.
        ids: the proposed ids, copied, where they are wanted.
    """

    keep: bool
    starts: list[int] = field(default_factory=list)
    drafted: list[int] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)
    ids: list[Any] = field(default_factory=list)


def watch(generator: Any, drafts: Drafts) -> None:
    """Note in `drafts` what a candidate generator of one call proposes, and what it is told was accepted."""
    propose, update = generator.get_candidates, generator.update_candidate_strategy

    def get_candidates(input_ids: Any, *args: Any, **kwargs: Any) -> Any:
        answer = propose(input_ids, *args, **kwargs)
        with Guard("transformers.draft"):
            before = input_ids.shape[1]
            drafts.starts.append(before)
            drafts.drafted.append(answer[0].shape[1] - before)
            if drafts.keep:
                # A view would keep the whole sequence of every step.
                drafts.ids.append(answer[0][0, before:].clone())
        return answer

    def update_candidate_strategy(input_ids: Any, scores: Any, num_matches: Any, *args: Any, **kwargs: Any) -> Any:
        with Guard("transformers.accept"):
            drafts.accepted.append(int(num_matches))
        return update(input_ids, scores, num_matches, *args, **kwargs)

    vars(generator)["get_candidates"] = get_candidates
    vars(generator)["update_candidate_strategy"] = update_candidate_strategy


def drafting(drafts: Drafts, output: int) -> dict[str, int]:
    """The counts of speculation: totals, and the histogram of accepted lengths over the steps that had a draft.

    Without a draft every token is undrafted. What does not add up to `output` is unknown.
    """
    if not drafts.starts:
        return _NOTHING | {"undrafted": output}
    lengths = [took for took, drafted in zip(drafts.accepted, drafts.drafted, strict=False) if drafted]
    drafted, accepted, steps = sum(drafts.drafted), sum(drafts.accepted), len(drafts.accepted)
    counts = {"drafted": drafted, "accepted": accepted, "rejected": drafted - accepted} | _histogram(lengths)
    if accepted + steps != output:
        return counts | {"bonus": UNKNOWN, "undrafted": UNKNOWN}
    return counts | {"bonus": len(lengths), "undrafted": steps - len(lengths)}


def _histogram(lengths: list[int]) -> dict[str, int]:
    bins = [0] * len(ACCEPTED_STEPS)
    for length in lengths:
        bins[length if length < _EXACT else _EXACT if length < _LONG else _EXACT + 1] += 1
    return dict(zip(ACCEPTED_STEPS, bins, strict=True))
