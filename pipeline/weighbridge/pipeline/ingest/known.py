"""What one report says, before it is read: its figures, absent ones filled in where their absence means zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from weighbridge.pipeline.ingest.dialect import CORE, ITEMISED, SUMMED, TOOL_ROWS, WITNESSES, Dialect, Role
from weighbridge.pipeline.ingest.fact import Repair
from weighbridge.pipeline.ingest.iterations import Call
from weighbridge.pipeline.ingest.outcome import Flag

Count = int | None


@dataclass(frozen=True, slots=True)
class Figures:
    """What one report says.

    Attributes:
        values: the roles it has numbers for.
        stale_split: the writes were revised later than their lifetime split.
        noticed: bits of `Flag` that were seen on the way.
        calls: model calls that are not in these figures.
    """

    values: Mapping[Role, int]
    stale_split: bool = False
    noticed: int = 0
    calls: tuple[Call, ...] = ()


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
    repaired: bool = False  # the input was mended: it is what was not cached
    whole: bool = False  # what was cached is not shown, and the input holds it


def has_counts(values: Mapping[Role, int]) -> bool:
    """Whether a report says anything about tokens."""
    return any(role in values for role in CORE)


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
    repaired = bool(figures.noticed & Flag.REPAIRED_NEGATIVE_INPUT)
    return Known(
        of, writes, sum(part or 0 for part in parts), None not in parts, repaired, absent.whole and None in parts
    )


def completed(values: Mapping[Role, int]) -> tuple[dict[Role, int], int]:
    """The figures with what other fields say of a figure that is not there, and what is noticed about them.

    The service's count stands for a figure that the model's own usage does not have; where it has it, they are
    compared. A prompt beside the input that is only itemised is the sum of its rows.
    """
    filled, differs = dict(values), False
    rows = [values[role] for role in TOOL_ROWS if role in values]
    if rows:
        filled.setdefault(Role.TOOL_PROMPT, sum(rows))
    for service, role in WITNESSES.items():
        if service in values:
            differs |= filled.setdefault(role, values[service]) != values[service]
    return filled, int(Flag.SERVICE_COUNT_DIFFERS) if differs else 0


def mended(dialect: Dialect, figures: Figures) -> Figures:
    """The figures with a known fault of the provider mended, or as they are."""
    given, read = figures.values.get(Role.INPUT), figures.values.get(Role.CACHE_READ)
    if Repair.NEGATIVE_INPUT not in dialect.repairs or given is None or read is None or not -read <= given < 0:
        return figures
    values = {**figures.values, Role.INPUT: given + read}
    return replace(figures, values=values, noticed=figures.noticed | Flag.REPAIRED_NEGATIVE_INPUT)


def grain_flags(dialect: Dialect, values: Mapping[Role, int]) -> int:
    """Counts that do not come in the steps in which this provider counts them."""
    flags = Flag(0)
    if dialect.cached_grain and values.get(Role.CACHE_READ, 0) % dialect.cached_grain:
        flags |= Flag.CACHED_OFF_GRAIN
    if dialect.reasoning_grain and values.get(Role.REASONING, 0) % dialect.reasoning_grain:
        flags |= Flag.REASONING_OFF_GRAIN
    return int(flags)


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
