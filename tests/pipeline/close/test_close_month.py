"""Closing a month: what is in the pack, what is not, and what a second call does."""

from __future__ import annotations

import errno
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from tests.pipeline.close.conftest import FILE_A, FILE_B, KEY, NOW, TENANT_A, TENANT_B, Office, contents, key_of

from weighbridge.pipeline.close import draft as drafts
from weighbridge.pipeline.close import month_rows
from weighbridge.pipeline.close.forget import forget
from weighbridge.pipeline.close.gates import ClosePolicy
from weighbridge.pipeline.close.layout import CLOSED, MANIFEST, SEAL
from weighbridge.pipeline.close.manifest import manifest_of
from weighbridge.pipeline.close.verify import verify, verify_month
from weighbridge.pipeline.lake import Lake, LakeFullError
from weighbridge.pipeline.reconcile.life.material import Materiality
from weighbridge.pipeline.reconcile.life.status import acknowledge
from weighbridge.schemas.enumerations import Domain, FindingOrigin, Severity
from weighbridge.schemas.errors import ConfigError, LakeBusyError
from weighbridge.schemas.tables import TABLES


def test_a_month_is_closed_when_its_root_is_in_the_lake(closed: Office) -> None:
    (row,) = closed.lake.scan("close").collect().to_dicts()
    manifest = manifest_of((closed.pack() / MANIFEST).read_bytes())
    assert (row["period"], row["root"], row["rows"]) == ("2026-03", manifest.root(), manifest.rows)
    assert (row["closed_at"], row["closed_by"], row["early_reason"]) == (NOW, "finops", None)
    for name in ("figures", "prices", "rules", "code", "lock"):
        assert row[f"{name}_digest"] == manifest.digests[name]


def test_closing_it_again_changes_nothing(closed: Office) -> None:
    before, rows = contents(closed.pack()), closed.lake.digest("close")
    closed.report(99, "2026-03-04")  # late
    again = closed.close(by="somebody.else")
    assert (again.closed, again.new, again.refused) == (True, False, ())
    assert (contents(closed.pack()), closed.lake.digest("close")) == (before, rows)


def test_the_pack_holds_the_rows_of_the_month_sorted_by_key(closed: Office) -> None:
    lake, pack = closed.lake, closed.pack()
    for table in ("attempt", "usage_report", "reading", "priced_amount", "reconciled", "foreign_id", "quarantine"):
        held = pl.concat([pl.read_parquet(path) for path in (pack / "rows" / table).glob("2026*.parquet")])
        own = lake.scan(table).filter(pl.col("day").dt.strftime("%Y-%m") == "2026-03").collect()
        assert held.equals(own.sort(TABLES[table].key)), table
        assert held.height, table
    assert set(pl.read_parquet(pack / "rows/segment/all.parquet")["segment"]) == {FILE_A, FILE_B}


def test_the_pack_holds_what_the_month_takes_over_and_who_changed_what(filled: Office) -> None:
    """A finding of February that matters is carried with its history; a small one and one of April are not."""
    money = {"currency": "USD", "origin": FindingOrigin.BASELINE}
    early = filled.find("unexplained_gap", Severity.ERROR, "2026-02", amount=Decimal(3), **money)
    filled.find("usage_missing", Severity.ERROR, "2026-02", amount=Decimal("0.01"), **money)
    filled.find("unexplained_gap", Severity.WARNING, "2026-04", amount=Decimal(3), **money)
    value = {"by": "ann", "kind": "prices", "file": "own.toml", "key": "k", "before": None, "after": "v"}
    filled.add("change", {"number": 0, "at": NOW, "file_digest": FILE_A, **value})
    acknowledge(filled.lake, early, by="finops", now=NOW)
    policy = ClosePolicy(materiality=Materiality(amount=Decimal(1)))
    assert filled.close(policy=policy, settings=policy.plain()).closed
    rows = {table: pl.read_parquet(filled.pack() / f"rows/{table}/all.parquet") for table in ("finding", "change")}
    others = rows["finding"].filter(pl.col("period") != "2026-03")
    assert others["finding_id"].to_list() == [early]
    lives = pl.read_parquet(filled.pack() / "rows/finding_status/all.parquet")
    assert early in lives["finding_id"].to_list()
    assert rows["change"]["after"].to_list() == ["v"]
    assert json.loads((filled.pack() / "pins/settings.json").read_bytes())["materiality"]["amount"] == "1"
    assert verify_month(filled.lake, filled.packs, "2026-03").sound


def test_every_page_has_a_checksum(closed: Office) -> None:
    parts = [path for path in contents(closed.pack()) if path.startswith("rows/")]
    assert len(parts) > 10
    raw = bytearray((closed.pack() / "rows/attempt/2026-03-02.parquet").read_bytes())
    whole = pq.read_metadata(closed.pack() / "rows/attempt/2026-03-02.parquet")
    column = whole.row_group(0).column(0)
    raw[column.data_page_offset + column.total_compressed_size - 3] ^= 1
    target = closed.root / "damaged.parquet"
    target.write_bytes(raw)
    with pytest.raises(OSError, match=r"(?i)crc|corrupt|decompress|checksum"):
        pq.read_table(target, page_checksum_verification=True)


def test_rows_of_other_days_are_kept_where_the_month_cannot_be_reconciled_without(closed: Office) -> None:
    beside = pl.read_parquet(closed.pack() / "rows/reading/neighbours.parquet")
    assert beside.select("attempt_hi", "attempt_lo").to_dicts() == [key_of(6)]
    manifest = manifest_of((closed.pack() / MANIFEST).read_bytes())
    assert manifest.tables["reading"].rows == sum(
        part.rows for part in manifest.tables["reading"].parts if part.name.part != "neighbours"
    )


def test_only_the_billing_domain_is_copied() -> None:
    assert {table.domain for table in CLOSED.values()} == {Domain.BILLING}
    assert {name for name, table in TABLES.items() if table.domain is Domain.BILLING} - set(CLOSED) == {"close"}


def test_neither_keys_nor_a_users_own_words_are_in_the_pack(closed: Office) -> None:
    held = b"".join(contents(closed.pack()).values())
    assert KEY not in held
    assert KEY.hex().encode() not in held
    assert b"CANARY in words" not in held
    (status,) = pl.read_parquet(closed.pack() / "rows/finding_status/all.parquet").to_dicts()
    assert (status["state"], status["reason"]) == ("waived", None)


def test_figures_know_tenants_by_number(closed: Office) -> None:
    raw = (closed.pack() / "figures.json").read_text()
    assert not re.search(r"t_[0-9a-f]{16}", raw)
    tenants = pl.read_parquet(closed.pack() / "rows/tenant/all.parquet").rows()
    assert tenants == [(1, TENANT_A), (2, TENANT_B)]
    by_tenant = {
        entry["by"]["tenant"]: entry["values"]["tokens"] for entry in json.loads(raw)["sections"]["usage_by_tenant"]
    }
    # 1, 2 and 3 have 120 each, 7 has 81; 4 has 350; 5 has no attempt record. The report of 6 is of April.
    assert by_tenant == {"#1": 441, "#2": 350, "unassigned": 35}


def test_pins_name_no_folder_and_no_moment(closed: Office) -> None:
    for name in ("code", "lock", "prices", "rules", "settings"):
        raw = (closed.pack() / f"pins/{name}.json").read_text()
        assert str(closed.root.parent) not in raw
        assert "2026-05-20" not in raw


@pytest.fixture
def interrupted(filled: Office, monkeypatch: pytest.MonkeyPatch) -> Office:
    """A close that was cut short between its pack and the lake."""

    def fail(self: Lake, table: str, *_: Any, **__: Any) -> int:
        raise KeyboardInterrupt(table)

    with monkeypatch.context() as patched:
        patched.setattr(Lake, "append", fail)
        with pytest.raises(KeyboardInterrupt):
            filled.close()
    assert filled.pack().is_dir()
    assert filled.lake.rows("close") == 0
    return filled


def test_a_close_that_was_cut_short_is_done_again_with_the_same_root(interrupted: Office, closed_once: Office) -> None:
    done = interrupted.close(by="night")
    assert (done.new, done.root) == (True, closed_once.close().root)
    assert [path.name for path in interrupted.packs.iterdir()] == ["2026-03"]
    assert json.loads((interrupted.pack() / SEAL).read_text())["closed_by"] == "night"


def test_a_pack_the_lake_never_named_does_not_stand_for_a_month_that_changed_since(interrupted: Office) -> None:
    before = json.loads((interrupted.pack() / SEAL).read_text())["root"]
    interrupted.both(50, "2026-03-30T10:00:00")
    interrupted.weigh()
    done = interrupted.close()
    assert done.root != before
    assert manifest_of((interrupted.pack() / MANIFEST).read_bytes()).root() == done.root
    # It may be evidence: of a close that a lake restored from a backup knows nothing of.
    aside = interrupted.packs / "2026-03.unentered-1"
    assert verify(aside, root=before).sound
    keys = pl.DataFrame([key_of(1)])
    done_there = forget(interrupted.packs, interrupted.lake, attempts=keys, rule="request", by="privacy", now=NOW)
    assert [each.rows for each in done_there] == [{"foreign_id": 1}] * 2


def test_a_full_disk_leaves_nothing_and_the_same_call_succeeds_later(
    filled: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []

    def full(path: Path, raw: bytes) -> tuple[int, str]:
        written.append(path)
        if len(written) > 5:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return real(path, raw)

    real = drafts.write_file
    with monkeypatch.context() as patched:
        patched.setattr(drafts, "write_file", full)
        with pytest.raises(LakeFullError, match="disk is full"):
            filled.close()
    assert list(filled.packs.iterdir()) == []
    assert filled.lake.rows("close") == 0
    assert filled.close().closed


def test_what_a_killed_close_left_is_swept_away(filled: Office) -> None:
    left = filled.packs / ".2026-03.4711.draft"
    other = filled.packs / ".2026-04.4711.draft"
    for folder in (left, other):
        (folder / "rows").mkdir(parents=True)
    assert filled.close().closed
    assert not left.exists()
    assert other.exists()  # of another month: somebody else's business


_HOLD = """
import sys
from weighbridge.pipeline.lake import Lake
with Lake.open(sys.argv[1]).lock():
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_writer(root: str) -> Iterator[None]:
    """Another process that holds the lake's lock."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", _HOLD, root], **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield
        process.communicate(b"")


def test_of_two_closes_at_once_the_second_is_told_to_wait(filled: Office) -> None:
    with another_writer(filled.lake.root), pytest.raises(LakeBusyError):
        filled.close()
    assert not filled.packs.exists() or not list(filled.packs.iterdir())


@pytest.mark.parametrize(("options", "told"), [({"by": "two words"}, "name"), ({"early": " "}, "reason")])
def test_who_and_why_are_checked(filled: Office, options: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        filled.close(**options)


def test_a_month_that_is_none_is_refused(filled: Office) -> None:
    with pytest.raises(ConfigError, match="no month"):
        filled.close("2026-13")


def test_a_large_table_is_kept_in_parts_of_some_days(filled: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(month_rows, "PART_ROWS", 2)
    done = filled.close()
    assert done.closed
    manifest = manifest_of((filled.pack() / MANIFEST).read_bytes())
    parts = [(part.name.part, part.rows) for part in manifest.tables["attempt"].parts]
    # 2 attempts on the 2nd, 2 on the 15th, 1 on the 20th and 1 on the 31st.
    assert parts == [("2026-03-02", 2), ("2026-03-15", 2), ("2026-03-20", 2)]
    assert verify_month(filled.lake, filled.packs, "2026-03").sound
    keys = pl.DataFrame([key_of(4), key_of(6)])
    forget(filled.packs, filled.lake, attempts=keys, counts=True, rule="request", by="privacy", now=NOW)
    found = verify_month(filled.lake, filled.packs, "2026-03")
    assert found.sound, found.differences
    assert found.erased > 8
