"""The model calls of one answer that its own figures leave out: compactions, advisors, models it fell back from.

A list of calls that the figures are made of is the other way round; `breakdown` judges it, and they are children too.

    top level 220 in, 8 out; iterations: compaction 55,196 in, 125 out; message 220 in, 8 out
    ->  the reading 220 and 8, and one child: 55,196 and 125

The top level is the sum of the iterations of one kind. Where that sum is not met it cannot be told which calls are
missing: then there are no children, and the reading is flagged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from weighbridge.pipeline.ingest.breakdown import adds_up
from weighbridge.pipeline.ingest.dialect import SUMMED, Dialect, Role

# What the top level and the iterations in it must agree on.
COMPARED = (Role.INPUT, Role.OUTPUT, Role.CACHE_READ, Role.CACHE_WRITE)
_NUMBERED = re.compile(r"\[(\d+)\]\.")
_LABELLED = re.compile(r"\[([^\]#]+)(?:#(\d+))?\]\.(.+)")


class CallPlan(NamedTuple):
    """Where the leaves of one iteration stand.

    Attributes:
        prefix: of its paths.
        shown: whether the top level is the sum of its kind.
        sources: role -> positions of the leaves that say it; two of them must agree.
        model: position of the leaf that names its model.
        inside: whether it is one of a breakdown: the top level holds its counts, and it is a child all the same.
    """

    prefix: str
    shown: bool
    sources: tuple[tuple[Role, tuple[int, ...]], ...]
    model: int | None
    inside: bool = False

    @property
    def told_apart(self) -> bool:
        """Whether it is a child of the answer."""
        return bool(self.sources) and not self.shown


class Call(NamedTuple):
    """One call that is told apart: beside the top level, or `inside` it."""

    prefix: str
    model: str | None
    values: Mapping[Role, int]
    inside: bool = False


@lru_cache(maxsize=65_536)
def calls_in(dialect: Dialect, shape: str) -> tuple[CallPlan, ...]:
    """The iterations among leaves of this shape, by kind and then in their order; or the calls of a breakdown."""
    listed = next((path for path in dialect.children if dialect.breakdown and f" {path}[" in f" {shape}"), None)
    if listed is not None:
        return _broken_down(dialect, shape, listed)
    told = dialect.iterations
    if told is None or f"{told.path}[" not in shape:
        return ()
    found: dict[tuple[str, int, str], list[tuple[int, str]]] = {}
    for position, path in enumerate(shape.split(" ")):
        relative = dialect.relative(path)
        if relative is None or not relative.startswith(f"{told.path}["):
            continue
        label = _LABELLED.fullmatch(relative, len(told.path))
        if label is not None:
            kind, ordinal, name = label[1], int(label[2] or 1), label[3]
            found.setdefault((kind, ordinal, path[: -len(name)]), []).append((position, name))
    kinds = {kind for kind, _, _ in found}
    shown = next((kind for kind in told.shown if kind in kinds), None)
    return tuple(_plan(dialect, prefix, kind == shown, found[kind, at, prefix]) for kind, at, prefix in sorted(found))


def _broken_down(dialect: Dialect, shape: str, listed: str) -> tuple[CallPlan, ...]:
    found: dict[int, list[tuple[int, str]]] = {}
    for position, path in enumerate(shape.split(" ")):
        one = _NUMBERED.match(path, len(listed)) if path.startswith(f"{listed}[") else None
        if one is not None:
            found.setdefault(int(one[1]), []).append((position, path[one.end() :].removeprefix("usage.")))
    plans = (_plan(dialect, f"{listed}[{at}].", shown=False, fields=found[at]) for at in sorted(found))
    return tuple(plan._replace(inside=True) for plan in plans)


def _plan(dialect: Dialect, prefix: str, shown: bool, fields: list[tuple[int, str]]) -> CallPlan:
    sources: dict[Role, list[int]] = {}
    for position, name in fields:
        entry = dialect.role_of(name)
        if entry is not None and entry[1] in SUMMED:
            sources.setdefault(entry[1], []).append(position)
    model = next((position for position, name in fields if name == "model"), None)
    return CallPlan(prefix, shown, tuple((role, tuple(at)) for role, at in sources.items()), model)


def told_apart(
    plans: tuple[CallPlan, ...], integers: list[int | None], texts: list[str | None] | None, top: Mapping[Role, int]
) -> tuple[Call, ...] | None:
    """The calls that are told apart, or null where those that should be in the top level do not add up to it.

    Args:
        plans: of the leaves.
        integers, texts: the leaves.
        top: what the top level says.
    """
    if plans[0].inside:
        if not adds_up([_values(plan, integers) for plan in plans], top):
            return None
    else:
        shown = [_values(plan, integers) for plan in plans if plan.shown]
        if any(sum(values.get(role, 0) for values in shown) != top.get(role, 0) for role in COMPARED):
            return None
    return tuple(
        Call(plan.prefix, None if texts is None or plan.model is None else texts[plan.model], values, plan.inside)
        for plan in plans
        if plan.told_apart and (values := _values(plan, integers))
    )


def _values(plan: CallPlan, integers: list[int | None]) -> dict[Role, int]:
    values: dict[Role, int] = {}
    for role, positions in plan.sources:
        for at in positions:
            count = integers[at]
            if count is not None:
                values.setdefault(role, count)
    return values
