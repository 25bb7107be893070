"""Requests that finished and are no attempt of anybody's: calls that went past every agent, importer and gateway.

The engine counts the requests that finished; those beyond the requests of all attempts were not seen. What they add is
what finished requests add up to, less what the attempts do. Where the engine keeps no such sum, it is nothing or more.
Where nobody recorded any attempt of a window, it is all that the window counted, also of calls that were given up
before they finished. Where attempts of the model are told under another provider, or under no framework, they may be
these calls: then the amount is not certain.

Worked example:

    counter        counted  done  finished  unseen | unobserved
    prompt_tokens     1772  1207      1772       2 |        565
    prompt_tokens     1772  1207         -       2 |        565
    prompt_tokens      565     -         0       0 |        565
    prompt_tokens     1772  1207      1772       0 |          -
"""

from __future__ import annotations

from weighbridge.pipeline.engine.cause import Bounds, Cause
from weighbridge.pipeline.engine.facts import PROMPT, QUERIES, RECOMPUTED, Facts
from weighbridge.schemas.enumerations import Severity


def _others(facts: Facts) -> bool:
    nobody = not (facts.done.attempts or facts.unfinished.attempts or facts.failed.attempts)
    return facts.unseen is not None and facts.unseen > 0 and facts.whole and not (facts.window.starts and nobody)


def _alone(facts: Facts) -> bool:
    """Whether the engine tells what finished, and nobody recorded any attempt that it may have worked for."""
    parts = (facts.done, facts.unfinished, facts.failed, facts.across, facts.health, facts.warm_up)
    nobody = not any(part.attempts for part in parts)
    # What was computed again is a cause of its own, whosever it was.
    told = facts.unseen is not None and facts.figure.series != RECOMPUTED
    return told and facts.whole and nobody and not facts.window.starts


def _of_nobody(facts: Facts) -> int | None:
    """All that was counted; of what was looked up, what became prompts: the rest left before its first token."""
    prompt = facts.window.counts.get(PROMPT)
    most = min(facts.counted, prompt) if facts.figure.series == QUERIES and prompt is not None else facts.counted
    return most or None


def _exact(facts: Facts) -> int | None:
    if _alone(facts):
        return _of_nobody(facts)
    if not _others(facts) or facts.finished is None or facts.done.unknown or facts.failed.attempts:
        return None
    return (facts.finished - _known(facts)) or None


def _doubt(facts: Facts) -> bool:
    return facts.strangers > 0


def _known(facts: Facts) -> int:
    return facts.done.known + facts.health.known + facts.warm_up.known + facts.more


def _bounds(facts: Facts) -> Bounds | None:
    if not _others(facts):
        return None
    if facts.finished is None:
        return Bounds(0, None)
    open_ended = facts.done.unknown or facts.failed.attempts
    return Bounds(0, max(facts.finished - _known(facts), 0)) if open_ended else None


CAUSE = Cause(
    code="unobserved",
    title="Requests that nobody recorded",
    cure="Find who calls this server past the agent (another port, host or key), and attach the agent there.",
    order=70,
    exact=_exact,
    bounds=_bounds,
    severity=Severity.WARNING,
    doubt=_doubt,
)
