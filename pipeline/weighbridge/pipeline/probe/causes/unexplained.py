"""What no cause explains."""

from weighbridge.pipeline.probe.case import Weight
from weighbridge.pipeline.probe.cause import Cause

CAUSE = Cause(
    code="unexplained",
    title="A difference that no cause explains",
    cure="Probe again with --tokenizer and --metrics, so that all three weights are there.",
    order=99,
    weights=(Weight.USAGE, Weight.ENGINE),
    names=lambda _: True,
)
