"""Partings as findings of the lake. A new probe of the same model at the same endpoint replaces those of the last."""

from __future__ import annotations

from datetime import date
from typing import Final

import polars as pl

from weighbridge.pipeline.lake.found import write_findings
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.probe.case import Against
from weighbridge.pipeline.probe.cause import all_causes
from weighbridge.pipeline.probe.explain import Parting
from weighbridge.pipeline.probe.result import ProbeResult
from weighbridge.schemas.enumerations import Direction, FindingOrigin, Grade
from weighbridge.schemas.finding import Finding

CODES: Final = frozenset(cause.code for cause in all_causes())


def findings(result: ProbeResult, day: date) -> list[Finding]:
    """A finding for each parting.

    Args:
        result: of the probe.
        day: when it was made, in UTC.
    """
    return [_finding(result, parting, day) for parting in result.partings]


def keep(lake: Lake, result: ProbeResult, day: date) -> list[Finding]:
    """Write the findings of a probe.

    Raises:
        LakeBusyError: another process is writing.
    """
    found = findings(result, day)
    same = pl.col("subject").str.starts_with("; ".join(f"{n}={v}" for n, v in _whom(result).items()) + "; ")
    write_findings(lake, found, origin=FindingOrigin.PROBE, periods=[f"{day:%Y-%m}"], where=same)
    return found


def _whom(result: ProbeResult) -> dict[str, str]:
    return {"provider": result.provider, "model": result.model, "api": result.api, "endpoint": result.host}


def _finding(result: ProbeResult, one: Parting, day: date) -> Finding:
    about = {"step": one.step, "direction": str(one.direction), "weight": " and ".join(one.weights)}
    return Finding(
        code=one.cause.code,
        severity=one.severity,
        period=f"{day:%Y-%m}",
        subject=_whom(result) | about,
        rows=1,
        cure=one.cause.cure,
        expected=one.expected,
        observed=one.observed,
        difference=one.difference if one.observed is not None else None,
        cause=one.cause.code,
        grade=_grade(one),
        confidence=one.confidence,
        first_day=day,
        last_day=day,
        origin=FindingOrigin.PROBE,
    )


def _grade(one: Parting) -> Grade | None:
    if one.against is None:
        return None
    if one.against is Against.ENGINE:
        return Grade.G1
    return Grade.G3 if one.against is Against.RECOUNT and one.direction is Direction.OUTPUT else Grade.G2
