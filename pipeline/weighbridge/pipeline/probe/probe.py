"""A probe: each step sent, weighed three times, and judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from weighbridge.pipeline.probe.answer import delivered
from weighbridge.pipeline.probe.api import Api, Form
from weighbridge.pipeline.probe.endpoint import Answered, ProbeError, Wire
from weighbridge.pipeline.probe.engine_counts import EngineCount
from weighbridge.pipeline.probe.observation import Observation
from weighbridge.pipeline.probe.prompt_count import count_prompt
from weighbridge.pipeline.probe.prompts import prompts
from weighbridge.pipeline.probe.step import FIRST, Step
from weighbridge.pipeline.probe.usage import reported
from weighbridge.pipeline.probe.watch import Watch
from weighbridge.recount.recounter import Recounter

QUIET_TRIES = 3  # of a step during which other requests were served
_HOPELESS = frozenset({401, 403, 429})


@dataclass(slots=True)
class Probe:
    """What is needed to send steps.

    Attributes:
        wire, api, model: where to, how, and for what.
        provider: whose dialect reads the usage.
        counts: the tokenizer and template; null: nothing is counted here.
        watch: the engine's counters; null: they are not read.
        limit: how many tokens an answer may have.
        repeat: how often the steps are sent that are sent again.
        left_out: step -> why it was not taken.
    """

    wire: Wire
    api: Api
    model: str
    provider: str
    counts: Recounter | None = None
    watch: Watch | None = None
    limit: int = 16
    repeat: int = 2
    left_out: dict[str, str] = field(default_factory=dict)
    _form: Form | None = None

    def observe(self, steps: Sequence[Step]) -> list[Observation]:
        """Send every step.

        Raises:
            ProbeError: the endpoint cannot be probed at all.
            ContractError: the metrics cannot be read.
        """
        seen = []
        for step in steps:
            for number in range(1, (self.repeat if step.repeats else 1) + 1):
                try:
                    one = self._quiet(step)
                except ProbeError as error:
                    if step.name == FIRST or error.status is None or error.status in _HOPELESS:
                        raise
                    told = "does not offer it" if error.not_offered else "failed at it"
                    self.left_out[step.name] = f"the server {told} (status {error.status})"
                    break
                if one.answer.choices < step.ask(prompts()).choices:
                    self.left_out[step.name] = "the server gives one answer, whatever is asked"
                    break
                seen.append(replace(one, round=number))
        return seen

    def _quiet(self, step: Step) -> Observation:
        """A step during which nobody else was served, or the last try."""
        for _ in range(QUIET_TRIES):
            before = None if self.watch is None else self.watch.now()
            answered, limit = self._send(step)
            counted = None if self.watch is None or before is None else self.watch.since(before)
            one = self._weighed(step, answered, limit, counted)
            requests = 0 if counted is None else counted.requests or 0
            if requests <= one.answer.choices:
                return one
        return replace(one, engine=None, disturbed=True)

    def _send(self, step: Step) -> tuple[Answered, int]:
        """The answer, and its limit as it was asked for. The first step finds the form the server takes."""
        ask = step.ask(prompts())
        forms = self.api.forms if self._form is None else (self._form,)
        for form in forms:
            body = self.api.body(ask, self.model, self.limit, form)
            try:
                answered = self.wire.post(body, stream=ask.stream)
            except ProbeError as error:
                if error.status not in {400, 422} or form is forms[-1]:
                    raise
                continue
            self._form = form
            return answered, int(body[form.limit])
        raise AssertionError("the last form answers or raises")

    def _weighed(self, step: Step, answered: Answered, limit: int, counted: EngineCount | None) -> Observation:
        ask = step.ask(prompts())
        return Observation(
            step=step,
            usage=reported(answered, self.provider, self.api.dialect, self.model),
            prompt=None if self.counts is None else count_prompt(self.counts, ask, chat=self.api.chat),
            answer=delivered(answered, self.api, ask, limit, self.counts),
            engine=counted,
            unasked=step.unasked,
        )
