"""A prompt counted here, and what each of its parts adds to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from weighbridge.pipeline.probe.ask import Ask, Turn
from weighbridge.recount.recounter import Recounter, RecountError, texts


@dataclass(frozen=True, slots=True)
class PromptCount:
    """Tokens of one prompt.

    Attributes:
        total: all of it as the server should see it; null where its template is not known.
        content: the texts of its messages alone.
        template: what the template adds to them; null where unknown.
        special: what the tokenizer adds when it encodes a text.
        added: part -> what it adds (`system`, `tools`, `history`), what it would add a second time (`system_again`,
            `history_again`, `history_resent`), or how much fewer special tokens are than their text (`as_text`).
            What cannot be told is left out.
    """

    total: int | None
    content: int
    template: int | None
    special: int
    added: Mapping[str, int] = field(default_factory=dict)


def count_prompt(counts: Recounter, ask: Ask, *, chat: bool) -> PromptCount | None:
    """The prompt of a request; null where the template or the tokenizer refuses it.

    Args:
        counts: the tokenizer.
        ask: the request.
        chat: whether the server puts a chat template around it.
    """
    try:
        content = sum(counts.count(text).tokens for text in texts(ask.messages()))
        special = counts.count("a").special
    except RecountError:
        return None
    as_text = _as_text(counts, ask)
    if not chat:
        return PromptCount(content + special, content, 0, special, as_text)
    whole = _whole(counts, ask)
    if whole is None:
        return PromptCount(None, content, None, special, as_text)
    try:
        template = counts.count_chat(ask.messages(), ask.tools()).template
    except RecountError:
        template = None
    return PromptCount(whole, content, template, special, {**_parts(counts, ask, whole), **as_text})


def count_text(counts: Recounter, text: str) -> int | None:
    """The tokens of a text; null where the tokenizer refuses it."""
    try:
        return counts.count(text).tokens
    except RecountError:
        return None


def _whole(counts: Recounter, ask: Ask) -> int | None:
    try:
        found = counts.count_chat(ask.messages(), ask.tools())
    except RecountError:
        return None
    return found.tokens if found.has_template else None


def _parts(counts: Recounter, ask: Ask, whole: int) -> dict[str, int]:
    """Each part, by leaving it out or putting it in a second time."""
    history, last = ask.turns[:-1], ask.turns[-1:]
    others: dict[str, int | None] = {}
    if ask.system is not None:
        others["system"] = _less(whole, _whole(counts, ask.without(system=None)))
        others["system_again"] = _twice(counts, ask, whole)
    if ask.tool is not None:
        others["tools"] = _less(whole, _whole(counts, ask.without(tool=None)))
    if history:
        others["history"] = _less(whole, _whole(counts, ask.without(turns=last)))
        doubled = _whole(counts, ask.without(turns=(*history, *history, *last)))
        others["history_again"] = None if doubled is None else doubled - whole
        others["history_resent"] = _resent(counts, ask)
    return {name: count for name, count in others.items() if count is not None}


def _twice(counts: Recounter, ask: Ask, whole: int) -> int | None:
    """What the system message adds where it is rendered once more."""
    again = _whole(counts, ask.without(turns=(Turn("system", ask.system or ""), *ask.turns)))
    return None if again is None else again - whole


def _resent(counts: Recounter, ask: Ask) -> int | None:
    """The prompts of all earlier turns, as whoever adds up a session counts them once more."""
    earlier = [
        _whole(counts, ask.without(turns=ask.turns[: at + 1]))
        for at, turn in enumerate(ask.turns[:-1])
        if turn.role == "user"
    ]
    known = [count for count in earlier if count is not None]
    return sum(known) if len(known) == len(earlier) else None


def _less(whole: int, without: int | None) -> int | None:
    return None if without is None else whole - without


def _as_text(counts: Recounter, ask: Ask) -> dict[str, int]:
    """How many tokens more the texts have where special tokens in them are ordinary text."""
    ordinary = getattr(counts, "count_ordinary", None)
    if ordinary is None:
        return {}
    try:
        more = sum(ordinary(text).tokens - counts.count(text).tokens for text in texts(ask.messages()))
    except RecountError:
        return {}
    return {"as_text": more} if more else {}
