"""The identity solver: which of the conceivable readings of one report keeps every conservation law?

Every token has one class, and every total is the sum of disjoint classes. A reading fits where

    total = input + output (+ the cached tokens once more, where the total counts them twice)
                           (- the reasoning tokens, where the total leaves them out)
    each class >= 0, each part <= the figure that contains it, each modality <= its class

Readings that give equal counts are one. Exactly one left: PROVED. Several: the declared convention decides, ASSUMED.
None: CONTRADICTORY. Nothing is clamped, and what the answer does not say stays null.

    prompt 17,903  cached 17,817  completion 40  total 17,943
    cached inside the prompt:   17,903 + 40 = 17,943   fits: uncached 86
    cached beside the prompt:   35,720 + 40 = 35,760   does not

`solver_frame` is the same for columns; a property test holds the two together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from weighbridge.pipeline.ingest.cells import cross, plus
from weighbridge.pipeline.ingest.dialect import SUMMED, Dialect, Reading, Role
from weighbridge.pipeline.ingest.fact import Axis
from weighbridge.pipeline.ingest.known import Count, Figures, Known, details_flag, fill, grain_flags, has_counts, mended
from weighbridge.pipeline.ingest.outcome import SPOILED, Flag, Unsaid, Why, encode
from weighbridge.schemas.enumerations import Verdict
from weighbridge.schemas.lattice import CROSSED_CELLS, REPORTED_CLASSES

NO_CLASSES: tuple[Count, ...] = (None,) * len(REPORTED_CLASSES)
NO_CELLS: tuple[Count, ...] = (None,) * len(CROSSED_CELLS)


class Solution(NamedTuple):
    """The outcome (see `outcome`) and its counts: classes and cells in the order of the lattice."""

    code: int
    input_total: Count
    output_total: Count
    total: Count
    classes: tuple[Count, ...]
    cells: tuple[Count, ...]


class Candidate(NamedTuple):
    """What one reading makes of the figures; `misfits` is zero where it fits."""

    misfits: int
    input_total: Count
    output_total: Count
    total: Count
    classes: tuple[Count, ...]
    cells: tuple[Count, ...]


def solve(dialect: Dialect, provider: str | None, figures: Figures) -> Solution:
    """The reading of one report.

    Args:
        dialect: whose readings are conceivable.
        provider: whose absent fields mean what.
        figures: what the report says.
    """
    figures = mended(dialect, figures)
    noticed = figures.noticed | (Flag.NEGATIVE_COUNT if any(figures.values.get(r, 0) < 0 for r in SUMMED) else 0)
    if not has_counts(figures.values) and Role.WOULD_BE_INPUT in figures.values:
        return _nothing(Verdict.UNKNOWN, Why.COUNT_ONLY, noticed | Flag.USAGE_MISSING | Flag.COUNT_ONLY)
    if not has_counts(figures.values):
        return _nothing(Verdict.UNKNOWN, Why.NO_COUNTS, noticed | Flag.USAGE_MISSING)
    noticed |= 0 if dialect.known else Flag.PROVIDER_NOT_KNOWN
    if noticed & SPOILED:
        return _nothing(Verdict.CONTRADICTORY, Why.NONE_FITS, noticed)
    known = fill(dialect, provider, figures)
    noticed |= known.writes.flags | details_flag(dialect, figures.values, known)
    noticed |= grain_flags(dialect, figures.values)
    candidates = [weigh(dialect, reading, known) for reading in dialect.readings]
    return choose(dialect, candidates, known, noticed)


def choose(dialect: Dialect, candidates: Sequence[Candidate], known: Known, noticed: int) -> Solution:
    """The verdict over all candidates; the first one is the declared convention."""
    fitting = [index for index, candidate in enumerate(candidates) if not candidate.misfits]
    if not fitting:
        return _nothing(Verdict.CONTRADICTORY, Why.NONE_FITS, noticed | candidates[0].misfits)
    chosen = fitting[0]
    one = candidates[chosen]
    several = any(candidates[index] != one for index in fitting)
    if several and chosen:
        return _nothing(Verdict.CONTRADICTORY, Why.DECLARED_REFUTED, noticed | candidates[0].misfits)
    if noticed & Flag.REPAIRED_NEGATIVE_INPUT:
        verdict, why = Verdict.ASSUMED, Why.REPAIRED_INPUT
    elif noticed & Flag.TTL_SPLIT_EXCEEDS_CREATION:
        verdict, why = Verdict.ASSUMED, Why.REPAIRED
    elif noticed & Flag.SERVICE_COUNT_DIFFERS:
        verdict, why = Verdict.ASSUMED, Why.SERVICE_DIFFERS
    elif several or guesses(dialect, known):
        verdict, why = Verdict.ASSUMED, Why.DECLARED
    elif len(fitting) == len(candidates):
        verdict, why = Verdict.PROVED, Why.ALL_AGREE
    else:
        verdict, why = Verdict.PROVED, Why.ONE_FITS if known.of[Role.TOTAL] is None else Why.ONE_FITS_TOTAL
    if chosen and dialect.known:  # of one who is not known nothing is declared that could be refuted
        noticed |= Flag.CONVENTION_REFUTED
    if known.cached and dialect.readings[chosen].total_counts_cache_twice:
        noticed |= Flag.TOTAL_DOUBLE_COUNTS_CACHE
    if not dialect.direct and one.classes[1] is None and one.input_total:
        noticed |= Flag.CACHE_DETAIL_MISSING
    code = encode(verdict, why, chosen, noticed, unsaid(one))
    return Solution(code, one.input_total, one.output_total, one.total, one.classes, one.cells)


def guesses(dialect: Dialect, known: Known) -> bool:
    """Whether the input rests on what the dialect can only guess; an input that is not told rests on nothing."""
    told = known.of[Role.INPUT] is not None and not known.cached_known
    return told and Axis.INPUT_INCLUDES_CACHE in dialect.guessed


def _nothing(verdict: Verdict, why: Why, flags: int) -> Solution:
    return Solution(encode(verdict, why, 0, flags, 0), None, None, None, NO_CLASSES, NO_CELLS)


def unsaid(one: Candidate) -> int:
    """What a fitting candidate leaves unknown."""
    out = 0
    for total, classes, whole, split in (
        (one.input_total, one.classes[:5], Unsaid.INPUT, Unsaid.INPUT_SPLIT),
        (one.output_total, one.classes[5:], Unsaid.OUTPUT, Unsaid.OUTPUT_SPLIT),
    ):
        if total is None:
            out |= whole
        elif None in classes:
            out |= split
    return out


def weigh(dialect: Dialect, reading: Reading, known: Known) -> Candidate:
    """What one reading makes of the figures, and which laws it breaks."""
    of, declared = known.of, dialect.readings[0]
    # A part that is unknown cannot tell two readings apart: only the declared one is looked at. But reasoning beside
    # the output may be hidden: then it is what the total counts beyond input and output.
    inside = known.whole or (reading if known.cached_known and not known.repaired else declared).input_includes_cache
    told = of[Role.REASONING] is not None or not declared.output_includes_reasoning
    thinks = (reading if told else declared).output_includes_reasoning
    tool = (reading if of[Role.TOOL_PROMPT] is not None else declared).input_includes_tool_prompt
    prompt = of[Role.INPUT] if tool else plus(of[Role.INPUT], of[Role.TOOL_PROMPT])
    output = of[Role.OUTPUT] if thinks else plus(of[Role.OUTPUT], of[Role.REASONING])
    cached = known.cached if known.cached_known else None
    inputs: tuple[Count, ...] = (of[Role.INPUT_UNCACHED], of[Role.CACHE_READ], *known.writes[:3])
    visible = of[Role.OUTPUT] if of[Role.OUTPUT_VISIBLE] is None and not thinks else of[Role.OUTPUT_VISIBLE]
    outputs: tuple[Count, ...] = (visible, of[Role.REASONING])
    more = known.cached if reading.total_counts_cache_twice else 0
    more -= (of[Role.REASONING] or 0) if reading.total_leaves_out_reasoning else 0
    in_total = added(prompt if inside else plus(prompt, cached), inputs)
    in_total, out_total, total, misfits = balance(in_total, added(output, outputs), of[Role.TOTAL], more)
    inputs, off = deduce(in_total, inputs)
    misfits |= _misfit(off, in_total, known.cached, Flag.CACHED_EXCEEDS_INPUT)
    outputs, off = deduce(out_total, outputs)
    misfits |= _misfit(off, out_total, of[Role.REASONING] or 0, Flag.REASONING_EXCEEDS_OUTPUT)
    if tool and less(of[Role.INPUT], of[Role.TOOL_PROMPT]):
        misfits |= Flag.PARTS_MISMATCH
    classes = (*inputs, *outputs)
    cells, beyond = cross(known, prompt, in_total, out_total, classes, inside=inside)
    misfits |= Flag.MODALITY_EXCEEDS_COUNT if beyond else 0
    return Candidate(misfits, in_total, out_total, total, classes, cells)


def _misfit(off: bool, total: Count, part: int, flag: Flag) -> int:
    """Why parts do not add up: one of them alone is too large, or they are together."""
    if not off:
        return 0
    return flag if total is not None and part > total else Flag.PARTS_MISMATCH


def less(first: Count, second: Count) -> bool:
    """Whether both are known and the first is smaller."""
    return first is not None and second is not None and first < second


def added(total: Count, parts: Sequence[Count]) -> Count:
    """The total, or the sum of its parts where only they are known."""
    if total is not None or None in parts:
        return total
    return sum(part or 0 for part in parts)


def balance(in_total: Count, out_total: Count, total: Count, more: int) -> tuple[Count, Count, Count, int]:
    """Input, output and their sum, one of them worked out from the others where it is missing, and the misfit.

    `more` is what the reported total counts beyond the two.
    """
    if total is None:
        return in_total, out_total, plus(in_total, out_total), 0
    bare = total - more
    if in_total is None and out_total is None:
        return None, None, bare, 0 if bare >= 0 else Flag.TOTAL_MISMATCH
    if in_total is None or out_total is None:
        other = bare - (in_total if in_total is not None else out_total or 0)
        in_total, out_total = (other, out_total) if in_total is None else (in_total, other)
        return in_total, out_total, bare, 0 if other >= 0 else Flag.TOTAL_MISMATCH
    both = in_total + out_total
    return in_total, out_total, both, 0 if both == bare else Flag.TOTAL_MISMATCH


def deduce(total: Count, parts: Sequence[Count]) -> tuple[tuple[Count, ...], bool]:
    """The parts with the missing ones worked out, and whether they do not add up.

    One missing part is what is left; where nothing is left, all missing parts are zero.
    """
    if total is None:
        return tuple(parts), False
    left = total - sum(part or 0 for part in parts)
    missing = sum(part is None for part in parts)
    rest = left if missing == 1 else (0 if left == 0 else None)
    return tuple(rest if part is None else part for part in parts), left < 0 or (missing == 0 and left != 0)
