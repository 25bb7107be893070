"""An answer, counted and dropped: how many choices and pieces, how many tokens of text, why it ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from weighbridge.pipeline.ingest.finish import finish_reason
from weighbridge.pipeline.probe.api import Api, objects
from weighbridge.pipeline.probe.ask import Ask
from weighbridge.pipeline.probe.endpoint import Answered
from weighbridge.pipeline.probe.observation import Delivered
from weighbridge.pipeline.probe.prompt_count import count_text
from weighbridge.recount.recounter import Recounter
from weighbridge.schemas.enumerations import FinishReason


def delivered(answered: Answered, api: Api, ask: Ask, limit: int, counts: Recounter | None) -> Delivered:
    """Count an answer. Its texts are held no longer than this takes.

    Args:
        answered: what came back.
        api, ask: how and what was asked.
        limit: how many tokens one answer may have.
        counts: the tokenizer, where there is one.
    """
    bodies = [answered.body] if answered.events is None else list(answered.events)
    told = [body for body in bodies if isinstance(body, Mapping)]
    visible: defaultdict[int, list[str]] = defaultdict(list)
    thought: defaultdict[int, list[str]] = defaultdict(list)
    pieces = 0
    for body in told:
        found = list(api.pieces(body))
        pieces += any(piece.text for piece in found)
        for piece in found:
            (thought if piece.reasoning else visible)[piece.choice].append(piece.text)
    texts = ["".join(visible[choice]) for choice in sorted(visible)]
    finish = finish_reason(told)
    return Delivered(
        choices=max(len(texts), 1),
        of_choices=_counted(counts, texts),
        pieces=pieces if answered.events is not None else 0,
        reasoning=sum(_counted(counts, ["".join(parts) for parts in thought.values()])) if counts else None,
        finish=finish,
        limit=limit,
        stop_asked=ask.stop is not None,
        tool_call=finish is FinishReason.TOOL_CALLS or any(map(_calls, told)),
    )


def _counted(counts: Recounter | None, texts: Sequence[str]) -> tuple[int, ...]:
    """The tokens of each text; none where there is no tokenizer, or it refuses one of them."""
    found = [] if counts is None else [count_text(counts, text) for text in texts]
    return tuple(count for count in found if count is not None) if None not in found else ()


def _calls(body: Mapping[str, Any]) -> bool:
    """Whether a tool is called in a body or an event, in any of the APIs' forms."""
    response = body.get("response")
    items = [*objects(body.get("content")), *objects(body.get("output"))]
    items += objects(response.get("output")) if isinstance(response, Mapping) else []
    items += [block for block in [body.get("content_block")] if isinstance(block, Mapping)]
    if any(item.get("type") in {"tool_use", "function_call"} for item in items):
        return True
    said = [choice.get("message") or choice.get("delta") for choice in objects(body.get("choices"))]
    return any(isinstance(one, Mapping) and bool(one.get("tool_calls")) for one in said)
