"""Which closed reports that are in the lake no more a receipt speaks of: those of its scope, and no others."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import polars as pl
import pytest
from tests.pipeline.close.conftest import TENANT_A, TENANT_B, Office, key_of

from weighbridge.pipeline.close.adjust import adjust
from weighbridge.pipeline.close.lost import lost
from weighbridge.pipeline.close.pack import Pack
from weighbridge.pipeline.lake import polars_schema
from weighbridge.pipeline.lake.records import Records
from weighbridge.schemas.identity import erased
from weighbridge.schemas.receipt import receipt_id

FIRST, LAST = date(2026, 3, 1), date(2026, 3, 31)
A, B = (f"tenant={erased(name)}" for name in (TENANT_A, TENANT_B))
# Tenant A, task chat: 1 and 2 on the 2nd, 3 on the 15th, 7 on the 20th. Tenant B, batch: 4 on the 15th. Nobody's: 5.
ALL = [1, 2, 3, 4, 5, 7]


def receipt(scope: str, table: str = "reading", **more: Any) -> dict[str, Any]:
    row = {
        "rule": "erasure", "scope": scope, "table_name": table, "first_day": FIRST, "last_day": LAST, "rows": 1,
        "digest_before": None, "method": "deleted", "key_ids": [], "table_version": 3, "erased_by": "privacy",
        "erased_at": datetime(2026, 6, 1, tzinfo=UTC), **more,
    }  # fmt: skip
    return {"receipt_id": receipt_id(row), **row}


def reports(records: Records, *numbers: int) -> pl.DataFrame:
    """The closed reports of these attempts."""
    keys = pl.DataFrame([key_of(number) for number in numbers])
    return records.scan("reading", first=FIRST, last=LAST).collect().join(keys, on=keys.columns, how="semi")


def missed(records: Records, numbers: tuple[int, ...], *receipts: dict[str, Any]) -> list[int]:
    """Of which of these attempts the report is missed, where all are gone."""
    told = pl.DataFrame(receipts, schema=polars_schema("receipt"))
    return sorted(-row for row in lost(records, told, reports(records, *numbers))["attempt_lo"])


@pytest.mark.parametrize(
    ("scope", "left"),
    [
        (f"erasure=1; {A}; to=2026-03-31; billing=erased", [4, 5]),
        (f"erasure=1; {B}; to=2026-03-31; billing=erased", [1, 2, 3, 5, 7]),
        (f"erasure=1; {A}; bucket=9; to=2026-03-31; billing=erased", ALL),
        ("task=batch; days=30; due_to=2026-03-31", [1, 2, 3, 5, 7]),
        (f"task=chat; but={erased(TENANT_A)}; days=30; due_to=2026-03-31", ALL),
        (f"{B}; days=30; due_to=2026-03-31", [1, 2, 3, 5, 7]),
        ("days=30; due_to=2026-03-31", []),
        (f"but={erased(TENANT_A)}; days=30; due_to=2026-03-31", [1, 2, 3, 7]),
        ("but_tasks=batch; days=30; due_to=2026-03-31", [4]),
        (f"close=2026-03; erasure=1; record={'0' * 64}", ALL),
    ],
)
def test_a_receipt_excuses_what_it_is_about(closed_once: Office, scope: str, left: list[int]) -> None:
    pack = Pack(closed_once.pack())
    assert missed(pack, (*ALL,)) == ALL
    assert missed(pack, (*ALL,), receipt(scope)) == left


def test_single_attempts_excuse_as_many_reports_as_they_were(closed_once: Office) -> None:
    pack, scope = Pack(closed_once.pack()), "erasure=1; attempts=2; to=2026-03-31; billing=erased"
    both = [receipt(scope, table, rows=2) for table in ("reading", "usage_report")]
    assert missed(pack, (1, 4), *both) == []
    assert len(missed(pack, (1, 2, 4), *both)) == 1
    assert missed(pack, (1, 2, 4), *both, receipt(f"erasure=2; {A}; to=2026-03-31; billing=erased")) == []


def test_days_tables_and_methods_are_held_against_it_too(closed_once: Office) -> None:
    pack, scope = Pack(closed_once.pack()), f"erasure=1; {A}; to=2026-03-31; billing=erased"
    assert missed(pack, (1, 3), receipt(scope, first_day=date(2026, 3, 3))) == [1]
    assert missed(pack, (1, 3), receipt(scope, "attempt"), receipt(scope, method="cleared")) == [1, 3]
    assert missed(pack, (1, 3), receipt(scope, "usage_report")) == []


def test_a_receipt_that_was_changed_excuses_nothing(closed_once: Office) -> None:
    other = receipt(f"erasure=1; {B}; to=2026-03-31; billing=erased")
    assert missed(Pack(closed_once.pack()), (1,), {**other, "scope": other["scope"].replace(B, A)}) == [1]


class Bucketed:
    """A lake in which attempt 1 is of bucket 9."""

    def __init__(self, lake: Records) -> None:
        self.lake = lake

    def scan(self, table: str, **about: Any) -> pl.LazyFrame:
        rows = self.lake.scan(table, **about)
        return (
            rows.with_columns(subject_bucket=pl.when(pl.col("attempt_lo") == -1).then(9))
            if table == "attempt"
            else rows
        )

    def days(self, table: str) -> list[date]:
        return self.lake.days(table)


def test_a_bucket_excuses_its_own(closed_once: Office) -> None:
    scope = f"erasure=1; {A}; bucket=9; to=2026-03-31; billing=erased"
    assert missed(Bucketed(closed_once.lake), (1, 2), receipt(scope)) == [2]


def gone(office: Office, *numbers: int) -> None:
    """Take the reports of these attempts out of the lake, as no rule would."""
    keys = pl.DataFrame([key_of(number) for number in numbers])
    for table in ("usage_report", "reading"):
        rows = office.lake.scan(table).collect()
        office.lake.replace(table, rows.join(keys, on=keys.columns, how="anti"), days=rows["day"].unique())


def missing(office: Office) -> int:
    found = [each for each in adjust(office.lake, packs=office.packs).findings if each.code == "closed_rows_missing"]
    return sum(each.rows for each in found)


def test_an_erasure_of_one_does_not_excuse_the_loss_of_another(closed: Office) -> None:
    closed.add("receipt", receipt(f"erasure=1; {A}; to=2026-03-31; billing=erased", rows=4))
    gone(closed, 1, 2, 3, 7)
    assert missing(closed) == 0
    gone(closed, 4)
    assert missing(closed) == 1
