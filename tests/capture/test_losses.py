"""What was lost is written, also by a process that never got a journal, and also after its recorder was closed."""

from __future__ import annotations

import errno
import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.capture.recording import DONE, bound, finished, gaps, rows, started

from weighbridge.capture import living, reader
from weighbridge.capture.file_journal import FileJournal
from weighbridge.capture.journal import JournalHeader, NoJournal, new_path
from weighbridge.capture.keeper import keep
from weighbridge.capture.losses import Loss, Losses, gap_of, gap_slot
from weighbridge.capture.recorder import Recorder
from weighbridge.capture.sealing import seal_spool
from weighbridge.schemas.enumerations import Ended, GapReason
from weighbridge.schemas.segment import read_table


def sealed_gaps(spool: Path) -> dict[str, int]:
    """Reason -> attempts, of every segment that sealing makes."""
    told: dict[str, int] = {}
    done = seal_spool(spool)
    assert done.failed == []
    for segment in done.segments:
        if (segment / "gap.parquet").exists():
            for row in read_table(segment, "gap").to_pylist():
                told[row["reason"]] = told.get(row["reason"], 0) + row["attempts"]
    return told


def test_a_gap_record_says_what_was_counted() -> None:
    loss = Loss(3, 7, 1_000, 2_000)
    assert gap_of(gap_slot(GapReason.QUOTA, loss)) == (GapReason.QUOTA, loss)
    assert gap_of(bytes(512)) is None


def test_what_is_being_written_counts_as_not_yet_written() -> None:
    losses = Losses()
    losses.count(GapReason.QUOTA)
    taken = losses.drain()
    assert losses.snapshot() == {"quota": 1}
    losses.count(GapReason.QUOTA)
    assert losses.snapshot() == {"quota": 2}
    losses.settle(taken)
    assert losses.snapshot() == {"quota": 2}
    assert losses.drain()[GapReason.QUOTA].attempts == 2
    losses.settle({})
    assert losses.snapshot() == {}


# -- no journal was ever to be had -------------------------------------------------------------------------------------


def test_a_process_that_never_got_a_journal_writes_what_it_lost(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool", journal_bytes=1 << 20, spool_bytes=64 << 10)
    binding = bound(recorder)
    assert isinstance(recorder.journal, NoJournal)
    for number in range(5):
        assert finished(binding, number) is False
        keep(recorder)  # a round after each: they add up in their place
    recorder.losses.count(GapReason.NOT_SEEN, attempts=0, tokens=9)
    recorder.close()
    (path,) = reader.journals(recorder.spool)
    contents = reader.read_journal(path)
    assert (contents.end, contents.taken, contents.damaged, contents.unfinished) == (Ended.COMPLETE, 2, 0, 0)
    assert sum(file.stat().st_blocks * 512 for file in recorder.spool.iterdir()) <= 64 << 10
    assert sealed_gaps(recorder.spool) == {"quota": 5, "not_seen": 0}


def test_what_it_lost_survives_a_kill(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        try:
            recorder = started(tmp_path / "spool", journal_bytes=1 << 20, spool_bytes=64 << 10, keeper_s=0.01)
            finished(bound(recorder), 1)
            until = time.monotonic() + 30
            while recorder.losses.snapshot() and time.monotonic() < until:
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert sealed_gaps(tmp_path / "spool") == {"quota": 1}


def test_when_there_is_a_journal_after_all_the_file_for_losses_is_closed(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool", journal_bytes=64 << 10, spool_bytes=100 << 10)
    blocker = recorder.spool / "other"
    recorder.close()
    blocker.write_bytes(os.urandom(32 << 10))
    second = started(tmp_path / "spool", journal_bytes=64 << 10, spool_bytes=144 << 10)
    binding = bound(second)
    assert finished(binding, 1) is False
    keep(second)
    assert second.losses.snapshot() == {}
    blocker.unlink()
    keep(second)
    assert finished(binding, 2)
    assert sealed_gaps(second.spool) == {"quota": 1}
    assert [row["input_computed"] for row in rows(second, tmp_path, "attempt")] == [2]


def test_a_file_for_losses_that_was_unlinked_is_written_again(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool", journal_bytes=1 << 20, spool_bytes=64 << 10)
    binding = bound(recorder)
    for _ in range(2):
        assert finished(binding, 1) is False
        keep(recorder)
        for path in recorder.spool.iterdir():
            path.unlink()
    recorder.close()
    assert sealed_gaps(recorder.spool) == {"quota": 2}


def test_losses_without_even_room_for_their_own_file_wait_in_memory(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool", spool_bytes=4096)
    assert finished(bound(recorder), 1) is False
    keep(recorder)
    assert recorder.losses.snapshot() == {"quota": 1}
    assert list(recorder.spool.iterdir()) == []
    recorder.close()
    assert recorder.losses.snapshot() == {"quota": 1}


def test_a_child_that_lost_something_and_recorded_nothing_writes_it_at_its_close(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool")
    child = os.fork()
    if child == 0:
        recorder.losses.count(GapReason.NOT_SEEN, attempts=2)
        recorder.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert len(list(reader.journals(recorder.spool))) == 2
    assert gaps(recorder, tmp_path / "gaps") == {"not_seen": 2}


# -- after the close ---------------------------------------------------------------------------------------------------


def test_what_was_lost_after_the_close_is_written_by_the_next_one(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool")
    binding = bound(recorder)
    assert finished(binding, 1)
    recorder.close()
    for number in range(3):
        assert finished(binding, number) is False
    assert recorder.losses.snapshot() == {"shutdown": 3}
    recorder.close()
    recorder.close()
    assert recorder.losses.snapshot() == {}
    assert len(list(reader.journals(recorder.spool))) == 2
    assert sealed_gaps(recorder.spool) == {"shutdown": 3}


AT_EXIT = """
import atexit, gc, sys
{early}
from weighbridge.capture import layout
from weighbridge.capture.context import Context
from weighbridge.capture.recorder import Recorder
from weighbridge.schemas.enumerations import AttemptStatus
done = layout.outcome_word(AttemptStatus.SUCCEEDED)
def use():
    recorder = Recorder.start({spool!r}, installation="test-1", key=bytes(32))
    binding = recorder.bind(Context(task="chat"), counts=("input_computed",))
    assert binding.begin().finish(done, (1,))
    recorder.close()
    return binding
binding = use()
{late}
"""


@pytest.mark.parametrize(
    "late",
    [
        "binding.begin().finish(done, (2,)); binding.begin().finish(done, (3,))",
        "binding.begin().finish(done, (2,)); binding.begin().finish(done, (3,)); del binding; gc.collect()",
        "atexit.register(lambda: [binding.begin().finish(done, (n,)) for n in (2, 3)])",
    ],
    ids=["known", "forgotten", "in-a-later-handler"],
)
def test_what_was_lost_after_the_close_is_written_when_the_interpreter_ends(tmp_path: Path, late: str) -> None:
    source = AT_EXIT.format(spool=str(tmp_path / "spool"), early="", late=late)
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert sealed_gaps(tmp_path / "spool") == {"shutdown": 2}


def test_a_closed_recorder_that_lost_nothing_is_let_go(tmp_path: Path) -> None:
    for number in range(3):
        recorder = started(tmp_path / f"spool-{number}")
        bound(recorder)
        recorder.close()
    del recorder
    gc.collect()
    known = [each for each in (*living.living, *living.closed) if isinstance(each, Recorder)]
    assert not [held for held in known if held.spool.is_relative_to(tmp_path)]


def test_a_child_of_a_closed_recorder_counts_its_own_losses_and_not_those_of_its_parent(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool")
    binding = bound(recorder)
    recorder.close()
    assert finished(binding, 1) is False
    child = os.fork()
    if child == 0:
        kept = finished(binding, 2) or finished(binding, 3)
        recorder.close()
        os._exit(int(kept))
    assert os.waitpid(child, 0)[1] == 0
    recorder.close()
    assert sealed_gaps(recorder.spool) == {"shutdown": 3}


# -- a loss is not lost with what was to hold it -----------------------------------------------------------------------


def test_losses_that_wait_in_a_fallback_file_that_fails_are_written_elsewhere(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool")
    room = 8192

    def write(handle: int, data: bytes) -> int:
        if room <= 0:
            raise OSError(errno.ENOSPC, "no space")
        return os.write(handle, data)

    binding = bound(recorder)
    made = FileJournal(
        new_path(recorder.spool, "test-1", 99), JournalHeader("test-1", {"tail": recorder.tail}), 99, wait_s=5.0,
        buffer_bytes=1 << 20, losses=recorder.losses, write=write,
    )  # fmt: skip
    with recorder.dictionary.lock:
        recorder.journals.change(recorder.journal, recorder.journals.filled(made))
    assert finished(binding, 1)
    room = 0
    recorder.losses.count(GapReason.NOT_SEEN, attempts=4)
    recorder.journals.write_losses()
    keep(recorder)
    assert finished(binding, 2)
    assert gaps(recorder, tmp_path / "gaps") == {"not_seen": 4}
    assert sorted(row["input_computed"] for row in rows(recorder, tmp_path, "attempt")) == [1, 2]


def test_losses_are_given_back_whatever_stops_their_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = started(tmp_path / "spool")

    def fail(_: object) -> bool:
        raise RuntimeError

    recorder.losses.count(GapReason.QUOTA)
    recorder.losses.count(GapReason.SLOW_DISK)
    with monkeypatch.context() as patched:
        patched.setattr(recorder.journals, "put", fail)
        with pytest.raises(RuntimeError):
            recorder.journals.write_losses()
    assert recorder.losses.snapshot() == {"quota": 1, "slow_disk": 1}
    assert gaps(recorder, tmp_path / "gaps") == {"quota": 1, "slow_disk": 1}


def test_what_stands_beside_an_attempt_is_no_attempt_when_it_is_lost(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool")
    binding = bound(recorder)
    attempt = binding.begin()
    recorder.close()
    assert recorder.put_slot(bytes(512)) is False
    assert recorder.put_usage(binding, attempt, DONE, {"prompt_tokens": 1}, 1) is False
    assert recorder.losses.snapshot() == {"shutdown": 0}
    assert attempt.finish(DONE, (1, 2)) is False
    assert recorder.losses.snapshot() == {"shutdown": 1}
