"""The model calls that an answer's own figures are made of, where it lists them: each is a child with its own model.

    usage 633 in, 10 out; usage_breakdown: 138 / 4 on one model, 495 / 6 on another
    ->  the reading 633 and 10, and two children that are inside it

A list that does not add up to the figures beside it says nothing that can be relied on: there are no children then,
its leaves are kept, and the report is flagged. A call may tell more than the whole (that it reasoned): the reading of
the whole is by its own words. `iterations_frame` is the same for columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from weighbridge.pipeline.ingest.dialect import Role
from weighbridge.pipeline.ingest.plan import LIMIT

if TYPE_CHECKING:
    from weighbridge.pipeline.ingest.reading import UsageReading

# The flag of a call that is in the figures of its answer.
INSIDE = "inside_answer"
# Both must be told by every call, and their sums are the figures.
WHOLE = (Role.INPUT, Role.OUTPUT)
# A part, and the figure that holds it: its sum is compared where the whole tells it too.
PARTS: Mapping[Role, Role] = {
    Role.CACHE_READ: Role.INPUT,
    Role.CACHE_WRITE: Role.INPUT,
    Role.REASONING: Role.OUTPUT,
}
JUDGED = (*WHOLE, Role.TOTAL, *PARTS)


def adds_up(calls: Sequence[Mapping[Role, int]], top: Mapping[Role, int]) -> bool:
    """Whether the calls make up the figures of the answer, and each of them is sound in itself.

    Args:
        calls: what each says.
        top: what the answer says.
    """
    if not calls or not all(map(_sound, (*calls, top))):
        return False
    sums = {role: sum(call.get(role, 0) for call in calls) for role in (*WHOLE, *PARTS)}
    return all(sums[role] == top[role] for role in WHOLE) and all(
        role not in top or sums[role] == top[role] for role in PARTS
    )


def adding_up(reading: UsageReading) -> tuple[UsageReading, ...]:
    """The readings that together are all of an answer, each token once: it and its calls, or those it is made of."""
    inside = any(INSIDE in child.flags for child in reading.children)
    return reading.children if inside else (reading, *reading.children)


def _sound(values: Mapping[Role, int]) -> bool:
    if any(role not in values for role in WHOLE) or any(not 0 <= values.get(role, 0) <= LIMIT for role in JUDGED):
        return False
    if Role.TOTAL in values and values[Role.TOTAL] != values[Role.INPUT] + values[Role.OUTPUT]:
        return False
    return all(values.get(role, 0) <= values[whole] for role, whole in PARTS.items())
