"""Lakes that are damaged, old, full or odd: an error with the next step or broken rules, and never a crash."""

from __future__ import annotations

import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from tests.pipeline.validate.conftest import DAY, TODAY, Row, Rows, account, clean

from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.lake.failure import LakeFullError
from weighbridge.pipeline.validate.quarantine import entries
from weighbridge.pipeline.validate.validate import validate
from weighbridge.pipeline.validate.validation import Validation
from weighbridge.schemas.errors import LakeError
from weighbridge.schemas.tables import TABLES

pytestmark = pytest.mark.usefixtures("by_hand")
PUT = ("attempt", "segment")


def validated(lake: Lake, **given: Any) -> Validation:
    usual: dict[str, Any] = {"today": TODAY, "tables": PUT}
    return validate(lake, **usual | given)


def broken(found: Validation) -> set[tuple[str, int]]:
    return {(violation.rule, violation.rows) for violation in found.broken}


def file_of(rows: Rows) -> Path:
    """The one file of the attempts."""
    (part,) = rows.lake.parts("attempt")
    return Path(part.address.removeprefix("file://"))


def cut(held: bytes) -> bytes:
    return held[: len(held) // 2]


def torn_footer(held: bytes) -> bytes:
    return held[:-400] + bytes(b ^ 0xFF for b in held[-400:-20]) + held[-20:]


def torn_pages(held: bytes) -> bytes:
    return held[:100] + bytes(b ^ 0xFF for b in held[100:3000]) + held[3000:]


def something_else(_: bytes) -> bytes:
    return b"this is no table at all, and was never one of any kind"


DAMAGE: list[Callable[[bytes], bytes]] = [cut, torn_footer, torn_pages, something_else, lambda _: b""]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_an_error_with_the_next_step(rows: Rows, damage: Callable[[bytes], bytes]) -> None:
    rows.attempts(*(clean("attempt", number, queue_us=number) for number in range(500)))
    path = file_of(rows)
    path.write_bytes(damage(path.read_bytes()))
    before = rows.lake.version("finding"), rows.lake.version("quarantine")
    with pytest.raises(LakeError, match=r"nothing of this call was committed.*weighbridge doctor.*backup") as refused:
        validated(rows.lake)
    assert "attempt" in str(refused.value)
    assert (rows.lake.version("finding"), rows.lake.version("quarantine")) == before
    with rows.lake.lock():
        pass  # it is free again


def test_a_file_that_is_gone_is_one_too(rows: Rows) -> None:
    rows.attempts(clean("attempt", 1))
    file_of(rows).unlink()
    with pytest.raises(LakeError, match=r"is not there; .* restore the file from a backup"):
        validated(rows.lake)


def test_a_column_of_another_type_is_one_too(rows: Rows) -> None:
    rows.attempts(clean("attempt", 1, queue_us=3))
    path = file_of(rows)
    pl.read_parquet(path, hive_partitioning=False).with_columns(queue_us=pl.lit("three")).write_parquet(path)
    with pytest.raises(LakeError, match="SchemaError while validating attempt"):
        validated(rows.lake)


def test_a_file_without_rows_has_lost_them(rows: Rows) -> None:
    rows.attempts(clean("attempt", 1))
    path = file_of(rows)
    pl.read_parquet(path, hive_partitioning=False).clear().write_parquet(path)
    assert broken(validated(rows.lake)) == {("missing.rows", 1)}


def test_rows_of_which_nothing_is_known_lack_what_is_required_and_break_no_other_rule(rows: Rows) -> None:
    rows.attempts(clean("attempt", 1, queue_us=3), clean("attempt", 2))
    path = file_of(rows)
    held = pl.read_parquet(path, hive_partitioning=False)
    held.with_columns(pl.lit(None, dtype=kind).alias(name) for name, kind in held.schema.items()).write_parquet(path)
    required = {f"null.{c.name}" for c in TABLES["attempt"].columns if not c.nullable and c.name != "day"}
    found = validated(rows.lake)
    assert broken(found) == {(name, 2) for name in required} | {("missing.rows", 1)}
    assert found.quarantined == 0, "a row without file and line has no place"


BIG = 2**62
MOST = 2**63 - 1


@pytest.mark.parametrize(
    ("rule", "figures"),
    [
        # In 64 bits four times 2**62 is 0, and the sum of two that are as large as can be is -2.
        ("identity.output", {"output_computed": 0, "output_delivered": BIG, "withheld_end_token": BIG,
                             "withheld_stop_trimmed": BIG, "withheld_aborted": BIG, "withheld_truncated": 0}),
        ("identity.drafted", {"drafted": 5, "accepted": MOST, "rejected": MOST}),
        ("identity.steps", {"output_computed": 9, "accepted": MOST, "bonus": MOST}),
    ],
)  # fmt: skip
def test_sums_that_leave_64_bits_are_sums_all_the_same(rows: Rows, rule: str, figures: Row) -> None:
    rows.attempts(clean("attempt", 1, **figures), clean("attempt", 2))
    assert broken(validated(rows.lake)) == {(rule, 1)}


def test_a_sum_that_is_as_large_as_can_be_holds(rows: Rows) -> None:
    rows.attempts(clean("attempt", 1, drafted=MOST, accepted=BIG, rejected=MOST - BIG))
    assert validated(rows.lake).violations == ()


def test_parts_of_a_whole_may_not_exceed_it_together_however_large_they_are(rows: Rows) -> None:
    parts: Row = {f"cache_read_{modality}": MOST for modality in ("audio", "image", "video")}
    rows.put("reading", clean("reading", 1, cache_read=7, **parts))
    rows.put("segment", account())
    assert ("identity.modalities_of_cache_read", 1) in broken(validated(rows.lake, tables=["reading"]))


def test_rows_that_are_gone_take_what_was_found_about_them_along(rows: Rows) -> None:
    """The last rows of a table, and the only ones of their day: there is no file left to look at."""
    later = DAY + timedelta(days=1)
    rows.attempts(clean("attempt", 1, queue_us=-1), clean("attempt", 2, later, queue_us=-1, arrived_at=None))
    assert validated(rows.lake).quarantined == 2
    rows.lake.replace("attempt", rows.lake.scan("attempt").collect().clear(), days=[later])
    found = validated(rows.lake, tables=["attempt"])
    assert (found.quarantined, rows.lake.rows("finding"), len(entries(rows.lake))) == (1, 1, 1)
    rows.lake.replace("attempt", rows.lake.scan("attempt").collect().clear(), days=[DAY])
    validated(rows.lake, tables=["attempt"], days=[later])
    assert rows.lake.rows("finding") == 1, "that day was not looked at"
    assert validated(rows.lake, tables=["attempt"]).gate
    assert (rows.lake.rows("finding"), entries(rows.lake)) == (0, [])


def test_a_row_of_a_far_day_is_a_finding_and_one_of_tomorrow_is_none(rows: Rows) -> None:
    days = [DAY, DAY + timedelta(days=1), DAY + timedelta(days=400)]
    for place, day in enumerate(days):
        rows.put("attempt", clean("attempt", place, day, arrived_at=None))
    rows.put("segment", account(rows=len(days)))
    found = validated(rows.lake, tables=["attempt"], today=DAY)
    assert found.gate
    assert [(v.rule, v.day, v.expected, v.observed, v.rows) for v in found.broken] == [
        ("day_still_to_come", days[2], 1, 400, 1)
    ]


def test_sources_without_a_name_are_one_and_do_not_stand_twice(rows: Rows) -> None:
    """Two findings of one id would break the key of the table of findings, and shut the gate for good."""
    days = [DAY - timedelta(days=back) for back in range(15, 0, -1)]
    for place, day in enumerate(days):
        made = (
            clean("attempt", place * 100 + n, day, arrived_at=None, source=("Mrs. Miller", "Mr. Jones")[n % 2])
            for n in range(60)
        )
        rows.put("attempt", *made)
    rows.put("segment", account(rows=60 * len(days)))
    found = validated(rows.lake, days=[DAY], tables=["attempt"], today=DAY + timedelta(days=4))
    assert [(v.rule, v.source) for v in found.broken] == [("source_silent", "not-a-name"), ("volume_low", "not-a-name")]
    stored = rows.lake.scan("finding").collect()
    assert stored["finding_id"].n_unique() == stored.height == 2


def as_older(rows: Rows, table: str, *newer: str) -> None:
    """Make a table as a version wrote it that did not have these columns."""
    about = TABLES[table]
    held = rows.lake.scan(table).drop(newer).collect()
    path = rows.lake.place.at(about.domain, table)
    shutil.rmtree(path)
    write_deltalake(path, held.to_arrow(), partition_by=["day"] if about.daily else None)


def test_a_lake_of_an_older_version_is_held_to_what_it_has(rows: Rows) -> None:
    rows.attempts(clean("attempt", 1, queue_us=-1), clean("attempt", 2))
    unread = clean("quarantine", 7, reason="type", rule=None, table_name=None, importer="mapped")
    rows.put("quarantine", unread)
    as_older(rows, "attempt", "padding", "forward", "top_k")
    as_older(rows, "segment", "rows_unplaced")
    as_older(rows, "quarantine", "rule", "table_name")
    found = validated(rows.lake)
    assert broken(found) == {("minimum.queue_us", 1)}
    assert any("the account of 1 of 1 files does not say it" in each.why for each in found.unjudged)
    assert {(entry.line, entry.rule) for entry in entries(rows.lake)} == {(7, None), (1, "minimum.queue_us")}


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """No file may grow beyond this many bytes, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_on_a_full_disk_nothing_is_lost_and_the_next_run_comes_to_the_same_end(rows: Rows, tmp_path: Path) -> None:
    rows.attempts(*(clean("attempt", number, queue_us=-1) for number in range(50)))
    page = tmp_path / "out" / "page.html"
    with files_of_at_most(500), pytest.raises(LakeFullError, match="the disk is full"):
        validated(rows.lake, page=page)
    assert not page.exists()
    assert entries(rows.lake) == []
    assert not validated(rows.lake).gate
    with files_of_at_most(500), pytest.raises(OSError, match="File too large"):
        validated(rows.lake, page=page)
    assert list(page.parent.iterdir()) == [], "no half a page, and no draft of one"
    assert validated(rows.lake, page=page).quarantined == 50
    assert page.is_file()
    assert pq.read_metadata(file_of(rows)).num_rows == 50
