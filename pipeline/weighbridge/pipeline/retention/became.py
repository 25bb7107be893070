"""What became of erasures of before when they were held against the places again."""

from __future__ import annotations

from dataclasses import dataclass

from weighbridge.pipeline.retention.ledger import ERASURES
from weighbridge.pipeline.retention.places import Places
from weighbridge.pipeline.retention.request import Request, request_of


@dataclass(frozen=True, slots=True)
class Repeated:
    """What became of the erasures of before, by their ids.

    Attributes:
        came_back: those of which something had come back, and was erased again.
        finished: those of which something was left until now, as a hold kept it, and is no more.
        furthered: those of which some was left and went now, and some is still left.
    """

    came_back: tuple[str, ...] = ()
    finished: tuple[str, ...] = ()
    furthered: tuple[str, ...] = ()


def became_of(places: Places, before: Request, *, made: bool) -> str | None:
    """The field of `Repeated` an erasure belongs to, null for none.

    Args:
        places: where things lie.
        before: what was left of it.
        made: whether anything was deleted now.
    """
    content = places.ledger.entry(ERASURES, before.erasure_id)
    after = before if content is None else request_of(before.erasure_id, content)
    if (before.left or before.waits) and not (after.left or after.waits):
        return "finished"
    if not made:
        return None
    return "furthered" if after.left < before.left or len(after.waits) < len(before.waits) else "came_back"
