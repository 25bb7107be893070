"""The verdict of each row, as the integer of `outcome`: `solver.choose` over columns."""

from __future__ import annotations

import polars as pl

from weighbridge.pipeline.ingest import outcome
from weighbridge.pipeline.ingest.cells_frame import CELLS
from weighbridge.pipeline.ingest.columns import ZERO, bit, either, holds
from weighbridge.pipeline.ingest.dialect import Dialect, Role
from weighbridge.pipeline.ingest.known_frame import Known
from weighbridge.pipeline.ingest.outcome import Flag, Unsaid, Why
from weighbridge.schemas.enumerations import Verdict
from weighbridge.schemas.lattice import INPUT_CLASSES, OUTPUT_CLASSES

TOTALS = ("input_total", "output_total", "total")
INPUTS = tuple(str(name) for name in INPUT_CLASSES)
OUTPUTS = tuple(str(name) for name in OUTPUT_CLASSES)
NUMBERS = (*TOTALS, *INPUTS, *OUTPUTS, *CELLS)


def conclude(dialect: Dialect, known: Known, best: pl.DataFrame, weighed: int) -> pl.DataFrame:
    """The verdict of each row, as `code`; the counts of a row without a reading are null."""
    context = known.frame.select(
        "noticed",
        "counted",
        "spoiled",
        declares=pl.lit(dialect.known),
        weighed_total=known.of[Role.TOTAL].is_not_null(),
        cache_unsaid=known.of[Role.CACHE_READ].is_null() & pl.lit(not dialect.direct),
    )
    frame = pl.concat([context, best], how="horizontal")
    usable = pl.col("counted") & ~pl.col("spoiled")
    refuted = pl.col("several") & (pl.col("chosen") > 0)
    frame = frame.with_columns(
        refuted=refuted,
        settled=usable & (pl.col("fitting") > 0) & ~refuted,
        mended=(pl.col("noticed") & int(Flag.REPAIRED_NEGATIVE_INPUT)) != 0,
        repaired=(pl.col("noticed") & int(Flag.TTL_SPLIT_EXCEEDS_CREATION)) != 0,
    )
    code = (
        _flags(usable)
        | _verdict() * (1 << outcome.VERDICT_AT)
        | pl.when("settled").then(pl.col("chosen") * (1 << outcome.CHOSEN_AT)).otherwise(ZERO)
        | _why(usable, weighed) * (1 << outcome.WHY_AT)
        | _unsaid() * (1 << outcome.UNSAID_AT)
    )
    return frame.select(code.alias("code"), *(pl.when("settled").then(name).alias(name) for name in NUMBERS))


def _flags(usable: pl.Expr) -> pl.Expr:
    settled = pl.col("settled")
    return (
        pl.col("noticed")
        | bit(~pl.col("counted"), Flag.USAGE_MISSING)
        | pl.when(usable & ~settled).then("declared").otherwise(ZERO)
        | bit(settled & pl.col("declares") & (pl.col("chosen") > 0), Flag.CONVENTION_REFUTED)
        | bit(
            settled & pl.col("cache_unsaid") & holds(pl.col("input_total") != 0),
            Flag.CACHE_DETAIL_MISSING,
        )
    )


def _verdict() -> pl.Expr:
    def number(verdict: Verdict) -> pl.Expr:
        return pl.lit(outcome.VERDICTS.index(verdict), dtype=pl.Int64)

    return (
        pl.when(~pl.col("counted"))
        .then(number(Verdict.UNKNOWN))
        .when(~pl.col("settled"))
        .then(number(Verdict.CONTRADICTORY))
        .when(pl.col("mended") | pl.col("repaired") | pl.col("several"))
        .then(number(Verdict.ASSUMED))
        .otherwise(number(Verdict.PROVED))
    )


def _why(usable: pl.Expr, weighed: int) -> pl.Expr:
    def number(why: Why) -> pl.Expr:
        return pl.lit(int(why), dtype=pl.Int64)

    return (
        pl.when(~pl.col("counted"))
        .then(number(Why.NO_COUNTS))
        .when(~usable | (pl.col("fitting") == 0))
        .then(number(Why.NONE_FITS))
        .when("refuted")
        .then(number(Why.DECLARED_REFUTED))
        .when("mended")
        .then(number(Why.REPAIRED_INPUT))
        .when("repaired")
        .then(number(Why.REPAIRED))
        .when("several")
        .then(number(Why.DECLARED))
        .when(pl.col("fitting") == weighed)
        .then(number(Why.ALL_AGREE))
        .when("weighed_total")
        .then(number(Why.ONE_FITS_TOTAL))
        .otherwise(number(Why.ONE_FITS))
    )


def _unsaid() -> pl.Expr:
    bits = ZERO
    for total, parts, whole, split in (
        ("input_total", INPUTS, Unsaid.INPUT, Unsaid.INPUT_SPLIT),
        ("output_total", OUTPUTS, Unsaid.OUTPUT, Unsaid.OUTPUT_SPLIT),
    ):
        missing = pl.col(total).is_null()
        open_split = ~missing & either(pl.col(part).is_null() for part in parts)
        bits = bits | bit(pl.col("settled") & missing, whole) | bit(pl.col("settled") & open_split, split)
    return bits
