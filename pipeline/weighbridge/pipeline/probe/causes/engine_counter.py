"""The engine's counter says other than usage and recount.

recount 15, usage 15, counter 22     ->  the engine: +7
"""

from weighbridge.pipeline.probe.case import Weight
from weighbridge.pipeline.probe.cause import Cause, Left
from weighbridge.schemas.enumerations import Severity


def _of_engine(left: Left) -> bool:
    return left.case.weight is Weight.ENGINE


CAUSE = Cause(
    code="engine_counter",
    title="The engine's counter is off",
    cure="Do not price by this counter: check the engine's version, and which processes and models /metrics adds up.",
    order=93,
    weights=(Weight.ENGINE,),
    names=_of_engine,
    engine_severity=Severity.WARNING,
)
