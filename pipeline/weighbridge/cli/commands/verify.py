"""`weighbridge verify`: make every figure of a closed month anew and name what differs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weighbridge.cli.command import CHECK, Command
from weighbridge.cli.exits import CLEAN, REFUSED
from weighbridge.cli.options import AsJson, Config, LogLevel, is_month
from weighbridge.cli.output import counted, write_json, write_line
from weighbridge.cli.session import home_of

if TYPE_CHECKING:
    from weighbridge.pipeline.close.verification import Verification

_SHOWN = 20


def verify(
    ctx: typer.Context,
    what: Annotated[
        str,
        typer.Argument(
            metavar="MONTH|PACK",
            help="A closed month of this installation, the folder of a pack, or a dispute pack (folder or zip file).",
        ),
    ],
    root: Annotated[
        str | None, typer.Option("--root", metavar="HEX", help="The root that was printed when the month was closed.")
    ] = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Verify a close from its pack alone: every file, row and commitment, and every figure made anew.

    A month is held against its root and receipts in the lake too. A pack needs no installation; give the root that was
    kept elsewhere, or the pack is held against itself alone. A dispute pack is verified likewise. Exit 3 where anything
    differs; each is named.
    """
    from weighbridge.pipeline.close.verify import verify as examine
    from weighbridge.pipeline.close.verify import verify_month
    from weighbridge.pipeline.dispute.verify import is_dispute, verify_dispute

    if is_month(what):
        home = home_of(ctx, config, log_level)
        found = verify_month(home.lake(), home.settings.closes, what, root=root)
    elif is_dispute(Path(what)):
        found = verify_dispute(Path(what), root=root)
    else:
        found = examine(Path(what), root=root)
    if as_json:
        write_json(_told(found))
    else:
        _write(what, found)
    return CLEAN if found.sound else REFUSED


def _told(found: Verification) -> dict[str, object]:
    return {
        "period": found.period,
        "root": found.root,
        "sound": found.sound,
        "anchored": found.anchored,
        "differences": [{"kind": str(d.kind), "where": d.where, "what": d.what} for d in found.differences],
        "figures": {name: str(proof) for name, proof in found.proofs.items()},
        "erased": found.erased,
        "receipts": found.receipts,
        "notes": found.notes,
    }


def _write(what: str, found: Verification) -> None:
    from weighbridge.pipeline.close.verification import Proof

    for difference in found.differences[:_SHOWN]:
        write_line(str(difference))
    if len(found.differences) > _SHOWN:
        write_line(f"and {len(found.differences) - _SHOWN} more; --json shows all")
    if found.sound:
        made, kept = found.count(Proof.RECOMPUTED), found.count(Proof.COMMITTED)
        write_line(f"{found.period} holds: {counted(made, 'figure')} RECOMPUTED, {kept:,} COMMITTED")
    else:
        write_line(f"\n{what} does not hold: {counted(len(found.differences), 'difference')}")
    if found.erased:
        write_line(f"{counted(found.erased, 'row')} lawfully erased; receipts {', '.join(found.receipts)}")
    if found.root:
        write_line(f"root     {found.root}")
    for note in found.notes:
        write_line(f"note: {note}")


COMMAND = Command("verify", verify, CHECK, order=3)
