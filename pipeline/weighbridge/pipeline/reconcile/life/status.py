"""The life of findings: who took them up, waived, disputed or closed them, when and why. Nothing is overwritten.

    open         -> acknowledged | waived | disputed
    acknowledged -> waived | disputed | closed; acknowledged again, with another reason
    waived       -> acknowledged | disputed; open again after its last day
    disputed     -> disputed for another amount | credited | acknowledged (taken back) | closed
    credited     -> credited more | disputed again | closed; what is not credited yet stays disputed
    closed       -> open, with a reason; or by itself, where it is found again with more money at stake than it had then

A state belongs to the id of a finding, so it stays when the finding is computed again. The reason is the user's own
words; it is kept in the table and shown nowhere else.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import polars as pl

from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.lake.life import STATES, states
from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.lake.shape import polars_schema
from weighbridge.pipeline.reconcile.life.decision import Decision
from weighbridge.pipeline.reconcile.tree.prefix import one_of
from weighbridge.schemas.enumerations import FindingState
from weighbridge.schemas.errors import ConfigError

OPEN, ACKNOWLEDGED, WAIVED = FindingState.OPEN, FindingState.ACKNOWLEDGED, FindingState.WAIVED
DISPUTED, CREDITED, CLOSED = FindingState.DISPUTED, FindingState.CREDITED, FindingState.CLOSED

NEXT: dict[FindingState, tuple[FindingState, ...]] = {
    OPEN: (ACKNOWLEDGED, WAIVED, DISPUTED),
    ACKNOWLEDGED: (ACKNOWLEDGED, WAIVED, DISPUTED, CLOSED),
    WAIVED: (ACKNOWLEDGED, WAIVED, DISPUTED),
    DISPUTED: (ACKNOWLEDGED, DISPUTED, CREDITED, CLOSED),
    CREDITED: (DISPUTED, CREDITED, CLOSED),
    CLOSED: (OPEN,),
}
# What a user gives to bring a finding into a state.
VERBS: dict[FindingState, str] = {
    OPEN: "reopen",
    ACKNOWLEDGED: "ack",
    WAIVED: "waive",
    DISPUTED: "dispute",
    CREDITED: "credit",
    CLOSED: "close",
}
_SHOWN = [name for name in STATES if name not in {"changes", "reason", "closed_amount", "closed_in"}]


class Changed(NamedTuple):
    """A finding, and whether anything was written: the same change again is none."""

    finding_id: str
    is_new: bool


def acknowledge(lake: Lake, id_prefix: str, *, by: str, reason: str | None = None, now: datetime) -> str:
    """Take a finding up; its id. Errors as of `change`."""
    return change(lake, id_prefix, ACKNOWLEDGED, by=by, reason=reason, now=now)


def waive(lake: Lake, id_prefix: str, *, by: str, reason: str, expires: date, now: datetime) -> str:
    """Let a finding rest up to and including the UTC day `expires`; its id. Errors as of `change`."""
    return change(lake, id_prefix, WAIVED, by=by, reason=reason, expires=expires, now=now)


def dispute(
    lake: Lake,
    id_prefix: str,
    *,
    by: str,
    reference: str | None = None,
    amount: Decimal | None = None,
    currency: str | None = None,
    reason: str | None = None,
    now: datetime,
) -> str:
    """Ask for money back; its id. Errors as of `change`.

    Args:
        reference: the number the provider gave to the dispute.
        amount, currency: what is asked for; null: the amount of the finding, where it has one.
    """
    money = (amount, currency)
    return change(lake, id_prefix, DISPUTED, by=by, reason=reason, money=money, reference=reference, now=now)


def credit(
    lake: Lake,
    id_prefix: str,
    *,
    by: str,
    amount: Decimal,
    currency: str | None = None,
    reference: str | None = None,
    reason: str | None = None,
    now: datetime,
) -> Changed:
    """Enter what a provider gave back; the finding. Less than what is disputed leaves the rest disputed.

    Args:
        amount, currency: what was given back, above zero; the currency of the dispute where null.
        reference: where it was seen: a line of an invoice, a credit note. A second credit of the same amount needs
            another one: the same credit twice is one.

    Raises:
        ConfigError: as of `change`; another currency than that of the dispute.
    """
    money = (amount, currency)
    return _change(lake, id_prefix, Decision(CREDITED, by, reason, None, *money, reference), now)


def close(lake: Lake, id_prefix: str, *, by: str, reason: str | None = None, now: datetime) -> str:
    """Be done with a finding, with the amount it has now; its id. Errors as of `change`."""
    return change(lake, id_prefix, CLOSED, by=by, reason=reason, now=now)


def reopen(lake: Lake, id_prefix: str, *, by: str, reason: str, now: datetime) -> str:
    """Open a closed finding again; its id. Errors as of `change`."""
    return change(lake, id_prefix, OPEN, by=by, reason=reason, now=now)


def change(
    lake: Lake,
    id_prefix: str,
    state: FindingState,
    *,
    by: str,
    reason: str | None = None,
    expires: date | None = None,
    money: tuple[Decimal | None, str | None] = (None, None),
    reference: str | None = None,
    now: datetime,
) -> str:
    """Put a finding into another state, and give its id. The same change again changes nothing.

    Args:
        id_prefix: the first 8 or more digits of its id.
        by: who, a name without blanks.
        reason: why; a waiver and an opening again need one.
        expires: the last UTC day of a waiver.
        money: amount and currency of a dispute or a credit.
        reference: what the provider calls a dispute, or where a credit was seen.
        now: the time, with its zone.

    Raises:
        ConfigError: no such finding, or several; the state cannot follow the present one; a name, reason, day, amount
            or reference that cannot be used.
    """
    return _change(lake, id_prefix, Decision(state, by, reason, expires, *money, reference), now).finding_id


def _change(lake: Lake, id_prefix: str, asked: Decision, now: datetime) -> Changed:
    moment, state = _utc(now), asked.state
    asked.check(moment.date())
    with lake.lock():
        finding_id = one_of(_known(lake), id_prefix, "finding")
        held = _reopened(lake, states(lake, moment.date())).filter(pl.col("finding_id") == finding_id)
        last: dict[str, Any] = held.row(0, named=True) if held.height else {"state": OPEN, "changes": 0}
        present = FindingState(last["state"])
        # Who acknowledges once more without a reason says nothing new, and the reason that was given stays.
        silent = present is state is ACKNOWLEDGED and not (asked.reason or "").strip()
        asked = asked.with_money_of(_finding(lake, finding_id), last)
        if silent or (asked.of_row(_last(lake, finding_id)) and present in {state, DISPUTED}):
            return Changed(finding_id, is_new=False)
        if state not in NEXT[present]:
            raise ConfigError(_refusal(finding_id, present, state))
        row = {"finding_id": finding_id, "change": last["changes"], "changed_at": moment, **asked.row()}
        lake.append("finding_status", pl.DataFrame([row], schema=polars_schema("finding_status")))
    return Changed(finding_id, is_new=True)


def life(lake: Records, today: date) -> pl.DataFrame:
    """Every finding of the lake with its `state`, what its last change says, and what is disputed of it.

    Returns:
        The columns of `finding`, and state, changed_at, changed_by, expires_on, reference, disputed, credited,
        outstanding, disputed_in, as `states` says.
    """
    now = _reopened(lake, states(lake, today)).select(_SHOWN)
    found = lake.scan("finding").collect().join(now, on="finding_id", how="left", maintain_order="left")
    return found.with_columns(pl.col("state").fill_null(str(OPEN)))


def _reopened(lake: Records, held: pl.DataFrame) -> pl.DataFrame:
    """The states, with closed findings open again of which more money is at stake than there was."""
    closed = pl.col("state") == str(CLOSED)
    if not held.select(closed.any()).item():
        return held
    found = lake.scan("finding", columns=["finding_id", "amount", "currency"]).collect()
    now = held.join(found, on="finding_id", how="left", maintain_order="left")
    more = (pl.col("amount").abs() > pl.col("closed_amount").abs()).fill_null(value=True)
    other = pl.col("currency").ne_missing(pl.col("closed_in"))
    again = closed & pl.col("amount").is_not_null() & (more | other)
    state = pl.when(again).then(pl.lit(str(OPEN))).otherwise(pl.col("state"))
    return now.with_columns(state=state).select(held.columns)


def _known(lake: Lake) -> list[str]:
    """Ids of findings, those that are gone but have a history included."""
    ids = [lake.scan(table, columns=["finding_id"]).collect()["finding_id"] for table in ("finding", "finding_status")]
    return pl.concat(ids).unique().sort().to_list()


def _finding(lake: Lake, finding_id: str) -> dict[str, Any]:
    columns = ["finding_id", "amount", "currency"]
    found = lake.scan("finding", columns=columns).filter(pl.col("finding_id") == finding_id).collect()
    return found.row(0, named=True) if found.height else {"amount": None, "currency": None}


def _last(lake: Lake, finding_id: str) -> dict[str, Any]:
    """The last change as it is written; nothing where there is none."""
    rows = lake.scan("finding_status").filter(pl.col("finding_id") == finding_id).sort("change").collect()
    return rows.row(-1, named=True) if rows.height else {}


def _utc(now: datetime) -> datetime:
    if now.tzinfo is None:
        raise ConfigError("the time of a change has no time zone; give it one, for example datetime.now(UTC)")
    return now.astimezone(UTC)


def _refusal(finding_id: str, present: FindingState, wanted: FindingState) -> str:
    allowed = ", ".join(f"{state} (`findings {VERBS[state]}`)" for state in NEXT[present])
    return f"finding {finding_id[:8]} is {present} and cannot become {wanted}; what can follow is {allowed}"
