"""Change a closed month in every way and see that verifying finds and names it.

    python benchmarks/close_mutations.py [--mutations 10000] [--seed 7] [--figures-every 200]

A small month is closed and some of its rows are lawfully erased. Each mutation changes the pack in one place: bits,
bytes, cut and longer files, files that are gone, added, swapped, links or pipes; rows left out, swapped or edited;
rows, figures, pins, receipts, erasures and manifests that were edited with every digest put right; a receipt in the
lake. What is edited with all digests put right must be found by what was kept elsewhere (the root, the receipts), and
named as that; everything else must be named by its file.
Exit code 0: each was found and named; 1: some was not.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from weighbridge.pipeline.close import merkle
from weighbridge.pipeline.close.close import close_month, row_of
from weighbridge.pipeline.close.erasure_record import Erasure
from weighbridge.pipeline.close.forget import forget
from weighbridge.pipeline.close.layout import FIGURES, MANIFEST, SEAL, erasure_file
from weighbridge.pipeline.close.manifest import Manifest, PartEntry, TableEntry
from weighbridge.pipeline.close.pack import Pack
from weighbridge.pipeline.close.plain import document, sha256
from weighbridge.pipeline.close.verification import Verification
from weighbridge.pipeline.close.verify import verify
from weighbridge.pipeline.ingest.ingest import ingest
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.frame import refresh_prices
from weighbridge.pipeline.reconcile.reconcile import reconcile
from weighbridge.pipeline.simulate.simulate import simulate
from weighbridge.schemas import canonical
from weighbridge.schemas.identity import key_id
from weighbridge.schemas.receipt import receipt_id

KEY: Final = bytes(range(32))
MONTH: Final = "2026-01"
NOW: Final = datetime(2026, 3, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Sealed:
    """A closed month, and what of it is kept elsewhere."""

    folder: Path
    root: str
    row: dict[str, Any]
    receipts: pl.DataFrame

    def verify(self, receipts: pl.DataFrame | None = None, *, figures: bool = False) -> Verification:
        """Verify it, as it is."""
        known = self.receipts if receipts is None else receipts
        return verify(self.folder, root=self.root, row=self.row, receipts=known, figures=figures)


def sealed(folder: Path, attempts: int = 80) -> Sealed:
    """Close a simulated month and erase some of its rows."""
    simulate(folder / "made", attempts=attempts, days=31, key=KEY)
    lake, book = Lake.create(folder / "lake"), PriceBook.load()
    ingest([folder / "made"], lake, key=KEY, day=date(2026, 2, 1))
    refresh_prices(lake, book, lake.days("reading"))
    reconcile(lake, key_id=key_id(KEY))
    done = close_month(lake, period=MONTH, packs=folder / "closes", book=book, key=KEY, by="bench", now=NOW)
    assert done.root is not None, done.refused
    some = lake.scan("attempt").select("attempt_hi", "attempt_lo").sort("attempt_lo").head(5).collect()
    for counts, attempts_gone in ((False, some.head(2)), (True, some.tail(3))):
        forget(folder / "closes", lake, attempts=attempts_gone, counts=counts, rule="request", by="bench", now=NOW)
    row = row_of(lake, MONTH)
    assert row is not None
    return Sealed(folder / "closes" / MONTH, done.root, row, lake.scan("receipt").collect())


@dataclass(frozen=True)
class Mutation:
    """What was done: the paths it touched, and whether every digest was put right."""

    kind: str
    paths: tuple[str, ...]
    forged: bool = False
    receipts: pl.DataFrame | None = None

    def named_by(self, found: Verification) -> bool:
        """Whether verifying names it: a path it touched, or, where all was put right, root or receipt."""
        told = [(difference.where, str(difference.kind)) for difference in found.differences]
        if self.receipts is not None:
            return any(kind == "receipt" for _, kind in told)
        if self.forged:
            return any(kind in {"root", "receipt", "seal"} for _, kind in told)
        return all(any(where.startswith(path) for where, _ in told) for path in self.paths)


Make = Callable[["Bench", random.Random], Mutation]


@dataclass
class Bench:
    """A pack that is changed and put back."""

    sealed: Sealed
    whole: dict[str, bytes]

    @classmethod
    def of(cls, sealed: Sealed) -> Bench:
        """A bench over a pack that holds."""
        folder = sealed.folder
        return cls(sealed, {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()})

    @contextmanager
    def changed(self, make: Make, draw: random.Random) -> Iterator[Mutation]:
        """The pack after a mutation; afterwards it is as it was."""
        try:
            yield make(self, draw)
        finally:
            self._restore()

    def _restore(self) -> None:
        folder = self.sealed.folder
        for path in sorted(folder.rglob("*"), reverse=True):
            name = path.relative_to(folder).as_posix()
            if path.is_dir() and not path.is_symlink():
                if name in self.whole:
                    path.rmdir()
            elif path.is_symlink() or not path.is_file() or name not in self.whole:
                path.unlink()
        for name, raw in self.whole.items():
            path = folder / name
            if not path.is_file() or path.read_bytes() != raw:
                path.write_bytes(raw)

    def pick(self, draw: random.Random, number: int = 1, under: str = "") -> list[str]:
        """Some files of the pack that have bytes."""
        return draw.sample(sorted(n for n, raw in self.whole.items() if n.startswith(under) and raw), number)

    def write(self, name: str, raw: bytes) -> None:
        """Write a file of the pack."""
        (self.sealed.folder / name).write_bytes(raw)


def flipped(bench: Bench, draw: random.Random) -> Mutation:
    """One bit of one file."""
    (name,) = bench.pick(draw)
    raw = bytearray(bench.whole[name])
    raw[draw.randrange(len(raw))] ^= 1 << draw.randrange(8)
    bench.write(name, bytes(raw))
    return Mutation("bit", (name,))


def overwritten(bench: Bench, draw: random.Random) -> Mutation:
    """Some bytes of one file."""
    (name,) = bench.pick(draw)
    raw = bytearray(bench.whole[name])
    start = draw.randrange(len(raw))
    raw[start : start + 8] = bytes(byte ^ 0x5A for byte in raw[start : start + 8])
    bench.write(name, bytes(raw))
    return Mutation("bytes", (name,))


def cut(bench: Bench, draw: random.Random) -> Mutation:
    """A file that ends early."""
    (name,) = bench.pick(draw)
    bench.write(name, bench.whole[name][: draw.randrange(len(bench.whole[name]))])
    return Mutation("cut", (name,))


def longer(bench: Bench, draw: random.Random) -> Mutation:
    """A file with something behind its end."""
    (name,) = bench.pick(draw)
    bench.write(name, bench.whole[name] + draw.choice([b"\0", b"\n", b" ", bench.whole[name]]))
    return Mutation("longer", (name,))


def gone(bench: Bench, draw: random.Random) -> Mutation:
    """A file that is not there."""
    (name,) = bench.pick(draw)
    (bench.sealed.folder / name).unlink()
    # The last erasure that is gone leaves the files it wrote behind: those are named.
    left = _files_of(bench, name) if name.startswith("erasures/") else (name,)
    return Mutation("gone", left)


def _files_of(bench: Bench, record: str) -> tuple[str, ...]:
    number = int(record.removeprefix("erasures/").removesuffix(".json"))
    later = sorted(name for name in bench.whole if name.startswith("erasures/") and name > record)
    return tuple(later) or tuple(name for name in bench.whole if f".e{number}." in name)[:1]


def added(bench: Bench, draw: random.Random) -> Mutation:
    """A file that was never there."""
    (near,) = bench.pick(draw)
    name = (Path(near).parent / draw.choice(["more.parquet", ".hidden", "0003.txt", "x"])).as_posix()
    bench.write(name, draw.randbytes(9))
    return Mutation("added", (name,))


def swapped(bench: Bench, draw: random.Random) -> Mutation:
    """Two files under each other's names."""
    one, other = bench.pick(draw, 2)
    while bench.whole[one] == bench.whole[other]:
        one, other = bench.pick(draw, 2)
    bench.write(one, bench.whole[other])
    bench.write(other, bench.whole[one])
    # A manifest or erasure that is another file altogether is all that can be told.
    first = [name for name in (one, other) if name == MANIFEST] or [
        name for name in sorted((one, other)) if name.startswith("erasures/")
    ]
    return Mutation("swapped", tuple(first[:1] or (one, other)))


def linked(bench: Bench, draw: random.Random) -> Mutation:
    """A link in place of a file, to the same bytes elsewhere."""
    (name,) = bench.pick(draw)
    target = bench.sealed.folder.parent / "elsewhere"
    target.write_bytes(bench.whole[name])
    path = bench.sealed.folder / name
    path.unlink()
    path.symlink_to(target)
    return Mutation("link", (name,))


def pipe_instead(bench: Bench, draw: random.Random) -> Mutation:
    """A pipe in place of a file: whoever reads it waits for ever."""
    (name,) = bench.pick(draw)
    path = bench.sealed.folder / name
    path.unlink()
    os.mkfifo(path)
    return Mutation("pipe", (name,))


def folder_instead(bench: Bench, draw: random.Random) -> Mutation:
    """A folder in place of a file."""
    (name,) = bench.pick(draw, under=draw.choice(["rows/", "proof/", "pins/"]))
    path = bench.sealed.folder / name
    path.unlink()
    path.mkdir()
    return Mutation("folder", (name,))


def older(bench: Bench, draw: random.Random) -> Mutation:
    """The part as another month's close would have it: some of its rows left out, a file that can be read."""
    name, data = _part(bench, draw)
    _write_rows(bench, name, data.slice(0, max(data.num_rows - 1, 0)))
    return Mutation("rows left out", (name,))


def rows_swapped(bench: Bench, draw: random.Random) -> Mutation:
    """Two rows in each other's place."""
    name, data = _part(bench, draw, least=2)
    order = list(range(data.num_rows))
    one, other = draw.sample(order, 2)
    order[one], order[other] = order[other], order[one]
    _write_rows(bench, name, data.take(order))
    return Mutation("rows swapped", (name,))


def row_edited(bench: Bench, draw: random.Random) -> Mutation:
    """One value of one row; digests stay as they are."""
    name, data = _part(bench, draw)
    _write_rows(bench, name, _edited(data, draw))
    return Mutation("row edited", (name,))


def row_forged(bench: Bench, draw: random.Random) -> Mutation:
    """One value of one row, with leaves, digests, manifest and root put right."""
    pack = Pack(bench.sealed.folder)
    places = [place for place in pack.manifest.parts if not pack.present[place].erasure]
    place = draw.choice(sorted(places))
    name = pack.present[place]
    data = _edited(_read(bench, name.rows), draw)
    _write_rows(bench, name.rows, data)
    table = pack.manifest.tables[place[0]].declared()
    blocks = merkle.split(bench.whole[name.salts])
    leaves = b"".join(merkle.leaves(blocks, canonical.rows(table, data)))
    bench.write(name.leaves, leaves)
    root = merkle.root(merkle.block_roots(leaves)).hex()
    _put_right(bench, pack, [name.rows, name.leaves], {place: root})
    return Mutation("row forged", (name.rows,), forged=True)


def figure_forged(bench: Bench, draw: random.Random) -> Mutation:
    """One figure, with every digest put right."""
    content = json.loads(bench.whole[FIGURES])
    found = [e for entries in content["sections"].values() for e in entries if e["values"]]
    values = draw.choice(found)["values"]
    name = draw.choice(sorted(values))
    values[name] = values[name] + 1 if isinstance(values[name], int) else "12345.678"
    bench.write(FIGURES, document(content))
    _put_right(bench, Pack(bench.sealed.folder), [FIGURES], {})
    return Mutation("figure forged", (FIGURES,), forged=True)


def pin_forged(bench: Bench, draw: random.Random) -> Mutation:
    """One pinned document, with every digest put right."""
    (name,) = bench.pick(draw, under="pins/")
    content = json.loads(bench.whole[name])
    content["more"] = draw.randrange(1 << 30)
    bench.write(name, document(content))
    _put_right(bench, Pack(bench.sealed.folder), [name], {})
    return Mutation("pin forged", (name,), forged=True)


def manifest_forged(bench: Bench, draw: random.Random) -> Mutation:
    """One field of the manifest, with its root put right."""
    old = Pack(bench.sealed.folder).manifest
    field = draw.choice(["code_version", "schema_version", "period"])
    new = {"code_version": "9.9.9", "schema_version": old.schema_version + 1, "period": "2027-01"}[field]
    _write_manifest(bench, old, **{field: new})
    return Mutation("manifest forged", (MANIFEST,), forged=True)


def receipt_forged(bench: Bench, draw: random.Random) -> Mutation:
    """One receipt of the last erasure, with its id put right."""
    pack = Pack(bench.sealed.folder)
    record = pack.erasures[-1]
    receipts = [dict(receipt) for receipt in record.receipts]
    one = draw.choice(receipts)
    field = draw.choice(["rule", "erased_by", "erased_at", "digest_before"])
    one[field] = {"digest_before": "f" * 64, "erased_at": "2020-01-01T00:00:00.000000+00:00"}.get(field, "somebody")
    one["receipt_id"] = receipt_id(one)
    _write_record(bench, record, receipts=receipts)
    return Mutation("receipt forged", (erasure_file(record.number),), forged=True)


def erasure_forged(bench: Bench, draw: random.Random) -> Mutation:
    """Rows taken out after the fact: the last erasure says one more went, with all its digests put right."""
    pack = Pack(bench.sealed.folder)
    record = pack.erasures[-1]
    rows = {place: list(places) for place, places in record.rows.items()}
    place = draw.choice(sorted(rows))
    left = [n for n in range(pack.manifest.parts[place].rows) if n not in pack.erased[place]]
    victim = draw.randrange(len(left))
    name = pack.present[place]
    data = _read(bench, name.rows)
    _write_rows(bench, name.rows, data.take([n for n in range(data.num_rows) if n != victim]))
    rows[place] = sorted([*rows[place], left[victim]])
    raw = (bench.sealed.folder / name.rows).read_bytes()
    files = {**record.files, name.rows: (len(raw), sha256(raw))}
    changed = Erasure(record.number, record.period, record.previous, rows, files)
    receipts = []
    for receipt in record.receipts:
        more = 1 if receipt["table_name"] == place[0] else 0
        scope = f"close={record.period}; erasure={record.number}; record={changed.digest}"
        new = {**receipt, "rows": receipt["rows"] + more, "scope": scope}
        receipts.append({**new, "receipt_id": receipt_id(new)})
    _write_record(bench, changed, receipts=receipts)
    return Mutation("erasure forged", (erasure_file(record.number),), forged=True)


def receipt_in_lake(bench: Bench, draw: random.Random) -> Mutation:
    """A receipt that was changed, or taken away, in the lake."""
    rows = bench.sealed.receipts.to_dicts()
    number = draw.randrange(len(rows))
    if draw.random() < 0.3:
        del rows[number]
    else:
        field = draw.choice(["rule", "rows", "erased_by", "scope", "table_name"])
        rows[number][field] = rows[number]["rows"] + 1 if field == "rows" else rows[number][field] + "x"
    return Mutation("receipt in the lake", (), receipts=pl.DataFrame(rows, schema=bench.sealed.receipts.schema))


PLAIN: tuple[Make, ...] = (
    *(flipped, overwritten, cut, longer, gone, added, swapped, linked, pipe_instead, folder_instead),
)
ROWS: tuple[Make, ...] = (older, rows_swapped, row_edited)
FORGED: tuple[Make, ...] = (
    *(row_forged, figure_forged, pin_forged, manifest_forged, receipt_forged, erasure_forged, receipt_in_lake),
)
EVERY: tuple[Make, ...] = (*PLAIN, *ROWS, *FORGED)


def _part(bench: Bench, draw: random.Random, least: int = 1) -> tuple[str, pa.Table]:
    while True:
        (name,) = bench.pick(draw, under="rows/")
        data = _read(bench, name)
        if data.num_rows >= least:
            return name, data


def _read(bench: Bench, name: str) -> pa.Table:
    return pq.read_table(pa.BufferReader(bench.whole[name]))


def _write_rows(bench: Bench, name: str, data: pa.Table) -> None:
    pq.write_table(data, bench.sealed.folder / name, compression="zstd", write_page_checksum=True)


def _edited(data: pa.Table, draw: random.Random) -> pa.Table:
    """The rows with one value of a column of integers or texts changed."""
    names = [f.name for f in data.schema if pa.types.is_integer(f.type) or pa.types.is_string(f.type)]
    name = draw.choice(names)
    values = data.column(name).to_pylist()
    place = draw.randrange(len(values))
    old = values[place]
    text = pa.types.is_string(data.schema.field(name).type)
    values[place] = (f"{old or ''}x" if text else (old or 0) + 1) if draw.random() < 0.9 or old is None else None
    column = data.schema.get_field_index(name)
    return data.set_column(column, data.schema.field(name), pa.array(values, data.schema.field(name).type))


def _put_right(bench: Bench, pack: Pack, names: list[str], roots: dict[tuple[str, str], str]) -> None:
    """Digests of files, roots of parts, and the root, as if the month had been closed so; the seal too."""
    old = pack.manifest
    files = dict(old.files)
    for name in names:
        raw = (bench.sealed.folder / name).read_bytes()
        files[name] = (len(raw), sha256(raw))
    digests = dict(old.digests)
    digests["figures"] = files[FIGURES][1]
    for name in ("rules", "lock", "settings"):
        digests[name] = files[f"pins/{name}.json"][1]
    tables = {
        name: TableEntry(
            name,
            table.columns,
            table.rows,
            tuple(
                PartEntry(part.name, part.rows, roots.get((name, part.name.part), part.root)) for part in table.parts
            ),
        )
        for name, table in old.tables.items()
    }
    _write_manifest(bench, old, tables=tables, digests=digests, files=files)


def _write_manifest(bench: Bench, old: Manifest, **changed: Any) -> None:
    fields = ("period", "code_version", "tables", "digests", "files", "schema_version")
    manifest = Manifest(**{name: changed.get(name, getattr(old, name)) for name in fields})
    bench.write(MANIFEST, manifest.to_json())
    seal = json.loads(bench.whole[SEAL])
    core = {name: value for name, value in seal.items() if name != "digest"} | {"root": manifest.root()}
    bench.write(SEAL, document({**core, "digest": sha256(document(core))}))
    previous = manifest.root()
    number = 1
    while erasure_file(number) in bench.whole:  # the chain of erasures starts from the root
        record = json.loads(bench.whole[erasure_file(number)])
        changed_record = Erasure(
            number,
            manifest.period,
            previous,
            {(e["table"], e["part"]): e["places"] for e in record["rows"]},
            {e["path"]: (e["bytes"], e["sha256"]) for e in record["files"]},
        )
        receipts = []
        for receipt in record["receipts"]:
            new = {**receipt, "scope": f"close={manifest.period}; erasure={number}; record={changed_record.digest}"}
            receipts.append({**new, "receipt_id": receipt_id(new)})
        _write_record(bench, changed_record, receipts=receipts)
        previous, number = changed_record.digest, number + 1


def _write_record(bench: Bench, record: Erasure, *, receipts: list[dict[str, Any]]) -> None:
    new = Erasure(record.number, record.period, record.previous, record.rows, record.files, receipts)
    bench.write(erasure_file(record.number), new.to_json())


def run(bench: Bench, mutations: int, seed: int, figures_every: int) -> tuple[Counter[str], list[str]]:
    """Apply mutations one after the other; how many there were of each kind, and those that were not found or named."""
    draw = random.Random(seed)
    kinds: Counter[str] = Counter()
    missed = []
    for number in range(mutations):
        make = EVERY[number % len(EVERY)] if number < 2 * len(EVERY) else draw.choice((*PLAIN, *PLAIN, *ROWS, *FORGED))
        with bench.changed(make, draw) as mutation:
            figures = bool(figures_every) and number % figures_every == 0
            found = bench.sealed.verify(mutation.receipts, figures=figures)
        kinds[mutation.kind] += 1
        if found.sound or not mutation.named_by(found):
            told = "; ".join(str(difference) for difference in found.differences[:3]) or "nothing"
            missed.append(f"{number} {mutation.kind} {', '.join(mutation.paths)}: {told}")
    return kinds, missed


def main() -> int:
    """Run as the module says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutations", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--figures-every", type=int, default=200, help="make the figures anew for every so many")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="close-mutations-"))
    try:
        bench = Bench.of(sealed(folder))
        for figures in (True, False):
            whole = bench.sealed.verify(figures=figures)
            assert whole.sound, whole.differences
        kinds, missed = run(bench, asked.mutations, asked.seed, asked.figures_every)
        assert bench.sealed.verify().sound, "the bench did not put everything back"
    finally:
        shutil.rmtree(folder)
    for kind, number in sorted(kinds.items()):
        print(f"{kind:22}{number:7,}")
    print(f"{'found and named':22}{sum(kinds.values()) - len(missed):7,} of {sum(kinds.values()):,}")
    for line in missed:
        print(f"MISSED {line}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
