"""What counters leave to one attempt: its figures, where nobody else's tokens are among what is left.

    window: 1 request finished, 30 tokens of it; 183 tokens counted       one attempt was aborted: 153 are its own
    window: prompts of 231 tokens looked up, 170 counted                  one attempt got no token: 61, in prefill

An attempt that was aborted leaves no record at its engine, so this is how its figures are known at all. Of several in
one window each is told only as far as it cannot be otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from weighbridge.pipeline.engine.facts import GENERATION, PROMPT, QUERIES, RECOMPUTED
from weighbridge.pipeline.engine.servers import Server
from weighbridge.pipeline.engine.windows import Window
from weighbridge.pipeline.lake import polars_schema
from weighbridge.schemas.enumerations import EngineCounter as C

SOURCE = "engine-counters"
_ACCEPTED = (str(C.ACCEPTED_TOKENS), None)
_CACHED = (str(C.PROMPT_TOKENS_CACHED), None)
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Left:
    """What finished attempts of a window leave of its counters.

    Attributes:
        prompt, output: counted, and of no finished request.
        cached: of the prompt; null where it is not known.
        looked_up: prompts that were looked up and never counted; null where that is not told.
    """

    prompt: int
    output: int
    cached: int | None
    looked_up: int | None


def shares(server: Server, windows: Sequence[Window], rows: pl.DataFrame, unseen: Mapping[int, int | None]
           ) -> pl.DataFrame:  # fmt: skip
    """Rows of `engine_share`.

    Args:
        server: the server.
        windows: its windows.
        rows: the attempts in them, with `window` and `kind` (`facts.kinds`).
        unseen: window -> how many requests finished of which no attempt is known.
    """
    told = []
    for (number,), held in rows.sort("begin", "attempt_lo", "attempt_hi").group_by("window", maintain_order=True):
        window = windows[int(str(number))]
        if window.reset or unseen.get(int(str(number))) != 0:
            continue
        for life, figures in _of_window(window, held.rows(named=True)):
            told.append(
                {
                    **{name: life[name] for name in ("attempt_lo", "attempt_hi", "day")},
                    "source": f"{SOURCE}/{server.source}",
                    "since": window.since,
                    "until": window.until,
                    **figures,
                }
            )
    return pl.DataFrame(told, schema=polars_schema("engine_share"))


def _of_window(window: Window, held: Sequence[Row]) -> Iterator[tuple[Row, dict[str, int | None]]]:
    alone = _beside(window, held)
    open_lives = [life for life in held if life["kind"] == "unfinished" and not life["engine_counted"]]
    if any(life["kind"] in ("failed", "across") for life in held):
        open_lives = []
    left = _left(window, held) if open_lives else None
    found = _divided(left, open_lives) if left is not None else {}
    for place, life in enumerate(held):
        own = {**alone.get(place, {}), **found.get((life["attempt_lo"], life["attempt_hi"]), {})}
        if own:
            yield life, own


def _beside(window: Window, held: Sequence[Row]) -> dict[int, dict[str, int | None]]:
    """What can only have been one attempt's: accepted drafts of who ran alone, and what only one may have to repeat."""
    out: dict[int, dict[str, int | None]] = {}
    accepted, again = window.counts.get(_ACCEPTED), window.counts.get(RECOMPUTED)
    if accepted and len(held) == 1 and held[0]["accepted"] is None:
        out[0] = {"accepted": accepted}
    unknown = [place for place, life in enumerate(held) if life["recomputed"] is None]
    if again and len(unknown) == 1:
        known = sum(life["recomputed"] or 0 for life in held)
        if again >= known:
            out.setdefault(unknown[0], {})["recomputed"] = again - known
    return out


def _left(window: Window, held: Sequence[Row]) -> Left | None:
    """What is left of the counters; null where an attempt that finished does not say what it had."""
    others = [life for life in held if life["kind"] != "unfinished" or life["engine_counted"]]
    prompts = [life["prompts"] if life["prompts"] is not None else life["input"] for life in others]
    outputs = [life["outputs"] if life["outputs"] is not None else life["output"] for life in others]
    exact = all(life["engine_counted"] or life["several"] == 1 for life in others)
    if None in prompts or None in outputs or not exact or not {PROMPT, GENERATION} <= window.counts.keys():
        return None
    prompt, output = window.counts[PROMPT] - sum(prompts), window.counts[GENERATION] - sum(outputs)
    if prompt < 0 or output < 0:
        return None
    cached, counted = [life["cached"] for life in others], window.counts.get(_CACHED)
    scored = sum(size for size, life in zip(prompts, others, strict=True) if life["scored"])
    queries = window.counts.get(QUERIES)
    return Left(
        prompt=prompt,
        output=output,
        cached=None if counted is None or None in cached else counted - sum(cached),
        looked_up=None if queries is None else queries - window.counts[PROMPT] + scored,
    )


def _divided(left: Left, lives: Sequence[Row]) -> dict[tuple[int, int], dict[str, int | None]]:
    """What is left, told apart by who can have had it."""
    least = [life["delivered"] or 0 for life in lives]
    if len(lives) == 1:
        outputs: list[int] = [left.output]
    elif sum(least) == left.output:
        outputs = least
    else:
        return {}
    went_on = [place for place, output in enumerate(outputs) if output]
    waiting = [place for place, output in enumerate(outputs) if not output]
    if (left.prompt > 0) != bool(went_on) or (left.looked_up or 0) < 0:
        return {}
    prompts: dict[int, int | None] = {place: lives[place]["reported"] for place in went_on}
    if len(went_on) == 1:
        prompts = {went_on[0]: left.prompt}
    elif None in prompts.values() or sum(size or 0 for size in prompts.values()) != left.prompt:
        prompts = dict.fromkeys(went_on)
    if left.looked_up is not None and (len(waiting) == 1 or not left.looked_up):
        prompts |= dict.fromkeys(waiting, left.looked_up)
    out: dict[tuple[int, int], dict[str, int | None]] = {}
    for place, output in enumerate(outputs):
        cached = left.cached if went_on == [place] else None
        figures = {"input_computed": prompts.get(place), "output_computed": output, "cached_local": cached}
        out[(lives[place]["attempt_lo"], lives[place]["attempt_hi"])] = figures
    return out
