"""What was seen of one step: three weights for each direction, and what tells them apart. No text."""

from __future__ import annotations

from dataclasses import dataclass

from weighbridge.pipeline.probe.engine_counts import EngineCount
from weighbridge.pipeline.probe.prompt_count import PromptCount
from weighbridge.pipeline.probe.step import Step
from weighbridge.pipeline.probe.usage import Reported
from weighbridge.schemas.enumerations import Direction, FinishReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """What came back, counted and dropped.

    Attributes:
        choices: answers.
        of_choices: tokens of the text of each; empty without a tokenizer.
        pieces: events of a stream that carried text; 0 of a body.
        reasoning: tokens of reasoning that was delivered, counted here; null without a tokenizer.
        finish: why the last one ended.
        stop_asked: whether a stop string was asked for.
        limit: how long one answer may be.
        tool_call: whether a tool was called, so that there is more than text.
    """

    choices: int
    of_choices: tuple[int, ...]
    pieces: int
    reasoning: int | None
    finish: FinishReason | None
    limit: int
    stop_asked: bool = False
    tool_call: bool = False

    @property
    def tokens(self) -> int | None:
        """All tokens that were delivered as text; null where they cannot be counted."""
        if not self.of_choices or self.tool_call:
            return None
        return sum(self.of_choices) + (self.reasoning or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One step, observed.

    Attributes:
        step: which.
        usage: what was reported.
        prompt: the prompt, counted here; null without a tokenizer, or where its template refuses the prompt.
        answer: what came back.
        engine: what its counters say; null where they are not read, or were disturbed.
        disturbed: other requests were served meanwhile, each time it was tried.
        unasked: usage was not asked for, so that its absence is no fault.
        round: of a step that is sent several times, which time.
    """

    step: Step
    usage: Reported
    prompt: PromptCount | None
    answer: Delivered
    engine: EngineCount | None = None
    disturbed: bool = False
    unasked: bool = False
    round: int = 1

    @property
    def name(self) -> str:
        """The step, and which time it was sent."""
        return self.step.name if self.round == 1 else f"{self.step.name}#{self.round}"

    def told(self, direction: Direction) -> int | None:
        """What usage says."""
        return self.usage.input if direction is Direction.INPUT else self.usage.output

    def counted(self, direction: Direction) -> int | None:
        """What was counted here."""
        if direction is Direction.INPUT:
            return None if self.prompt is None else self.prompt.total
        return self.answer.tokens

    def computed(self, direction: Direction) -> int | None:
        """What the engine counted; where it counts computed prompts alone, with what usage says was cached."""
        if self.engine is None:
            return None
        if direction is Direction.OUTPUT:
            return self.engine.output
        if self.engine.input is not None or self.engine.computed is None:
            return self.engine.input
        return self.engine.computed + (self.usage.cached or 0)
