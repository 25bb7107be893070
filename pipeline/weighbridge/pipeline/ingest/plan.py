"""Which leaves of one shape play which role: worked out once per (dialect, shape), used for one row or a million."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from weighbridge.pipeline.ingest.dialect import EVIDENCE, Dialect, Role
from weighbridge.pipeline.ingest.outcome import Flag

# Beyond this a double cannot count by ones, and the sum of a list of such counts might leave 64 bits.
LIMIT = 2**53


@dataclass(frozen=True, slots=True)
class Plan:
    """How the integers of one leaf shape become figures.

    Attributes:
        sources: role -> its fields; each field is the positions of leaves that are summed (the rows of a list). Two
            fields of one role are two names for the same count and must agree.
        unmapped: positions of leaves inside a container that the dialect does not know.
        children: positions of leaves of the calls an answer was made with.
    """

    sources: tuple[tuple[Role, tuple[tuple[int, ...], ...]], ...]
    unmapped: tuple[int, ...]
    children: tuple[int, ...] = ()


@lru_cache(maxsize=65_536)
def plan_of(dialect: Dialect, shape: str) -> Plan:
    """The plan for the leaves whose paths are `shape`, separated by one space."""
    fields: dict[Role, dict[str, list[int]]] = {}
    unmapped, children = [], []
    for position, path in enumerate(shape.split(" ") if shape else ()):
        if any(path.startswith(f"{one}[") for one in dialect.children):
            children.append(position)
            continue
        relative = dialect.relative(path)
        if relative is None or (dialect.iterations and relative.startswith(f"{dialect.iterations.path}[")):
            continue
        entry = dialect.role_of(relative)
        if entry is None:
            unmapped.append(position)
        elif entry[1] not in EVIDENCE:
            name = path[: len(path) - len(relative)] + entry[0]
            fields.setdefault(entry[1], {}).setdefault(name, []).append(position)
    sources = tuple((role, tuple(tuple(at) for at in names.values())) for role, names in fields.items())
    return Plan(sources, tuple(unmapped), tuple(children))


def apply(plan: Plan, integers: Sequence[int | None]) -> tuple[dict[Role, int], int]:
    """The figures of one row of leaves, and what was noticed about them."""
    values: dict[Role, int] = {}
    noticed = Flag(0)
    for role, fields in plan.sources:
        found = []
        for positions in fields:
            counts = [count for at in positions if (count := integers[at]) is not None]
            if any(not -LIMIT <= count <= LIMIT for count in counts):
                noticed |= Flag.COUNT_TOO_LARGE
            if len(positions) > 1:  # as in columns, where the sum of a list must stay within 64 bits
                counts = [max(-LIMIT, min(count, LIMIT)) for count in counts]
            if counts:
                found.append(sum(counts))
        if found:
            values[role] = found[0]
        if any(count != found[0] for count in found):
            noticed |= Flag.FIELDS_DISAGREE
    if any(integers[at] is not None for at in plan.unmapped):
        noticed |= Flag.UNMAPPED_LEAVES
    if any(integers[at] is not None for at in plan.children):
        noticed |= Flag.CHILD_CALLS
    return values, int(noticed)
