"""Erasing from a close pack: the bytes are gone, the root and every total stay, and a receipt stands for each row."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.pipeline.close.conftest import TENANT_A, TENANT_B, Office, contents, key_of

from weighbridge.pipeline.close import forget as forgetting
from weighbridge.pipeline.close.closed import closed_figures, closed_records
from weighbridge.pipeline.close.forget import Forgotten, forget
from weighbridge.pipeline.close.pack import Pack
from weighbridge.pipeline.close.verification import Proof, Verification
from weighbridge.pipeline.close.verify import verify, verify_month
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.enumerations import FindingOrigin, Severity
from weighbridge.schemas.identity import AttemptKey
from weighbridge.schemas.receipt import receipt_id

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def erase(office: Office, *numbers: int, **more: Any) -> list[Forgotten]:
    """Erase attempts from every pack."""
    keys = [key_of(number) for number in numbers]
    attempts = pl.DataFrame(keys, schema={"attempt_hi": pl.Int64, "attempt_lo": pl.Int64})
    options: dict[str, Any] = {"counts": True, "rule": "request-7", "by": "privacy", "now": NOW, **more}
    return forget(office.packs, office.lake, attempts=attempts, **options)


def of(office: Office) -> Verification:
    return verify_month(office.lake, office.packs, "2026-03")


def holds(office: Office, wanted: bytes) -> bool:
    return any(wanted in raw for raw in contents(office.packs).values())


def test_rows_and_salts_go_and_the_close_still_holds(closed: Office) -> None:
    root = of(closed).root
    (done,) = erase(closed, 1)
    assert done.period == "2026-03"
    assert done.rows == {
        "attempt": 1, "foreign_id": 1, "priced_amount": 1, "reading": 1, "reconciled": 2, "usage_report": 1,
    }  # fmt: skip
    found = of(closed)
    assert found.sound, found.differences
    assert (found.root, found.erased) == (root, 7)
    assert set(done.receipts) == set(found.receipts)


def test_figures_that_rest_on_them_are_committed_and_all_others_recomputed(closed: Office) -> None:
    erase(closed, 4)  # the only attempt of tenant B
    found = of(closed)
    assert found.proofs["usage.tokens"] is Proof.COMMITTED
    assert found.proofs["usage_by_tenant[tenant=#2].tokens"] is Proof.COMMITTED
    assert found.proofs["usage_by_tenant[tenant=#1].tokens"] is Proof.RECOMPUTED
    assert found.proofs["invoices[category=Usage; currency=USD; provider=openai].amount"] is Proof.RECOMPUTED
    assert any("comparisons were not made again" in note for note in found.notes)


def test_a_byte_search_finds_nothing_of_what_was_erased(closed: Office) -> None:
    assert holds(closed, b"chatcmpl-CANARYID")
    erase(closed, 1)
    assert not holds(closed, b"chatcmpl-CANARYID")
    left = [pl.read_parquet(path) for path in closed.packs.rglob("*.parquet")]
    keys = {lo for rows in left if "attempt_lo" in rows.columns for lo in rows["attempt_lo"]}
    assert key_of(1)["attempt_lo"] not in keys
    assert key_of(2)["attempt_lo"] in keys


def test_a_tenant_leaves_its_figures_and_takes_its_name_along(closed: Office) -> None:
    assert holds(closed, TENANT_B.encode())
    erase(closed, 4, tenant=TENANT_B)
    assert not holds(closed, TENANT_B.encode())
    assert of(closed).sound
    found = closed_figures(closed.lake, closed.packs, "2026-03")
    assert found is not None
    tenants = {entry.about("tenant"): entry.values["tokens"] for entry in found.figures["usage_by_tenant"]}
    assert tenants == {TENANT_A: 441, "#2": 350, "unassigned": 35}


def test_identifiers_can_go_while_the_counts_of_the_bill_stay(closed: Office) -> None:
    (done,) = erase(closed, 1, counts=False)
    assert done.rows == {"foreign_id": 1}
    found = of(closed)
    assert found.sound
    assert set(found.proofs.values()) == {Proof.RECOMPUTED}


def test_findings_that_list_an_attempt_go_with_it(filled: Office) -> None:
    hexed = AttemptKey(key_of(2)["attempt_hi"], key_of(2)["attempt_lo"]).to_hex()
    filled.find("odd_usage", Severity.NOTICE, evidence=(hexed,), origin=FindingOrigin.BASELINE)
    filled.close()
    (done,) = erase(filled, 2, counts=False)
    assert done.rows == {"finding": 2}  # and the one that names its cached count, which is in no whole blocks
    assert not holds(filled, hexed.encode())
    found = of(filled)
    assert found.sound, found.differences
    assert Proof.COMMITTED in {proof for name, proof in found.proofs.items() if name.startswith("findings[")}


def test_receipts_say_what_went_and_bind_the_record(closed: Office) -> None:
    erase(closed, 1)
    rows = closed.lake.scan("receipt").collect().to_dicts()
    assert {row["table_name"]: row["rows"] for row in rows} == of_tables(closed)
    (record,) = Pack(closed.pack()).erasures
    for row in rows:
        assert row["receipt_id"] == receipt_id(row)
        assert (row["rule"], row["erased_by"], row["erased_at"], row["method"]) == (
            "request-7",
            "privacy",
            NOW,
            "deleted",
        )
        assert row["scope"] == f"close=2026-03; erasure=1; record={record.digest}"


def of_tables(office: Office) -> dict[str, int]:
    (record,) = Pack(office.pack()).erasures
    counts: dict[str, int] = {}
    for (table, _), places in record.rows.items():
        counts[table] = counts.get(table, 0) + len(places)
    return counts


def test_one_erasure_follows_another(closed: Office) -> None:
    erase(closed, 1)
    (second,) = erase(closed, 1, 2)
    assert second.rows["attempt"] == 1
    found = of(closed)
    assert found.sound, found.differences
    assert len(Pack(closed.pack()).erasures) == 2
    assert erase(closed, 1, 2) == []
    assert closed.lake.rows("receipt") == len(found.receipts)


def test_a_copy_holds_after_an_erasure_too(closed: Office, tmp_path: Path) -> None:
    erase(closed, 3)
    copy = shutil.copytree(closed.pack(), tmp_path / "copy")
    found = verify(copy, root=of(closed).root)
    assert found.sound
    assert found.receipts


def test_a_row_that_is_gone_without_a_receipt_is_named(closed: Office) -> None:
    erase(closed, 1)
    name = Pack(closed.pack()).present["attempt", "2026-03-02"].rows
    rows = pl.read_parquet(closed.pack() / name)
    rows.head(rows.height - 1).write_parquet(closed.pack() / name)
    found = of(closed)
    assert name in [difference.where for difference in found.differences]


def test_a_receipt_that_is_not_in_the_lake_is_named(closed: Office) -> None:
    erase(closed, 1)
    receipts = closed.lake.scan("receipt").collect()
    closed.lake.replace("receipt", receipts.tail(receipts.height - 1), days=None)
    (difference,) = of(closed).differences
    assert str(difference.kind) == "receipt"
    assert "does not stand in the table receipt" in difference.what


Step = Callable[..., Any]


def stop_at(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
    """Make a step fail as if the process had been killed before it."""

    def fail(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt(name)

    monkeypatch.setattr(owner, name, fail)


@pytest.mark.parametrize(
    ("owner", "step", "sound"),
    [
        (forgetting, "_enter", False),  # new files lie there, and no record names them
        (forgetting, "_finish", False),  # the record stands, what it erased lies there still
        (Lake, "append", False),  # all is gone, the lake has no receipt
    ],
)
def test_an_erasure_that_was_killed_is_told_and_finished(
    closed: Office, monkeypatch: pytest.MonkeyPatch, owner: Any, step: str, sound: bool
) -> None:
    with monkeypatch.context() as patched:
        stop_at(patched, owner, step)
        with pytest.raises(KeyboardInterrupt):
            erase(closed, 1)
    assert of(closed).sound is sound
    erase(closed, 1)
    found = of(closed)
    assert found.sound, found.differences
    assert found.erased == 7
    assert not holds(closed, b"chatcmpl-CANARYID")
    assert closed.lake.rows("receipt") == len(found.receipts) == 6


def test_who_reads_a_closed_month_is_told_that_its_rows_are_no_longer_whole(closed: Office) -> None:
    assert closed_records(closed.lake, closed.packs, ["2026-03"]).erased == {}
    erase(closed, 1)
    assert closed_records(closed.lake, closed.packs, ["2026-03"]).erased == {"2026-03": 7}
