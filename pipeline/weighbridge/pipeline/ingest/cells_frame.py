"""The cells of class and modality over columns: `cells`, with every step as Polars expressions under the same names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from weighbridge.pipeline.ingest.columns import ZERO, either, holds, total
from weighbridge.pipeline.ingest.dialect import (
    CACHED_BY_MODALITY,
    INPUT_BY_MODALITY,
    OUTPUT_BY_MODALITY,
    TOOL_BY_MODALITY,
    UNCACHED_BY_MODALITY,
    Role,
)
from weighbridge.schemas.lattice import CROSSED_CELLS, INPUT_CLASSES

CELLS = tuple(str(cell.name) for cell in CROSSED_CELLS)
WRITES = tuple(str(name) for name in INPUT_CLASSES[2:])


def cross(of: Mapping[Role, pl.Expr]) -> dict[str, pl.Expr]:
    """The cells of class and modality, and whether some exceed the figure that contains them."""
    inside, uncached, read = pl.col("inside"), pl.col("input_uncached"), pl.col("cache_read")
    unwritten = pl.all_horizontal([holds(pl.col(name) == 0) for name in WRITES])
    fresh, cached, listed = [], [], []
    for index, role in enumerate(INPUT_BY_MODALITY):
        whole = of[role] + of[TOOL_BY_MODALITY[index]]
        none_read = holds(read == 0) | holds(inside & (whole == 0))
        reads = pl.coalesce(of[CACHED_BY_MODALITY[index]], pl.when(none_read).then(ZERO))
        apart = pl.when(holds(unwritten | (whole <= reads))).then(whole - reads)
        rest = pl.coalesce(of[UNCACHED_BY_MODALITY[index]], pl.when(inside).then(apart).otherwise(whole))
        rest = pl.coalesce(rest, pl.when(uncached == 0).then(ZERO))
        fresh.append(rest)
        cached.append(pl.coalesce(reads, pl.when(inside & unwritten & (uncached == 0)).then(whole)))
        listed.append(whole)
    visible = pl.col("output_visible")
    shown = [pl.coalesce(of[role], pl.when(visible == 0).then(ZERO)) for role in OUTPUT_BY_MODALITY]
    beyond = (
        exceeds(fresh, pl.coalesce("input_uncached", "input_total"))
        | exceeds(cached, pl.coalesce("cache_read", "input_total"))
        | exceeds(listed, pl.col("prompt"))
        | exceeds(shown, pl.coalesce("output_visible", "output_total"))
    )
    return {**dict(zip(CELLS, (*fresh, *cached, *shown), strict=True)), "beyond": beyond}


def exceeds(parts: Sequence[pl.Expr], whole: pl.Expr) -> pl.Expr:
    negative = either(part < 0 for part in parts)
    return negative | holds(total(parts) > whole)
