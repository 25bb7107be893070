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
from weighbridge.cli.tables import ID_DIGITS
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
    even_if_unknown: Annotated[
        bool,
        typer.Option(
            "--even-if-unknown", help="Also a tenant or bucket of which nothing is here: rows may still come."
        ),
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
        found = preview(places, whom, now=now, billing_too=billing_too, only_known=not even_if_unknown)
    else:
        asker = by or user_name()
        found = erase_from(
            home, places, whom, by=asker, now=now, billing_too=billing_too, only_known=not even_if_unknown,
            accept_clock=accept_clock,
        )  # fmt: skip
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
        "holds": [{"hold_id": hold.hold_id, "by": hold.by, "since": hold.since} for hold in found.holds],
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
    shown = f"{'erased' if found.erasure_id else 'would go'}: " if billing_too else "shows it: "
    again = "; the next night writes it again, unless retention took rows of its month" if billing_too else ""
    for path in found.pages:
        write_line(f"{shown}{path}{again}")
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
        write_line(_searched(found))
    _write_holds(found)


def _searched(found: Erased) -> str:
    left = counted(len(found.left), "trace") if found.left else "nothing is"
    if found.holds:
        return f"searched: {left} left beside what is held, which was not searched for"
    return f"searched: {left} left" if found.left else "searched: nothing is left"


def _write_holds(found: Erased) -> None:
    """Who keeps what was to go, and how it goes on; why stays in `retention holds`."""
    if not found.holds:
        return
    write_line(
        "not finished: a legal hold keeps some of it" if found.erasure_id else "a legal hold would keep some of it"
    )
    for hold in found.holds:
        write_line(f"hold {hold.hold_id[:ID_DIGITS]}, placed by {hold.by} on {hold.since:%Y-%m-%d}")
    one = "it" if len(found.holds) == 1 else "them"
    write_line(
        f"Next: release {one} (`weighbridge retention release ID --why ...`), then `weighbridge retention apply`"
    )


COMMAND = Command("erase", erase, KEEP, order=2)
