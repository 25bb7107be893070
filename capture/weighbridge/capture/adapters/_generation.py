"""What one call of `generate()` computed, read from its arguments and its result once it is over.

Only methods of tensors are used, so nothing is imported. A number that is not certain is -1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from weighbridge.capture.adapters._counts import UNKNOWN
from weighbridge.capture.adapters._speculation import Drafts
from weighbridge.schemas.enumerations import FinishReason


@dataclass(slots=True)
class Asked:
    """What the call asked for.

    Attributes:
        eos: end tokens.
        pad: the padding token.
        limit: width of prompt and output at which generation stops.
        beams: 1 without beam search.
        cached: whether keys and values of earlier steps were kept.
        stop: a check `stop(ids) -> tensor of bool` that says whether a sequence ends in a stop string, else None.
        foreign: criteria of the host's own, which may end a row at any token.
        odd: the call runs forward passes that the formulas here do not cover.
    """

    eos: tuple[int, ...] = ()
    pad: int | None = None
    limit: int | None = None
    beams: int = 1
    cached: bool = True
    stop: Any = None
    foreign: bool = False
    odd: bool = False


@dataclass(slots=True)
class Row:
    """One returned sequence: tokens computed for it (the end token included), whether by an end token, and why."""

    computed: int
    end_token: bool
    finish: FinishReason


def rows(sequences: Any, start: int, asked: Asked) -> list[Row]:
    """The rows of `sequences` (rows x width), whose first `start` columns were not generated."""
    count, width = sequences.shape[0], sequences.shape[1] - start
    if width <= 0:
        return [Row(0, False, _unended(0, start, asked)) for _ in range(count)]
    if count == 1:
        # One row ends the loop, so nothing was put behind it.
        ended = bool(asked.eos) and int(sequences[0, -1]) in asked.eos
        if ended or not _stopped(sequences, asked):
            return [Row(width, ended, FinishReason.STOP if ended else _unended(width, start, asked))]
        return [Row(width, False, FinishReason.STOP)]
    new = sequences[:, start:]
    before = _leading(new, asked.eos)
    trailing = _trailing(new, asked.pad)
    return [
        _row(sequences[index : index + 1], start, width, before[index], trailing[index], asked)
        for index in range(count)
    ]


def _row(sequence: Any, start: int, width: int, before: int, trailing: int, asked: Asked) -> Row:
    """One row of several.

    Args:
        before: tokens before its first end token, `width` where it has none.
        trailing: padding tokens at its end.
    """
    ended = before < width
    ambiguous = asked.pad is not None and (asked.pad in asked.eos or not ended)
    if ambiguous and (asked.stop is not None or asked.foreign):
        # Behind a row that a stop string or the host's own criterion ended stands padding, which may look like an end.
        length = before if ended else width - trailing
        if length and asked.stop is not None and _stopped(sequence[:, : start + length], asked):
            return Row(length, False, FinishReason.STOP)
        if asked.foreign and length < width:
            return Row(UNKNOWN, False, FinishReason.OTHER)
    if ended:
        return Row(before + 1, True, FinishReason.STOP)
    return Row(width, False, _unended(width, start, asked))


def _unended(width: int, start: int, asked: Asked) -> FinishReason:
    """Why a row without an end token ended: at the limit, or for a reason of the host's (time, own criteria)."""
    return FinishReason.LENGTH if asked.limit is not None and start + width >= asked.limit else FinishReason.OTHER


def _stopped(sequence: Any, asked: Asked) -> bool:
    return asked.stop is not None and bool(asked.stop(sequence)[0])


def _leading(new: Any, eos: Sequence[int]) -> list[int]:
    """Per row: tokens before the first end token."""
    if not eos:
        return [new.shape[1]] * new.shape[0]
    found = new == eos[0]
    for token in eos[1:]:
        found |= new == token
    return [int(value) for value in (found.cumsum(1) == 0).sum(1).tolist()]


def _trailing(new: Any, pad: int | None) -> list[int]:
    """Per row: padding tokens at the end."""
    if pad is None:
        return [0] * new.shape[0]
    return [int(value) for value in ((new != pad).flip(1).cumsum(1) == 0).sum(1).tolist()]


@dataclass(slots=True)
class Work:
    """What forward passes processed for one prompt: see `layout.COUNTS`. Identity: forward = prefill + recomputed +
    verify_width + padding."""

    prefill: int = UNKNOWN
    recomputed: int = UNKNOWN
    verify_width: int = UNKNOWN
    padding: int = UNKNOWN
    forward: int = UNKNOWN


def work(prompt: int, width: int, steps: int, computed: Sequence[int], asked: Asked, drafts: Drafts) -> Work:
    """What the model processed for one prompt of a decoder-only model.

    Args:
        prompt: its tokens.
        width: columns of the prompt tensor, padding included.
        steps: columns that were generated.
        computed: per returned sequence its tokens.
    """
    if asked.odd or prompt < 0 or steps <= 0 or min(computed) < 0:
        return Work()
    if drafts.starts:
        # The first pass holds the prompt and the first draft; each later one a draft and the token before it.
        verify = sum(drafts.drafted) + len(drafts.drafted) - 1
        return Work(prompt, 0, verify, width - prompt, width + verify)
    if asked.beams > 1:
        return _beam_work(prompt, width, steps, len(computed), asked)
    out = Work(prompt, 0, 0, 0, 0)
    for index, tokens in enumerate(computed):
        decoded = min(tokens, steps - 1)
        late = steps - 1 - decoded
        if asked.cached:
            forward, padding = width + steps - 1, width - prompt + late
        else:
            forward = steps * width + steps * (steps - 1) // 2
            padding = steps * (width - prompt) + late * (late + 1) // 2
        out.forward += forward
        out.padding += padding
        out.verify_width += decoded
        out.recomputed += forward - padding - decoded - prompt
        if index:
            # The prompt is computed once for each sequence asked for; once it counts as prefill.
            out.recomputed += prompt
    return out


def _beam_work(prompt: int, width: int, steps: int, returned: int, asked: Asked) -> Work:
    """Every beam is computed in every step. How many steps there were shows only where a beam reached the limit."""
    if not asked.cached or asked.limit is None or width + steps < asked.limit:
        return Work(prefill=prompt)
    beams = max(asked.beams, returned)
    return Work(prefill=prompt, forward=beams * (width + steps - 1))
