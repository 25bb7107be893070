"""One request of continuous batching: a prompt and the sequences it is answered with, read when all have ended."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from weighbridge.capture.adapters._counts import UNKNOWN, stated
from weighbridge.capture.adapters._token_runs import offer
from weighbridge.capture.binding import Attempt
from weighbridge.capture.layout import ACCEPTED_STEPS, outcome_word
from weighbridge.schemas.enumerations import AttemptStatus, ChildKind, FinishReason

# Continuous batching drafts nothing.
_UNDRAFTED: Final = dict.fromkeys(("drafted", "accepted", "rejected", "bonus", *ACCEPTED_STEPS), 0)
_WHY: Final = {AttemptStatus.FAILED: FinishReason.ERROR, AttemptStatus.ABORTED: FinishReason.ABORT}


@dataclass(slots=True)
class Ended:
    """One sequence that ended.

    Attributes:
        child: 1 for the request's own sequence, then those it was forked into.
        output: the framework's `GenerationOutput`.
        status: how it ended.
        restarted: it lost its place in the cache and was computed again, prompt and all.
        at: when it ended, on the clock of `time.perf_counter`.
    """

    child: int
    output: Any
    status: AttemptStatus
    restarted: bool = False
    at: float = field(default_factory=time.perf_counter)

    @property
    def computed(self) -> int:
        """Tokens that were generated. A failure may drop what it does not hand out, so none then is not zero."""
        tokens = len(self.output.generated_tokens)
        return tokens if tokens or self.status is not AttemptStatus.FAILED else UNKNOWN

    def ends_in(self, ends: Sequence[int]) -> bool:
        """Whether its last token is one of these."""
        tokens = self.output.generated_tokens
        return bool(tokens) and tokens[-1] in ends


@dataclass(slots=True)
class Request:
    """One request under way.

    Attributes:
        id: the framework's name for it.
        began: when it was made, on the clock of `time.perf_counter`.
        wanted: sequences that will end; each becomes a child where there are several.
        ends: its end tokens.
        limit: tokens after which a sequence stops, None without a limit.
        left: how the call that waited for it ended, where its caller did not get the result.
        held: it is written by the call that waits for it, not when its last sequence ends.
        cached: prompt tokens found in the prefix cache.
        ended: the sequences that did.
    """

    attempt: Attempt
    id: str
    began: float
    wanted: int
    ends: tuple[int, ...]
    limit: int | None
    left: AttemptStatus | None = None
    held: bool = False
    cached: int = 0
    ended: list[Ended] = field(default_factory=list)
    _unwritten: list[bool] = field(default_factory=lambda: [True])

    def complete(self) -> bool:
        """Whether every sequence ended."""
        return len(self.ended) >= self.wanted

    def write(self) -> None:
        """Write its records; the second of two threads that come to do so finds it done."""
        try:
            self._unwritten.pop()
        except IndexError:
            return
        attempt, ended = self.attempt, sorted(self.ended, key=lambda each: each.child)
        if len(ended) > 1:
            for each in ended:
                known = {"input_computed": self._prompt([each])} | self._outputs([each])
                word = outcome_word(each.status, self._finish(each))
                recorder = attempt.binding.recorder
                recorder.finish_child(attempt, each.child, ChildKind.CHOICE, word, stated(known))
        expected = UNKNOWN
        if attempt.level >= 2 and ended:
            outputs = [(each.child if len(ended) > 1 else 0, each.output.generated_tokens) for each in ended]
            expected = offer(attempt, ended[0].output.prompt_ids, outputs)
        status = self._status()
        finishes = {self._finish(each) for each in ended} or {_WHY[status]}
        finish = finishes.pop() if len(finishes) == 1 else FinishReason.OTHER
        attempt.finish(outcome_word(status, finish), stated(self._known(ended)), None, expected)

    def _status(self) -> AttemptStatus:
        """The worst of its sequences and of the call that waited for it."""
        found = {self.left, *(each.status for each in self.ended)}
        return next((status for status in _WHY if status in found), AttemptStatus.SUCCEEDED)

    def _finish(self, each: Ended) -> FinishReason:
        if each.status in _WHY:
            return _WHY[each.status]
        if each.ends_in(self.ends):
            return FinishReason.STOP
        return FinishReason.LENGTH if self.limit is not None and each.computed >= self.limit else FinishReason.OTHER

    def _prompt(self, ended: Sequence[Ended]) -> int:
        """Tokens of the prompt. Of one that was cancelled or failed before its first token, part may be computed."""
        if all(each.computed > 0 or each.status is AttemptStatus.SUCCEEDED for each in ended):
            return len(ended[0].output.prompt_ids)
        return UNKNOWN

    def _outputs(self, ended: Sequence[Ended]) -> dict[str, int]:
        if any(each.computed < 0 for each in ended):
            return {}
        output, ends = sum(each.computed for each in ended), sum(each.ends_in(self.ends) for each in ended)
        if self.left or any(each.status is not AttemptStatus.SUCCEEDED for each in ended):
            # How much of it the host took is not known.
            return {"output_computed": output}
        return {"output_computed": output, "output_delivered": output - ends, "withheld_end_token": ends}

    def _known(self, ended: Sequence[Ended]) -> dict[str, int]:
        if not ended:
            return {}
        prompt, outputs = self._prompt(ended), self._outputs(ended)
        known = {"input_computed": prompt, "undrafted": outputs.get("output_computed", UNKNOWN), **_UNDRAFTED}
        if prompt >= 0 and not ended[0].restarted:
            known |= {"cached_local": self.cached, "cached_external": 0, "prefill_computed": prompt - self.cached}
        return known | outputs | self._times(ended)

    def _times(self, ended: Sequence[Ended]) -> dict[str, int]:
        """Microseconds: in the queue and to the end; the first token only where the caller had times recorded."""
        last = max(each.at for each in ended)
        known = {"total_us": int((last - self.began) * 1e6)}
        if any(each.restarted or each.status is not AttemptStatus.SUCCEEDED for each in ended):
            return known
        started = ended[0].output.lifespan[0]
        if started >= self.began:
            known["queue_us"] = int((started - self.began) * 1e6)
            tokens = [each.output.timestamps for each in ended]
            if all(tokens):
                first = min(times[0] for times in tokens)
                known["first_token_us"] = int((first - self.began) * 1e6)
                known["prefill_us"] = known["first_token_us"] - known["queue_us"]
                known["decode_us"] = known["total_us"] - known["first_token_us"]
        return known
