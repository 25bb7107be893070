"""The rooms of the pipeline, each called with the facts of one installation.

The command line, a plain night and a scheduler's call the same functions. Each of them is safe to run again: what is
there already is left as it is, and the same lake gives the same bytes.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import NamedTuple

import polars as pl

from weighbridge.pipeline.audit.audit import AuditResult, audit
from weighbridge.pipeline.baseline.baseline import BaselineResult, baseline
from weighbridge.pipeline.baseline.policy import BaselinePolicy
from weighbridge.pipeline.close.closed import closed_figures, closed_records, closes, compared_with
from weighbridge.pipeline.close.plain import DamagedError
from weighbridge.pipeline.content.provider import key_provider
from weighbridge.pipeline.content.recompress import Recompressed, crowded, recompress
from weighbridge.pipeline.ingest.ingest import IngestResult, ingest
from weighbridge.pipeline.ingest.readings import refresh_readings
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.frame import refresh_prices
from weighbridge.pipeline.reconcile.life.material import Materiality
from weighbridge.pipeline.reconcile.match.lateness import Lateness
from weighbridge.pipeline.reconcile.reconcile import ReconcileResult, reconcile
from weighbridge.pipeline.reconcile.reconcile import months_of as months_to_weigh
from weighbridge.pipeline.report.earlier import Closes, Earlier, Place, State
from weighbridge.pipeline.report.report import SHARED, ReportFiles, write_report
from weighbridge.pipeline.run.failure import PROGRESS
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.shared.shared import TABLE as SHARED_TABLE
from weighbridge.pipeline.shared.shared import SharedResult, derive
from weighbridge.pipeline.simulate.simulate import WRITERS
from weighbridge.pipeline.validate.scope import LAST_RUN_PAGE
from weighbridge.pipeline.validate.validate import BEFORE_RECONCILE, validate
from weighbridge.pipeline.validate.validation import Validation


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """How files are to be read; null leaves the choice to the importer that recognises the file.

    Attributes:
        day: the UTC day of records without a time.
        importer: name of the importer.
        mapping: mapping file of the importer `mapped`.
        provider, model, tenant, task: stand in where a record does not say.
        account: whose bills these are, where their lines name no account.
        revision: cost pages are later fetches of bills that were taken in.
    """

    day: date
    importer: str | None = None
    mapping: Path | None = None
    provider: str | None = None
    model: str | None = None
    tenant: str | None = None
    task: str | None = None
    account: str | None = None
    revision: bool = False


def take_in(home: Home, paths: Sequence[Path], intake: Intake) -> IngestResult:
    """Ingest files and sealed segments; readings of the days they touch are made anew.

    Segments are acknowledged in the folder the settings name, which is made where it is not there.
    """
    if home.settings.acks is not None:
        home.settings.acks.mkdir(parents=True, exist_ok=True)
    return ingest(
        paths,
        home.lake(),
        key=home.key,
        day=intake.day,
        importer=intake.importer,
        mapping=intake.mapping,
        provider=intake.provider,
        model=intake.model,
        tenant=intake.tenant,
        task=intake.task,
        account=intake.account,
        revision=intake.revision,
        acks=home.settings.acks,
        keys=key_provider(home.settings, to_open=False),
    )


def read_anew(home: Home, days: Collection[date]) -> int:
    """Read the usage reports of these days with the dialects of now; how many readings that is.

    So a dialect that was mended, or that came later, mends the past too. Days that read as before are not written.
    """
    lake = home.lake()
    with lake.lock():
        return refresh_readings(lake, days)


def set_prices(home: Home, days: Collection[date]) -> int:
    """Price the readings of these days with the book and the user's own files; how many amounts that is."""
    return refresh_prices(home.lake(), PriceBook.load(home.settings.prices), days)


def priced_in(home: Home, days: Collection[date]) -> int:
    """How many readings of these days have an amount: an unknown price makes none."""
    amounts = home.lake().scan("priced_amount", columns=["day", "amount"])
    known = amounts.filter(pl.col("day").is_in(list(days)), pl.col("amount").is_not_null())
    return int(known.select(pl.len()).collect(engine="streaming").item())


class Made(NamedTuple):
    """Readings, and how many of them have an amount."""

    readings: int
    priced: int


def made_of(home: Home, result: IngestResult) -> Made:
    """Of the readings of the days that were touched those that come from the files of this call."""
    lake, days = home.lake(), pl.col("day").is_in(result.days)
    files = [file.segment for file in result.files if not file.skipped]
    key = ["attempt_hi", "attempt_lo", "source", "child", "report"]
    own = lake.scan("reading", columns=[*key, "day", "segment"]).filter(days, pl.col("segment").is_in(files))
    amounts = lake.scan("priced_amount", columns=[*key, "day", "amount"]).filter(days).drop("day")
    priced = own.join(amounts.filter(pl.col("amount").is_not_null()), on=key, how="semi")
    counted = [frame.select(pl.len()).collect(engine="streaming").item() for frame in (own, priced)]
    return Made(*map(int, counted))


def weigh(home: Home, months: Iterable[str], *, as_of: date | None = None) -> dict[str, ReconcileResult]:
    """Reconcile these months. Rows made with another pseudonym key than the installation's are a finding.

    Args:
        home: the installation.
        months: UTC months.
        as_of: the UTC day it is: what may still come is provisional then; null: everything is final.
    """
    lake = home.lake()
    settings = home.settings
    return {
        month: reconcile(
            lake,
            month=month,
            key_id=home.key_id,
            ids_grace_days=settings.ids_grace_days,
            engine=settings.engine,
            as_of=as_of,
            lateness=Lateness.of(settings.lateness),
            progress=logging.getLogger(PROGRESS).info,
        )
        for month in months
    }


def check(home: Home, days: Collection[date], today: date) -> Validation:
    """Hold what files brought in on these days to the contract of its tables; the page goes among the reports.

    It has a name of its own, for it says nothing of the rest of the lake.

    Args:
        home: the installation.
        days: UTC days; one without rows is looked at too.
        today: the UTC day it is.
    """
    return validate(
        home.lake(),
        today=today,
        days=days,
        tables=BEFORE_RECONCILE,
        page=home.reports / LAST_RUN_PAGE,
        most=home.settings.quarantine_rows,
    )


def judge(home: Home, days: Collection[date]) -> BaselineResult:
    """Judge these days beside the days before them.

    Raises:
        ConfigError: the table `[baseline]` of the settings cannot be used as written.
    """
    return baseline(home.lake(), days=days, policy=BaselinePolicy.of(home.settings.baseline))


def hold_to_account(home: Home, days: Collection[date]) -> AuditResult:
    """Audit these days, and those of their months that come after them."""
    return audit(home.lake(), days=days)


def write_reports(home: Home, months: Iterable[str], out: Path | None = None) -> dict[str, ReportFiles]:
    """Write the report of each of these months into `out`, or the installation's folder of reports.

    Raises:
        DamagedError: a month is closed, and its pack is not the one that was closed.
    """
    settings = home.settings
    simulated = is_simulated(home.lake())
    return {
        month: write_report(
            records_of(home, month),
            month=month,
            out=out or home.reports,
            zone=settings.timezone,
            title=settings.title,
            simulated=simulated,
            closes=closes_for(home, month),
            material=Materiality.of(settings.material),
        )
        for month in months
    }


def closes_for(home: Home, month: str) -> Closes:
    """The closes a month is reported with: those of the months it is compared with, and its own where it has one."""
    before, a_year_before = compared_with(month)
    beside = {Place.MONTH: _close_of(home, before), Place.YEAR: _close_of(home, a_year_before)}
    own = _close_of(home, month)
    return {Place.THIS: own, **beside} if own.state is State.CLOSED else beside


def _close_of(home: Home, month: str) -> Earlier:
    lake, packs = home.lake(), home.settings.closes
    row = closes(lake).get(month)
    if row is None:
        return Earlier(month, State.OPEN if month in all_months(lake) else State.NONE)
    try:
        found = closed_figures(lake, packs, month)
    except DamagedError:
        return Earlier(month, State.DAMAGED, row["root"])
    if found is None:
        return Earlier(month, State.GONE, row["root"])
    return Earlier(month, State.CLOSED, found.root, found.figures)


def records_of(home: Home, month: str | None, first: date | None = None, last: date | None = None) -> Records:
    """The lake, with closed months of a period as they were closed.

    Args:
        home: the installation.
        month: `YYYY-MM`; null: the months these days touch, all where neither is given.
        first, last: days, both inclusive.

    Raises:
        DamagedError: a month is closed, and its pack is not the one that was closed.
    """
    lake = home.lake()
    closed = closes(lake)
    if month is None:
        begin, end = f"{first:%Y-%m}" if first else "", f"{last:%Y-%m}" if last else "9999"
        return closed_records(lake, home.settings.closes, [each for each in closed if begin <= each <= end])
    return closed_records(lake, home.settings.closes, [month])


def months_told(lake: Lake, edition: str) -> tuple[str, ...]:
    """The months an edition of the report has anything to tell of."""
    return months_of(lake.days(SHARED_TABLE)) if edition == SHARED else months_to_weigh(lake)


def publish(home: Home, months: Iterable[str]) -> dict[str, ReportFiles]:
    """Write the shared edition of these months into the folder `shared` of the reports, from shared tables alone."""
    lake, settings = home.lake(), home.settings
    simulated = is_simulated(lake)
    return {
        month: write_report(
            lake, month=month, out=home.reports, title=settings.title, simulated=simulated, edition=SHARED
        )
        for month in months
    }


def share(home: Home, days: Collection[date], *, again: bool = False) -> SharedResult:
    """Release the histograms of these days to the shared domain; those that were released before only if `again`."""
    return derive(home.lake(), days=days, again=again)


def pack_ids(home: Home, days: Collection[date], *, lake: Lake | None = None) -> Recompressed | None:
    """Pack the token ids of these days, and of those that a run that was cut off left in many blocks.

    Room that earlier runs gave up is given back to the disk.

    Args:
        lake: the lake, where the caller holds its lock.

    Returns:
        What was done; null where the settings name no keys.

    Raises:
        ConfigError: the keys cannot be used as the settings name them.
    """
    keys = key_provider(home.settings)
    if keys is None:
        return None
    lake = lake or home.lake()
    done = recompress(lake, keys, {*days, *crowded(lake)})
    lake.compact("token_run")
    return done


def months_of(days: Iterable[date]) -> tuple[str, ...]:
    """The UTC months, `YYYY-MM`, these days lie in, in order."""
    return tuple(sorted({f"{day:%Y-%m}" for day in days}))


def days_of(lake: Lake, months: Collection[str]) -> list[date]:
    """The days of these months that have usage reports or attempts."""
    held = {*lake.days("attempt"), *lake.days("usage_report")}
    return sorted(day for day in held if f"{day:%Y-%m}" in months)


def all_months(lake: Lake) -> tuple[str, ...]:
    """The UTC months the lake has usage reports or attempts of."""
    return months_of({*lake.days("attempt"), *lake.days("usage_report")})


def is_simulated(lake: Lake) -> bool:
    """Whether any segment of the lake was written by the simulation: such a report has to say so."""
    written = lake.scan("segment", columns=["writer"]).collect()["writer"]
    return bool(written.is_in(list(WRITERS)).any())
