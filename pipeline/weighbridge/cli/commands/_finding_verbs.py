"""Verbs of `weighbridge findings` that decide about a finding."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Annotated

import typer

from weighbridge.cli.exits import CLEAN
from weighbridge.cli.options import Config, LogLevel, parse_day
from weighbridge.cli.output import write_line
from weighbridge.cli.session import home_of, user_name
from weighbridge.cli.tables import ID_DIGITS, measured


def parse_amount(text: str) -> Decimal:
    """An amount of money, exact."""
    try:
        return Decimal(text)
    except InvalidOperation:
        raise typer.BadParameter(f"{text!r} is no amount; write it as 12.50") from None


_SAME_CREDIT = "the same as before: nothing entered; a second credit of this amount needs a --reference of its own"
Id = Annotated[str, typer.Argument(metavar="ID", help=f"The first {ID_DIGITS} or more digits of its id.")]
By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who says so. Default: the user of this system.")]
Why = Annotated[str | None, typer.Option("--reason", help="Why, in a few words; kept in the lake only.")]
Reason = Annotated[str, typer.Option("--reason", help="Why, in a few words; kept in the lake only.")]
Money = Annotated[Decimal | None, typer.Option("--amount", metavar="AMOUNT", parser=parse_amount, help="Exact amount.")]
Currency = Annotated[str | None, typer.Option("--currency", metavar="CODE", help="Of the amount, such as USD.")]


def ack(
    ctx: typer.Context,
    finding: Id,
    reason: Why = None,
    by: By = None,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Acknowledge a finding: somebody is on it, so it no longer makes a verb exit with 1."""
    from weighbridge.pipeline.reconcile.life.status import acknowledge

    lake = home_of(ctx, config, log_level).lake()
    done = acknowledge(lake, finding, by=by or user_name(), reason=reason, now=datetime.now(UTC))
    write_line(f"finding {done[:ID_DIGITS]} is acknowledged")
    return CLEAN


def waive(
    ctx: typer.Context,
    finding: Id,
    reason: Reason,
    expires: Annotated[
        date, typer.Option("--expires", metavar="DAY", parser=parse_day, help="Last UTC day of the waiver.")
    ],
    by: By = None,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Let a finding rest, with a reason and a last day; after that day it is open again."""
    from weighbridge.pipeline.reconcile.life.status import waive as rest

    lake = home_of(ctx, config, log_level).lake()
    done = rest(lake, finding, by=by or user_name(), reason=reason, expires=expires, now=datetime.now(UTC))
    write_line(f"finding {done[:ID_DIGITS]} is waived up to and including {expires}")
    return CLEAN


def dispute(
    ctx: typer.Context,
    finding: Id,
    reference: Annotated[
        str, typer.Option("--reference", metavar="TICKET", help="What the provider calls the dispute.")
    ],
    amount: Money = None,
    currency: Currency = None,
    reason: Why = None,
    by: By = None,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Dispute a finding with its provider; the amount of the finding, where no other is given."""
    from weighbridge.pipeline.reconcile.life.status import dispute as ask

    lake = home_of(ctx, config, log_level).lake()
    about = {"reference": reference, "amount": amount, "currency": currency, "reason": reason}
    done = ask(lake, finding, by=by or user_name(), now=datetime.now(UTC), **about)  # type: ignore[arg-type]
    write_line(f"finding {done[:ID_DIGITS]} is disputed{_rest(ctx, done, config, log_level)}")
    return CLEAN


def credit(
    ctx: typer.Context,
    finding: Id,
    amount: Annotated[
        Decimal, typer.Option("--amount", metavar="AMOUNT", parser=parse_amount, help="What was given back, exact.")
    ],
    currency: Currency = None,
    reference: Annotated[
        str | None, typer.Option("--reference", metavar="LINE", help="Where it was seen: a line of an invoice.")
    ] = None,
    reason: Why = None,
    by: By = None,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Enter what a provider gave back for a disputed finding; what is left stays disputed."""
    from weighbridge.pipeline.reconcile.life.status import credit as enter

    lake = home_of(ctx, config, log_level).lake()
    about = {"currency": currency, "reference": reference, "reason": reason}
    done = enter(lake, finding, by=by or user_name(), amount=amount, now=datetime.now(UTC), **about)
    told = "the credit is entered" if done.is_new else _SAME_CREDIT
    rest = _rest(ctx, done.finding_id, config, log_level)
    write_line(f"finding {done.finding_id[:ID_DIGITS]}: {told}{rest}")
    return CLEAN


def close(
    ctx: typer.Context,
    finding: Id,
    reason: Why = None,
    by: By = None,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Be done with a finding; it opens again where it is found with more money at stake."""
    from weighbridge.pipeline.reconcile.life.status import close as finish

    lake = home_of(ctx, config, log_level).lake()
    done = finish(lake, finding, by=by or user_name(), reason=reason, now=datetime.now(UTC))
    write_line(f"finding {done[:ID_DIGITS]} is closed")
    return CLEAN


def reopen(
    ctx: typer.Context,
    finding: Id,
    reason: Reason,
    by: By = None,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Open a closed finding again."""
    from weighbridge.pipeline.reconcile.life.status import reopen as again

    lake = home_of(ctx, config, log_level).lake()
    done = again(lake, finding, by=by or user_name(), reason=reason, now=datetime.now(UTC))
    write_line(f"finding {done[:ID_DIGITS]} is open again")
    return CLEAN


def _rest(ctx: typer.Context, finding_id: str, config: Config, log_level: LogLevel) -> str:
    """What is outstanding of a dispute, in words."""
    from weighbridge.pipeline.lake.life import states

    held = states(home_of(ctx, config, log_level).lake(), datetime.now(UTC).date())
    row = next(each for each in held.iter_rows(named=True) if each["finding_id"] == finding_id)
    rest = measured(row["outstanding"], row["disputed_in"])
    return ", its amount is not known" if rest is None else f", {rest.lstrip('+')} outstanding"


VERBS: dict[str, Callable[..., int]] = {
    "ack": ack,
    "waive": waive,
    "dispute": dispute,
    "credit": credit,
    "close": close,
    "reopen": reopen,
}
