"""Verify a dispute pack: from itself alone, offline, whoever received it."""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from weighbridge.pipeline.close import merkle, pins
from weighbridge.pipeline.close.draft import arrow
from weighbridge.pipeline.close.manifest import Manifest, manifest_of
from weighbridge.pipeline.close.plain import DamagedError, parsed, sha256_of
from weighbridge.pipeline.close.row_names import row_name
from weighbridge.pipeline.close.verification import Difference, Kind, Proof, Verification
from weighbridge.pipeline.dispute.layout import DISPUTE, FORMAT, MANIFEST, PRICES, VERSION, rows_file
from weighbridge.pipeline.dispute.path import root_by
from weighbridge.pipeline.lake import row_bytes
from weighbridge.pipeline.price.frame import price_readings
from weighbridge.pipeline.price.table import rows_of
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import framed
from weighbridge.schemas.table import Table
from weighbridge.schemas.tables import TABLES

_UNUSABLE = (
    *(pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, zipfile.BadZipFile),
    *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError),
)
_MOST_BYTES = 1 << 30  # of a zip file, unpacked
_AMOUNT = ("amount", "currency", "status", "price_id")
_READING_KEY = ("attempt_hi", "attempt_lo", "source", "child", "report", "revision")


def is_dispute(path: Path) -> bool:
    """Whether this looks like a dispute pack, as a folder or a zip file."""
    if path.is_dir():
        return (path / DISPUTE).is_file()
    try:
        with zipfile.ZipFile(path) as file:
            return DISPUTE in file.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


def verify_dispute(path: Path, *, root: str | None = None) -> Verification:
    """Verify a dispute pack.

    Args:
        path: its folder or zip file.
        root: the root of the closed month, kept elsewhere. Without it the rows are led to the root the pack names.

    Returns:
        What differs. Each amount is RECOMPUTED from its reading and the prices, every other row that the root stands
        for is COMMITTED. Nothing is raised for a pack that is damaged or forged.
    """
    found: _Check | None = None
    try:
        with _unpacked(path) as folder:
            found = _Check(folder)
            found.run(root)
    except (DamagedError, *_UNUSABLE) as error:
        what = str(error) if isinstance(error, DamagedError) else "cannot be read as part of a dispute pack"
        before = found.differences if found else []
        return Verification(None, None, anchored=False, differences=(*before, Difference(Kind.FILE, DISPUTE, what)))
    return Verification(
        period=str(found.content["finding"]["period"]),
        root=found.content["root"],
        anchored=root is not None,
        differences=tuple(found.differences),
        proofs=found.proofs,
        notes=tuple(found.notes),
    )


@contextmanager
def _unpacked(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield path
        return
    with zipfile.ZipFile(path) as file, tempfile.TemporaryDirectory() as folder:
        if sum(each.file_size for each in file.infolist()) > _MOST_BYTES:
            raise DamagedError("the zip file unpacks to more than a dispute pack can be")
        file.extractall(folder)
        yield Path(folder)


@dataclass(slots=True)
class _Check:
    """One verification."""

    folder: Path
    content: dict[str, Any] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)
    proofs: dict[str, Proof] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, kind: Kind, where: str, what: str) -> None:
        self.differences.append(Difference(kind, where, what))

    def run(self, root: str | None) -> None:
        """All checks, in order."""
        self.content = dict(parsed((self.folder / DISPUTE).read_bytes(), DISPUTE))
        if (self.content.get("format"), self.content.get("version")) != (FORMAT, VERSION):
            raise DamagedError(
                f"{DISPUTE} is not of the format {FORMAT!r}, version {VERSION}, which this version reads"
            )
        self._files()
        self._finding()
        manifest = self._manifest(root)
        rows = {name: self._rows(name, about, manifest) for name, about in self.content["tables"].items()}
        self._amounts(rows)

    def _files(self) -> None:
        listed: Mapping[str, str] = self.content["files"]
        there = {path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*") if path.is_file()}
        for name in sorted(there - {*listed, DISPUTE}):
            self.add(Kind.FILE, name, "is no part of the pack")
        for name, digest in sorted(listed.items()):
            if name not in there:
                self.add(Kind.FILE, name, "is missing")
            elif sha256_of(self.folder / name) != digest:
                self.add(Kind.FILE, name, "was changed since the pack was written")

    def _finding(self) -> None:
        """The id of a finding follows from what it is about."""
        told = self.content["finding"]
        pairs = [pair.split("=", 1) for pair in told["subject"].split("; ") if pair]
        parts = [part for name, value in sorted(pairs) for part in (name, value)]
        if hashlib.sha256(framed(told["code"], told["period"], *parts)).hexdigest()[:32] != told["finding_id"]:
            self.add(Kind.FINDING, told["finding_id"][:8], "is about something else than its id says")

    def _manifest(self, root: str | None) -> Manifest | None:
        if self.content["root"] is None:
            self.notes.append("the month was open when the pack was written: nothing stands for its rows but the pack")
            if root is not None:
                self.add(Kind.ROOT, DISPUTE, "the pack has no root, and one was given")
            return None
        manifest = manifest_of((self.folder / MANIFEST).read_bytes())
        own = manifest.root()
        if own != self.content["root"]:
            self.add(Kind.ROOT, MANIFEST, f"leads to the root {own}, the pack says {self.content['root']}")
        if root is None:
            self.notes.append("no root was given: compare it with the one that was published when the month was closed")
        elif own != root:
            self.add(Kind.ROOT, MANIFEST, f"leads to the root {own}, the month was closed with {root}")
        return manifest

    def _rows(self, name: str, about: Mapping[str, Any], manifest: Manifest | None) -> pl.DataFrame:
        """The rows of a table, each led to the root of its part where it is proved."""
        known = TABLES[name]
        columns = tuple(known.column(each) for each in about["columns"])
        table = Table(known.name, known.domain, known.doc, columns, known.key, known.daily, known.since)
        frame = pl.read_parquet(self.folder / rows_file(name))
        if frame.height != about["rows"] or frame.columns != about["columns"]:
            self.add(Kind.FILE, rows_file(name), "has other rows or columns than the pack says")
            return frame
        proofs = about["proofs"]
        if proofs is None or manifest is None:
            if proofs is None:
                self.notes.append(f"{name}: {frame.height} rows, not proved by a root")
            return frame
        entry = manifest.tables[name]
        if tuple(about["columns"]) != tuple(entry.columns) or len(proofs) != frame.height:
            self.add(Kind.ROW, name, "has other columns than the month was closed with, or rows without a proof")
            return frame
        parts = {part.name.part: part for part in entry.parts}
        named = [row_name(table, row) for row in frame.to_dicts()]
        for raw, proof, called in zip(row_bytes.rows(table, arrow(table, frame)), proofs, named, strict=True):
            part = parts[proof["part"]]
            leaf = merkle.leaf(bytes.fromhex(proof["salt"]), raw)
            partners = [bytes.fromhex(each) for each in proof["path"]]
            if root_by(leaf, int(proof["place"]), part.rows, partners) != bytes.fromhex(part.root):
                self.add(Kind.ROW, f"{name}/{part.name.part}", f"{called} is not the row the month was closed with")
            else:
                self.proofs[f"{name} {called}"] = Proof.COMMITTED
        return frame

    def _amounts(self, rows: Mapping[str, pl.DataFrame]) -> None:
        """Every amount follows from its reading and the prices."""
        if "priced_amount" not in rows or "reading" not in rows:
            return
        prices = rows_of({name: rows[name] for name in PRICES if name in rows})
        for price_id, row in prices.items():
            if row.price_id != price_id:
                self.add(Kind.PIN, f"price row {price_id[:8]}", "holds other prices than its id says")
        try:
            book = pins.book_of(self.content["prices"], prices)
            made = price_readings(rows["reading"], book, rows.get("attempt"))
        except ConfigError as error:
            raise DamagedError(f"the prices do not make a price book: {error}") from None
        if any(row.terms.hours for row in prices.values()):
            self.notes.append(
                "some prices hang on the time of day, which the pack does not tell: amounts stand as they are"
            )
            return
        kept = rows["priced_amount"].filter(pl.col("basis") == "reported")
        told = {row[:6]: row[6:] for row in kept.select(*_READING_KEY, *_AMOUNT).iter_rows()}
        again = {row[:6]: row[6:] for row in made.select(*_READING_KEY, *_AMOUNT).iter_rows()}
        others = set(self.content["prices"]["others"])
        for key, amount in told.items():
            called = row_name(TABLES["priced_amount"], dict(zip(_READING_KEY, key, strict=True)))
            if amount[-1] in others:
                self.notes.append(f"{called}: priced by a row the book no longer has; it stands as it is")
            elif again.get(key) != amount:
                self.add(Kind.FIGURE, called, "its amount does not follow from its reading and the prices")
            else:
                self.proofs[f"amount of {called}"] = Proof.RECOMPUTED
