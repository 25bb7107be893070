"""The identity solver over columns: `solver`, with every step as Polars expressions under the same names.

A frame of figures has one Int64 column per role that occurs (null where a report does not say), `stale_split` and
`noticed`. A property test holds this form and the scalar one together on every input: change both or neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import add, or_
from typing import NamedTuple

import polars as pl

from weighbridge.pipeline.ingest import outcome
from weighbridge.pipeline.ingest.dialect import (
    CACHED_BY_MODALITY,
    CORE,
    INPUT_BY_MODALITY,
    ITEMISED,
    OUTPUT_BY_MODALITY,
    SUMMED,
    TOOL_BY_MODALITY,
    UNCACHED_BY_MODALITY,
    Absent,
    Dialect,
    Reading,
    Role,
)
from weighbridge.pipeline.ingest.outcome import SPOILED, Flag, Unsaid, Why
from weighbridge.schemas.enumerations import Verdict
from weighbridge.schemas.lattice import CROSSED_CELLS, INPUT_CLASSES, OUTPUT_CLASSES

TOTALS = ("input_total", "output_total", "total")
INPUTS = tuple(str(name) for name in INPUT_CLASSES)
OUTPUTS = tuple(str(name) for name in OUTPUT_CLASSES)
CELLS = tuple(str(cell.name) for cell in CROSSED_CELLS)
NUMBERS = (*TOTALS, *INPUTS, *OUTPUTS, *CELLS)
NULL = pl.lit(None, dtype=pl.Int64)
ZERO = pl.lit(0, dtype=pl.Int64)
NO = pl.lit(value=False)


class Known(NamedTuple):
    """The figures with absent fields filled in; a role that never occurs is a literal in `of`, not a column."""

    frame: pl.DataFrame
    of: Mapping[Role, pl.Expr]


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


def fill(dialect: Dialect, provider: str | None, figures: pl.DataFrame) -> Known:
    """The figures with zeros where absence means zero, the writes by lifetime, and what was noticed."""
    raw = {role: pl.col(role) if role in figures.columns else NULL for role in SUMMED}
    occurring = frozenset(role for role in SUMMED if role in figures.columns)
    filled = {role: _filled(role, raw, dialect.absent_for(provider), occurring) for role in SUMMED}
    columns = {role: f"of_{role}" for role, (_, varies) in filled.items() if varies}
    of = {role: pl.col(columns[role]) if role in columns else expr for role, (expr, _) in filled.items()}
    negative = _any(raw[role] < 0 for role in occurring)
    frame = figures.with_columns(
        *(filled[role][0].alias(name) for role, name in columns.items()),
        noticed=pl.col("noticed") | _bit(negative, Flag.NEGATIVE_COUNT),
        counted=_any(raw[role].is_not_null() for role in CORE if role in occurring),
    )
    if dialect.direct:
        writes = (of[Role.CACHE_WRITE_5M], of[Role.CACHE_WRITE_1H], of[Role.CACHE_WRITE_UNKNOWN], ZERO)
    else:
        writes = split_writes(raw, of[Role.CACHE_WRITE])
    spoiled = (pl.col("noticed") & int(SPOILED)) != 0
    noticed = pl.col("noticed") | writes[3] | details_flag(dialect, raw, of, occurring)
    frame = frame.with_columns(
        five=writes[0],
        hour=writes[1],
        unknown=writes[2],
        spoiled=spoiled,
        noticed=pl.when(spoiled | ~pl.col("counted")).then(pl.col("noticed")).otherwise(noticed),
    )
    parts = (of[Role.CACHE_READ], pl.col("five"), pl.col("hour"), pl.col("unknown"))
    frame = frame.with_columns(
        cached=_sum(parts), cached_known=pl.all_horizontal([part.is_not_null() for part in parts])
    )
    return Known(frame, of)


def _filled(
    role: Role, raw: Mapping[Role, pl.Expr], absent: Absent, occurring: frozenset[Role]
) -> tuple[pl.Expr, bool]:
    """The filled figure, and whether it differs between rows."""
    if role in absent.zero:
        return (raw[role].fill_null(0), True) if role in occurring else (ZERO, False)
    beside = [raw[other].is_not_null() for other in sorted(absent.zero_beside.get(role, frozenset()) & occurring)]
    if not beside:
        return raw[role], role in occurring
    return pl.when(_any(beside)).then(raw[role].fill_null(0)).otherwise(raw[role]), True


def split_writes(raw: Mapping[Role, pl.Expr], created: pl.Expr) -> tuple[pl.Expr, pl.Expr, pl.Expr, pl.Expr]:
    """Writes by lifetime, and what was noticed. The split wins over a smaller sum, unless that was revised after it."""
    given = raw[Role.CACHE_WRITE_5M].is_not_null() | raw[Role.CACHE_WRITE_1H].is_not_null()
    five, hour = raw[Role.CACHE_WRITE_5M].fill_null(0), raw[Role.CACHE_WRITE_1H].fill_null(0)
    split, stale = five + hour, pl.col("stale_split")
    differs = given & raw[Role.CACHE_WRITE].is_not_null() & (created != split).fill_null(value=False)
    more, fewer = differs & (created > split), differs & (created < split)
    unknown = pl.when(~given | (fewer & stale)).then(created).when(more).then(created - split).otherwise(ZERO)
    flags = (
        _bit(differs & stale, Flag.TTL_SPLIT_STALE)
        | _bit(more, Flag.TTL_SPLIT_INCOMPLETE)
        | _bit(fewer & ~stale, Flag.TTL_SPLIT_EXCEEDS_CREATION)
    )
    dropped = fewer & stale
    return pl.when(dropped).then(ZERO).otherwise(five), pl.when(dropped).then(ZERO).otherwise(hour), unknown, flags


def details_flag(
    dialect: Dialect, raw: Mapping[Role, pl.Expr], of: Mapping[Role, pl.Expr], occurring: frozenset[Role]
) -> pl.Expr:
    """Whether modality details that claim to be complete do not add up to their figure."""
    wrong = []
    for parent, (texts, splits) in ITEMISED.items():
        rows = [raw[role] for role in (*texts, *splits) if role in occurring]
        if not rows:
            continue
        whole, listed = of[parent], _sum(rows)
        differs = ((listed != 0) & (listed != whole)).fill_null(value=False)
        if not dialect.itemised:
            differs &= _any(raw[role].is_not_null() for role in texts)
        if parent is Role.OUTPUT:
            differs &= listed != whole + of[Role.REASONING].fill_null(0)
        wrong.append(differs)
    return _bit(_any(wrong), Flag.MODALITY_DETAILS_INCOMPLETE)


def tells_apart(dialect: Dialect, reading: Reading, known: Known) -> bool:
    """Whether a reading can differ from an earlier one: some row has tokens that one of its other answers moves."""
    declared = dialect.readings[0]
    moved = {
        "input_includes_cache": pl.col("cached_known") & (pl.col("cached") != 0),
        "output_includes_reasoning": known.of[Role.REASONING] != 0,
        "input_includes_tool_prompt": known.of[Role.TOOL_PROMPT] != 0,
        "total_counts_cache_twice": pl.col("cached") != 0,
    }
    asked = [name for name in moved if getattr(reading, name) != getattr(declared, name)]
    found = known.frame.select(moved[name].any().alias(name) for name in asked)
    return all(found.row(0))


def weigh(dialect: Dialect, reading: Reading, known: Known) -> pl.DataFrame:
    """What one reading makes of the figures, and in `misfits` which laws it breaks: zero where it fits."""
    of, declared = known.of, dialect.readings[0]
    inside = _answer(reading.input_includes_cache, declared.input_includes_cache, pl.col("cached_known"))
    thinks = _answer(
        reading.output_includes_reasoning, declared.output_includes_reasoning, of[Role.REASONING].is_not_null()
    )
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
        output_visible=of[Role.OUTPUT_VISIBLE],
        reasoning=of[Role.REASONING],
    )
    prompt = pl.when("inside").then("prompt").otherwise(pl.col("prompt") + pl.col("known_cached"))
    frame = frame.with_columns(input_total=_added(prompt, INPUTS), output_total=_added(pl.col("answer"), OUTPUTS))
    frame = frame.with_columns(**_balance(of[Role.TOTAL], twice=reading.total_counts_cache_twice))
    frame = frame.with_columns(**_deduce("input", INPUTS), **_deduce("output", OUTPUTS))
    frame = frame.with_columns(**_cross(of))
    beyond_prompt = (tool & (of[Role.INPUT] < of[Role.TOOL_PROMPT])).fill_null(value=False)
    return frame.select(*NUMBERS, misfits=_misfits(of, beyond_prompt))


def _answer(asked: bool, declared: bool, known: pl.Expr) -> pl.Expr:
    """A part that is unknown cannot tell two readings apart: then only the declared answer is looked at."""
    return pl.lit(asked) if asked == declared else pl.when(known).then(pl.lit(asked)).otherwise(pl.lit(declared))


def _added(total: pl.Expr, parts: Sequence[str]) -> pl.Expr:
    """The total, or the sum of its parts where only they are known."""
    return pl.coalesce(total, reduce(add, (pl.col(part) for part in parts)))


def _balance(total: pl.Expr, *, twice: bool) -> dict[str, pl.Expr]:
    """Input, output and their sum, one of them worked out from the others where it is missing, and the misfit."""
    given_in, given_out = pl.col("input_total"), pl.col("output_total")
    bare = total - pl.col("cached") if twice else total
    got_in = pl.coalesce(given_in, bare - given_out)
    got_out = pl.coalesce(given_out, bare - given_in)
    both = given_in + given_out
    # A missing side that comes out negative is a misfit too, and so is a negative sum of two missing sides.
    worked_out = pl.when(given_in.is_null() & given_out.is_null()).then(bare)
    worked_out = pl.when(both.is_null()).then(pl.min_horizontal(got_in, got_out, worked_out))
    misfit = (both != bare).fill_null(value=False) | (worked_out < 0).fill_null(value=False)
    return {
        "input_total": got_in,
        "output_total": got_out,
        "total": pl.coalesce(both, bare),
        "unbalanced": misfit,
    }


def _deduce(side: str, parts: Sequence[str]) -> dict[str, pl.Expr]:
    """The parts with the missing ones worked out, and whether they do not add up."""
    columns = [pl.col(part) for part in parts]
    left = pl.col(f"{side}_total") - _sum(columns)
    missing = reduce(add, (column.is_null().cast(pl.Int8) for column in columns))
    rest = pl.when(missing == 1).then(left).when(left == 0).then(ZERO)
    off = ((left < 0) | ((missing == 0) & (left != 0))).fill_null(value=False)
    return {f"{side}_off": off, **{part: pl.coalesce(pl.col(part), rest) for part in parts}}


def _cross(of: Mapping[Role, pl.Expr]) -> dict[str, pl.Expr]:
    """The cells of class and modality, and whether some exceed the figure that contains them."""
    inside, uncached, read = pl.col("inside"), pl.col("input_uncached"), pl.col("cache_read")
    unwritten = pl.all_horizontal([(pl.col(name) == 0).fill_null(value=False) for name in INPUTS[2:]])
    fresh, cached, listed = [], [], []
    for index, role in enumerate(INPUT_BY_MODALITY):
        whole = of[role] + of[TOOL_BY_MODALITY[index]]
        none_read = (read == 0).fill_null(value=False) | (inside & (whole == 0)).fill_null(value=False)
        reads = pl.coalesce(of[CACHED_BY_MODALITY[index]], pl.when(none_read).then(ZERO))
        apart = pl.when((unwritten | (whole <= reads)).fill_null(value=False)).then(whole - reads)
        rest = pl.coalesce(of[UNCACHED_BY_MODALITY[index]], pl.when(inside).then(apart).otherwise(whole))
        rest = pl.coalesce(rest, pl.when(uncached == 0).then(ZERO))
        fresh.append(rest)
        cached.append(pl.coalesce(reads, pl.when(inside & unwritten & (uncached == 0)).then(whole)))
        listed.append(whole)
    visible = pl.col("output_visible")
    shown = [pl.coalesce(of[role], pl.when(visible == 0).then(ZERO)) for role in OUTPUT_BY_MODALITY]
    beyond = (
        _exceeds(fresh, pl.coalesce("input_uncached", "input_total"))
        | _exceeds(cached, pl.coalesce("cache_read", "input_total"))
        | _exceeds(listed, pl.col("prompt"))
        | _exceeds(shown, pl.coalesce("output_visible", "output_total"))
    )
    return {**dict(zip(CELLS, (*fresh, *cached, *shown), strict=True)), "beyond": beyond}


def _exceeds(parts: Sequence[pl.Expr], whole: pl.Expr) -> pl.Expr:
    negative = _any((part < 0).fill_null(value=False) for part in parts)
    return negative | (_sum(parts) > whole).fill_null(value=False)


def _misfits(of: Mapping[Role, pl.Expr], beyond_prompt: pl.Expr) -> pl.Expr:
    cached = pl.col("input_off") & (pl.col("cached") > pl.col("input_total"))
    thought = pl.col("output_off") & (of[Role.REASONING].fill_null(0) > pl.col("output_total"))
    parts = (pl.col("input_off") & ~cached) | (pl.col("output_off") & ~thought) | beyond_prompt
    return (
        _bit(cached, Flag.CACHED_EXCEEDS_INPUT)
        | _bit(thought, Flag.REASONING_EXCEEDS_OUTPUT)
        | _bit(parts, Flag.PARTS_MISMATCH)
        | _bit(pl.col("unbalanced"), Flag.TOTAL_MISMATCH)
        | _bit(pl.col("beyond"), Flag.MODALITY_EXCEEDS_COUNT)
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


def conclude(dialect: Dialect, known: Known, best: pl.DataFrame, weighed: int) -> pl.DataFrame:
    """The verdict of each row, as `code`; the counts of a row without a reading are null."""
    context = known.frame.select(
        "noticed",
        "counted",
        "spoiled",
        weighed_total=known.of[Role.TOTAL].is_not_null(),
        cache_unsaid=known.of[Role.CACHE_READ].is_null() & pl.lit(not dialect.direct),
    )
    frame = pl.concat([context, best], how="horizontal")
    usable = pl.col("counted") & ~pl.col("spoiled")
    refuted = pl.col("several") & (pl.col("chosen") > 0)
    frame = frame.with_columns(
        refuted=refuted,
        settled=usable & (pl.col("fitting") > 0) & ~refuted,
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
        | _bit(~pl.col("counted"), Flag.USAGE_MISSING)
        | pl.when(usable & ~settled).then("declared").otherwise(ZERO)
        | _bit(settled & (pl.col("chosen") > 0), Flag.CONVENTION_REFUTED)
        | _bit(
            settled & pl.col("cache_unsaid") & (pl.col("input_total") != 0).fill_null(value=False),
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
        .when(pl.col("repaired") | pl.col("several"))
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
        open_split = ~missing & _any(pl.col(part).is_null() for part in parts)
        bits = bits | _bit(pl.col("settled") & missing, whole) | _bit(pl.col("settled") & open_split, split)
    return bits


def _bit(condition: pl.Expr, bit: int) -> pl.Expr:
    return pl.when(condition).then(pl.lit(int(bit), dtype=pl.Int64)).otherwise(ZERO)


def _any(conditions: Iterable[pl.Expr]) -> pl.Expr:
    return reduce(or_, (condition.fill_null(value=False) for condition in conditions), NO)


def _sum(parts: Iterable[pl.Expr]) -> pl.Expr:
    return reduce(add, (part.fill_null(0) for part in parts))
