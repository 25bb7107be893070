"""The verdict of each row, as the integer of `outcome`: `solver.choose` over columns."""

from __future__ import annotations

import polars as pl

from weighbridge.pipeline.ingest import outcome
from weighbridge.pipeline.ingest.cells_frame import CELLS
from weighbridge.pipeline.ingest.columns import NO, ZERO, bit, either, holds
from weighbridge.pipeline.ingest.dialect import Dialect, Role
from weighbridge.pipeline.ingest.fact import Axis
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
        "cached",
        declares=pl.lit(dialect.known),
        weighed_total=known.of[Role.TOTAL].is_not_null(),
        only_counted=pl.col(Role.WOULD_BE_INPUT).is_not_null() if Role.WOULD_BE_INPUT in known.frame.columns else NO,
        guessed=_guesses(dialect, known),
        cache_matters=pl.lit(not dialect.direct),
    )
    frame = pl.concat([context, best], how="horizontal")
    usable = pl.col("counted") & ~pl.col("spoiled")
    refuted = pl.col("several") & (pl.col("chosen") > 0)
    frame = frame.with_columns(
        refuted=refuted,
        settled=usable & (pl.col("fitting") > 0) & ~refuted,
        mended=(pl.col("noticed") & int(Flag.REPAIRED_NEGATIVE_INPUT)) != 0,
        witnessed=(pl.col("noticed") & int(Flag.SERVICE_COUNT_DIFFERS)) != 0,
        twice=pl.col("chosen").is_in(
            [at for at, reading in enumerate(dialect.readings) if reading.total_counts_cache_twice]
        ),
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


def _guesses(dialect: Dialect, known: Known) -> pl.Expr:
    told = known.of[Role.INPUT].is_not_null() & ~pl.col("cached_known")
    return told & pl.lit(Axis.INPUT_INCLUDES_CACHE in dialect.guessed)


def _flags(usable: pl.Expr) -> pl.Expr:
    settled = pl.col("settled")
    return (
        pl.col("noticed")
        | bit(~pl.col("counted"), Flag.USAGE_MISSING)
        | pl.when(usable & ~settled).then("declared").otherwise(ZERO)
        | bit(~pl.col("counted") & pl.col("only_counted"), Flag.COUNT_ONLY)
        | bit(settled & pl.col("declares") & (pl.col("chosen") > 0), Flag.CONVENTION_REFUTED)
        | bit(settled & pl.col("twice") & (pl.col("cached") != 0), Flag.TOTAL_DOUBLE_COUNTS_CACHE)
        | bit(
            settled & pl.col("cache_matters") & pl.col("cache_read").is_null() & holds(pl.col("input_total") != 0),
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
        .when(pl.any_horizontal("mended", "repaired", "witnessed", "several", "guessed"))
        .then(number(Verdict.ASSUMED))
        .otherwise(number(Verdict.PROVED))
    )


def _why(usable: pl.Expr, weighed: int) -> pl.Expr:
    def number(why: Why) -> pl.Expr:
        return pl.lit(int(why), dtype=pl.Int64)

    return (
        pl.when(~pl.col("counted") & pl.col("only_counted"))
        .then(number(Why.COUNT_ONLY))
        .when(~pl.col("counted"))
        .then(number(Why.NO_COUNTS))
        .when(~usable | (pl.col("fitting") == 0))
        .then(number(Why.NONE_FITS))
        .when("refuted")
        .then(number(Why.DECLARED_REFUTED))
        .when("mended")
        .then(number(Why.REPAIRED_INPUT))
        .when("repaired")
        .then(number(Why.REPAIRED))
        .when("witnessed")
        .then(number(Why.SERVICE_DIFFERS))
        .when(pl.col("several") | pl.col("guessed"))
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
