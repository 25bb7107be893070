"""Audits of a lake: calibrated, carried from night to night, accused with the answers, the cause and the money."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from tests.pipeline.audit.road import START, Road, travelled

from weighbridge.pipeline.audit.audit import AuditResult, audit
from weighbridge.pipeline.audit.calibrate import calibrate, calibrations
from weighbridge.pipeline.baseline.baseline import baseline
from weighbridge.pipeline.baseline.policy import BaselinePolicy
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.reconcile.reconcile import reconcile
from weighbridge.pipeline.simulate.misreport import all_misreports
from weighbridge.schemas.enumerations import AuditVerdict, FindingOrigin, Severity
from weighbridge.schemas.errors import ConfigError


@pytest.fixture(scope="module")
def inflated(tmp_path_factory: pytest.TempPathFactory) -> Road:
    """Every bill 1.8 % too high from the third of four days on; only to be read, and written over."""
    return travelled(tmp_path_factory.mktemp("inflated"), "M5", attempts=480, factor=0.018)


def all_days(lake: Lake) -> list[date]:
    return lake.days("reconciled")


def verdicts(result: AuditResult) -> dict[tuple[str, str], AuditVerdict]:
    return {(o.cell.measure, o.cell.grade): o.judged.verdict for each in result.outcomes.values() for o in each}


def test_a_cell_is_accused_once_it_is_calibrated_and_not_before(inflated: Road) -> None:
    lake, made = inflated.lake, inflated.made
    lake.replace("audit_tolerance", lake.scan("audit_tolerance").collect().clear(), days=None)
    before = audit(lake, days=all_days(lake))
    assert verdicts(before)["output", "G3"] is AuditVerdict.NOT_CALIBRATED
    assert [(each.code, each.severity, each.rows) for each in before.findings] == [
        ("audit_not_calibrated", Severity.INFO, 960)
    ]
    assert "--calibrate" in before.findings[0].cure
    learnt = calibrate(lake, *made.honest)
    assert {(cell.measure, each.tolerance.rows) for cell, each in learnt.items()} == {("output", 240), ("input", 240)}
    result = audit(lake, days=all_days(lake))
    assert verdicts(result) == {("output", "G3"): AuditVerdict.ACCUSED, ("input", "G3"): AuditVerdict.CLEAN}
    accused = next(each for each in result.outcomes["2026-03"] if each.judged.verdict is AuditVerdict.ACCUSED)
    own = lake.scan("reconciled").filter(pl.col("direction") == "output", pl.col("day") >= made.misreported[0])
    gap, observed = own.select(pl.col("gap").sum(), pl.col("observed").sum()).collect().row(0)
    (finding,) = result.findings
    assert (finding.code, finding.severity, finding.cause) == ("audit_overbilled", Severity.ERROR, "constant_factor")
    assert (finding.rows, finding.expected, finding.difference) == (240, observed, gap)
    assert finding.amount == Decimal(gap) * 8 / 1_000_000, "gpt-4.1 costs 8 dollars per million output tokens"
    assert (finding.currency, finding.origin, len(finding.evidence)) == ("USD", FindingOrigin.AUDIT, 20)
    assert (finding.first_day, finding.last_day) == made.misreported
    lower, upper = accused.rate.interval(0.01)
    assert 0.01 <= lower <= 0.018 <= upper


def test_nights_one_by_one_come_to_the_rows_of_one_pass(inflated: Road) -> None:
    lake = inflated.lake
    calibrate(lake, *inflated.made.honest)
    audit(lake, days=all_days(lake))
    once, version = lake.digest("audit_cell"), lake.version("audit_cell")
    audit(lake, days=all_days(lake))
    assert lake.version("audit_cell") == version, "what comes out as it was is not written"
    lake.replace("audit_cell", lake.scan("audit_cell").collect().clear(), days=lake.days("audit_cell"))
    for day in all_days(lake):
        audit(lake, days=[day])
    assert lake.digest("audit_cell") == once
    rows = lake.scan("audit_cell").collect()
    assert rows.filter(pl.col("verdict").is_not_null())["day"].unique().to_list() == [inflated.made.misreported[1]]
    audit(lake, days=[all_days(lake)[0]])
    assert lake.digest("audit_cell") == once, "a day that changed is done anew with all that come after it"


def test_days_that_are_gone_take_their_rows_with_them(inflated: Road) -> None:
    lake = inflated.lake
    lake.append("audit_cell", lake.scan("audit_cell").collect().head(1).with_columns(day=pl.lit(date(2026, 3, 20))))
    audit(lake, days=[date(2026, 3, 20)])
    assert date(2026, 3, 20) not in lake.days("audit_cell")


def test_a_calibration_is_refused_where_there_is_nothing_to_learn_from(inflated: Road) -> None:
    with pytest.raises(ConfigError, match="no cell has 100 answers"):
        calibrate(inflated.lake, date(2027, 1, 1), date(2027, 1, 31))
    with pytest.raises(ConfigError, match="before it begins"):
        calibrate(inflated.lake, START, date(2026, 2, 1))
    with pytest.raises(ConfigError, match="alpha"):
        audit(inflated.lake, days=[START], alpha=0.0001)


def test_a_calibration_stays_until_the_cell_is_calibrated_anew(inflated: Road) -> None:
    calibrate(inflated.lake, *inflated.made.honest)
    first = calibrations(inflated.lake)
    assert {each.first_day for each in first.values()} == {START}
    calibrate(inflated.lake, *inflated.made.misreported)
    again = calibrations(inflated.lake)
    assert again.keys() == first.keys()
    assert {each.first_day for each in again.values()} == {inflated.made.misreported[0]}


def test_a_lake_without_rows_has_nothing_to_audit(tmp_path: Path) -> None:
    lake = Lake.create(str(tmp_path / "lake"))
    assert audit(lake, days=[]) == AuditResult((), {}, ())
    assert audit(lake, days=[START]).outcomes == {"2026-03": ()}


@pytest.mark.system
@pytest.mark.parametrize("code", sorted(all_misreports()))
def test_every_misreport_is_named_at_the_end_of_the_road(code: str, tmp_path: Path) -> None:
    road = travelled(tmp_path, code)
    kind = all_misreports()[code]
    if not kind.engine:  # an identity needs no calibration
        calibrate(road.lake, *road.made.honest)
    result = audit(road.lake, days=all_days(road.lake))
    causes = {finding.cause for finding in result.findings}
    assert causes == (set() if kind.expected is None else {kind.expected})
    said = set(verdicts(result).values()) - {AuditVerdict.CLEAN}
    expected = AuditVerdict.IDENTITY_BROKEN if kind.engine else AuditVerdict(kind.verdict)
    assert said == ({expected} if kind.expected else set())


@pytest.mark.system
def test_over_generation_is_found_by_baselines_and_by_no_count(tmp_path: Path) -> None:
    """Answers are twice as long from the 31st of 60 days on, and every one of their tokens was served."""
    road = travelled(tmp_path, "M16", attempts=4_800, days=60)
    calibrate(road.lake, *road.made.honest)
    audited = audit(road.lake, days=all_days(road.lake))
    assert not audited.findings
    first = road.made.misreported[0]
    for month in ("2026-03", "2026-04"):
        reconcile(road.lake, month=month)
    policy = replace(BaselinePolicy.default(), floor=Decimal(0))
    found = baseline(road.lake, days=[first - timedelta(days=1), first], policy=policy).findings
    assert {(each.code, each.cause, each.first_day) for each in found if each.code == "baseline_exceeded"} == {
        ("baseline_exceeded", "output_per_request", first)
    }
