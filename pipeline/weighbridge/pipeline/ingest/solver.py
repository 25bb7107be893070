"""The identity solver: which of the conceivable readings of one report keeps every conservation law?

Every token has one class, and every total is the sum of disjoint classes. A reading fits where

    total = input + output (+ the cached tokens once more, where the total counts them twice)
    each class >= 0, each part <= the figure that contains it, each modality <= its class

Readings that give equal counts are one. Exactly one left: PROVED. Several: the declared convention decides, ASSUMED.
None: CONTRADICTORY. Nothing is clamped, and what the answer does not say stays null.

    prompt 17,903  cached 17,817  completion 40  total 17,943
    cached inside the prompt:   17,903 + 40 = 17,943   fits: uncached 86
    cached beside the prompt:   35,720 + 40 = 35,760   does not

`solver_frame` is the same for columns; a property test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from weighbridge.pipeline.ingest.dialect import (
    CACHED_BY_MODALITY,
    CORE,
    INPUT_BY_MODALITY,
    ITEMISED,
    OUTPUT_BY_MODALITY,
    SUMMED,
    TOOL_BY_MODALITY,
    UNCACHED_BY_MODALITY,
    Dialect,
    Reading,
    Role,
)
from weighbridge.pipeline.ingest.outcome import SPOILED, Flag, Unsaid, Why, encode
from weighbridge.schemas.enumerations import Verdict
from weighbridge.schemas.lattice import CROSSED_CELLS, REPORTED_CLASSES

Count = int | None
NO_CLASSES: tuple[Count, ...] = (None,) * len(REPORTED_CLASSES)
NO_CELLS: tuple[Count, ...] = (None,) * len(CROSSED_CELLS)


@dataclass(frozen=True, slots=True)
class Figures:
    """What one report says.

    Attributes:
        values: the roles it has numbers for.
        stale_split: the writes were revised later than their lifetime split.
        noticed: bits of `Flag` that were seen on the way.
    """

    values: Mapping[Role, int]
    stale_split: bool = False
    noticed: int = 0


class Solution(NamedTuple):
    """The outcome (see `outcome`) and its counts: classes and cells in the order of the lattice."""

    code: int
    input_total: Count
    output_total: Count
    total: Count
    classes: tuple[Count, ...]
    cells: tuple[Count, ...]


class Writes(NamedTuple):
    """Cache writes by lifetime, and what was noticed about them."""

    five_minutes: Count
    one_hour: Count
    unknown: Count
    flags: int


class Known(NamedTuple):
    """The figures with absent fields filled in where their absence means zero."""

    of: Mapping[Role, Count]
    writes: Writes
    cached: int  # reads and writes, as far as known
    cached_known: bool


class Candidate(NamedTuple):
    """What one reading makes of the figures; `misfits` is zero where it fits."""

    misfits: int
    input_total: Count
    output_total: Count
    total: Count
    classes: tuple[Count, ...]
    cells: tuple[Count, ...]


def has_counts(values: Mapping[Role, int]) -> bool:
    """Whether a report says anything about tokens."""
    return any(role in values for role in CORE)


def solve(dialect: Dialect, provider: str | None, figures: Figures) -> Solution:
    """The reading of one report.

    Args:
        dialect: whose readings are conceivable.
        provider: whose absent fields mean what.
        figures: what the report says.
    """
    noticed = figures.noticed | (Flag.NEGATIVE_COUNT if any(figures.values.get(r, 0) < 0 for r in SUMMED) else 0)
    if not has_counts(figures.values):
        return _nothing(Verdict.UNKNOWN, Why.NO_COUNTS, noticed | Flag.USAGE_MISSING)
    if noticed & SPOILED:
        return _nothing(Verdict.CONTRADICTORY, Why.NONE_FITS, noticed)
    known = fill(dialect, provider, figures)
    noticed |= known.writes.flags | details_flag(dialect, figures.values, known)
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
    if noticed & Flag.TTL_SPLIT_EXCEEDS_CREATION:
        verdict, why = Verdict.ASSUMED, Why.REPAIRED
    elif several:
        verdict, why = Verdict.ASSUMED, Why.DECLARED
    elif len(fitting) == len(candidates):
        verdict, why = Verdict.PROVED, Why.ALL_AGREE
    else:
        verdict, why = Verdict.PROVED, Why.ONE_FITS if known.of[Role.TOTAL] is None else Why.ONE_FITS_TOTAL
    if chosen:
        noticed |= Flag.CONVENTION_REFUTED
    if not dialect.direct and known.of[Role.CACHE_READ] is None and one.input_total:
        noticed |= Flag.CACHE_DETAIL_MISSING
    code = encode(verdict, why, chosen, noticed, unsaid(one))
    return Solution(code, one.input_total, one.output_total, one.total, one.classes, one.cells)


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


def fill(dialect: Dialect, provider: str | None, figures: Figures) -> Known:
    """The figures with zeros where an absent field means zero."""
    absent, values = dialect.absent_for(provider), figures.values
    of: dict[Role, Count] = {}
    for role in SUMMED:
        beside = absent.zero_beside.get(role, ())
        zero = role in absent.zero or any(other in values for other in beside)
        of[role] = values.get(role, 0 if zero else None)
    if dialect.direct:
        writes = Writes(of[Role.CACHE_WRITE_5M], of[Role.CACHE_WRITE_1H], of[Role.CACHE_WRITE_UNKNOWN], 0)
    else:
        writes = split_writes(values, of[Role.CACHE_WRITE], stale=figures.stale_split)
    parts = (of[Role.CACHE_READ], *writes[:3])
    return Known(of, writes, sum(part or 0 for part in parts), None not in parts)


def split_writes(values: Mapping[Role, int], created: Count, *, stale: bool) -> Writes:
    """Writes by lifetime. The split wins over a smaller sum, unless the sum was revised after it."""
    if Role.CACHE_WRITE_5M not in values and Role.CACHE_WRITE_1H not in values:
        return Writes(0, 0, created, 0)
    five, hour = values.get(Role.CACHE_WRITE_5M, 0), values.get(Role.CACHE_WRITE_1H, 0)
    if Role.CACHE_WRITE not in values or created is None or created == five + hour:
        return Writes(five, hour, 0, 0)
    old = Flag.TTL_SPLIT_STALE if stale else 0
    if created > five + hour:
        return Writes(five, hour, created - five - hour, Flag.TTL_SPLIT_INCOMPLETE | old)
    if stale:
        return Writes(0, 0, created, old)
    return Writes(five, hour, 0, Flag.TTL_SPLIT_EXCEEDS_CREATION)


def details_flag(dialect: Dialect, values: Mapping[Role, int], known: Known) -> int:
    """Whether modality details that claim to be complete do not add up to their figure.

    All-zero details are a placeholder; a text row of zero beside image tokens is a real breakdown.
    """
    for parent, (texts, splits) in ITEMISED.items():
        whole = known.of[parent]
        listed = sum(values.get(role, 0) for role in (*texts, *splits))
        claimed = dialect.itemised or any(role in values for role in texts)
        if whole is None or not listed or not claimed or listed == whole:
            continue
        if parent is Role.OUTPUT and listed == whole + (known.of[Role.REASONING] or 0):
            continue
        return Flag.MODALITY_DETAILS_INCOMPLETE
    return 0


def weigh(dialect: Dialect, reading: Reading, known: Known) -> Candidate:
    """What one reading makes of the figures, and which laws it breaks."""
    of, declared = known.of, dialect.readings[0]
    # A part that is unknown cannot tell two readings apart: only the declared one is looked at.
    inside = (reading if known.cached_known else declared).input_includes_cache
    thinks = (reading if of[Role.REASONING] is not None else declared).output_includes_reasoning
    tool = (reading if of[Role.TOOL_PROMPT] is not None else declared).input_includes_tool_prompt
    prompt = of[Role.INPUT] if tool else plus(of[Role.INPUT], of[Role.TOOL_PROMPT])
    output = of[Role.OUTPUT] if thinks else plus(of[Role.OUTPUT], of[Role.REASONING])
    cached = known.cached if known.cached_known else None
    inputs = (of[Role.INPUT_UNCACHED], of[Role.CACHE_READ], *known.writes[:3])
    outputs = (of[Role.OUTPUT_VISIBLE], of[Role.REASONING])
    twice = known.cached if reading.total_counts_cache_twice else 0
    in_total = added(prompt if inside else plus(prompt, cached), inputs)
    out_total = added(output, outputs)
    in_total, out_total, total, misfits = balance(in_total, out_total, of[Role.TOTAL], twice)
    inputs, left_in = deduce(in_total, inputs)
    outputs, left_out = deduce(out_total, outputs)
    if left_in:
        beyond = in_total is not None and known.cached > in_total
        misfits |= Flag.CACHED_EXCEEDS_INPUT if beyond else Flag.PARTS_MISMATCH
    if left_out:
        thought = of[Role.REASONING] or 0
        beyond = out_total is not None and thought > out_total
        misfits |= Flag.REASONING_EXCEEDS_OUTPUT if beyond else Flag.PARTS_MISMATCH
    if tool and less(of[Role.INPUT], of[Role.TOOL_PROMPT]):
        misfits |= Flag.PARTS_MISMATCH
    cells, beyond = cross(known, prompt, in_total, out_total, (*inputs, *outputs), inside=inside)
    misfits |= Flag.MODALITY_EXCEEDS_COUNT if beyond else 0
    return Candidate(misfits, in_total, out_total, total, (*inputs, *outputs), cells)


def plus(first: Count, second: Count) -> Count:
    """The sum, unknown where one of the two is."""
    return None if first is None or second is None else first + second


def less(first: Count, second: Count) -> bool:
    """Whether both are known and the first is smaller."""
    return first is not None and second is not None and first < second


def added(total: Count, parts: Sequence[Count]) -> Count:
    """The total, or the sum of its parts where only they are known."""
    if total is not None or None in parts:
        return total
    return sum(part or 0 for part in parts)


def balance(in_total: Count, out_total: Count, total: Count, twice: int) -> tuple[Count, Count, Count, int]:
    """Input, output and their sum, one of them worked out from the others where it is missing, and the misfit."""
    if total is None:
        return in_total, out_total, plus(in_total, out_total), 0
    bare = total - twice
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


def cross(
    known: Known, prompt: Count, in_total: Count, out_total: Count, classes: Sequence[Count], *, inside: bool
) -> tuple[tuple[Count, ...], bool]:
    """The cells of class and modality, and whether some exceed the figure that contains them.

    Where tokens of a modality and cached tokens overlap and no detail says how, the cells are unknown.
    """
    of, (uncached, read, *writes), visible = known.of, classes[:5], classes[5]
    unwritten = all(write == 0 for write in writes)
    fresh: list[Count] = []
    cached: list[Count] = []
    listed: list[Count] = []
    for index, role in enumerate(INPUT_BY_MODALITY):
        whole = plus(of[role], of[TOOL_BY_MODALITY[index]])
        reads, rest = of[CACHED_BY_MODALITY[index]], of[UNCACHED_BY_MODALITY[index]]
        if reads is None and (read == 0 or (inside and whole == 0)):
            reads = 0
        if rest is None and whole is not None:
            rest = apart(whole, reads, unwritten=unwritten) if inside else whole
        rest = 0 if rest is None and uncached == 0 else rest
        if reads is None and inside and unwritten and uncached == 0:
            reads = whole
        fresh.append(rest)
        cached.append(reads)
        listed.append(whole)
    shown = [0 if of[role] is None and visible == 0 else of[role] for role in OUTPUT_BY_MODALITY]
    beyond = (
        exceeds(fresh, in_total if uncached is None else uncached)
        or exceeds(cached, in_total if read is None else read)
        or exceeds(listed, prompt)
        or exceeds(shown, out_total if visible is None else visible)
    )
    return (*fresh, *cached, *shown), beyond


def apart(whole: int, reads: Count, *, unwritten: bool) -> Count:
    """What is left of a modality beside its cache reads; unknown where cache writes may hold some of it."""
    if reads is None:
        return None
    return whole - reads if unwritten or whole <= reads else None


def exceeds(parts: Sequence[Count], whole: Count) -> bool:
    """Whether a part is negative, or the known parts are more than the whole."""
    known = [part for part in parts if part is not None]
    return any(part < 0 for part in known) or (whole is not None and sum(known) > whole)
