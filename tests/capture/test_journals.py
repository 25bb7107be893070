"""Which file is present: an old one is followed, to be sealed; where nothing can be mapped the fallback is taken."""

from __future__ import annotations

import errno
import mmap
import os
import time
from pathlib import Path

import pytest
from tests.capture.recording import COUNTS, bound, finished, gaps, rows, started

from weighbridge.capture import journals as journals_module
from weighbridge.capture import reader
from weighbridge.capture.context import Context
from weighbridge.capture.file_journal import FileJournal
from weighbridge.capture.keeper import keep
from weighbridge.capture.mapped_journal import MappedJournal
from weighbridge.capture.recorder import Recorder
from weighbridge.capture.sealing import seal_spool
from weighbridge.schemas.enumerations import GapReason
from weighbridge.schemas.segment import read_table


class Clock:
    """A monotonic clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(journals_module, "time", made)
    return made


def files(recorder: Recorder) -> int:
    return len(list(reader.journals(recorder.spool)))


@pytest.mark.parametrize("mapped", [True, False])
def test_a_file_that_has_held_a_record_for_long_is_followed_and_sealed_while_its_process_lives(
    tmp_path: Path, clock: Clock, mapped: bool
) -> None:
    recorder = started(tmp_path / "spool", journal_roll_s=900.0, mapped=mapped, wait_s=5.0)
    binding = bound(recorder)
    keep(recorder)
    clock.now += 10_000.0
    assert finished(binding, 1)  # the file is old, the record is not
    keep(recorder)
    clock.now += 899.0
    keep(recorder)
    assert files(recorder) == 1
    clock.now += 2.0
    keep(recorder)
    assert files(recorder) == 2
    assert finished(binding, 2)
    keep(recorder)
    (segment,) = seal_spool(recorder.spool).segments
    assert read_table(segment, "attempt")["input_computed"].to_pylist() == [1]
    assert [row["input_computed"] for row in rows(recorder, tmp_path, "attempt")] == [2]
    assert recorder.losses.total == 0


@pytest.mark.parametrize("mapped", [True, False])
def test_a_file_without_records_is_not_followed_whatever_was_bound(tmp_path: Path, clock: Clock, mapped: bool) -> None:
    recorder = started(tmp_path / "spool", mapped=mapped)
    for number in range(3):
        recorder.bind(Context(task=f"task-{number}"), counts=COUNTS)
        keep(recorder)
        clock.now += 10_000.0
    keep(recorder)
    assert files(recorder) == 1
    recorder.close()


def test_a_loss_that_was_written_ages_like_a_record(tmp_path: Path, clock: Clock) -> None:
    recorder = started(tmp_path / "spool")
    recorder.losses.count(GapReason.NOT_SEEN, attempts=0)
    keep(recorder)
    keep(recorder)
    clock.now += 1_000.0
    keep(recorder)
    assert files(recorder) == 2
    recorder.close()


def test_the_file_after_an_old_one_is_small_and_the_one_after_a_full_one_is_not(tmp_path: Path, clock: Clock) -> None:
    recorder = started(tmp_path / "spool")
    binding = bound(recorder)
    first = recorder.journal
    assert isinstance(first, MappedJournal)
    assert finished(binding, 1)
    keep(recorder)
    clock.now += 1_000.0
    keep(recorder)
    small = recorder.journal
    assert isinstance(small, MappedJournal)
    assert small.slots < first.slots // 8
    for number in range(small.slots):
        assert finished(binding, number)
    last = recorder.journal
    assert isinstance(last, MappedJournal)
    assert last.slots == first.slots
    recorder.close()


def test_an_old_file_stays_where_there_is_no_room_for_the_next(tmp_path: Path, clock: Clock) -> None:
    recorder = started(tmp_path / "spool", journal_bytes=64 << 10, spool_bytes=100 << 10)
    binding = bound(recorder)
    assert finished(binding, 1)
    keep(recorder)
    clock.now += 1_000.0
    keep(recorder)
    assert files(recorder) == 1
    assert finished(binding, 2)
    assert [row["input_computed"] for row in rows(recorder, tmp_path, "attempt")] == [1, 2]
    assert gaps(recorder, tmp_path / "gaps") == {}


@pytest.mark.parametrize("number", [errno.ENODEV, errno.EOPNOTSUPP])
def test_where_nothing_can_be_mapped_the_fallback_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(mmap, "mmap", refuse)
    recorder = started(tmp_path / "spool", wait_s=5.0)
    assert isinstance(recorder.journal, FileJournal)
    assert finished(bound(recorder), 1)
    assert files(recorder) == 1
    assert [row["input_computed"] for row in rows(recorder, tmp_path, "attempt")] == [1]


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("mapped", [True, False])
def test_files_that_cannot_be_made_leave_no_descriptor_and_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mapped: bool
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    recorder = started(tmp_path / "spool", mapped=mapped, journal_bytes=64 << 10, wait_s=5.0)
    binding = bound(recorder)
    assert finished(binding, 1)
    before, files_before = descriptors(), sorted(recorder.spool.iterdir())
    with monkeypatch.context() as patched:
        for name in ("posix_fallocate", "write", "pwrite"):
            patched.setattr(os, name, refuse)
        patched.setattr(FileJournal.__init__, "__kwdefaults__", {"write": refuse})
        for _ in range(20):
            recorder.journals.replace(recorder.journal)
            keep(recorder)
    assert (descriptors(), sorted(recorder.spool.iterdir())) == (before, files_before)
    assert finished(binding, 2)
    assert [row["input_computed"] for row in rows(recorder, tmp_path, "attempt")] == [1, 2]


@pytest.mark.parametrize("mapped", [True, False])
def test_files_that_were_made_for_nothing_leave_no_descriptor(tmp_path: Path, mapped: bool) -> None:
    recorder = started(tmp_path / "spool", mapped=mapped, journal_bytes=64 << 10)
    other = recorder.journal
    recorder.journals.replace(recorder.journal)
    keep(recorder)
    before = descriptors()
    for _ in range(20):
        recorder.journals.replace(other)  # no more the present one
    recorder.journals.retire(wait=True)
    until = time.monotonic() + 10
    while descriptors() > before and time.monotonic() < until:
        time.sleep(0.01)  # the thread of a file lets go of it
    assert descriptors() <= before
    recorder.close()
