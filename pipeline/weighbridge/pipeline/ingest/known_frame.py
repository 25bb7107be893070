"""What many reports say, before they are read: `known`, with every step as Polars expressions under the same names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from weighbridge.pipeline.ingest.columns import NO, NULL, ZERO, bit, either, holds, total
from weighbridge.pipeline.ingest.dialect import CORE, ITEMISED, SUMMED, TOOL_ROWS, WITNESSES, Absent, Dialect, Role
from weighbridge.pipeline.ingest.fact import Repair
from weighbridge.pipeline.ingest.outcome import SPOILED, Flag


class Known(NamedTuple):
    """The figures with absent fields filled in; a role that never occurs is a literal in `of`, not a column."""

    frame: pl.DataFrame
    of: Mapping[Role, pl.Expr]


def fill(dialect: Dialect, provider: str | None, figures: pl.DataFrame) -> Known:
    """The figures with zeros where absence means zero, the writes by lifetime, and what was noticed."""
    figures = mended(dialect, figures)
    raw = {role: pl.col(role) if role in figures.columns else NULL for role in SUMMED}
    occurring = frozenset(role for role in SUMMED if role in figures.columns)
    filled = {role: _filled(role, raw, dialect.absent_for(provider), occurring) for role in SUMMED}
    columns = {role: f"of_{role}" for role, (_, varies) in filled.items() if varies}
    of = {role: pl.col(columns[role]) if role in columns else expr for role, (expr, _) in filled.items()}
    negative = either(raw[role] < 0 for role in occurring)
    counted = either(raw[role].is_not_null() for role in CORE if role in occurring)
    frame = figures.with_columns(
        *(filled[role][0].alias(name) for role, name in columns.items()),
        noticed=pl.col("noticed")
        | bit(negative, Flag.NEGATIVE_COUNT)
        | (ZERO if dialect.known else bit(counted, Flag.PROVIDER_NOT_KNOWN)),
        counted=counted,
    )
    if dialect.direct:
        writes = (of[Role.CACHE_WRITE_5M], of[Role.CACHE_WRITE_1H], of[Role.CACHE_WRITE_UNKNOWN], ZERO)
    else:
        writes = split_writes(raw, of[Role.CACHE_WRITE])
    spoiled = (pl.col("noticed") & int(SPOILED)) != 0
    noticed = pl.col("noticed") | writes[3] | details_flag(dialect, raw, of, occurring)
    noticed = noticed | grain_flags(dialect, occurring)
    frame = frame.with_columns(
        five=writes[0],
        hour=writes[1],
        unknown=writes[2],
        spoiled=spoiled,
        noticed=pl.when(spoiled | ~pl.col("counted")).then(pl.col("noticed")).otherwise(noticed),
    )
    parts = (of[Role.CACHE_READ], pl.col("five"), pl.col("hour"), pl.col("unknown"))
    frame = frame.with_columns(
        cached=total(parts), cached_known=pl.all_horizontal([part.is_not_null() for part in parts])
    )
    whole = ~pl.col("cached_known") if dialect.absent_for(provider).whole else NO
    return Known(frame.with_columns(whole=whole), of)


def completed(figures: pl.DataFrame) -> pl.DataFrame:
    """The figures with what other fields say of a figure that is not there, and what is noticed about them."""
    rows = [pl.col(role) for role in TOOL_ROWS if role in figures.columns]
    if rows:
        own = pl.col(Role.TOOL_PROMPT) if Role.TOOL_PROMPT in figures.columns else NULL
        listed = pl.when(either(row.is_not_null() for row in rows)).then(total(rows))
        figures = figures.with_columns(pl.coalesce(own, listed).alias(Role.TOOL_PROMPT))
    for service, role in WITNESSES.items():
        if service not in figures.columns:
            continue
        own = pl.col(role) if role in figures.columns else NULL
        figures = figures.with_columns(
            pl.coalesce(own, service).alias(role),
            noticed=pl.col("noticed") | bit(holds(own != pl.col(service)), Flag.SERVICE_COUNT_DIFFERS),
        )
    return figures


def mended(dialect: Dialect, figures: pl.DataFrame) -> pl.DataFrame:
    """The figures with a known fault of the provider mended; `repaired` says in which rows."""
    if Repair.NEGATIVE_INPUT not in dialect.repairs or not {Role.INPUT, Role.CACHE_READ} <= set(figures.columns):
        return figures.with_columns(repaired=NO)
    given, read = pl.col(Role.INPUT), pl.col(Role.CACHE_READ)
    frame = figures.with_columns(repaired=holds((given < 0) & (given >= -read)))
    return frame.with_columns(
        pl.when("repaired").then(given + read).otherwise(given).alias(Role.INPUT),
        noticed=pl.col("noticed") | bit(pl.col("repaired"), Flag.REPAIRED_NEGATIVE_INPUT),
    )


def grain_flags(dialect: Dialect, occurring: frozenset[Role]) -> pl.Expr:
    """Counts that do not come in the steps in which this provider counts them."""
    steps = (
        (Role.CACHE_READ, dialect.cached_grain, Flag.CACHED_OFF_GRAIN),
        (Role.REASONING, dialect.reasoning_grain, Flag.REASONING_OFF_GRAIN),
    )
    flags = ZERO
    for role, step, flag in steps:
        if step and role in occurring:
            flags = flags | bit(holds(pl.col(role) % step != 0), flag)
    return flags


def _filled(
    role: Role, raw: Mapping[Role, pl.Expr], absent: Absent, occurring: frozenset[Role]
) -> tuple[pl.Expr, bool]:
    """The filled figure, and whether it differs between rows."""
    if role in absent.zero:
        return (raw[role].fill_null(0), True) if role in occurring else (ZERO, False)
    beside = [raw[other].is_not_null() for other in sorted(absent.zero_beside.get(role, frozenset()) & occurring)]
    if not beside:
        return raw[role], role in occurring
    return pl.when(either(beside)).then(raw[role].fill_null(0)).otherwise(raw[role]), True


def split_writes(raw: Mapping[Role, pl.Expr], created: pl.Expr) -> tuple[pl.Expr, pl.Expr, pl.Expr, pl.Expr]:
    """Writes by lifetime, and what was noticed. The split wins over a smaller sum, unless that was revised after it."""
    given = raw[Role.CACHE_WRITE_5M].is_not_null() | raw[Role.CACHE_WRITE_1H].is_not_null()
    five, hour = raw[Role.CACHE_WRITE_5M].fill_null(0), raw[Role.CACHE_WRITE_1H].fill_null(0)
    split, stale = five + hour, pl.col("stale_split")
    differs = given & raw[Role.CACHE_WRITE].is_not_null() & holds(created != split)
    more, fewer = differs & (created > split), differs & (created < split)
    unknown = pl.when(~given | (fewer & stale)).then(created).when(more).then(created - split).otherwise(ZERO)
    flags = (
        bit(differs & stale, Flag.TTL_SPLIT_STALE)
        | bit(more, Flag.TTL_SPLIT_INCOMPLETE)
        | bit(fewer & ~stale, Flag.TTL_SPLIT_EXCEEDS_CREATION)
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
        whole, listed = of[parent], total(rows)
        differs = holds((listed != 0) & (listed != whole))
        if not dialect.itemised:
            differs &= either(raw[role].is_not_null() for role in texts)
        if parent is Role.OUTPUT:
            differs &= listed != whole + of[Role.REASONING].fill_null(0)
        wrong.append(differs)
    return bit(either(wrong), Flag.MODALITY_DETAILS_INCOMPLETE)
