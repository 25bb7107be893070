"""Hold what engines counted against what their attempts add up to, month by month, and say what was found."""

from __future__ import annotations

import calendar
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

import polars as pl

from weighbridge.pipeline.engine.counters import READ
from weighbridge.pipeline.engine.facts import Facts, Part, facts, kinds
from weighbridge.pipeline.engine.found import findings, in_order
from weighbridge.pipeline.engine.gaps import Gap, explained
from weighbridge.pipeline.engine.lives import bare, lives
from weighbridge.pipeline.engine.servers import STEPS, Interval, Server, servers
from weighbridge.pipeline.engine.shares import shares
from weighbridge.pipeline.engine.strangers import Strangers
from weighbridge.pipeline.engine.windows import Placed, Window, placed
from weighbridge.pipeline.lake import polars_schema
from weighbridge.pipeline.lake.found import write_findings
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.lake.records import Records
from weighbridge.schemas.enumerations import FindingOrigin
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.finding import Finding

TABLES = ("engine_gap", "engine_gap_cause", "engine_share")
_MONTH = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])")
_COUNTER = "engine_counter"


@dataclass(frozen=True, slots=True)
class EngineResult:
    """What a run did.

    Attributes:
        months: the UTC months that were looked at, in order.
        windows: windows and counters that were compared.
        statuses: status -> how many of them.
        shares: attempts of which counters tell figures nobody else does.
        findings: worst first.
    """

    months: tuple[str, ...]
    windows: int
    statuses: dict[str, int]
    shares: int
    findings: tuple[Finding, ...]


@dataclass(slots=True)
class _Rows:
    """Rows of the tables while they are gathered."""

    gaps: list[dict[str, object]] = field(default_factory=list)
    causes: list[dict[str, object]] = field(default_factory=list)
    shares: list[pl.DataFrame] = field(default_factory=list)
    doubted: set[tuple[str, str | None, str | None]] = field(default_factory=set)


def months_of(lake: Records) -> tuple[str, ...]:
    """The UTC months in which anything was scraped, or was compared before."""
    return tuple(sorted({f"{day:%Y-%m}" for table in (_COUNTER, "engine_gap") for day in lake.days(table)}))


def weigh_engines(lake: Lake, *, month: str | None = None) -> EngineResult:
    """Compare, explain, and write `engine_gap`, `engine_gap_cause`, `engine_share` and findings.

    Days that come out as they were are not written, so a second run changes nothing.

    Args:
        lake: where the tables lie.
        month: `YYYY-MM`; all months with scrapes if it is null.

    Raises:
        ConfigError: `month` is no month.
        LakeBusyError: another process is writing.
    """
    if month is not None and not _MONTH.fullmatch(month):
        raise ConfigError(f"{month!r} is no month; write it as YYYY-MM, for example 2026-03")
    asked = months_of(lake) if month is None else (month,)
    found: list[Finding] = []
    statuses: dict[str, int] = {}
    windows = told = 0
    with lake.lock():
        for period in asked:
            rows = rows_of(lake, period)
            tables = _frames(rows)
            _write(lake, period, tables)
            found += findings(tables["engine_gap"], tables["engine_gap_cause"], period, rows.doubted)
            windows += len(rows.gaps)
            told += tables["engine_share"].height
            for status, count in tables["engine_gap"].group_by("status").len().iter_rows():
                statuses[status] = statuses.get(status, 0) + count
        ordered = in_order(found)
        write_findings(lake, list(ordered), origin=FindingOrigin.ENGINE, periods=None if month is None else asked)
    return EngineResult(asked, windows, dict(sorted(statuses.items())), told, ordered)


def rows_of(lake: Records, period: str) -> _Rows:
    """What comes out of a month: the windows that end on its days, and shares of its attempts.

    Windows end with the last scrape of a day, so one day after the other is held, with its attempts.
    """
    year, number = int(period[:4]), int(period[5:])
    first, last = date(year, number, 1), date(year, number, calendar.monthrange(year, number)[1])
    # An attempt of the last day may lie in a window of the next one.
    days = [day for day in lake.days(_COUNTER) if day <= last + timedelta(days=1)]
    out = _Rows()
    for before, day in zip([None, *days], days, strict=False):
        if day >= first:
            _add_day(lake, before, day, (first, last), out)
    return out


def _add_day(lake: Records, before: date | None, day: date, ends: tuple[date, date], out: _Rows) -> None:
    """The windows that end on a day: since the last scrape of the day before that has any."""
    begin = day if before is None else before
    counters = lake.scan(_COUNTER, first=begin, last=day, columns=list(READ)).collect(engine="streaming")
    everyone = lives(lake, begin - timedelta(days=1), day)
    apart = _apart(everyone, counters)
    for server, intervals in servers(counters, from_start=before is None, apart=apart).items():
        _weigh(server, intervals, everyone, (day, ends), out)


def _apart(everyone: pl.DataFrame, counters: pl.DataFrame) -> set[tuple[str, str]]:
    """Engine and model of servers all of whose attempts say which of them they went to."""
    found = set()
    for engine, model in counters.select("engine", "model").unique().iter_rows():
        own = _of_model(everyone, engine, model or "")
        if own.height and own["instance"].null_count() == 0:
            found.add((engine, model or ""))
    return found


def _of_model(everyone: pl.DataFrame, engine: str, model: str) -> pl.DataFrame:
    named = (pl.col("model") == model) if model else pl.lit(value=True)
    return everyone.filter((pl.col("unsaid") | _said(engine)) & named.fill_null(value=False))


def _said(engine: str) -> pl.Expr:
    """Whether any source says that this engine served the attempt."""
    return pl.col("engines").list.contains(bare(engine)).fill_null(value=False)


def _own(everyone: pl.DataFrame, server: Server) -> pl.DataFrame:
    """The attempts that may have gone to a server."""
    return _of_instance(_of_model(everyone, server.engine, server.model), server)


def _of_instance(rows: pl.DataFrame, server: Server) -> pl.DataFrame:
    if not server.instance:
        return rows
    return rows.filter(pl.col("instance").is_null() | (pl.col("instance") == server.instance))


def _strangers(everyone: pl.DataFrame, server: Server) -> Strangers:
    """The attempts of a server's model of which nothing says that this engine served them.

    Where the server does not say its model, attempts under other names are everybody's: those say nothing about it.
    """
    named = (pl.col("model") == server.model) if server.model else pl.col("unsaid")
    return Strangers.of(_of_instance(everyone.filter(named.fill_null(value=False) & ~_said(server.engine)), server))


def _weigh(
    server: Server,
    intervals: Sequence[Interval],
    everyone: pl.DataFrame,
    days: tuple[date, tuple[date, date]],
    out: _Rows,
) -> None:
    day, ends = days
    own, strangers = _own(everyone, server), _strangers(everyone, server)
    place = placed(intervals, own, at_rest=server.source.rpartition("/")[2] == STEPS)
    rows = kinds(_in_windows(own, place))
    beyond = [strangers.during(window.since, window.until) for window in place.windows]
    told = facts(place.windows, rows, beyond)
    unseen: dict[int, int | None] = {}
    for number, beside in told.items():
        window = place.windows[number]
        unseen[number] = beside[0].unseen
        if window.until.date() != day or not ends[0] <= day <= ends[1]:
            continue
        for each in beside:
            gap = explained(each)
            _put(out, server, window, gap)
            if each.strangers and (gap.residual or any(part.cause.doubt(each) for part in gap.causes)):
                out.doubted.add((server.engine, server.model or None, server.instance or None))
    if rows.height:
        shared = shares(server, place.windows, rows, unseen)
        out.shares.append(shared.filter((pl.col("until").dt.date() == day) & pl.col("day").is_between(*ends)))


def _in_windows(own: pl.DataFrame, place: Placed) -> pl.DataFrame:
    """The attempts of each window; one that runs across several stands in each of them."""
    alone = own.with_columns(window=place.inside, across=pl.lit(value=False)).filter(pl.col("window").is_not_null())
    if not place.across:
        return alone
    numbers, places = zip(*place.across, strict=True)
    over = own[list(places)].with_columns(window=pl.Series(numbers, dtype=pl.Int64), across=pl.lit(value=True))
    return pl.concat([alone, over])


def _put(out: _Rows, server: Server, window: Window, gap: Gap) -> None:
    told: Facts = gap.facts
    ran = told.across.attempts + sum(part.attempts for part in _inside(told))
    if not (told.counted or gap.attempted or gap.causes or gap.residual or ran):
        return
    counter, label = told.figure.series
    named = {
        "day": window.until.date(),
        "source": server.source,
        "engine": server.engine,
        "model": server.model or None,
        "instance": server.instance or None,
        "counter": counter,
        "label": label,
        "since": window.since,
        "until": window.until,
    }
    out.gaps.append(
        {
            **named,
            "unit": str(told.figure.unit),
            "counted": told.counted,
            "attempted": gap.attempted,
            "gap": gap.size,
            "explained": gap.explained,
            "residual": gap.residual,
            "status": str(gap.status),
            "confidence": None if gap.confidence is None else str(gap.confidence),
            "attempts": sum(part.attempts for part in _inside(told)),
            "across": told.across.attempts,
            "unknown": sum(part.unknown for part in _inside(told)),
            "reset": window.reset,
        }
    )
    for part in gap.causes:
        out.causes.append(
            {
                **named,
                "cause": part.cause.code,
                "tokens": part.amount,
                "low": None if part.bounds is None else part.bounds.low,
                "high": None if part.bounds is None else part.bounds.high,
                "confidence": str(part.confidence),
                "alternatives": list(part.alternatives) or None,
            }
        )


def _inside(told: Facts) -> tuple[Part, ...]:
    return told.done, told.health, told.warm_up, told.unfinished, told.failed


def _frames(rows: _Rows) -> dict[str, pl.DataFrame]:
    shared = [frame for frame in rows.shares if frame.height]
    return {
        "engine_gap": pl.DataFrame(rows.gaps, schema=polars_schema("engine_gap")),
        "engine_gap_cause": pl.DataFrame(rows.causes, schema=polars_schema("engine_gap_cause")),
        "engine_share": pl.concat(shared) if shared else pl.DataFrame(schema=polars_schema("engine_share")),
    }


def _write(lake: Lake, period: str, tables: dict[str, pl.DataFrame]) -> None:
    """Replace the days of the month."""
    for table, frame in tables.items():
        of_month = frame.filter(pl.col("day").dt.strftime("%Y-%m") == period)
        held = {day for day in lake.days(table) if f"{day:%Y-%m}" == period}
        days = sorted(held | set(of_month["day"].unique()))
        if days:
            lake.replace(table, of_month, days=days)
