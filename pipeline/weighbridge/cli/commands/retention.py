"""`weighbridge retention`: what is kept how long, what goes, what is held, and the proofs of what went."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from weighbridge.cli.command import KEEP, Command
from weighbridge.cli.exits import CLEAN, FINDINGS
from weighbridge.cli.options import AcceptClock, AsJson, Config, LogLevel, Since, Until, check_range, parse_day
from weighbridge.cli.output import counted, write_json, write_line, write_table
from weighbridge.cli.session import home_of, user_name
from weighbridge.cli.tables import ID_DIGITS
from weighbridge.cli.whom import places_of_home, tenant_of
from weighbridge.schemas.errors import ConfigError

if TYPE_CHECKING:
    from weighbridge.pipeline.retention.holds import Hold
    from weighbridge.pipeline.retention.plan import Due, RetentionPlan
    from weighbridge.pipeline.retention.receipts import Receipt

retention = typer.Typer(
    no_args_is_help=True, help="What is kept how long, what goes, what is held, and the proofs of what went."
)

By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who asks. Default: the user of this system.")]
Why = Annotated[str, typer.Option("--why", help="Why, in a few words, such as a file number; kept with the hold.")]
Tenant = Annotated[
    str | None, typer.Option("--tenant", metavar="NAME", help="Name or pseudonym of a tenant; - reads it from a pipe.")
]
Day = Annotated[date | None, typer.Option("--day", metavar="DAY", parser=parse_day, help="As if it were this UTC day.")]


@retention.command("plan")
def plan(
    ctx: typer.Context, day: Day = None, as_json: AsJson = False, config: Config = None, log_level: LogLevel = None
) -> int:
    """Show what is due and would go, by which rule, and what a hold stops. Nothing is changed."""
    from weighbridge.pipeline.run.retain import planned

    found = planned(home_of(ctx, config, log_level), day or datetime.now(UTC).date())
    if as_json:
        write_json(_plan(found))
    else:
        _write_plan(found)
    return CLEAN


@retention.command("apply")
def apply(
    ctx: typer.Context,
    by: By = None,
    accept_clock: AcceptClock = False,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Delete what is due, and whatever of earlier erasures was held or has come back; each deletion gets a receipt.

    Safe to kill and to run again. Exit 1 where something could not be deleted; the next run tries it again.
    """
    from weighbridge.pipeline.run.retain import retain

    now = datetime.now(UTC)
    home = home_of(ctx, config, log_level)
    done = retain(home, today=now.date(), now=now, by=by or user_name(), accept_clock=accept_clock).applied
    if as_json:
        write_json(
            {
                "receipts": [_receipt(each) for each in done.receipts],
                "resumed": done.resumed,
                "repeated": done.repeated,
                "finished": done.finished,
                "furthered": done.furthered,
                "failed": done.failed,
            }
        )
    else:
        _write_receipts(done.receipts)
        if done.resumed:
            write_line(f"\n{counted(done.resumed, 'deletion')} of an earlier run finished")
        if done.finished:
            write_line(
                f"\n{counted(len(done.finished), 'erasure')} finished now: nothing of it is held or awaited any more"
            )
        if done.furthered:
            write_line(
                f"\n{counted(len(done.furthered), 'erasure')} carried further; some of it is still held or awaited"
            )
        if done.repeated:
            write_line(f"\n{counted(len(done.repeated), 'erasure')} carried out again: something had come back")
        for why in done.failed:
            write_line(f"\nnot deleted: {why}")
    return FINDINGS if done.failed else CLEAN


@retention.command("holds")
def holds(ctx: typer.Context, as_json: AsJson = False, config: Config = None, log_level: LogLevel = None) -> int:
    """List legal holds: those that stand, and those that ended."""
    from weighbridge.pipeline.retention.holds import holds as every

    found = every(places_of_home(home_of(ctx, config, log_level)).ledger)
    if as_json:
        write_json([_hold(hold) for hold in found])
        return CLEAN
    names = ["id", "tenant", "bucket", "first", "last", "tables", "why", "by", "since", "released"]
    write_table(names, [_cells(hold) for hold in found])
    write_line(f"\n{counted(sum(hold.released is None for hold in found), 'hold')} standing")
    return CLEAN


@retention.command("hold")
def hold(
    ctx: typer.Context,
    why: Why,
    tenant: Tenant = None,
    bucket: Annotated[
        int | None, typer.Option("--bucket", min=0, help="Of that tenant, one bucket of data subjects.")
    ] = None,
    since: Since = None,
    until: Until = None,
    table: Annotated[
        list[str] | None, typer.Option("--table", metavar="TABLE", help="Only this table or folder; may be repeated.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Everything of everybody; instead of tenant, days and tables.")
    ] = False,
    by: By = None,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Place a legal hold: by tenant, bucket, days, tables, or any of these together; or on everything, with --all."""
    from weighbridge.pipeline.retention.holds import place

    check_range(since, until)
    scoped = any(each is not None for each in (tenant, bucket, since, until)) or bool(table)
    if scoped == everything:
        said = (
            "--all is everything; leave out"
            if everything
            else "the hold is about nothing yet: say --all for everything, or name"
        )
        raise ConfigError(f"{said} what it is about (--tenant, --bucket, --since, --until, --table)")
    home = home_of(ctx, config, log_level)
    whom = tenant_of(home, tenant)
    places = places_of_home(home)
    with places.lake.lock():
        placed = place(
            places.ledger, why=why, by=by or user_name(), now=datetime.now(UTC), tenant=whom, bucket=bucket,
            first=since, last=until, tables=tuple(table or ()),
        )  # fmt: skip
    write_line(f"hold {placed.hold_id[:ID_DIGITS]} stands; nothing it is about is deleted until it is released")
    return CLEAN


@retention.command("release")
def release(
    ctx: typer.Context,
    hold: Annotated[str, typer.Argument(metavar="ID", help=f"The first {ID_DIGITS} or more digits of its id.")],
    why: Why,
    by: By = None,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Release a legal hold. What was due meanwhile goes with the next `apply`."""
    from weighbridge.pipeline.reconcile.tree.prefix import one_of
    from weighbridge.pipeline.retention.holds import holds as every
    from weighbridge.pipeline.retention.holds import release as end

    places = places_of_home(home_of(ctx, config, log_level))
    with places.lake.lock():
        known = {each.hold_id: each for each in every(places.ledger)}
        ended = end(places.ledger, known[one_of(known, hold, "hold")], why=why, by=by or user_name(),
                    now=datetime.now(UTC))  # fmt: skip
    write_line(f"hold {ended.hold_id[:ID_DIGITS]} is released\nNext: weighbridge retention apply")
    return CLEAN


@retention.command("receipts")
def receipts(
    ctx: typer.Context,
    since: Since = None,
    until: Until = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """List the proofs of deletions, oldest first; exit 1 where one is not what its id says."""
    from weighbridge.pipeline.retention.receipts import receipts as every

    check_range(since, until)
    found = [
        each
        for each in every(home_of(ctx, config, log_level).lake())
        if (since is None or each.erased_at.date() >= since) and (until is None or each.erased_at.date() <= until)
    ]
    if as_json:
        write_json([_receipt(each) for each in found])
    else:
        _write_receipts(found)
    return CLEAN if all(each.sound for each in found) else FINDINGS


def _plan(found: RetentionPlan) -> dict[str, object]:
    return {
        "day": found.today,
        "due": [
            {
                "table": due.table, "rule": due.rule.name, "tenant": due.rule.tenant, "task": due.rule.task,
                "kept_days": due.rule.days, "why": due.why, "rows": due.rows, "held": due.held, "days": due.days,
                "first_day": due.first, "last_day": due.last, "keys": due.keys, "held_keys": due.held_keys,
                "paths": due.paths,
            }
            for due in found.due
        ],
        "holds": [_hold(hold) for hold in found.holds],
        "pending": found.pending,
        "erasures": found.erasures,
        "notes": found.notes,
    }  # fmt: skip


def _write_plan(found: RetentionPlan) -> None:
    names = ["what", "rule", "goes", "held", "days", "first", "last", "keys", "keys held"]
    write_table(names, [_line(due) for due in found.due])
    keys = sum(len(due.keys) for due in found.due)
    write_line(f"\n{counted(found.rows, 'row')} or files and {counted(keys, 'key')} due on {found.today} (UTC)")
    if found.holds:
        write_line(f"{counted(len(found.holds), 'hold')} standing")
    if found.pending:
        write_line(f"{counted(found.pending, 'deletion')} of an earlier run to be finished first")
    if found.erasures:
        write_line(f"{counted(found.erasures, 'erasure')} remembered, held against the lake again")
    for note in found.notes:
        write_line(f"note: {note}")
    if found.rows or keys or found.pending:
        write_line("Next: weighbridge retention apply")


def _line(due: Due) -> list[object]:
    return [
        due.table, due.why, due.rows or None, due.held or None, due.days or None, due.first, due.last,
        len(due.keys) or None, len(due.held_keys) or None,
    ]  # fmt: skip


def _hold(hold: Hold) -> dict[str, object]:
    names = ("hold_id", "tenant", "bucket", "first", "last", "tables", "why", "by", "since", "released")
    return {name: getattr(hold, name) for name in (*names, "released_by", "released_why")}


def _cells(hold: Hold) -> list[object]:
    ended = None if hold.released is None else f"{hold.released:%Y-%m-%d} by {hold.released_by}: {hold.released_why}"
    about = [hold.tenant, hold.bucket, hold.first, hold.last, ", ".join(hold.tables) or None]
    about = ["everything", "", "", "", ""] if all(each is None for each in about) else about
    return [
        hold.hold_id[:ID_DIGITS], *about, hold.why, hold.by, f"{hold.since:%Y-%m-%d}", ended,
    ]  # fmt: skip


def _receipt(receipt: Receipt) -> Mapping[str, object]:
    names = (
        *("receipt_id", "rule", "scope", "table_name", "first_day", "last_day", "rows", "digest_before", "method"),
        *("key_ids", "table_version", "erased_at", "erased_by", "sound"),
    )
    return {name: getattr(receipt, name) for name in names}


def _write_receipts(found: tuple[Receipt, ...] | list[Receipt]) -> None:
    names = ["id", "when", "rule", "what", "rows", "first", "last", "how", "keys", "digest before", "by", ""]
    rows = [
        [
            each.receipt_id[:ID_DIGITS], f"{each.erased_at:%Y-%m-%d %H:%M}", each.rule, _what(each), each.rows,
            each.first_day, each.last_day, str(each.method), len(each.key_ids) or None,
            (each.digest_before or "")[:ID_DIGITS] or None, each.erased_by, "" if each.sound else "was changed",
        ]
        for each in found
    ]  # fmt: skip
    write_table(names, rows)
    write_line(f"\n{counted(len(found), 'receipt')}")
    if not all(each.sound for each in found):
        changed = [each.receipt_id[:ID_DIGITS] for each in found if not each.sound]
        write_line(f"not what their ids say: {', '.join(changed)}; compare with retention/receipts/<id>.json")


def _what(receipt: Receipt) -> str:
    """The table or folder; of a close, also which."""
    close = receipt.scope.get("close")
    return f"{receipt.table_name} in close {close}" if close else receipt.table_name


COMMAND = Command("retention", retention, KEEP, order=1)
