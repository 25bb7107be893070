"""What a recounter is. It counts; it keeps no text, no ids, and decodes nothing.

A recount is a check, never a source of truth: sampled text need not encode to the ids it was decoded from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from weighbridge.schemas.errors import WeighbridgeError

Messages = Sequence[Mapping[str, Any]]
Tools = Sequence[Mapping[str, Any]]


class RecountError(WeighbridgeError):
    """A text could not be counted. The message names the kind of error only: its text may hold text of a prompt."""


@dataclass(frozen=True, slots=True)
class Recount:
    """One recount. With everything known, `tokens` is content + template (if contained) + special (if contained).

    Attributes:
        tokens: tokens found.
        template: tokens the chat template adds to the content of the messages, None where unknown.
        special: tokens the tokenizer itself adds when it encodes a text (begin and end of sequence).
        has_template, has_special: whether `tokens` contains them.
        tokenizer: fingerprint of the tokenizer.
        template_fingerprint: fingerprint of the template, None where there is none.
    """

    tokens: int
    template: int | None
    special: int
    has_template: bool
    has_special: bool
    tokenizer: str
    template_fingerprint: str | None = None

    def slots(self) -> tuple[int, int, int, int]:
        """As `layout.RECOUNTS` stores it: tokens, template (-1 unknown), special, flags (1 template, 2 special)."""
        template = -1 if self.template is None else self.template
        return self.tokens, template, self.special, self.has_template | self.has_special << 1


class Recounter(Protocol):
    """Counts with one tokenizer and at most one chat template."""

    @property
    def tokenizer(self) -> str:
        """Fingerprint of the tokenizer: the same in every process, and the same only for equal tokenizers."""

    @property
    def template(self) -> str | None:
        """Fingerprint of the chat template."""

    def count(self, text: str) -> Recount:
        """Count a plain text, without the special tokens an encoder would add.

        Raises:
            RecountError: the tokenizer refused it.
        """

    def count_chat(self, messages: Messages, tools: Tools | None = None) -> Recount:
        """Count a conversation as it is rendered for generation.

        Raises:
            RecountError: the template or the tokenizer refused it.
        """


TEXT_PARTS: Final = ("text", "input_text", "output_text")


def sound(messages: Any) -> Messages:
    """The messages, if they are a list of objects.

    Raises:
        RecountError: they are not.
    """
    if isinstance(messages, Sequence) and all(isinstance(message, Mapping) for message in messages):
        return messages
    raise RecountError("messages are a list of objects; these are not")


def texts(messages: Messages) -> Iterator[str]:
    """The texts of messages: plain contents and text parts. Names, roles, calls and media are no content."""
    for message in messages:
        content = message.get("content")
        if isinstance(content, str):
            yield content
        elif isinstance(content, Sequence):
            for part in content:
                if isinstance(part, Mapping) and part.get("type") in TEXT_PARTS and isinstance(part.get("text"), str):
                    yield part["text"]


def plain(messages: Messages) -> bool:
    """Whether the messages are nothing but text: every content a string or text parts, no calls."""
    for message in messages:
        content = message.get("content")
        if message.get("tool_calls") or message.get("function_call"):
            return False
        if isinstance(content, str):
            continue
        if not isinstance(content, Sequence):
            return False
        if any(not isinstance(part, Mapping) or part.get("type") not in TEXT_PARTS for part in content):
            return False
    return True


def added(total: int, content: int, special: int) -> int | None:
    """What the template added; None where it took away more than it added, so that no count can be stated."""
    template = total - content - special
    return template if template >= 0 else None
