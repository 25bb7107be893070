"""Why generation stopped and how an attempt ended, in the closed words of the product, from any provider's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from weighbridge.schemas.enumerations import AttemptStatus, Ended, FinishReason

# Words of OpenAI, Anthropic, Google, AWS, Cohere, Mistral, Ollama, Writer, Titan; lower case, without punctuation.
_WORDS: Mapping[FinishReason, str] = {
    FinishReason.STOP: "stop endturn stopsequence complete completed eos eostoken finish finished end",
    FinishReason.LENGTH: "length maxtokens maxoutputtokens maxlength modellength modelcontextwindowexceeded tokenlimit",
    FinishReason.TOOL_CALLS: "toolcalls toolcall tooluse functioncall functioncalls",
    FinishReason.CONTENT_FILTER: (
        "contentfilter contentfiltered safety recitation blocklist prohibitedcontent spii imagesafety refusal "
        "guardrailintervened modelarmor errortoxic"
    ),
    FinishReason.ERROR: "error failed malformedfunctioncall malformedmodeloutput malformedtooluse unexpectedtoolcall",
    FinishReason.ABORT: "cancelled canceled abort aborted usercancel errorlimit",
}
_REASON: Mapping[str, FinishReason] = {word: reason for reason, words in _WORDS.items() for word in words.split()}
_NAMES = (
    "finish_reason",
    "finishReason",
    "stop_reason",
    "stopReason",
    "done_reason",
    "completionReason",
)
# Where an answer or an event keeps them: at its root, one or two objects down, or in the first of a list.
_OBJECTS = ("message", "delta", "messageStop", "response", "data")
_LISTS = ("choices", "candidates", "results", "outputs", "generations")


def finish_reason(parts: Sequence[object]) -> FinishReason | None:
    """The last reason that an answer gives: of a body, or of the events of a stream. Null where it gives none."""
    found = None
    for part in parts:
        for told in _told(part, 2):
            found = _REASON.get(_bare(told), FinishReason.OTHER)
    return found


def attempt_status(http_status: int | None, ended: Ended, *, closing_known: bool) -> AttemptStatus:
    """How an attempt ended, from the HTTP status and from whether the answer was whole.

    Args:
        http_status: null where it is not known.
        ended: whether the answer was whole.
        closing_known: the API's closing marks are known, so that an answer without any is not taken for a whole one.
    """
    if http_status is not None and http_status >= 500:
        return AttemptStatus.FAILED
    if http_status is not None and http_status >= 400:
        return AttemptStatus.REJECTED
    if ended is Ended.ERROR:
        return AttemptStatus.FAILED
    if ended is Ended.CUT:
        return AttemptStatus.ABORTED
    if http_status is None or (ended is Ended.UNKNOWN and closing_known):
        return AttemptStatus.UNKNOWN
    return AttemptStatus.SUCCEEDED


def _bare(told: str) -> str:
    return "".join(letter for letter in told.lower() if letter.isalnum())


def _told(part: object, depth: int) -> Iterator[str]:
    if not isinstance(part, Mapping):
        return
    yield from _status(part)
    # The first of them tells it: beside `finish_reason`, vLLM's `stop_reason` is the stop string itself.
    told = next((part[name] for name in _NAMES if isinstance(part.get(name), str) and part[name]), None)
    if told is not None:
        yield told
    if depth:
        for name in _OBJECTS:
            inside = part.get(name)
            if inside is not None:
                yield from _told(inside, depth - 1)
        for name in _LISTS:
            items = part.get(name)
            if isinstance(items, list) and items:
                yield from _told(items[0], 0)


def _status(part: Mapping[object, object]) -> Iterator[str]:
    """The Responses API tells it as a status, with the reason beside it where it stopped early."""
    status, details = part.get("status"), part.get("incomplete_details")
    if isinstance(details, Mapping) and isinstance(details.get("reason"), str):
        yield details["reason"]
    elif part.get("object") == "response" and status in {"completed", "failed", "cancelled", "incomplete"}:
        yield str(status)
