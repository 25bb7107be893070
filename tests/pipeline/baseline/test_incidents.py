"""A month of made-up traffic with incidents: each is found in time and named rightly, and the clean month is clean.

Lengths, hours and weeks are those of the simulation; the month with recorded lengths is a part of
`benchmarks/baseline.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

import polars as pl
import pytest
from tests.pipeline.baseline.conftest import FIRST, lake_of, line, policy

from weighbridge.pipeline.baseline.baseline import baseline
from weighbridge.pipeline.simulate.incidents import BURST_KEY, Incident, IncidentKind, Line
from weighbridge.schemas.enumerations import BaselineMethod, Driver

K = IncidentKind
PAST, DAYS = 84, 92
RICH = ("model-rich", (Decimal(20), Decimal(10), Decimal(80)))
# What happens, to which line, from which day of the judged ones on, how large, and what has to be named.
INCIDENTS = (
    (Incident(kind=K.OUTPUT_GROWTH, line=0, first=PAST + 1, days=2, size=2.0), Driver.OUTPUT_PER_REQUEST, 1),
    (Incident(kind=K.KEY_BURST, line=1, first=PAST + 1, days=2, size=2.0), Driver.KEY_BURST, 1),
    (Incident(kind=K.RETRY_STORM, line=2, first=PAST + 2, days=2, size=0.6), Driver.RETRIES, 1),
    (Incident(kind=K.CACHE_BREAKER, line=3, first=PAST + 2, days=2), Driver.CACHE_SHARE, 1),
    (Incident(kind=K.MODEL_SWAP, line=4, first=PAST + 2, days=6, to=RICH), Driver.MODEL_MIX, 1),
    (Incident(kind=K.TEMPLATE, line=5, first=PAST + 2, days=6, size=1.3), Driver.INPUT_PER_REQUEST, 5),
)


@dataclass(frozen=True)
class Judged:
    """Months judged night by night in one run."""

    rows: pl.DataFrame
    days: list[date]


def traffic(lines: int = 9) -> list[Line]:
    """Lines of some 300 requests a Monday, 100 a Sunday."""
    return [line(number, requests=330.0, cached=0.9 if number == 3 else 0.4) for number in range(lines)]


@pytest.fixture(scope="module")
def months(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Judged]:
    """The clean and the faulty end of three months."""
    found = {}
    for name, incidents in (("clean", ()), ("faulty", tuple(each[0] for each in INCIDENTS))):
        lake, days = lake_of(tmp_path_factory.mktemp(name), traffic(), incidents, days=DAYS)
        baseline(lake, days=days[PAST:], policy=policy())
        found[name] = Judged(lake.scan("baseline").collect(), days[PAST:])
    return found


def hits(judged: Judged, place: int) -> pl.DataFrame:
    """What was reported of the tenant and task of a line, with `since`: days since the first judged one."""
    own = line(place)
    mine = (pl.col("tenant") == own.tenant) & (pl.col("task") == own.task) & pl.col("reported")
    since = (pl.col("day") - pl.lit(FIRST)).dt.total_days() - PAST
    return judged.rows.filter(mine).with_columns(since=since).sort("day")


@pytest.mark.parametrize(("incident", "driver", "within"), INCIDENTS, ids=lambda case: str(getattr(case, "kind", case)))
def test_every_incident_is_found_in_time_and_named(
    months: dict[str, Judged], incident: Incident, driver: Driver, within: int
) -> None:
    """On its first whole day, or within five days where it is a shift of less than half as much again."""
    found = hits(months["faulty"], incident.line)
    named = found.filter(pl.col("driver") == str(driver))
    began = incident.first - PAST
    assert named.height
    assert began <= named["since"][0] < began + within
    assert set(found.filter(pl.col("since") == named["since"][0])["driver"]) == {str(driver)}
    assert (named["amount"] > 0).all()
    if driver is Driver.KEY_BURST:
        assert named["key"].to_list() == [f"subject_bucket={BURST_KEY}"] * named.height


def test_of_what_is_found_no_more_is_false_than_promised(months: dict[str, Judged]) -> None:
    """At most one cell in twenty, and what chance adds to so few."""
    rows = months["faulty"].rows.filter("reported")
    struck = {(line(each[0].line).tenant, line(each[0].line).task) for each in INCIDENTS}
    false = sum(place not in struck for place in rows.select("tenant", "task").iter_rows())
    assert false <= rows.height / 20 + 3 * (rows.height / 20) ** 0.5


def test_the_clean_month_has_no_more_reports_than_promised(months: dict[str, Judged]) -> None:
    """Of eight nights of nine lines at most one in twenty has a report; with 99 of 100 that is no more than two."""
    rows = months["clean"].rows
    assert rows.filter(pl.col("p_value").is_not_null()).height > 8 * 9 * 4
    assert rows.filter("reported")["day"].n_unique() <= 2


def test_the_clean_month_keeps_its_promises(months: dict[str, Judged]) -> None:
    """The self-test of every night: no more alarms on the reference windows than promised."""
    rows = months["clean"].rows.filter(pl.col("test_days") > 0)
    assert int(rows["test_alarms"].sum()) / int(rows["test_days"].sum()) <= 0.05
    assert rows["kept"].all()


def test_evidence_of_a_burst_is_attempts_of_its_key(months: dict[str, Judged]) -> None:
    row = hits(months["faulty"], 1).row(0, named=True)
    assert 0 < len(row["evidence"]) <= 20
    assert row["evidence"] == sorted(row["evidence"])


def test_a_line_that_took_another_model_is_said_to_be_new(months: dict[str, Judged]) -> None:
    found = hits(months["faulty"], 4)
    assert set(found["model"]) == {RICH[0]}
    assert set(found["method"]) == {str(BaselineMethod.REFUSED)}
    assert found["expected"].null_count() == found.height
    assert found["day"].to_list() == [FIRST + timedelta(days=PAST + 2 + offset) for offset in range(6)]
