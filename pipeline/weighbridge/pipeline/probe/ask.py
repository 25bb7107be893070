"""One request of a probe, in words that belong to no API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any


class Feature(StrEnum):
    """What an API may not have."""

    SYSTEM = "system"
    HISTORY = "history"
    TOOLS = "tools"
    STOP = "stop"
    CHOICES = "choices"
    REASONING = "reasoning"
    USAGE_ON_REQUEST = "usage_on_request"  # a stream carries usage only where it is asked for


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of a user or an assistant."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Ask:
    """What is asked.

    Attributes:
        turns: the conversation; the last turn is the user's.
        system: the system message.
        tool: the description of the one tool that is offered.
        stream, include_usage: whether the answer comes in pieces, and with usage.
        stop: a text at which the answer ends.
        choices: how many answers.
        think: ask for reasoning.
        max_tokens: of one answer; null: as the probe says.
    """

    turns: tuple[Turn, ...]
    system: str | None = None
    tool: str | None = None
    stream: bool = False
    include_usage: bool = True
    stop: str | None = None
    choices: int = 1
    think: bool = False
    max_tokens: int | None = None

    def messages(self) -> list[dict[str, Any]]:
        """The conversation with its system message, in the form chat templates take."""
        system = [] if self.system is None else [{"role": "system", "content": self.system}]
        return [*system, *({"role": turn.role, "content": turn.text} for turn in self.turns)]

    def tools(self) -> list[dict[str, Any]] | None:
        """The tools, in the form chat templates take."""
        return None if self.tool is None else [{"type": "function", "function": function(self.tool)}]

    def without(self, **parts: Any) -> Ask:
        """The same with other parts."""
        return replace(self, **parts)


def single(text: str, **more: Any) -> Ask:
    """One user's message."""
    return Ask((Turn("user", text),), **more)


def function(description: str) -> Mapping[str, Any]:
    """The one tool of the probe."""
    return {
        "name": "weigh_lorry",
        "description": description,
        "parameters": {"type": "object", "properties": {"axles": {"type": "integer"}}, "required": ["axles"]},
    }
