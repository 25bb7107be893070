"""Verifying a close: from the pack alone, a year later, anywhere; and what it says where something differs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from tests.pipeline.close.conftest import FILE_A, Office, contents, key_of

from weighbridge.pipeline.close import pins, recompute
from weighbridge.pipeline.close.close import row_of
from weighbridge.pipeline.close.figures import figures_of
from weighbridge.pipeline.close.layout import FIGURES, MANIFEST, SEAL
from weighbridge.pipeline.close.margins import apart
from weighbridge.pipeline.close.pack import Pack
from weighbridge.pipeline.close.plain import document
from weighbridge.pipeline.close.verification import Kind, Proof, Verification
from weighbridge.pipeline.close.verify import verify, verify_month
from weighbridge.pipeline.ingest import readings
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.frame import price_readings
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import AttemptKey


def of(office: Office, **options: Any) -> Verification:
    return verify_month(office.lake, office.packs, "2026-03", **options)


def told(found: Verification) -> list[tuple[str, str]]:
    return [(str(difference.kind), difference.where) for difference in found.differences]


def test_a_close_holds_and_every_figure_is_made_anew(closed_once: Office) -> None:
    found = of(closed_once)
    assert found.sound, found.differences
    assert (found.period, found.anchored, found.notes) == ("2026-03", True, ())
    assert set(found.proofs.values()) == {Proof.RECOMPUTED}
    figures = json.loads((closed_once.pack() / FIGURES).read_text())["sections"]
    assert len(found.proofs) == sum(len(entry["values"]) for entries in figures.values() for entry in entries)


def test_a_copy_holds_without_the_lake_and_says_what_it_was_held_against(closed_once: Office, tmp_path: Path) -> None:
    root = closed_once.close().root
    copy = shutil.copytree(closed_once.pack(), tmp_path / "somewhere" / "pack")
    assert verify(copy, root=root).sound
    alone = verify(copy)
    assert alone.sound
    assert not alone.anchored
    assert any("no root was given" in note for note in alone.notes)


_READ_BY = """
import json, sys
from weighbridge.pipeline.close.verify import verify
from pathlib import Path
found = verify(Path(sys.argv[1]), root=sys.argv[2])
print(json.dumps([found.sound, len(found.proofs), [str(d) for d in found.differences]]))
"""


def test_it_holds_in_another_zone_and_locale(closed_once: Office, tmp_path: Path) -> None:
    pack = shutil.copytree(closed_once.pack(), tmp_path / "pack")
    root = closed_once.close().root
    assert root is not None
    elsewhere = {"TZ": "Pacific/Apia", "LC_ALL": "tr_TR.UTF-8", "PYTHONHASHSEED": "4711"}
    done = subprocess.run(
        [sys.executable, "-c", _READ_BY, str(pack), root],
        env={**os.environ, **elsewhere},
        capture_output=True,
        text=True,
        check=True,
    )
    sound, figures, differences = json.loads(done.stdout)
    assert (sound, differences) == (True, [])
    assert figures == len(of(closed_once).proofs)


def test_another_root_is_named(closed_once: Office) -> None:
    found = of(closed_once, root="0" * 64, figures=False)
    assert told(found) == [("root", MANIFEST)]
    assert str(found.root) in found.differences[0].what
    assert "0" * 64 in found.differences[0].what


def test_a_month_that_is_not_closed_cannot_be_verified(filled_once: Office) -> None:
    with pytest.raises(ConfigError, match="2026-03 is not closed"):
        of(filled_once)


def test_a_pack_that_is_gone_is_named(closed: Office) -> None:
    shutil.rmtree(closed.pack())
    found = of(closed)
    assert not found.sound
    assert str(closed.pack()) in found.differences[0].where


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("rows/attempt/2026-03-02.parquet", Kind.PARTITION),
        ("rows/finding/all.parquet", Kind.FINDING),
        ("rows/price/all.parquet", Kind.PIN),
        ("pins/lock.json", Kind.PIN),
        ("pins/rules.json", Kind.PIN),
        ("proof/reading/2026-03-02.leaves", Kind.PARTITION),
        ("proof/reading/2026-03-02.salts", Kind.PARTITION),
        (FIGURES, Kind.FIGURE),
        (SEAL, Kind.SEAL),
        (MANIFEST, Kind.FILE),
    ],
)
def test_one_bit_is_found_and_named_for_what_it_is(closed: Office, path: str, kind: Kind) -> None:
    file = closed.pack() / path
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 1
    file.write_bytes(raw)
    found = of(closed, figures=False)
    assert (str(kind), path) in told(found)
    assert all(path in difference.where for difference in found.differences)


def edit(office: Office, table: str, column: str, value: object, row: int = 0) -> str:
    """Change one value in a part of a table, in a file that can be read; its path."""
    (path,) = (office.pack() / "rows" / table).glob("2026-03*.parquet")
    data = pq.read_table(path)
    values = data.column(column).to_pylist()
    values[row] = value
    place = data.schema.get_field_index(column)
    changed = data.set_column(
        place, data.schema.field(column), [pl.Series(values).to_arrow().cast(data.schema.types[place])]
    )
    pq.write_table(changed, path, compression="zstd", write_page_checksum=True)
    return path.relative_to(office.pack()).as_posix()


def test_an_edited_count_is_named_by_row_and_figure(closed: Office) -> None:
    path = edit(closed, "reading", "input_total", 1_000_000)
    found = of(closed)
    first = pl.read_parquet(closed.pack() / path).row(0, named=True)
    attempt = AttemptKey(first["attempt_hi"], first["attempt_lo"]).to_hex()
    where = [w for kind, w in told(found) if kind == "row" and w.startswith(path)]
    assert where == [
        f"{path}, row 0 (attempt {attempt}; source=agent; child=0; report=0; revision={first['revision']})"
    ]
    figures = [w for kind, w in told(found) if kind == "figure"]
    assert "usage.input_tokens" in figures
    # The reading no longer follows from its report either.
    assert any(kind == "row" and w.startswith("reading, attempt") for kind, w in told(found))


def test_an_edited_amount_is_named_where_it_was_priced(closed: Office) -> None:
    edit(closed, "priced_amount", "amount", Decimal("99.000000000000000000"))
    found = of(closed)
    assert any(kind == "row" and w.startswith("priced_amount, attempt") for kind, w in told(found))
    assert any(w.startswith("money[currency=USD; status=priced].amount") for _, w in told(found))


def test_an_edited_comparison_is_named_where_it_was_compared(closed: Office) -> None:
    edit(closed, "reconciled", "status", "UNEXPLAINED")
    found = of(closed)
    assert any(kind == "row" and w.startswith("reconciled, attempt") for kind, w in told(found))


def test_what_a_value_was_is_never_told(closed: Office) -> None:
    edit(closed, "foreign_id", "value", "chatcmpl-CANARYOTHER")
    found = of(closed)
    assert not found.sound
    assert "CANARY" not in repr(found)


def test_a_part_that_cannot_be_read_leaves_figures_unmade_and_says_so(closed: Office) -> None:
    path = closed.pack() / "rows/reading/2026-03-02.parquet"
    path.write_bytes(b"PAR1 no such thing PAR1")
    found = of(closed)
    assert ("partition", "rows/reading/2026-03-02.parquet") in told(found)
    assert found.proofs == {}
    assert any("figures were not made again" in note for note in found.notes)


def test_a_month_closed_by_other_code_is_held_to_its_own_dialects_and_prices(
    closed: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A year later: the dialect of the folder was mended, the book knows other prices, the rooms have other code.
    monkeypatch.setattr(readings, "dialect_for", lambda *_: None)
    monkeypatch.setattr(pins, "room_digest", lambda room: f"another {room}")
    found = of(closed)
    assert found.sound, found.differences
    assert found.notes == ()


def test_what_only_other_code_makes_otherwise_is_a_note(closed: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    def doubled(rows: pl.DataFrame, prices: PriceBook, arrivals: pl.LazyFrame | None = None) -> pl.DataFrame:
        return price_readings(rows, prices, arrivals).with_columns(amount=pl.col("amount") * 2)

    monkeypatch.setattr(recompute, "price_readings", doubled)
    differing = of(closed)
    assert any(where.startswith("priced_amount") for _, where in told(differing))  # the same code: a difference
    monkeypatch.setattr(pins, "room_digest", lambda room: f"another {room}")
    found = of(closed)
    assert found.sound
    assert any(note.startswith("amounts come out differently in") for note in found.notes)


def test_prices_are_found_in_their_layers(closed: Office) -> None:
    # The contract names the model by a prefix and goes before a list that names it exactly, at another price.
    layers = json.loads((closed.pack() / "pins/prices.json").read_text())["layers"]
    assert [len(layer) for layer in layers] == [1, 1]
    amounts = pl.read_parquet(closed.pack() / "rows/priced_amount/2026-03-02.parquet")
    of_mini = amounts.filter(pl.col("attempt_lo") == key_of(3)["attempt_lo"])
    (amount,) = of_mini["amount"]
    assert str(amount.normalize()) == "0.000072"  # 100 x 0.4 + 20 x 1.6, per million


def test_the_close_in_the_lake_is_held_against_the_pack(closed: Office) -> None:
    row = row_of(closed.lake, "2026-03")
    assert row is not None
    for name, value, where in (
        ("figures_digest", "0" * 64, MANIFEST),
        ("rows", 1, MANIFEST),
        ("closed_by", "other", SEAL),
    ):
        found = verify(closed.pack(), root=row["root"], row={**row, name: value}, figures=False)
        assert [difference.where for difference in found.differences] == [where], name


def test_figures_that_do_not_add_up_are_named_whatever_was_erased(closed: Office) -> None:
    content = Pack(closed.pack()).figures
    assert list(apart(figures_of(content))) == []
    (entry,) = [e for e in content["sections"]["money_by_model"] if e["by"]["model"] == "gpt-4.1-mini"]
    entry["values"]["amount"] = "1"
    (found,) = apart(figures_of(json.loads(document(content))))
    assert found.where == "money_by_model[currency=USD; status=priced].amount"


def test_verifying_writes_nothing(closed: Office) -> None:
    before = contents(closed.root)
    of(closed)
    verify(closed.pack())
    assert contents(closed.root) == before


@pytest.mark.parametrize("path", [MANIFEST, SEAL, FIGURES, "pins/lock.json", "rows/attempt/2026-03-02.parquet"])
def test_a_pipe_in_place_of_a_file_is_named_and_waits_for_nobody(closed: Office, path: str) -> None:
    (closed.pack() / path).unlink()
    os.mkfifo(closed.pack() / path)
    found = of(closed)
    assert path in {difference.where for difference in found.differences}


@pytest.mark.parametrize("path", [MANIFEST, "pins/lock.json", "rows/attempt/2026-03-02.parquet"])
def test_a_file_that_may_not_be_read_is_named(closed: Office, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.open

    def refused(self: Path, *given: Any, **more: Any) -> Any:
        if self == closed.pack() / path:
            raise PermissionError(13, "Permission denied", str(self))
        return real(self, *given, **more)

    monkeypatch.setattr(Path, "open", refused)
    found = of(closed, figures=False)
    assert path in {difference.where for difference in found.differences}


@pytest.mark.parametrize("name", ["rows", "rows/attempt", "proof", "pins"])
def test_a_link_in_place_of_a_folder_is_named(closed: Office, tmp_path: Path, name: str) -> None:
    (closed.pack() / name).rename(tmp_path / "moved")
    (closed.pack() / name).symlink_to(tmp_path / "moved")
    found = of(closed, figures=False)
    assert name in {difference.where for difference in found.differences}


@pytest.mark.parametrize("shared", ["request", "alias"])
def test_a_close_holds_both_sides_of_an_attempt_that_met_over_its_end(office: Office, shared: str) -> None:
    """Seen on 31 March, logged under a key of its own on 1 April: recomputed from the pack alone, they meet again."""
    asked = {"request_hi": 5, "request_lo": 5} if shared == "request" else {}
    office.file(FILE_A)
    office.attempt(1, "2026-03-31T23:59:59", total_us=3_000_000, **asked)
    office.attempt(2, "2026-04-01T00:00:01", total_us=500_000, source="gateway", input_computed=None,
                   output_computed=None, usage_expected=None, **asked)  # fmt: skip
    office.report(2, "2026-04-01T00:00:01", source="gateway")
    if shared == "alias":
        for number, day, source in ((1, date(2026, 3, 31), "agent"), (2, date(2026, 4, 1), "gateway")):
            named = {"alias_hi": 7, "alias_lo": 7, "kind": "client_request_id", "day": day, "source": source}
            office.add("alias", {**key_of(number), **named, "segment": FILE_A})
    office.weigh()
    assert office.close().closed
    found = of(office)
    assert (found.differences, set(found.proofs.values())) == ((), {Proof.RECOMPUTED})
    held = office.lake.scan("reconciled").filter(pl.col("day") == date(2026, 3, 31)).collect()
    assert held["status"].unique().to_list() == ["MATCHED"]
