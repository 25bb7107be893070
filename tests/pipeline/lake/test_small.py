"""Tables of a few rows are read once; whatever happens to their files is seen at once."""

from __future__ import annotations

import os
import shutil
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from weighbridge.pipeline.lake import Lake, small
from weighbridge.schemas.errors import LakeError

DAYS = [date(2026, 3, 2), date(2026, 3, 3)]


def gaps(*attempts: int, day: date = DAYS[0]) -> pl.DataFrame:
    """Gap records that lost so many attempts."""
    rows = [
        {"day": day, "source": "agent", "reason": "buffer_full", "attempts": n, "segment": "a" * 64} for n in attempts
    ]
    return pl.DataFrame(rows)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake with two days of a small table."""
    made = Lake.create(tmp_path / "lake")
    made.append("gap", pl.concat([gaps(3, 1), gaps(5, day=DAYS[1])]))
    return made


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables whose files are read."""
    names: list[str] = []
    own = Lake._scanned

    def scanned(lake: Lake, about: object, opened: object) -> pl.LazyFrame:
        names.append(about.name)  # type: ignore[attr-defined]
        return own(lake, about, opened)  # type: ignore[arg-type]

    monkeypatch.setattr(Lake, "_scanned", scanned)
    return names


def lost(lake: Lake, **options: object) -> list[int]:
    """How many attempts each record lost, in order."""
    return sorted(lake.scan("gap", columns=["attempts"], **options).collect()["attempts"])  # type: ignore[arg-type]


def test_a_small_table_is_read_once(lake: Lake, read: list[str]) -> None:
    """Whole, by day, and by columns: one reading."""
    assert lost(lake) == [1, 3, 5]
    assert lost(lake, first=DAYS[1]) == [5]
    assert lost(lake, last=DAYS[0]) == [1, 3]
    assert lake.scan("gap").collect().columns == list(lake.scan("gap").collect_schema())
    assert read == ["gap"]


def test_what_is_committed_by_anybody_is_read(lake: Lake, read: list[str]) -> None:
    """By this lake, and by another process; what was scanned before keeps its rows."""
    before = lake.scan("gap", columns=["attempts"])
    lake.append("gap", gaps(7))
    assert lost(lake) == [1, 3, 5, 7]
    Lake.open(lake.root).replace("gap", gaps(2, day=DAYS[1]), days=[DAYS[1]])
    assert lost(lake) == [1, 2, 3, 7]
    assert sorted(before.collect()["attempts"]) == [1, 3, 5]


def test_files_that_were_changed_or_lost_are_read_again(lake: Lake, read: list[str]) -> None:
    """The log says what it said."""
    assert lost(lake) == [1, 3, 5]
    first = Path(lake.parts("gap")[0].address)
    first.rename(first.with_suffix(".away"))
    with pytest.raises(LakeError, match="is not there"):
        lost(lake)
    shutil.copy(first.with_suffix(".away"), first)
    assert lost(lake) == [1, 3, 5]
    assert len(read) == 2


def test_a_table_of_many_rows_or_files_is_not_held(
    lake: Lake, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three rows are more than two, and two files more than one."""
    monkeypatch.setattr(small, "ROWS", 2)
    assert [lost(lake), lost(lake)] == [[1, 3, 5]] * 2
    assert len(read) == 2
    fresh = Lake.open(lake.root)
    monkeypatch.setattr(small, "ROWS", 3)
    monkeypatch.setattr(small, "FILES", 1)
    assert [lost(fresh), lost(fresh)] == [[1, 3, 5]] * 2
    assert len(read) == 4


def test_rows_that_were_erased_are_not_left_in_memory(lake: Lake) -> None:
    """Nobody asks for the table again."""
    assert lost(lake) == [1, 3, 5]
    assert len(lake._small._held) == 1
    lake.rewrite("gap", lambda rows: rows.filter(pl.col("attempts") > 1), days=None)
    assert not lake._small._held
    assert lost(lake) == [3, 5]


def test_a_file_that_is_put_back_in_place_with_its_old_time_is_read_again(lake: Lake, read: list[str]) -> None:
    """As a backup does: the same file, of the same size and time of change, whatever bytes were in it."""
    file = Path(lake.parts("gap")[0].address)
    about, bytes_of = file.stat(), file.read_bytes()
    assert lost(lake) == [1, 3, 5]
    with file.open("r+b") as opened:
        opened.write(bytes_of)
    os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert lost(lake) == [1, 3, 5]
    assert read == ["gap", "gap"]
