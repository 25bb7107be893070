"""Whether a close pack is what was sealed: each file, row, commitment, pin and receipt, from the pack alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from weighbridge.pipeline.close import merkle
from weighbridge.pipeline.close.layout import ERASURES, FIGURES, MANIFEST, NEIGHBOURS, PINS, SEAL, erasure_file, pin
from weighbridge.pipeline.close.manifest import DIGESTS, PartEntry
from weighbridge.pipeline.close.pack import Pack
from weighbridge.pipeline.close.plain import DamagedError, sha256_of
from weighbridge.pipeline.close.row_names import row_name
from weighbridge.pipeline.close.seal import Seal, seal_of
from weighbridge.pipeline.close.verification import Difference, Kind
from weighbridge.pipeline.lake import row_bytes
from weighbridge.schemas.receipt import receipt_id
from weighbridge.schemas.table import Table

# So many rows of a part are named; the others are counted.
_NAMED = 5
_PRICES = dict.fromkeys(("price", "price_tier", "price_fee"), Kind.PIN)
_KINDS = {"finding": Kind.FINDING, "finding_status": Kind.FINDING, "receipt": Kind.RECEIPT, **_PRICES}


@dataclass(slots=True)
class Integrity:
    """What was found.

    Attributes:
        differences: what differs.
        readable: whether every part could be read, so that figures can be made from them.
        seal: when and by whom it was closed, where that can be read.
    """

    differences: list[Difference] = field(default_factory=list)
    readable: bool = True
    seal: Seal | None = None

    def add(self, kind: Kind, where: str, what: str) -> None:
        """Note that something differs."""
        self.differences.append(Difference(kind, where, what))


def check(pack: Pack, *, every_row: bool) -> Integrity:
    """Hold a pack against its own manifest and erasures.

    Args:
        pack: the pack.
        every_row: recompute the leaf of each row; else only where the digest of a file already differs.

    Raises:
        DamagedError: its manifest or a record of an erasure cannot be trusted at all.
    """
    pack.manifest  # noqa: B018 - what cannot be read is told before anything is compared with it
    pack.erasures  # noqa: B018
    found = Integrity()
    damaged = set(_files(pack, found))
    _pins(pack, found, damaged)
    for place, entry in pack.manifest.parts.items():
        name = pack.present[place]
        # Rows are held against leaves and salts; where those are damaged, that is what is said.
        if not damaged & {name.leaves, name.salts} and (every_row or name.erasure or name.rows in damaged):
            _part(pack, entry, found)
    for table in pack.manifest.tables.values():
        own = sum(part.rows for part in table.parts if part.name.part != NEIGHBOURS)
        if own != table.rows:
            found.add(Kind.FILE, MANIFEST, f"the parts of {table.table} have {own} rows, the table {table.rows}")
    _receipts(pack, found)
    return found


def kind_of(path: str) -> Kind:
    """What kind of thing a file of the pack is."""
    first, _, rest = path.partition("/")
    if first in {"rows", "proof"}:
        return _KINDS.get(rest.partition("/")[0], Kind.PARTITION)
    return {"pins": Kind.PIN, ERASURES: Kind.RECEIPT, FIGURES: Kind.FIGURE, SEAL: Kind.SEAL}.get(first, Kind.FILE)


def _files(pack: Pack, found: Integrity) -> Iterator[str]:
    """Every file that has to be there is there with its bytes, and no other; gives the paths that are not so."""
    records = {erasure_file(record.number) for record in pack.erasures}
    expected = {MANIFEST, SEAL, *records, *pack.files}
    present = dict(_walk(pack.folder))
    for path in sorted(present.keys() - expected):
        stale = path.startswith(("rows/", "proof/")) and pack.erasures
        what = "is no part of the close" if not stale else "is no part of the close, or holds rows that were erased"
        found.add(kind_of(path), path, f"{what}; take it away, or run the erasure again")
    for path in sorted(expected - present.keys()):
        found.add(kind_of(path), path, "is missing")
        found.readable &= not path.startswith("rows/")
        yield path
    for path in sorted(path for path in expected & present.keys() if not present[path]):
        found.add(kind_of(path), path, "is no plain file")
        found.readable &= not path.startswith("rows/") or (pack.folder / path).is_file()
        yield path
    for path, (size, digest) in sorted(pack.files.items()):
        told = _apart(pack.folder / path, size, digest) if present.get(path) else None
        if told is not None:
            found.add(kind_of(path), path, told)
            yield path
    _seal(pack, found)


def _apart(file: Path, size: int, digest: str) -> str | None:
    """What is wrong with a file that is there, null where nothing is."""
    try:
        if file.stat().st_size != size:
            return f"has {file.stat().st_size} bytes, it was closed with {size}"
        return None if sha256_of(file) == digest else "its bytes are not those it was closed with"
    except OSError as error:
        return f"cannot be read: {error.strerror or type(error).__name__}"


def _walk(folder: Path, above: str = "") -> Iterator[tuple[str, bool]]:
    """Every file below the folder, and whether it is a plain one; links are not followed."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path, f"{above}{path.name}/")
        else:
            yield f"{above}{path.name}", path.is_file() and not path.is_symlink()


def _seal(pack: Pack, found: Integrity) -> None:
    try:
        found.seal = seal_of(pack.read(SEAL))
    except DamagedError as error:
        if (pack.folder / SEAL).exists():
            found.add(Kind.SEAL, SEAL, str(error))
        return
    if found.seal.root != pack.manifest.root():
        found.add(Kind.SEAL, SEAL, "it seals another root than the one the manifest leads to")


def _pins(pack: Pack, found: Integrity, damaged: set[str]) -> None:
    """The digests the manifest states are those of what is pinned."""
    for path in (FIGURES, *map(pin, PINS)):
        try:
            content = pack.figures if path == FIGURES else pack.pinned(path.removeprefix("pins/").removesuffix(".json"))
        except DamagedError as error:
            if path not in damaged:
                found.add(kind_of(path), path, str(error))
            found.readable = False
            continue
        if path == FIGURES and content.get("period") != pack.manifest.period:
            found.add(Kind.FIGURE, path, "its figures are of another month")
    files = pack.manifest.files
    stated = {
        "figures": files[FIGURES][1],
        **{name: files[pin(name)][1] for name in ("rules", "lock", "settings")},
    }
    if found.readable:
        stated["code"] = str(pack.pinned("code").get("sha256"))
    for name in DIGESTS:
        if name in stated and pack.manifest.digests[name] != stated[name]:
            found.add(Kind.FILE, MANIFEST, f"the digest of {name} is not that of what is pinned")


def _part(pack: Pack, entry: PartEntry, found: Integrity) -> None:
    """Every row of a part leads to its leaf, and the leaves to the root of the part."""
    name = pack.present[entry.name.table, entry.name.part]
    kind = _KINDS.get(name.table, Kind.ROW)
    try:
        table = pack.manifest.tables[name.table].declared()
        hashes = merkle.split(pack.read(name.leaves))
        salts = pack.salts((name.table, name.part))
    except DamagedError as error:
        if not str(error).endswith("is missing"):
            found.add(Kind.PARTITION, str(name), str(error))
        return
    if len(hashes) != entry.rows or merkle.root(merkle.block_roots(b"".join(hashes))).hex() != entry.root:
        found.add(kind_of(name.leaves), name.leaves, "the leaves do not lead to the root of the part")
        return
    if not (pack.folder / name.rows).is_file():
        found.readable = False
        return
    try:
        data = pq.read_table(pack.folder / name.rows, page_checksum_verification=True, memory_map=False)
        data = data.cast(pa.schema([pa.field(column.name, column.type) for column in table.columns]))
    except (pa.ArrowException, OSError, KeyError, ValueError):
        found.add(kind_of(name.rows), name.rows, "cannot be read: a page or its description is damaged")
        found.readable = False
        return
    gone = set(pack.erased.get((name.table, name.part), ()))
    places = [place for place in range(entry.rows) if place not in gone]
    if data.num_rows != len(places):
        found.add(kind_of(name.rows), name.rows, f"has {data.num_rows} rows, {len(places)} belong there")
    try:
        bad = list(_bad_rows(table, data, places, salts, hashes))
    except (pa.ArrowException, ValueError, OverflowError):
        found.add(kind_of(name.rows), name.rows, "holds values that no row can have")
        found.readable = False
        return
    _name(table, data, bad[:_NAMED], kind, name.rows, found)
    if len(bad) > _NAMED:
        found.add(kind_of(name.rows), name.rows, f"{len(bad) - _NAMED} more rows are not those that were closed")


def _bad_rows(
    table: Table, data: pa.Table, places: Sequence[int], salts: Sequence[bytes], hashes: Sequence[bytes]
) -> Iterator[tuple[int, int | None]]:
    """(row in the file, its place when it was closed) of rows that do not lead to their leaf."""
    for number, row in enumerate(row_bytes.rows(table, data)):
        place = places[number] if number < len(places) else None
        if place is None or place >= len(salts) or merkle.leaf(salts[place], row) != hashes[place]:
            yield number, place


def _name(
    table: Table, data: pa.Table, bad: Sequence[tuple[int, int | None]], kind: Kind, path: str, found: Integrity
) -> None:
    for number, place in bad:
        row = data.slice(number, 1).to_pylist()[0]
        where = f"row {number} ({row_name(table, row)})"
        what = "was never closed" if place is None else "is not the row that was closed there"
        found.add(kind, f"{path}, {where}", what)


def _receipts(pack: Pack, found: Integrity) -> None:
    """Every erased row is covered by a receipt, and every receipt is what its id says."""
    for record in pack.erasures:
        path = erasure_file(record.number)
        gone: dict[str, int] = {}
        for (table, _), places in record.rows.items():
            gone[table] = gone.get(table, 0) + len(places)
        covered: dict[str, int] = {}
        for receipt in record.receipts:
            _receipt(receipt, record.digest, path, found)
            table = str(receipt.get("table_name"))
            rows = receipt.get("rows")
            covered[table] = covered.get(table, 0) + (rows if isinstance(rows, int) else 0)
        if covered != gone:
            found.add(Kind.RECEIPT, path, "its receipts do not speak of the rows that are gone")


def _receipt(receipt: Mapping[str, Any], digest: str, path: str, found: Integrity) -> None:
    told = str(receipt.get("receipt_id"))
    try:
        sound = receipt_id(receipt) == told and f"record={digest}" in str(receipt["scope"]).split("; ")
    except (KeyError, TypeError):
        sound = False
    if not sound:
        found.add(
            Kind.RECEIPT, f"{path}, receipt {told[:8]}", "it is not what its id says, or is about another erasure"
        )
