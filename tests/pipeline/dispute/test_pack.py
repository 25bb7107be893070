"""A dispute pack holds what backs a finding, can be verified from itself alone, and shows every change."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from tests.pipeline.close.conftest import Office, key_of

from weighbridge.pipeline.close.closed import closes
from weighbridge.pipeline.close.plain import document, sha256_of
from weighbridge.pipeline.close.verification import Proof
from weighbridge.pipeline.dispute.layout import DISPUTE, MANIFEST
from weighbridge.pipeline.dispute.pack import Written, write_dispute
from weighbridge.pipeline.dispute.verify import is_dispute, verify_dispute
from weighbridge.pipeline.reconcile.life.status import dispute
from weighbridge.schemas.enumerations import FindingOrigin, Severity
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import AttemptKey

NOW = datetime(2026, 6, 1, tzinfo=UTC)
WORDS = "a-user's-own-words"


def found(office: Office, period: str = "2026-03", count: int = 3) -> str:
    """A finding about the first attempts that have an amount in a month; it is in the lake."""
    days = pl.col("day").dt.strftime("%Y-%m") == period
    priced = office.lake.scan("priced_amount").filter(days, pl.col("amount").is_not_null())
    keys = priced.sort("attempt_lo").head(count).select("attempt_hi", "attempt_lo").collect().rows()
    money = {"amount": Decimal("1.25"), "currency": "USD", "origin": FindingOrigin.BASELINE}
    evidence = tuple(AttemptKey(*key).to_hex() for key in keys)
    subject = {"provider": "openai", "model": "gpt"}
    finding = office.find("duplicate_report", Severity.WARNING, period, subject=subject, evidence=evidence, **money)
    assert office.lake
    return finding


def packed(office: Office, finding: str, out: Path, **more: bool) -> Written:
    return write_dispute(office.lake, office.packs, office.prices, finding, out, **more)


def test_the_rows_of_a_closed_month_are_led_to_its_root(closed_once: Office, tmp_path: Path) -> None:
    closed = closed_once.copy(tmp_path / "closed")
    finding = found(closed)
    dispute(closed.lake, finding, by="ann", reason=WORDS, reference="CASE-9", now=NOW)
    done = packed(closed, finding, tmp_path / "pack")
    root = closes(closed.lake)["2026-03"]["root"]
    told = json.loads((done.path / DISPUTE).read_bytes())
    assert (done.root, told["root"], told["finding"]["amount"]) == (root, root, "1.25")
    assert [(life["state"], life["reference"]) for life in told["life"]] == [("disputed", "CASE-9")]
    assert told["tables"]["reading"]["rows"] == len(told["tables"]["reading"]["proofs"]) == 3
    shutil.rmtree(closed.root)  # nothing of the installation is needed
    checked = verify_dispute(done.path, root=root)
    assert checked.differences == ()
    assert (checked.period, checked.root, checked.anchored) == ("2026-03", root, True)
    assert checked.count(Proof.RECOMPUTED) == 3
    assert checked.count(Proof.COMMITTED) == done.proved > 9
    held = b"".join(path.read_bytes() for path in done.path.rglob("*") if path.is_file())
    assert WORDS.encode() not in held
    assert not {"changed_by", "reason"} & set(told["life"][0])


def test_it_is_one_file_with_the_same_bytes_again(closed: Office, tmp_path: Path) -> None:
    finding = found(closed)
    one = packed(closed, finding, tmp_path / "one.zip", zipped=True)
    two = packed(closed, finding, tmp_path / "two.zip", zipped=True)
    assert one.path.read_bytes() == two.path.read_bytes()
    assert is_dispute(one.path)
    assert verify_dispute(one.path, root=one.root).sound
    with pytest.raises(ConfigError, match="is there already"):
        packed(closed, finding, one.path, zipped=True)
    assert sorted(path.name for path in tmp_path.glob("*one*")) == ["one.zip"]


def test_an_open_month_has_no_root_and_its_amounts_are_made_again(closed: Office, tmp_path: Path) -> None:
    finding = found(closed, "2026-04", 2)
    done = packed(closed, finding, tmp_path / "pack")
    checked = verify_dispute(done.path)
    assert (done.root, done.proved, checked.sound, checked.root) == (None, 0, True, None)
    assert checked.count(Proof.RECOMPUTED) == 2
    assert any("was open" in note for note in checked.notes)
    assert not verify_dispute(done.path, root="0" * 64).sound


def test_identifiers_of_others_come_along_only_where_they_are_asked_for(closed: Office, tmp_path: Path) -> None:
    finding = found(closed)
    told = {**key_of(1), "day": datetime(2026, 3, 2, tzinfo=UTC).date(), "kind": "provider_response_id"}
    evidence = closed.lake.scan("finding").filter(pl.col("finding_id") == finding).collect()["evidence"][0]
    hi, lo = AttemptKey.from_hex(evidence[0])
    row = {**told, "attempt_hi": hi, "attempt_lo": lo, "source": "agent", "value": "resp-canary", "revision": 0}
    closed.add("foreign_id", row)
    assert closed.lake
    plain = packed(closed, finding, tmp_path / "plain")
    named = packed(closed, finding, tmp_path / "named", foreign=True)
    assert not (plain.path / "rows/foreign_id.parquet").exists()
    assert "resp-canary" in pl.read_parquet(named.path / "rows/foreign_id.parquet")["value"].to_list()
    assert verify_dispute(named.path, root=named.root).sound
    columns = set(pl.read_parquet(plain.path / "rows/reconciled.parquet").columns)
    assert columns & {"tenant", "task", "route"} == set()


def _edit(name: str, old: bytes, new: bytes) -> Callable[[Path], None]:
    def work(pack: Path) -> None:
        raw = (pack / name).read_bytes()
        assert old in raw
        (pack / name).write_bytes(raw.replace(old, new, 1))

    return work


def _row(column: str, table: str = "reading") -> Callable[[Path], None]:
    def work(pack: Path) -> None:
        path = pack / f"rows/{table}.parquet"
        frame = pl.read_parquet(path)
        frame.with_columns(pl.col(column) + 1).write_parquet(path)
        _signed(pack)

    return work


def _signed(pack: Path) -> None:
    """Put the digests of the files right, as a forger would."""
    told = json.loads((pack / DISPUTE).read_bytes())
    told["files"] = {name: sha256_of(pack / name) for name in told["files"]}
    (pack / DISPUTE).write_bytes(document(told))


def _about(pack: Path) -> None:
    told = (pack / DISPUTE).read_bytes().replace(b"model=gpt", b"model=xyz")
    (pack / DISPUTE).write_bytes(told)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (_edit("README.txt", b"Dispute", b"dispute"), "README.txt: was changed since the pack was written"),
        (lambda pack: (pack / "more.txt").write_text("x"), "more.txt: is no part of the pack"),
        (lambda pack: (pack / "rows/reading.parquet").unlink(), "rows/reading.parquet: is missing"),
        (lambda pack: (pack / DISPUTE).write_text("{}"), "dispute.json"),
        (_row("input_total"), "is not the row the month was closed with"),
        (_row("amount_output_visible", "priced_amount"), "is not the row the month was closed with"),
        (_row("per_million", "price"), "holds other prices than its id says"),
        (_about, "is about something else than its id says"),
        (_edit(MANIFEST, b'"rows": ', b'"rows": 1'), "manifest.json"),
    ],
)
def test_whatever_is_changed_is_seen(
    closed_once: Office, tmp_path: Path, change: Callable[[Path], object], what: str
) -> None:
    closed = closed_once.copy(tmp_path / "closed")
    done = packed(closed, found(closed), tmp_path / "pack")
    change(done.path)
    checked = verify_dispute(done.path, root=done.root)
    assert any(what in str(difference) for difference in checked.differences), checked.differences


def test_another_root_is_another_month(closed: Office, tmp_path: Path) -> None:
    done = packed(closed, found(closed), tmp_path / "pack")
    checked = verify_dispute(done.path, root="0" * 64)
    assert [str(each.kind) for each in checked.differences] == ["root"]
    assert any("no root was given" in note for note in verify_dispute(done.path).notes)


def test_what_is_no_dispute_pack_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"no zip file")
    assert not any(is_dispute(path) for path in (tmp_path, tmp_path / "a.zip", tmp_path / "nothing"))
    assert not verify_dispute(tmp_path / "a.zip").sound
