"""A table that was opened is used again, and never beyond what its log says now."""

from __future__ import annotations

import os
import shutil
from contextlib import AbstractContextManager, nullcontext
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable

from weighbridge.pipeline.lake import Lake, committed
from weighbridge.pipeline.lake.handles import Handles

DAY = date(2026, 3, 1)


def gap(count: int) -> pl.DataFrame:
    return pl.DataFrame(
        [{"day": DAY, "source": "agent-1", "reason": "buffer_full", "attempts": n + 1} for n in range(count)]
    )


def elsewhere(root: Path) -> Lake:
    """The lake as another process has it, which shares nothing with this one."""
    committed._memory.cache_clear()
    return Lake.create(root)


def test_an_unchanged_table_is_opened_once_and_a_commit_of_another_is_seen(tmp_path: Path) -> None:
    mine, other = Lake.create(tmp_path / "lake"), elsewhere(tmp_path / "lake")
    other.append("gap", gap(2))
    assert [mine.rows("gap"), mine.rows("gap"), mine.version("gap")] == [2, 2, other.version("gap")]
    other.append("gap", gap(1))
    assert mine.rows("gap") == 3
    assert mine.scan("gap").collect().height == 3


def test_what_was_committed_is_not_opened_again_and_lakes_of_one_process_share_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writing opens the table each time; whoever reads afterwards has the handle of the commit."""
    opened: list[str] = []
    fresh = Lake._fresh

    def counted(lake: Lake, table: str) -> DeltaTable | None:
        opened.append(table)
        return fresh(lake, table)

    monkeypatch.setattr(Lake, "_fresh", counted)
    lake = Lake.create(tmp_path / "lake")
    for rows in (1, 2):
        lake.append("gap", gap(1))
        assert [lake.rows("gap"), Lake.open(tmp_path / "lake").scan("gap").collect().height] == [rows, rows]
        assert lake.version("gap") == rows
    assert opened == ["gap"] * 2


def test_a_commit_that_another_one_followed_is_not_kept_as_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody without the lock commits before it is asked what the log looks like."""
    lake, other = Lake.create(tmp_path / "lake"), elsewhere(tmp_path / "lake")
    keep = Handles.keep

    def late(handles: Handles, folder: Path, made: DeltaTable) -> None:
        monkeypatch.setattr(Handles, "keep", keep)
        monkeypatch.setattr(other, "lock", lake.lock)
        other.append("gap", gap(2))
        keep(handles, folder, made)

    lake.append("gap", gap(1))
    monkeypatch.setattr(Handles, "keep", late)
    lake.append("gap", gap(1))
    assert [lake.rows("gap"), lake.scan("gap").collect().height] == [4, 4]


def test_a_backup_that_is_put_back_is_seen(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake")
    lake.append("gap", gap(1))
    shutil.copytree(tmp_path / "lake", tmp_path / "backup")
    lake.append("gap", gap(2))
    assert lake.rows("gap") == 3
    shutil.rmtree(tmp_path / "lake")
    shutil.copytree(tmp_path / "backup", tmp_path / "lake")
    assert lake.rows("gap") == 1
    shutil.rmtree(tmp_path / "lake" / "operations" / "gap", ignore_errors=True)
    shutil.rmtree(tmp_path / "lake" / "billing" / "gap", ignore_errors=True)
    assert lake.rows("gap") == 0


def test_a_table_is_opened_as_often_as_its_log_changes(tmp_path: Path) -> None:
    log = tmp_path / "t" / "_delta_log"
    handles, opened = Handles(), []

    def opening() -> None:
        opened.append(1)

    handles.get(tmp_path / "t", opening)
    handles.get(tmp_path / "t", opening)
    assert opened == []  # without a log there is no table to open
    log.mkdir(parents=True)
    for name in ("0.json", "1.json"):
        (log / name).write_text("{}")
        for _ in range(3):
            handles.get(tmp_path / "t", opening)
    assert len(opened) == 2


def test_a_draft_of_a_commit_that_vanishes_while_the_log_is_looked_at_hides_no_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process renames it between the listing and the look at each file: the table is there all the same."""
    lake = Lake.create(tmp_path / "lake")
    lake.append("gap", gap(2))
    draft = Path(lake.parts("gap")[0].address).parents[1] / "_delta_log" / "_commit_1.json.tmp"
    listed = os.scandir

    def scandir(folder: Path) -> AbstractContextManager[list[os.DirEntry[str]]]:
        draft.write_text("{}")
        with listed(folder) as found:
            entries = list(found)
        draft.unlink()
        return nullcontext(entries)

    monkeypatch.setattr(os, "scandir", scandir)
    assert [lake.rows("gap"), lake.scan("gap").collect().height, lake.version("gap")] == [2, 2, 1]
