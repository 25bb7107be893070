"""How the parts of one answer become one report: the last that counts, or an opening that later parts revise.

message_start  input 2,068  output 1        the output is a placeholder
message_delta  input 22,397 output 310      revises both            ->  22,397 and 310
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weighbridge.pipeline.ingest.dialect import PLACEHOLDERS, Dialect, Role
from weighbridge.pipeline.ingest.iterations import Call, calls_in, told_apart
from weighbridge.pipeline.ingest.known import Figures, completed, has_counts
from weighbridge.pipeline.ingest.outcome import SPOILED, Flag
from weighbridge.pipeline.ingest.parts import ERROR_EVENT, INTEGRAL_FLOAT, Part
from weighbridge.pipeline.ingest.plan import apply, plan_of
from weighbridge.schemas.enumerations import Ended, ReportPart
from weighbridge.schemas.leaves import Leaf

# The lifetime split of cache writes.
LIFETIMES = (Role.CACHE_WRITE_5M, Role.CACHE_WRITE_1H)


@dataclass(frozen=True, slots=True)
class Said:
    """What one part says: its figures, and bits of `Flag`."""

    part: Part
    values: dict[Role, int]
    noticed: int


def merge(dialect: Dialect, parts: Sequence[Part]) -> tuple[Figures, tuple[Leaf, ...]]:
    """The figures of a whole answer and the leaves they come from."""
    said = [_said(dialect, part) for part in parts]
    used = _revised(said) if dialect.merges else _last(said)
    values, differs = completed(_values(used))
    noticed = _noticed(said, used, values, merges=dialect.merges) | differs
    calls, listed = _calls(dialect, used, values, spoiled=bool(noticed & SPOILED))
    noticed |= listed
    return Figures(values, _stale(used), noticed, calls), _leaves(dialect, used)


def _said(dialect: Dialect, part: Part) -> Said:
    values, noticed = apply(plan_of(dialect, part.flattened.shape), part.flattened.integers())
    if dialect.merges and part.part_kind is ReportPart.START:
        values = {role: count for role, count in values.items() if role not in PLACEHOLDERS}
    if dialect.merges and any(role in values for role in LIFETIMES):
        # The split is one field of two numbers: a part that repeats it revises both.
        values = {**dict.fromkeys(LIFETIMES, 0), **values}
    return Said(part, values, noticed | (Flag.INTEGRAL_FLOAT if INTEGRAL_FLOAT in part.notes else 0))


def _last(said: Sequence[Said]) -> list[Said]:
    counted = [index for index, one in enumerate(said) if has_counts(one.values)]
    return [said[counted[-1] if counted else -1]]


def _revised(said: Sequence[Said]) -> list[Said]:
    starts = [index for index, one in enumerate(said) if one.part.part_kind is ReportPart.START]
    return list(said[starts[-1] :] if starts else said)


def _values(used: Sequence[Said]) -> dict[Role, int]:
    values: dict[Role, int] = {}
    for one in used:
        values.update(one.values)
    return values


def _noticed(said: Sequence[Said], used: Sequence[Said], values: dict[Role, int], *, merges: bool) -> int:
    noticed = Flag(0)
    for one in used:
        noticed |= one.noticed
    kind = ReportPart.START if merges else ReportPart.FINAL
    answers = sum(one.part.part_kind is kind and (merges or has_counts(one.values)) for one in said)
    if answers > 1:
        noticed |= Flag.SEVERAL_ANSWERS
    if has_counts(values):
        first = next(index for index, one in enumerate(said) if one is used[0])
        if any(ERROR_EVENT in one.part.notes for one in said[first:]):
            noticed |= Flag.ERROR_AFTER_USAGE
        opened = merges and used[0].part.part_kind is ReportPart.START and Role.OUTPUT not in values
        if opened or said[-1].part.ended is Ended.CUT:
            noticed |= Flag.OUTPUT_INCOMPLETE
    return int(noticed)


def _calls(
    dialect: Dialect, used: Sequence[Said], values: dict[Role, int], *, spoiled: bool
) -> tuple[tuple[Call, ...], int]:
    """The model calls that are told apart, by the last part that lists any, and what is noticed about them."""
    for one in reversed(used):
        leaves = one.part.flattened
        plans = calls_in(dialect, leaves.shape)
        if plans:
            calls = told_apart(plans, leaves.integers(), leaves.texts(), values)
            inside = plans[0].inside
            if calls is None or (inside and spoiled):
                return (), int(Flag.BREAKDOWN_DIFFERS if inside else Flag.ITERATIONS_LEFT_OUT)
            return calls, int(Flag.CHILD_CALLS) if any(plan.told_apart for plan in plans) else 0
    return (), 0


def _stale(used: Sequence[Said]) -> bool:
    """Whether the writes were revised by a part that does not repeat their lifetime split."""
    created = [
        (index, one.values[Role.CACHE_WRITE]) for index, one in enumerate(used) if Role.CACHE_WRITE in one.values
    ]
    split = [index for index, one in enumerate(used) if any(role in one.values for role in LIFETIMES)]
    if not created or not split or created[-1][0] <= split[-1]:
        return False
    return used[split[-1]].values.get(Role.CACHE_WRITE) != created[-1][1]


def _leaves(dialect: Dialect, used: Sequence[Said]) -> tuple[Leaf, ...]:
    merged: dict[str, Leaf] = {}
    for one in used:
        for leaf in one.part.flattened.leaves:
            merged[dialect.relative(leaf.path) or leaf.path] = leaf
    return tuple(sorted(merged.values(), key=lambda leaf: leaf.path))
