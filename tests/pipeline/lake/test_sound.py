"""Files that are not as they were written are named, whatever is wrong with them, before an engine gives up at them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.lake.committed import damaged_file
from weighbridge.pipeline.lake.words import files
from weighbridge.schemas.errors import LakeError

DAYS = (date(2026, 3, 1), date(2026, 3, 2))


def cut(path: Path) -> None:
    """Half of it is there."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def emptied(path: Path) -> None:
    """As a disk that was full leaves it."""
    path.write_bytes(b"")


def replaced(path: Path) -> None:
    """A whole Parquet file, but another one."""
    pl.DataFrame({"x": [1]}).write_parquet(path)


def garbled(path: Path) -> None:
    """As long as it was, its footer too, and its pages are others."""
    raw = bytearray(path.read_bytes())
    raw[4:600] = bytes(byte ^ 0x5A for byte in raw[4:600])
    path.write_bytes(raw)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake with two days of gaps."""
    made = Lake.create(tmp_path / "lake")
    words = {"source": "agent", "reason": "buffer_full", "segment": "a" * 64}
    rows = [{"day": day, "segment_row": row, "attempts": row + 1, **words} for day in DAYS for row in range(200)]
    made.append("gap", pl.DataFrame(rows))
    return made


def first(lake: Lake) -> Path:
    """The file of the first day."""
    return Path(lake.parts("gap")[0].address)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (cut, r"has \d[\d,]* bytes and was written with"),
        (emptied, "has 0 bytes"),
        (replaced, r"has \d+ bytes and was written with"),
        (Path.unlink, "is not there"),
    ],
)
def test_a_file_that_is_not_as_long_as_it_was_written_is_named(
    lake: Lake, capfd: pytest.CaptureFixture[str], harm: Callable[[Path], None], said: str
) -> None:
    """With its place in the lake and what to do; the engine says nothing, and days beside it are read."""
    harm(first(lake))
    with pytest.raises(
        LakeError, match=rf"billing/gap/day=2026-03-01/\S+\.parquet {said}.*restore the file from a backup"
    ):
        lake.scan("gap").collect()
    assert lake.scan("gap", first=DAYS[1], last=DAYS[1]).collect().height == 200
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("harm", [cut, emptied, Path.unlink])
def test_files_that_are_read_one_by_one_are_looked_at_too(lake: Lake, harm: Callable[[Path], None]) -> None:
    """By their ends: their sizes are not at hand there."""
    parts = lake.parts("gap")
    harm(Path(parts[0].address))
    with pytest.raises(LakeError, match=r"day=2026-03-01/\S+\.parquet is"):
        list(files("gap", parts))


def test_a_file_with_other_bytes_is_found_once_an_engine_stumbled(lake: Lake) -> None:
    """Nothing tells before that it is damaged."""
    assert damaged_file() is None
    garbled(first(lake))
    with pytest.raises(pl.exceptions.PolarsError):
        lake.scan("gap", first=DAYS[0]).collect()
    told = str(damaged_file())
    assert "day=2026-03-01" in told
    assert "restore the file" in told
