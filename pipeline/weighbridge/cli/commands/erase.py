"""`weighbridge erase`: a tenant, a bucket of its data subjects, or single attempts; then a look whether it is gone."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weighbridge.cli.command import KEEP, Command
from weighbridge.cli.exits import CLEAN, FINDINGS
from weighbridge.cli.options import AcceptClock, AsJson, Config, LogLevel
from weighbridge.cli.output import counted, write_json, write_line, write_table
from weighbridge.cli.session import home_of, user_name
from weighbridge.cli.whom import places_of_home, subject_of

if TYPE_CHECKING:
    from weighbridge.pipeline.retention.erase import Erased


def erase(
    ctx: typer.Context,
    tenant: Annotated[
        str | None,
        typer.Option("--tenant", metavar="NAME", help="Name or pseudonym of a tenant; - reads it from a pipe."),
    ] = None,
    subject: Annotated[
        str | None,
        typer.Option("--subject", metavar="WHO", help="A bucket of that tenant, or a file of attempt ids, one a line."),
    ] = None,
    billing_too: Annotated[
        bool, typer.Option("--billing-too", help="Exact billing counts go as well; they stay, pseudonymous, if not.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go; change nothing.")] = False,
    spool: Annotated[
        list[Path] | None, typer.Option("--spool", metavar="DIR", help="A further spool on this host; may be repeated.")
    ] = None,
    also: Annotated[
        list[Path] | None,
        typer.Option("--also", metavar="DIR", help="Search this folder afterwards too, such as Prefect's home."),
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="NAME", help="Who asks. Default: the user of this system.")
    ] = None,
    accept_clock: AcceptClock = False,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Erase somebody: keys, rows, segments of the spool, pages; then search every place for what is left.

    Up to and including today (UTC). Billing counts stay, exact and under the pseudonym, unless --billing-too. Exit 1
    where something is left: held, not sealed yet, or found by the search. Safe to kill and to run again.
    """
    from weighbridge.pipeline.retention.erase import preview
    from weighbridge.pipeline.run.retain import erase_from

    home = home_of(ctx, config, log_level)
    whom = subject_of(home, tenant, subject)
    places = places_of_home(home, searched=also or (), spools=spool or ())
    now = datetime.now(UTC)
    if dry_run:
        found = preview(places, whom, now=now, billing_too=billing_too)
    else:
        asker = by or user_name()
        found = erase_from(home, places, whom, by=asker, now=now, billing_too=billing_too, accept_clock=accept_clock)
    if as_json:
        write_json(_told(found))
    else:
        _write(found, billing_too=billing_too)
    return CLEAN if dry_run or found.complete else FINDINGS


def _told(found: Erased) -> dict[str, object]:
    names = ("rows", "kept", "held", "held_segments", "held_pages", "not_yet", "pages", "failed", "unsearched")
    left = None if found.left is None else [{"what": each.what, "path": each.path} for each in found.left]
    return {
        "erasure": found.erasure_id,
        "complete": found.complete if found.erasure_id else None,
        "keys": len(found.keys),
        **{name: getattr(found, name) for name in names},
        "receipts": [receipt.receipt_id for receipt in found.receipts],
        "left": left,
    }


def _write(found: Erased, *, billing_too: bool) -> None:
    goes = "erased" if found.erasure_id else "would go"
    tables = sorted({*found.rows, *found.kept, *found.held})
    write_table(
        ["table", goes, "stays for billing", "held"],
        [[table, *(told.get(table) for told in (found.rows, found.kept, found.held))] for table in tables],
    )
    write_line(f"\n{counted(sum(found.rows.values()), 'row')} and {counted(len(found.keys), 'key')} {goes}")
    if found.kept:
        write_line(
            "Exact billing counts stay under the tenant's pseudonym, as accounts that the law wants kept "
            "(Article 17(3)(b) GDPR); --billing-too erases them as well."
        )
    gone = billing_too and found.erasure_id
    for path in found.pages:
        write_line(
            f"erased: {path}; the next night writes it again, unless retention took rows of its month"
            if gone
            else f"shows it: {path}"
        )
    for path in (*found.held_pages, *found.held_segments):
        write_line(f"held: {path}")
    for path in found.not_yet:
        write_line(f"not yet: {path}; seal it, then run this again")
    for why in found.failed:
        write_line(f"not erased: {why}; `weighbridge retention apply` tries it again")
    for what in found.unsearched:
        write_line(f"not searched for: {what}")
    if found.erasure_id:
        write_line(f"erasure {found.erasure_id[:8]}, {counted(len(found.receipts), 'receipt')}")
    if found.left is not None:
        for each in found.left:
            write_line(f"found: {each.what} in {each.path}")
        write_line(f"searched: {counted(len(found.left), 'trace')} left" if found.left else "searched: nothing is left")


COMMAND = Command("erase", erase, KEEP, order=2)
