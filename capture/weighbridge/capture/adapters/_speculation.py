"""What speculation drafted and what of it was accepted: noted per verify step, counted once the call is over."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass, field
from typing import Any, Final, TypedDict

from weighbridge.capture.adapters._counts import UNKNOWN
from weighbridge.capture.guard import Guard
from weighbridge.capture.layout import ACCEPTED_STEPS
from weighbridge.schemas.enumerations import Axis, Operation, Phase, PositionSpace
from weighbridge.schemas.strategy import Strategy
from weighbridge.schemas.trace import Trace, row_of

_EXACT: Final = 8  # accepted lengths below it have a bin of their own
_LONG: Final = 16
_SETTINGS: Final = ("num_output_tokens", "max_matching_ngram_size", "num_assistant_tokens", "main_model_min_logits")
_NOTHING: Final = dict.fromkeys(("drafted", "accepted", "rejected", "bonus", *ACCEPTED_STEPS), 0)


@dataclass(slots=True)
class Drafts:
    """What speculation proposed in each verify step, in order.

    Attributes:
        keep: whether the proposed ids are wanted.
        starts: length of the sequence before the step.
        drafted, accepted: tokens per step; of a step that was not verified any more only the first is there.
        ids: the proposed ids, copied, where they are wanted.
        strategy: what proposes, where the ids are wanted.
    """

    keep: bool
    starts: list[int] = field(default_factory=list)
    drafted: list[int] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)
    ids: list[Any] = field(default_factory=list)
    strategy: Strategy | None = None


def watch(generator: Any, drafts: Drafts) -> None:
    """Note in `drafts` what a candidate generator of one call proposes, and what it is told was accepted."""
    if drafts.keep:
        with Guard("transformers.strategy"):
            drafts.strategy = speculation(generator)
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


def add_drafts(trace: Trace, drafts: Drafts) -> None:
    """Add what each verify step drafted, accepted and rejected, and the token it added itself, as state events.

    Positions of drafts count within their step. A step that was not verified any more has its draft alone.
    """
    for step, (start, drafted) in enumerate(zip(drafts.starts, drafts.drafted, strict=True)):
        at = _Step(step=step, phase=Phase.VERIFY)
        if drafted:
            _draft(trace, Operation.DRAFT, range(drafted), drafted, at)
        if step >= len(drafts.accepted):
            continue
        accepted = drafts.accepted[step]
        if drafted:
            _draft(trace, Operation.ACCEPT, range(accepted), drafted, at)
            _draft(trace, Operation.REJECT, range(accepted, drafted), drafted, at)
        end = start + accepted
        trace.add(Axis.EMIT, Operation.BONUS, [1 << end], width=end + 1, **at)


class _Step(TypedDict):
    step: int
    phase: Phase


def _draft(trace: Trace, op: Operation, nodes: range, drafted: int, at: _Step) -> None:
    if nodes:
        trace.add(Axis.EMIT, op, [row_of(nodes)], width=drafted, pos_space=PositionSpace.DRAFT_NODE, **at)


def speculation(generator: Any) -> Strategy:
    """The strategy of a candidate generator: its class and the whole numbers it was set up with."""
    version = importlib.metadata.version("transformers")
    numbers = {
        name: value for name, value in sorted(vars(generator).items()) if name in _SETTINGS and type(value) is int
    }
    return Strategy(type(generator).__name__, "speculation", numbers, library="transformers", library_version=version)


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
