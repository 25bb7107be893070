"""A report whose figures cannot all be right: parts larger than their whole, a total that is no sum.

prompt 51, completion 3, total 60
"""

from weighbridge.pipeline.probe.cause import Cause

CAUSE = Cause(
    code="usage_contradictory",
    title="Usage contradicts itself",
    cure="Ask the provider which of its figures counts: `weighbridge read` shows each reading and why none fits.",
    order=11,
)
