"""A lake: one commit at a time, one writer at a time, the same digest whatever the order."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from weighbridge.pipeline.lake import Lake, LakeFullError, empty, files, polars_schema, shaped
from weighbridge.pipeline.lake import lake as lake_module
from weighbridge.schemas.errors import LakeBusyError, LakeError, Transient
from weighbridge.schemas.tables import TABLES

MAY_1, MAY_2, MAY_3 = date(2025, 5, 1), date(2025, 5, 2), date(2025, 5, 3)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.create(tmp_path / "lake")


def gaps(*rows: tuple[date, str, int]) -> pl.DataFrame:
    """(day, source, attempts) rows of the table `gap`."""
    return pl.DataFrame(
        {
            "day": [row[0] for row in rows],
            "source": [row[1] for row in rows],
            "reason": ["quota"] * len(rows),
            "attempts": [row[2] for row in rows],
        },
        schema_overrides={"day": pl.Date, "attempts": pl.Int64},
    )


def content(lake: Lake) -> list[tuple[date, str, int]]:
    return lake.scan("gap", columns=["day", "source", "attempts"]).sort("day", "source").collect().rows()


def test_appended_rows_come_back_in_the_order_of_the_key_within_each_day(lake: Lake) -> None:
    added = lake.append("gap", gaps((MAY_2, "b", 2), (MAY_1, "c", 3), (MAY_2, "a", 1)))
    assert added == 3
    assert content(lake) == [(MAY_1, "c", 3), (MAY_2, "a", 1), (MAY_2, "b", 2)]
    assert lake.days("gap") == [MAY_1, MAY_2]
    assert lake.rows("gap") == 3
    (file,) = (Path(lake.root) / "billing" / "gap" / "day=2025-05-02").glob("*.parquet")
    assert pl.read_parquet(file)["source"].to_list() == ["a", "b"]


def test_no_rows_make_no_commit(lake: Lake) -> None:
    assert lake.append("gap", empty("gap")) == 0
    assert lake.version("gap") is None
    assert lake.rows("gap") == 0
    assert lake.days("gap") == []
    assert lake.digests() == {}


def test_a_table_that_was_never_written_has_its_columns_and_no_rows(lake: Lake) -> None:
    for name in TABLES:
        frame = lake.scan(name).collect()
        assert dict(frame.schema) == polars_schema(name)
        assert frame.height == 0


def test_a_scan_may_be_cut_to_days_and_columns(lake: Lake) -> None:
    lake.append("gap", gaps((MAY_1, "a", 1), (MAY_2, "a", 2), (MAY_3, "a", 3)))
    frame = lake.scan("gap", first=MAY_2, last=MAY_2, columns=["attempts", "source"]).collect()
    assert frame.rows(named=True) == [{"attempts": 2, "source": "a"}]
    assert lake.scan("gap", first=MAY_2).select("attempts").collect()["attempts"].sort().to_list() == [2, 3]


@pytest.mark.parametrize(
    ("table", "arguments", "said"),
    [
        ("gap", {"columns": ["nope"]}, "no columns"),
        ("price", {"first": MAY_1}, "not kept by day"),
        ("nope", {}, "there is no table"),
    ],
)
def test_a_scan_of_what_is_not_there_is_refused(lake: Lake, table: str, arguments: dict, said: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(LakeError, match=said):
        lake.scan(table, **arguments)


def test_every_type_of_the_vocabulary_survives_the_way_to_disk_and_back(lake: Lake) -> None:
    line = pl.DataFrame(
        {
            "invoice_id": ["i"],
            "line_id": ["1"],
            "provider": ["p"],
            "category": ["Usage"],
            "period_start": [datetime(2025, 5, 1, 0, 0, 0, 1, UTC)],
            "period_end": [datetime(2025, 6, 1, tzinfo=UTC)],
            "amount": [Decimal("12345678901234567890.000000000000000001")],
            "revision": [0],
        },
        schema_overrides={
            "period_start": pl.Datetime("us", "UTC"),
            "period_end": pl.Datetime("us", "UTC"),
            "amount": pl.Decimal(38, 18),
            "revision": pl.Int32,
        },
    )
    lake.append("invoice_line", line)
    (row,) = lake.scan("invoice_line").collect().rows(named=True)
    assert row["amount"] == Decimal("12345678901234567890.000000000000000001")
    assert row["period_start"] == datetime(2025, 5, 1, 0, 0, 0, 1, UTC)
    assert row["quantity"] is None

    quarantine = pl.DataFrame(
        {
            "segment": ["0" * 64],
            "line": [7],
            "day": [MAY_1],
            "source": ["s"],
            "importer": ["x"],
            "reason": ["type"],
            "leaf_integers": [[2**62, None]],
            "leaf_texts": [[None, "0.5"]],
        }
    )
    lake.append("quarantine", quarantine)
    (row,) = lake.scan("quarantine").collect().rows(named=True)
    assert row["leaf_integers"] == [2**62, None]
    assert row["leaf_texts"] == [None, "0.5"]


def test_replace_overwrites_exactly_the_named_days(lake: Lake) -> None:
    lake.append("gap", gaps((MAY_1, "a", 1), (MAY_2, "a", 2), (MAY_3, "a", 3)))
    lake.replace("gap", gaps((MAY_2, "z", 9)), days=[MAY_1, MAY_2])
    assert content(lake) == [(MAY_2, "z", 9), (MAY_3, "a", 3)]
    lake.replace("gap", empty("gap"), days=[MAY_2])
    assert content(lake) == [(MAY_3, "a", 3)]
    lake.replace("gap", gaps((MAY_1, "q", 1)), days=None)
    assert content(lake) == [(MAY_1, "q", 1)]
    lake.replace("gap", empty("gap"), days=None)
    assert content(lake) == []


def test_replace_leaves_the_files_of_days_alone_that_are_as_they_should_be(lake: Lake) -> None:
    lake.append("gap", gaps((MAY_1, "a", 1), (MAY_2, "a", 2)))
    files = {path.name for path in (Path(lake.root) / "billing/gap/day=2025-05-01").iterdir()}
    lake.replace("gap", gaps((MAY_1, "a", 1), (MAY_2, "a", 3)), days=[MAY_1, MAY_2])
    assert {path.name for path in (Path(lake.root) / "billing/gap/day=2025-05-01").iterdir()} == files
    assert content(lake) == [(MAY_1, "a", 1), (MAY_2, "a", 3)]


def test_replace_with_what_is_there_makes_no_commit(lake: Lake) -> None:
    lake.append("gap", gaps((MAY_1, "a", 1), (MAY_2, "a", 2)))
    before = lake.version("gap")
    lake.replace("gap", gaps((MAY_2, "a", 2)), days=[MAY_2])
    lake.replace("gap", gaps((MAY_2, "a", 2), (MAY_1, "a", 1)), days=None)
    lake.replace("gap", empty("gap"), days=[MAY_3])
    assert lake.version("gap") == before
    lake.replace("gap", gaps((MAY_2, "a", 3)), days=[MAY_2])
    assert lake.version("gap") == (before or 0) + 1


def test_replace_refuses_rows_of_a_day_it_was_not_asked_to_replace(lake: Lake) -> None:
    lake.append("gap", gaps((MAY_1, "a", 1)))
    with pytest.raises(LakeError, match="2025-05-02, which is not among the days"):
        lake.replace("gap", gaps((MAY_2, "a", 1)), days=[MAY_1])
    assert content(lake) == [(MAY_1, "a", 1)]


def test_the_digest_knows_neither_order_nor_commits_nor_files(tmp_path: Path) -> None:
    rows = [(MAY_1, "a", 1), (MAY_2, "b", 2), (MAY_1, "c", 3)]
    one, two = Lake.create(tmp_path / "one"), Lake.create(tmp_path / "two")
    one.append("gap", gaps(*rows))
    for row in reversed(rows):
        two.append("gap", gaps(row))
    assert one.digests() == two.digests()
    two.compact("gap")
    assert one.digests() == two.digests()
    two.append("gap", gaps((MAY_1, "d", 4)))
    assert one.digest("gap") != two.digest("gap")


def test_compacting_leaves_one_sorted_file_a_day_and_every_row(lake: Lake) -> None:
    for row in [(MAY_1, "c", 3), (MAY_1, "a", 1), (MAY_2, "x", 5), (MAY_1, "b", 2)]:
        lake.append("gap", gaps(row))
    assert lake.compact("gap", keep_hours=0) == 1
    files = sorted((Path(lake.root) / "billing" / "gap").glob("day=*/*.parquet"))
    assert [file.parent.name for file in files] == ["day=2025-05-01", "day=2025-05-02"]
    assert pl.read_parquet(files[0])["source"].to_list() == ["a", "b", "c"]
    assert content(lake) == [(MAY_1, "a", 1), (MAY_1, "b", 2), (MAY_1, "c", 3), (MAY_2, "x", 5)]
    assert lake.compact("gap") == 0


def test_a_reader_keeps_its_version_while_another_compacts(lake: Lake) -> None:
    lake.append("gap", gaps((MAY_1, "a", 1)))
    lake.append("gap", gaps((MAY_1, "b", 2)))
    reading = lake.scan("gap")
    lake.compact("gap")
    lake.append("gap", gaps((MAY_1, "c", 3)))
    assert reading.collect().height == 2


def test_personal_columns_stay_out_of_the_log(lake: Lake) -> None:
    foreign = pl.DataFrame(
        {
            "attempt_hi": [1],
            "attempt_lo": [2],
            "day": [MAY_1],
            "source": ["s"],
            "kind": ["record_id"],
            "value": ["secret-identifier"],
        }
    )
    lake.append("foreign_id", foreign)
    log = b"".join(path.read_bytes() for path in (Path(lake.root) / "billing/foreign_id/_delta_log").iterdir())
    assert b"secret-identifier" not in log
    assert b"record_id" in log


def test_the_format_is_the_one_every_reader_knows(lake: Lake) -> None:
    lake.append("gap", gaps((MAY_1, "a", 1)))
    protocol = DeltaTable(str(Path(lake.root) / "billing" / "gap")).protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)


def test_other_readers_and_writers_of_the_format_understand_the_table(lake: Lake) -> None:
    lake.append("gap", gaps((MAY_1, "a", 1), (MAY_1, "b", 2), (MAY_2, "c", 3)))
    table = DeltaTable(str(Path(lake.root) / "billing" / "gap"))
    assert sorted(table.to_pyarrow_table()["source"].to_pylist()) == ["a", "b", "c"]
    table.delete("source = 'b'")
    assert content(lake) == [(MAY_1, "a", 1), (MAY_2, "c", 3)]
    assert lake.rows("gap") == 2
    write_deltalake(table, shaped("gap", gaps((MAY_2, "d", 4))), mode="append")
    assert content(lake) == [(MAY_1, "a", 1), (MAY_2, "c", 3), (MAY_2, "d", 4)]


def test_the_folders_are_the_owners_alone(lake: Lake) -> None:
    for folder in ["", "billing", "operations", "content", "shared"]:
        assert (Path(lake.root) / folder).stat().st_mode & 0o777 == 0o700


def test_create_twice_changes_nothing(lake: Lake) -> None:
    lake.append("gap", gaps((MAY_1, "a", 1)))
    assert content(Lake.create(lake.root)) == [(MAY_1, "a", 1)]


def test_an_address_is_as_good_as_a_folder(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    lake = Lake.create(f"file://{tmp_path}/store")
    lake.append("gap", gaps((MAY_1, "a", 1)))
    lake.append("gap", gaps((MAY_1, "b", 2)))
    lake.compact("gap", keep_hours=0)
    assert content(Lake.open(f"file://{tmp_path}/store")) == [(MAY_1, "a", 1), (MAY_1, "b", 2)]
    assert Lake.open(tmp_path / "store").digests() == lake.digests()


@pytest.mark.parametrize("kind", ["missing", "empty folder", "file", "other marker"])
def test_what_is_no_lake_is_named_with_the_next_step(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "place"
    if kind == "file":
        place.write_text("x")
    elif kind != "missing":
        place.mkdir()
    if kind == "other marker":
        (place / "lake.json").write_text('{"format": "something else"}')
    with pytest.raises(LakeError, match="not the marker of a lake" if kind == "other marker" else "weighbridge init"):
        Lake.open(place)


def test_a_lake_of_a_later_schema_version_is_refused_with_the_advice_to_upgrade(lake: Lake) -> None:
    (Path(lake.root) / "lake.json").write_text('{"format": "weighbridge lake", "schema_version": 99}')
    with pytest.raises(LakeError, match=r"99.*Upgrade weighbridge"):
        Lake.open(lake.root)
    with pytest.raises(LakeError, match="Upgrade weighbridge"):
        lake.append("gap", gaps((MAY_1, "a", 1)))


def test_a_table_of_a_later_schema_version_is_refused(lake: Lake) -> None:
    lake.append("gap", gaps((MAY_1, "a", 1)))
    frame = lake.scan("gap").collect().with_columns(pl.lit(1).alias("of_the_future"))
    write_deltalake(str(Path(lake.root) / "billing/gap"), frame, mode="append", schema_mode="merge")
    for attempt in (lambda: lake.scan("gap"), lambda: lake.append("gap", gaps((MAY_1, "b", 1)))):
        with pytest.raises(LakeError, match=r"of_the_future.*Upgrade"):
            attempt()


def test_a_column_that_is_newer_than_the_files_is_null_and_can_be_written(lake: Lake) -> None:
    about = TABLES["gap"]
    older = pa.schema([field for field in about.schema() if field.name != "tokens"])
    uri = str(Path(lake.root) / "billing/gap")
    DeltaTable.create(uri, schema=older, partition_by=["day"])
    write_deltalake(uri, shaped("gap", gaps((MAY_1, "a", 1))).drop("tokens"), mode="append")
    assert lake.scan("gap").collect()["tokens"].to_list() == [None]
    assert lake.scan("gap").collect().columns == list(about.names)
    lake.append("gap", gaps((MAY_1, "b", 1)).with_columns(tokens=pl.lit(5, pl.Int64)))
    assert lake.scan("gap").sort("source").collect()["tokens"].to_list() == [None, 5]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"nope": 1}, r"unknown columns \['nope'\]"),
        ({"attempts": None}, "nulls in attempts"),
        ({"attempts": 1.5}, "gap.attempts is Int64, the rows have Float64"),
        ({"attempts": "canary"}, "gap.attempts is Int64, the rows have String"),
        ({"began_at": datetime(2025, 5, 1)}, "began_at"),  # noqa: DTZ001 - a time without a zone is the point
    ],
)
def test_rows_that_do_not_fit_are_refused_without_quoting_a_value(
    lake: Lake, change: dict[str, object], said: str
) -> None:
    frame = gaps((MAY_1, "a", 1)).with_columns(pl.lit(value).alias(name) for name, value in change.items())
    with pytest.raises(LakeError, match=said) as caught:
        lake.append("gap", frame)
    assert "canary" not in str(caught.value)
    assert lake.version("gap") is None


def test_a_required_column_that_is_missing_is_named(lake: Lake) -> None:
    with pytest.raises(LakeError, match=r"lack required columns \['attempts'\]"):
        lake.append("gap", gaps((MAY_1, "a", 1)).drop("attempts"))


def test_an_integer_that_does_not_fit_its_column_is_refused(lake: Lake) -> None:
    frame = pl.DataFrame({"segment": ["0" * 64], "schema_version": [2**40]})
    with pytest.raises(LakeError, match="lack required"):
        shaped("segment", frame)
    row = {"importer": "x", "name": "x", "bytes": 1, "end": "complete", "rows_in": 0, "rows_out": 0}
    frame = frame.with_columns(
        *(pl.lit(value).alias(name) for name, value in row.items()), rows_quarantined=0, rows_duplicate=0
    )
    with pytest.raises(LakeError, match="do not fit"):
        shaped("segment", frame)


def in_another_process(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


HOLD = """
    import sys, time
    from weighbridge.pipeline.lake import Lake
    with Lake.open(sys.argv[1]).lock():
        print("held", flush=True)
        time.sleep(60)
"""


def test_a_second_writer_is_turned_away_at_once_and_a_killed_one_leaves_no_lock(lake: Lake) -> None:
    other = in_another_process(HOLD, lake.root)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(LakeBusyError, match=f"process {other.pid}") as caught:
            lake.append("gap", gaps((MAY_1, "a", 1)))
        assert isinstance(caught.value, Transient)
        assert lake.scan("gap").collect().height == 0  # reading needs no lock
    finally:
        other.send_signal(signal.SIGKILL)
        other.communicate()
    assert lake.append("gap", gaps((MAY_1, "a", 1))) == 1


def test_the_lock_may_be_taken_again_by_its_own_thread_and_by_no_other(lake: Lake) -> None:
    refused: list[BaseException] = []

    def write() -> None:
        try:
            lake.append("gap", gaps((MAY_1, "b", 1)))
        except LakeBusyError as error:
            refused.append(error)

    with lake.lock(), lake.lock():
        lake.append("gap", gaps((MAY_1, "a", 1)))
        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
    assert len(refused) == 1
    assert content(lake) == [(MAY_1, "a", 1)]
    with pytest.raises(LakeError, match="boom"), lake.lock():
        raise LakeError("boom")
    assert lake.append("gap", gaps((MAY_2, "a", 1))) == 1


KILL = """
    import sys, os, signal
    from datetime import date
    import polars as pl
    from weighbridge.pipeline.lake import Lake
    lake = Lake.open(sys.argv[1])
    frame = pl.DataFrame({"day": [date(2025, 5, 1)] * 200_000, "source": ["s"] * 200_000, "reason": ["quota"] * 200_000,
                          "attempts": range(200_000)})
    signal.setitimer(signal.ITIMER_REAL, float(sys.argv[2]))
    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    while True:
        lake.append("gap", frame)
"""


@pytest.mark.parametrize("after", [0.02, 0.11, 0.23])
def test_a_writer_killed_at_any_point_leaves_whole_commits_only(lake: Lake, after: float) -> None:
    killed = in_another_process(KILL, lake.root, after)
    killed.communicate(timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert lake.rows("gap") % 200_000 == 0
    assert lake.scan("gap").select(pl.len()).collect().item() == lake.rows("gap")
    before = lake.rows("gap")
    lake.append("gap", gaps((MAY_1, "after", 1)))
    lake.compact("gap", keep_hours=0)
    assert lake.rows("gap") == before + 1
    assert len(list((Path(lake.root) / "billing/gap").glob("day=*/*.parquet"))) == 1


FULL = """
    import sys, resource, signal
    from datetime import date
    import polars as pl
    from weighbridge.pipeline.lake import Lake, LakeFullError
    lake = Lake.open(sys.argv[1])
    frame = pl.DataFrame({"day": [date(2025, 5, 1)] * 400_000, "source": ["s"] * 400_000, "reason": ["quota"] * 400_000,
                          "attempts": range(400_000)})
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
    try:
        lake.append("gap", frame)
    except LakeFullError as error:
        print("said:", error)
"""


def test_a_full_disk_is_said_and_nothing_is_committed(lake: Lake) -> None:
    lake.append("gap", gaps((MAY_1, "a", 1)))
    before = lake.digests()
    output, errors = in_another_process(FULL, lake.root).communicate(timeout=60)
    assert output.startswith("said:"), errors
    assert "Make room, then run it again" in output
    assert lake.digests() == before
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


def test_a_write_that_failed_leaves_no_file_behind(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two days were written when the third failed: a full disk would stay full of files no commit names."""
    lake.append("gap", gaps((MAY_1, "a", 1)))
    kept = sorted(Path(lake.root).rglob("*.parquet"))
    written = 0
    write = files.write_file

    def fail_at_third(*args: Any) -> Any:
        nonlocal written
        written += 1
        if written == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(*args)

    monkeypatch.setattr(lake_module, "write_file", fail_at_third)
    with pytest.raises(LakeFullError):
        lake.append("gap", gaps((MAY_1, "a", 2), (MAY_2, "a", 2), (MAY_3, "a", 2)))
    assert sorted(Path(lake.root).rglob("*.parquet")) == kept


def test_a_failure_after_the_commit_takes_no_file_away(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = Lake._commit

    def commit_then_fail(*args: Any) -> None:
        commit(*args)
        raise OSError(errno.EIO, "after the commit")

    monkeypatch.setattr(Lake, "_commit", commit_then_fail)
    with pytest.raises(LakeError):
        lake.append("gap", gaps((MAY_1, "a", 1)))
    monkeypatch.undo()
    assert lake.scan("gap").collect().height == 1


def test_no_space_left_is_transient(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(lake_module, "write_file", fail)
    with pytest.raises(LakeFullError) as caught:
        lake.append("gap", gaps((MAY_1, "a", 1)))
    assert isinstance(caught.value, Transient)


def test_a_full_disk_is_told_where_the_writer_lost_the_number_of_the_error(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Polars says when a disk is full within the last bytes of a Parquet file; the disk itself is asked then."""

    def fail(*_: object, **__: object) -> None:
        raise pl.exceptions.ComputeError("parquet: File out of specification: Invalid thrift: transport error")

    free = os.statvfs(lake.root)
    monkeypatch.setattr(lake_module, "write_file", fail)
    with pytest.raises(LakeError, match="ComputeError while writing gap"):
        lake.append("gap", gaps((MAY_1, "a", 1)))
    full = os.statvfs_result((*tuple(free)[:4], 3, *tuple(free)[5:10]))
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    with pytest.raises(LakeFullError, match="Make room, then run it again"):
        lake.append("gap", gaps((MAY_1, "a", 1)))


STRANGER = """
    import os, sys
    from datetime import date
    import polars as pl
    from weighbridge.pipeline.lake import Lake
    from weighbridge.schemas.errors import LakeError
    Lake.open(sys.argv[1]).scan("gap").collect()  # loads everything that is loaded late
    if os.geteuid() == 0:
        os.setgid(65534), os.setuid(65534)  # root may write anywhere: go on as nobody
    lake = Lake.open(sys.argv[1])
    print("read", lake.scan("gap").collect().height)
    try:
        lake.append("gap", lake.scan("gap").collect())
    except LakeError as error:
        print("said:", error)
"""


def test_a_read_only_folder_can_be_read_and_says_why_it_cannot_be_written() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        lake = Lake.create(Path(folder) / "lake")
        lake.append("gap", gaps((MAY_1, "a", 1)))
        root = Path(lake.root)
        (root / ".lock").unlink()
        for path in (root, *root.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        output, errors = in_another_process(STRANGER, root).communicate(timeout=60)
        for path in (root, *root.rglob("*")):
            path.chmod(0o755)
    assert output.startswith("read 1\nsaid:"), errors
    assert "not permitted" in output


def test_a_refused_write_says_whose_the_folder_is(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(lake_module, "write_file", fail)
    with pytest.raises(LakeError, match=r"not permitted.*mount it writable"):
        lake.append("gap", gaps((MAY_1, "a", 1)))


def test_a_damaged_log_is_an_error_that_names_the_next_step(lake: Lake) -> None:
    lake.append("gap", gaps((MAY_1, "a", 1)))
    for path in (Path(lake.root) / "billing/gap/_delta_log").glob("*.json"):
        path.write_text("not a log")
    with pytest.raises(LakeError, match="weighbridge doctor"):
        lake.scan("gap").collect()
