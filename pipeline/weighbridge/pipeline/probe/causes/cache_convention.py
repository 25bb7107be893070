"""Cached tokens are left out of an input that should hold them, or stand in it twice.

recount 15, of it cached 8: usage 7     ->  -8
"""

from weighbridge.pipeline.probe.case import Case
from weighbridge.pipeline.probe.cause import Cause
from weighbridge.schemas.enumerations import Direction


def _left_out(case: Case) -> int:
    return -(case.seen.usage.cached or 0)


def _twice(case: Case) -> int:
    return case.seen.usage.cached or 0


CAUSE = Cause(
    code="cache_convention",
    title="Cached tokens are counted by another convention than the API's",
    cure="Make the server count cached tokens inside the prompt (or outside, where its API says so).",
    order=50,
    directions=(Direction.INPUT,),
    amounts=(_left_out, _twice),
)
