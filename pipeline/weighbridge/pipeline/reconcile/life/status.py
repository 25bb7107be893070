"""The life of findings: who took them up, waived, disputed or closed them, when and why. Nothing is overwritten.

    open -> acknowledged | waived | disputed        disputed -> credited | closed
    acknowledged -> waived | disputed | closed      credited -> closed      acknowledged again, with another reason
    waived -> acknowledged | disputed; open again after its last day

A state belongs to the id of a finding, so it stays when the finding is computed again. The reason is the user's own
words; it is kept in the table and shown nowhere else.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import polars as pl

from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.lake.life import states
from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.lake.shape import polars_schema
from weighbridge.pipeline.reconcile.tree.prefix import one_of
from weighbridge.schemas.enumerations import FindingState
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import NAME

OPEN, ACKNOWLEDGED, WAIVED = FindingState.OPEN, FindingState.ACKNOWLEDGED, FindingState.WAIVED
DISPUTED, CREDITED, CLOSED = FindingState.DISPUTED, FindingState.CREDITED, FindingState.CLOSED

NEXT: dict[FindingState, tuple[FindingState, ...]] = {
    OPEN: (ACKNOWLEDGED, WAIVED, DISPUTED),
    ACKNOWLEDGED: (ACKNOWLEDGED, WAIVED, DISPUTED, CLOSED),
    WAIVED: (ACKNOWLEDGED, WAIVED, DISPUTED),
    DISPUTED: (CREDITED, CLOSED),
    CREDITED: (CLOSED,),
    CLOSED: (),
}


def acknowledge(lake: Lake, id_prefix: str, *, by: str, reason: str | None = None, now: datetime) -> str:
    """Take a finding up; its id. Errors as of `change`."""
    return change(lake, id_prefix, ACKNOWLEDGED, by=by, reason=reason, now=now)


def waive(lake: Lake, id_prefix: str, *, by: str, reason: str, expires: date, now: datetime) -> str:
    """Let a finding rest up to and including the UTC day `expires`; its id. Errors as of `change`."""
    return change(lake, id_prefix, WAIVED, by=by, reason=reason, expires=expires, now=now)


def change(
    lake: Lake,
    id_prefix: str,
    state: FindingState,
    *,
    by: str,
    reason: str | None = None,
    expires: date | None = None,
    now: datetime,
) -> str:
    """Put a finding into another state, and give its id. The same change again changes nothing.

    Args:
        id_prefix: the first 8 or more digits of its id.
        by: who, a name without blanks.
        reason: why; a waiver needs one.
        expires: the last UTC day of a waiver.
        now: the time, with its zone.

    Raises:
        ConfigError: no such finding, or several; the state cannot follow the present one; a name, reason or day that
            cannot be used.
    """
    moment = _utc(now)
    _check(state, by, reason, expires, moment.date())
    with lake.lock():
        finding_id = one_of(_known(lake), id_prefix, "finding")
        held = states(lake, moment.date()).filter(pl.col("finding_id") == finding_id)
        last: dict[str, Any] = held.row(0, named=True) if held.height else {"state": OPEN, "changes": 0}
        present = FindingState(last["state"])
        # Who acknowledges once more without a reason says nothing new, and the reason that was given stays.
        silent = present is state is ACKNOWLEDGED and not (reason or "").strip()
        if silent or _same(last, state, by, reason, expires):
            return finding_id
        if state not in NEXT[present]:
            raise ConfigError(_refusal(finding_id, present, state))
        row = {
            "finding_id": finding_id,
            "change": last["changes"],
            "state": str(state),
            "changed_at": moment,
            "changed_by": by,
            "reason": reason,
            "expires_on": expires,
        }
        lake.append("finding_status", pl.DataFrame([row], schema=polars_schema("finding_status")))
    return finding_id


def life(lake: Records, today: date) -> pl.DataFrame:
    """Every finding of the lake with its `state`, and of its last change `changed_at`, `changed_by`, `expires_on`."""
    now = states(lake, today).drop("changes", "reason")
    found = lake.scan("finding").collect().join(now, on="finding_id", how="left", maintain_order="left")
    return found.with_columns(pl.col("state").fill_null(str(OPEN)))


def _known(lake: Lake) -> list[str]:
    """Ids of findings, those that are gone but have a history included."""
    ids = [lake.scan(table, columns=["finding_id"]).collect()["finding_id"] for table in ("finding", "finding_status")]
    return pl.concat(ids).unique().sort().to_list()


def _utc(now: datetime) -> datetime:
    if now.tzinfo is None:
        raise ConfigError("the time of a change has no time zone; give it one, for example datetime.now(UTC)")
    return now.astimezone(UTC)


def _check(state: FindingState, by: str, reason: str | None, expires: date | None, today: date) -> None:
    if not NAME.fullmatch(by):
        raise ConfigError(f"{by!r} cannot be used as a name; letters, digits and . _ : / @ - are allowed, no blanks")
    if state is not WAIVED and expires is not None:
        raise ConfigError(f"only a waiver has a last day; leave it out, or waive the finding instead of {state}")
    if state is WAIVED and not (reason or "").strip():
        raise ConfigError("a waiver needs a reason; say in a few words why the finding may rest")
    if state is WAIVED and (expires is None or expires < today):
        raise ConfigError(f"a waiver needs a last day that is not over; {expires} is no such day, today is {today}")


def _same(last: dict[str, Any], state: FindingState, by: str, reason: str | None, expires: date | None) -> bool:
    given = {"state": str(state), "changed_by": by, "reason": reason, "expires_on": expires}
    return all(last.get(name) == value for name, value in given.items())


def _refusal(finding_id: str, present: FindingState, wanted: FindingState) -> str:
    allowed = ", ".join(NEXT[present]) or "nothing: it is finished"
    return f"finding {finding_id[:8]} is {present} and cannot become {wanted}; what can follow is {allowed}"
