"""Positions that layers left out: told where they are known, and never shared out."""

from __future__ import annotations

from weighbridge.pipeline.content.path import path_of
from weighbridge.schemas.enumerations import Axis, Operation
from weighbridge.schemas.trace import Trace


def skipped(trace: Trace) -> list[tuple[int, int, int | None]]:
    return [(group.first, group.last, group.skipped) for group in path_of(trace.events).groups]


def test_sets_tell_what_each_layer_left_out() -> None:
    trace = Trace()
    trace.add(Axis.COMPUTE, Operation.SKIP, [0b0111, 0b0001], width=4, layers=(0, 1))
    trace.add(Axis.COMPUTE, Operation.SKIP, [0b1000], width=4, layers=(0, 0), step=1)
    assert skipped(trace) == [(0, 0, 4), (1, 1, 1)]


def test_a_sum_over_layers_is_not_shared_out_among_them() -> None:
    trace = Trace()
    trace.count(Axis.COMPUTE, Operation.SKIP, 5, 8, layers=(0, 1))
    trace.count(Axis.COMPUTE, Operation.SKIP, 3, 4, layers=(0, 0), step=1)
    trace.count(Axis.COMPUTE, Operation.SKIP, 3, 4, layers=(2, 2))
    assert skipped(trace) == [(0, 1, None), (2, 2, 3)]
