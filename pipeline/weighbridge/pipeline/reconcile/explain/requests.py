"""What the engine's requests of one call add up to: what is shared between choices, and how far beams went."""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.frames import Expr, Frame, tokens, total
from weighbridge.schemas.enumerations import ChildKind

# Prompt tokens that a request shares with an earlier one of its call; steps of the longest beam; what beams generated.
REQUESTS = ("shared_input", "beam_depth", "beam_output")
READ = ("parent_child", "input_computed", "output_computed")


def requests() -> dict[str, Expr]:
    """Aggregates of the children of a call, for `with_depth`. Null where no child tells."""
    beam = nw.col("kind") == ChildKind.BEAM
    length = nw.when(beam).then(nw.col("input_computed"))
    return {
        "shared_input": total(nw.when(~nw.col("parent_child").is_null()).then(nw.col("input_computed"))),
        "shortest": length.min(),
        "longest": length.max(),
        "beam_output": total(nw.when(beam).then(nw.col("output_computed"))),
    }


def with_depth(rows: Frame) -> Frame:
    """`requests` with `beam_depth`: each step of a beam reads one token more than the one before."""
    return rows.with_columns(beam_depth=nw.col("longest") - nw.col("shortest") + tokens(1))
