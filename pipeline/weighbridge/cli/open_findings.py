"""Which findings weigh: the one rule by which a verb exits with 1."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from weighbridge.schemas.enumerations import FindingOrigin, FindingState, Severity

if TYPE_CHECKING:
    from weighbridge.pipeline.lake import Lake
    from weighbridge.pipeline.reconcile.life.material import Materiality

WEIGHTY = (Severity.WARNING, Severity.ERROR)


def lives(lake: Lake) -> list[dict[str, Any]]:
    """Every finding of the lake with its state of today, worst first."""
    from weighbridge.pipeline.reconcile.life.status import life

    return worst_first(life(lake, datetime.now(UTC).date()).to_dicts())


def weighed(lake: Lake, policy: Materiality) -> list[dict[str, Any]]:
    """Every finding of the lake with its state of today, and whether it is material; worst first."""
    from weighbridge.pipeline.reconcile.life.material import judged
    from weighbridge.pipeline.reconcile.life.status import life

    return worst_first(judged(lake, life(lake, datetime.now(UTC).date()), policy).to_dicts())


def worst_first(findings: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Findings by severity, then by how much money is at stake, unknown last, then by period, code and id."""
    scale = list(Severity)

    def place(row: dict[str, Any]) -> tuple[object, ...]:
        money = abs(row["amount"] or Decimal(0))
        return -scale.index(row["severity"]), -money, row["period"], row["code"], row["finding_id"]

    return sorted(findings, key=place)


def weighs(finding: Mapping[str, object]) -> bool:
    """Whether a finding is open and at least a warning. Acknowledged, waived and disputed ones weigh nothing."""
    return finding["state"] == FindingState.OPEN and finding["severity"] in WEIGHTY


def inside(
    finding: Mapping[str, object], months: Collection[str] | None, since: date | None, until: date | None
) -> bool:
    """Whether a finding is about one of these months and has rows in this range of days.

    A finding without days is about its whole period; one about the installation belongs to every period.
    """
    if months is not None and finding["period"] not in {*months, "all"}:
        return False
    first, last = finding["first_day"], finding["last_day"]
    early = since is not None and isinstance(last, date) and last < since
    late = until is not None and isinstance(first, date) and first > until
    return not early and not late


def weighty(lake: Lake, months: Collection[str] | None, origin: FindingOrigin | None = None) -> bool:
    """Whether any finding about these months weighs; all months where null. Those of one room, or of all."""
    of_room = (row for row in lives(lake) if origin is None or row["origin"] == origin)
    return any(weighs(row) and inside(row, months, None, None) for row in of_room)
