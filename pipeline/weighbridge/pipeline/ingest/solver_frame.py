"""The identity solver over columns: `solver`, with every step as Polars expressions under the same names.

A frame of figures has one Int64 column per role that occurs (null where a report does not say), `stale_split` and
`noticed`. A property test holds this form and the scalar one together on every input: change both or neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add

import polars as pl

from weighbridge.pipeline.ingest.cells_frame import CELLS, cross
from weighbridge.pipeline.ingest.columns import NO, ZERO, bit, holds, total
from weighbridge.pipeline.ingest.dialect import Dialect, Reading, Role
from weighbridge.pipeline.ingest.known_frame import Known, fill
from weighbridge.pipeline.ingest.outcome import Flag
from weighbridge.pipeline.ingest.verdict_frame import INPUTS, NUMBERS, OUTPUTS, TOTALS, conclude

__all__ = ["CELLS", "INPUTS", "NUMBERS", "OUTPUTS", "TOTALS", "solve_frame"]


def solve_frame(dialect: Dialect, provider: str | None, figures: pl.DataFrame) -> pl.DataFrame:
    """The readings of many reports of one dialect and provider, row by row in the order of `figures`.

    Args:
        dialect: whose readings are conceivable.
        provider: whose absent fields mean what.
        figures: a column per role that occurs, `stale_split` (boolean) and `noticed` (bits of `Flag`).

    Returns:
        `code` (see `outcome`), the three totals, the classes and the cells.
    """
    known = fill(dialect, provider, figures)
    first = weigh(dialect, dialect.readings[0], known)
    best = first.with_columns(
        declared=pl.col("misfits"), chosen=ZERO, fitting=(pl.col("misfits") == 0).cast(pl.Int64), several=NO
    )
    weighed = 1
    for index, reading in enumerate(dialect.readings):
        if index and tells_apart(dialect, reading, known):
            best = prefer(best, weigh(dialect, reading, known), index)
            weighed += 1
    return conclude(dialect, known, best, weighed)


def tells_apart(dialect: Dialect, reading: Reading, known: Known) -> bool:
    """Whether a reading can differ from an earlier one: some row has tokens that one of its other answers moves."""
    declared = dialect.readings[0]
    thinking = known.of[Role.REASONING] != 0
    moved = {
        "input_includes_cache": pl.col("cached_known") & (pl.col("cached") != 0) & ~pl.col("repaired"),
        "output_includes_reasoning": thinking if declared.output_includes_reasoning else thinking.fill_null(value=True),
        "input_includes_tool_prompt": known.of[Role.TOOL_PROMPT] != 0,
        "total_counts_cache_twice": pl.col("cached") != 0,
        "total_leaves_out_reasoning": thinking,
    }
    asked = [name for name in moved if getattr(reading, name) != getattr(declared, name)]
    found = known.frame.select(moved[name].any().alias(name) for name in asked)
    return all(found.row(0))


def weigh(dialect: Dialect, reading: Reading, known: Known) -> pl.DataFrame:
    """What one reading makes of the figures, and in `misfits` which laws it breaks: zero where it fits."""
    of, declared = known.of, dialect.readings[0]
    cached_told = pl.col("cached_known") & ~pl.col("repaired")
    inside = _answer(reading.input_includes_cache, declared.input_includes_cache, cached_told) | pl.col("whole")
    # Reasoning beside the output may be hidden: then it is what the total counts beyond input and output.
    told = of[Role.REASONING].is_not_null() | (not declared.output_includes_reasoning)
    thinks = _answer(reading.output_includes_reasoning, declared.output_includes_reasoning, told)
    tool = _answer(
        reading.input_includes_tool_prompt, declared.input_includes_tool_prompt, of[Role.TOOL_PROMPT].is_not_null()
    )
    frame = known.frame.with_columns(
        inside=inside,
        prompt=pl.when(tool).then(of[Role.INPUT]).otherwise(of[Role.INPUT] + of[Role.TOOL_PROMPT]),
        answer=pl.when(thinks).then(of[Role.OUTPUT]).otherwise(of[Role.OUTPUT] + of[Role.REASONING]),
        known_cached=pl.when("cached_known").then("cached"),
        input_uncached=of[Role.INPUT_UNCACHED],
        cache_read=of[Role.CACHE_READ],
        cache_write_5m="five",
        cache_write_1h="hour",
        cache_write_unknown="unknown",
        output_visible=pl.coalesce(of[Role.OUTPUT_VISIBLE], pl.when(~thinks).then(of[Role.OUTPUT])),
        reasoning=of[Role.REASONING],
    )
    prompt = pl.when("inside").then("prompt").otherwise(pl.col("prompt") + pl.col("known_cached"))
    frame = frame.with_columns(input_total=_added(prompt, INPUTS), output_total=_added(pl.col("answer"), OUTPUTS))
    more = pl.col("cached") if reading.total_counts_cache_twice else ZERO
    more = more - of[Role.REASONING].fill_null(0) if reading.total_leaves_out_reasoning else more
    frame = frame.with_columns(**_balance(of[Role.TOTAL] - more))
    frame = frame.with_columns(**_deduce("input", INPUTS), **_deduce("output", OUTPUTS))
    frame = frame.with_columns(**cross(of))
    beyond_prompt = holds(tool & (of[Role.INPUT] < of[Role.TOOL_PROMPT]))
    return frame.select(*NUMBERS, misfits=_misfits(of, beyond_prompt))


def _answer(asked: bool, declared: bool, known: pl.Expr) -> pl.Expr:
    """A part that is unknown cannot tell two readings apart: then only the declared answer is looked at."""
    return pl.lit(asked) if asked == declared else pl.when(known).then(pl.lit(asked)).otherwise(pl.lit(declared))


def _added(total: pl.Expr, parts: Sequence[str]) -> pl.Expr:
    """The total, or the sum of its parts where only they are known."""
    return pl.coalesce(total, reduce(add, (pl.col(part) for part in parts)))


def _balance(bare: pl.Expr) -> dict[str, pl.Expr]:
    """Input, output and their sum, one of them worked out from the others where it is missing, and the misfit.

    `bare` is the reported total without what it counts beyond the two.
    """
    given_in, given_out = pl.col("input_total"), pl.col("output_total")
    got_in = pl.coalesce(given_in, bare - given_out)
    got_out = pl.coalesce(given_out, bare - given_in)
    both = given_in + given_out
    # A missing side that comes out negative is a misfit too, and so is a negative sum of two missing sides.
    worked_out = pl.when(given_in.is_null() & given_out.is_null()).then(bare)
    worked_out = pl.when(both.is_null()).then(pl.min_horizontal(got_in, got_out, worked_out))
    misfit = holds(both != bare) | holds(worked_out < 0)
    return {
        "input_total": got_in,
        "output_total": got_out,
        "total": pl.coalesce(both, bare),
        "unbalanced": misfit,
    }


def _deduce(side: str, parts: Sequence[str]) -> dict[str, pl.Expr]:
    """The parts with the missing ones worked out, and whether they do not add up."""
    columns = [pl.col(part) for part in parts]
    left = pl.col(f"{side}_total") - total(columns)
    missing = reduce(add, (column.is_null().cast(pl.Int8) for column in columns))
    rest = pl.when(missing == 1).then(left).when(left == 0).then(ZERO)
    off = holds((left < 0) | ((missing == 0) & (left != 0)))
    return {f"{side}_off": off, **{part: pl.coalesce(pl.col(part), rest) for part in parts}}


def _misfits(of: Mapping[Role, pl.Expr], beyond_prompt: pl.Expr) -> pl.Expr:
    cached = pl.col("input_off") & (pl.col("cached") > pl.col("input_total"))
    thought = pl.col("output_off") & (of[Role.REASONING].fill_null(0) > pl.col("output_total"))
    parts = (pl.col("input_off") & ~cached) | (pl.col("output_off") & ~thought) | beyond_prompt
    return (
        bit(cached, Flag.CACHED_EXCEEDS_INPUT)
        | bit(thought, Flag.REASONING_EXCEEDS_OUTPUT)
        | bit(parts, Flag.PARTS_MISMATCH)
        | bit(pl.col("unbalanced"), Flag.TOTAL_MISMATCH)
        | bit(pl.col("beyond"), Flag.MODALITY_EXCEEDS_COUNT)
    )


def prefer(best: pl.DataFrame, other: pl.DataFrame, index: int) -> pl.DataFrame:
    """The first fitting reading of each row so far, how many fit, and whether they differ."""
    frame = pl.concat([best, other.rename(lambda name: f"other_{name}")], how="horizontal")
    fits, fitted = pl.col("other_misfits") == 0, pl.col("fitting") > 0
    same = pl.all_horizontal([pl.col(name).eq_missing(pl.col(f"other_{name}")) for name in NUMBERS])
    take = fits & ~fitted
    return frame.select(
        *(pl.when(take).then(f"other_{name}").otherwise(name).alias(name) for name in NUMBERS),
        misfits="misfits",
        declared="declared",
        chosen=pl.when(take).then(pl.lit(index, dtype=pl.Int64)).otherwise("chosen"),
        fitting=pl.col("fitting") + fits.cast(pl.Int64),
        several=pl.col("several") | (fits & fitted & ~same),
    )
