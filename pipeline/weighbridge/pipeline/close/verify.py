"""Verify a close: from the pack alone, offline, a year later; where the lake is at hand, against that as well."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from weighbridge.pipeline.close.close import row_of
from weighbridge.pipeline.close.integrity import Integrity, check
from weighbridge.pipeline.close.layout import MANIFEST, SEAL, erasure_file
from weighbridge.pipeline.close.pack import Pack
from weighbridge.pipeline.close.plain import DamagedError
from weighbridge.pipeline.close.recompute import Recomputed, recompute
from weighbridge.pipeline.close.verification import Difference, Kind, Verification
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.receipt import receipt_text

# What polars, arrow and our own steps raise where a forged part is well-formed and makes no sense.
_UNUSABLE = (
    *(pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError),
    *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError, AssertionError),
)
_DIGESTS = ("figures", "prices", "rules", "code", "lock")


def verify_month(
    lake: Lake, packs: Path, period: str, *, root: str | None = None, figures: bool = True
) -> Verification:
    """Verify the close of a month where it was made: the pack, its root in the lake, its receipts in the lake.

    Args:
        lake: the lake.
        packs: folder of the close packs.
        period: the month.
        root: a root that was kept elsewhere; the one in the lake where null.
        figures: as of `verify`.

    Raises:
        ConfigError: the month is not closed.
    """
    row = _row(lake, period)
    receipts = lake.scan("receipt").collect()
    return verify(packs / period, root=root or row["root"], row=row, receipts=receipts, figures=figures)


def pack_of(lake: Lake, packs: Path, period: str) -> Pack:
    """The pack of a closed month.

    Raises:
        ConfigError: the month is not closed.
        DamagedError: the pack is not there, or leads to another root than the lake says.
    """
    row, pack = _row(lake, period), Pack(packs / period)
    if pack.manifest.root() != row["root"]:
        raise DamagedError(f"{pack.folder} is not the close of {period} that the lake knows; verify {period}")
    return pack


def _row(lake: Lake, period: str) -> dict[str, Any]:
    row = row_of(lake, period)
    if row is None:
        raise ConfigError(f"{period} is not closed; close it with `weighbridge close {period}`, or name a pack")
    return row


def verify(
    folder: Path,
    *,
    root: str | None = None,
    row: Mapping[str, Any] | None = None,
    receipts: pl.DataFrame | None = None,
    figures: bool = True,
) -> Verification:
    """Verify a close pack.

    Args:
        folder: the pack, wherever it was copied to.
        root: the root that was printed when the month was closed, kept elsewhere. Without it the pack is held against
            itself alone: whoever edits everything of it is not seen.
        row: the row of the table `close`, where the lake is at hand.
        receipts: the table `receipt`, where the lake is at hand.
        figures: make every figure anew; else only files, rows whose file differs, and commitments are looked at.

    Returns:
        What differs, by name. Nothing is raised for a pack that is damaged, forged or not there.
    """
    pack = Pack(folder)
    try:
        found = check(pack, every_row=figures)
    except DamagedError as error:
        return _unreadable(pack, error)
    _anchors(pack, found, root, row)
    if receipts is not None:
        _kept_receipts(pack, found, receipts)
    made = Recomputed()
    if figures and found.readable:
        try:
            made = recompute(pack)
        except DamagedError as error:
            found.add(Kind.PIN, str(error).partition(" ")[0], str(error))
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError, TypeError, KeyError):
            found.add(
                Kind.PARTITION, "rows", "cannot be added up: a part has other columns or values than it was closed with"
            )
    notes = list(made.notes)
    if root is None:
        notes.append("no root was given: compare the one above with the one that was kept when the month was closed")
    if figures and not found.readable:
        notes.append("figures were not made again: not every part can be read")
    return Verification(
        period=pack.manifest.period,
        root=pack.manifest.root(),
        anchored=root is not None,
        differences=tuple(found.differences + made.differences),
        proofs=made.proofs,
        erased=sum(map(len, pack.erased.values())),
        receipts=tuple(str(receipt["receipt_id"]) for record in pack.erasures for receipt in record.receipts),
        notes=tuple(notes),
    )


def _unreadable(pack: Pack, error: DamagedError) -> Verification:
    path = str(error).partition(" ")[0].rstrip(":")
    if not pack.folder.is_dir():
        what = "there is no such folder: restore the pack from a backup"
        return Verification(None, None, anchored=False, differences=(Difference(Kind.FILE, str(pack.folder), what),))
    kind = Kind.RECEIPT if path.startswith("erasures/") else Kind.FILE
    return Verification(None, None, anchored=False, differences=(Difference(kind, path, str(error)),))


def _anchors(pack: Pack, found: Integrity, root: str | None, row: Mapping[str, Any] | None) -> None:
    """The root is the one that was kept elsewhere, and the lake says the same of the close as the pack."""
    own = pack.manifest.root()
    if root is not None and root != own:
        found.add(Kind.ROOT, MANIFEST, f"it leads to the root {own}, the month was closed with {root}")
    if row is None:
        return
    for name in _DIGESTS:
        if row[f"{name}_digest"] != pack.manifest.digests[name]:
            found.add(Kind.ROOT, MANIFEST, f"its digest of {name} is not the one in the table close")
    if row["root"] != own:
        found.add(Kind.ROOT, MANIFEST, "it leads to another root than the one in the table close")
    if row["rows"] != pack.manifest.rows or row["code_version"] != pack.manifest.code_version:
        found.add(Kind.ROOT, MANIFEST, "its rows or version are not those in the table close")
    seal = found.seal
    if seal and (seal.closed_at, seal.closed_by, seal.early) != (
        row["closed_at"],
        row["closed_by"],
        row["early_reason"] is not None,
    ):
        found.add(Kind.SEAL, SEAL, "it was not sealed when and by whom the table close says")


def _kept_receipts(pack: Pack, found: Integrity, receipts: pl.DataFrame) -> None:
    """The receipts of the pack stand in the lake, to the letter."""
    held = {row["receipt_id"]: receipt_text(row) for row in receipts.to_dicts()}
    for record in pack.erasures:
        for receipt in record.receipts:
            name = str(receipt.get("receipt_id"))
            where = f"{erasure_file(record.number)}, receipt {name[:8]}"
            if name not in held:
                found.add(
                    Kind.RECEIPT, where, "does not stand in the table receipt; run the erasure again, or restore it"
                )
            elif held[name] != dict(receipt):
                found.add(Kind.RECEIPT, where, "is not the one in the table receipt")
    for row in pack.scan("receipt").collect().to_dicts() if found.readable else ():
        name = row["receipt_id"]
        if name in held and held[name] != receipt_text(row):
            found.add(
                Kind.RECEIPT, f"receipt {name[:8]}", "was changed in the table receipt since the month was closed"
            )
