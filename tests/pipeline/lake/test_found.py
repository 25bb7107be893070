"""Findings: a room replaces its own of a period, and nothing of anybody else."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from weighbridge.pipeline.lake.found import write_findings
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.schemas.enumerations import FindingOrigin, Severity
from weighbridge.schemas.finding import Finding


def finding(code: str, origin: FindingOrigin, period: str = "2026-01") -> Finding:
    return Finding(
        code=code, severity=Severity.NOTICE, period=period, subject={"source": "s"}, rows=1, cure="Look.", origin=origin
    )


def stored(lake: Lake) -> set[tuple[str, str, str]]:
    return set(lake.scan("finding", columns=["code", "origin", "period"]).collect().rows())


def test_a_room_replaces_its_own_findings_of_the_periods_it_looked_at(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path)
    ours, theirs = FindingOrigin.RECONCILE, FindingOrigin.VALIDATE
    first = [finding("one_thing", ours), finding("one_thing", ours, "2026-02")]
    write_findings(lake, first, origin=ours, periods=["2026-01", "2026-02"])
    write_findings(lake, [finding("another", theirs)], origin=theirs, periods=["2026-01"])
    write_findings(lake, [finding("new_thing", ours)], origin=ours, periods=["2026-01"])
    assert stored(lake) == {
        ("new_thing", "reconcile", "2026-01"),
        ("one_thing", "reconcile", "2026-02"),
        ("another", "validate", "2026-01"),
    }
    version = lake.version("finding")
    write_findings(lake, [finding("new_thing", ours)], origin=ours, periods=["2026-01"])
    assert lake.version("finding") == version, "nothing changed, nothing is written"
    write_findings(lake, [], origin=ours, periods=None)
    assert stored(lake) == {("another", "validate", "2026-01")}


def test_of_a_period_only_what_was_looked_at_is_replaced(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path)
    ours = FindingOrigin.VALIDATE
    write_findings(lake, [finding("one_thing", ours), finding("another", ours)], origin=ours, periods=["2026-01"])
    write_findings(lake, [], origin=ours, periods=["2026-01"], where=pl.col("code") == "another")
    assert stored(lake) == {("one_thing", "validate", "2026-01")}


@pytest.mark.parametrize(
    "stray", [finding("stray", FindingOrigin.BASELINE), finding("stray", FindingOrigin.VALIDATE, "2025-12")]
)
def test_a_stray_finding_is_refused(tmp_path: Path, stray: Finding) -> None:
    lake = Lake.create(tmp_path)
    with pytest.raises(ValueError, match="stray"):
        write_findings(lake, [stray], origin=FindingOrigin.VALIDATE, periods=["2026-01"])
    assert lake.rows("finding") == 0
