"""The bound of a spool holds for all of its processes together, and waiting for a turn holds nobody up."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from pathlib import Path

import pytest
from tests.capture.recording import bound, finished, gaps, rows, started

from weighbridge.capture.journal import JournalUnavailableError
from weighbridge.capture.keeper import keep
from weighbridge.capture.quota import Quota, sizes, spool_bytes
from weighbridge.schemas.enumerations import GapReason

QUOTA = 800 << 10
JOURNAL = 64 << 10
PROCESSES = 6


def fill(spool: Path, gate: int) -> None:
    """Wait for the gate, then finish attempts into one small file after another until there is no room for long."""
    os.read(gate, 1)
    recorder = started(spool, journal_bytes=JOURNAL, spool_bytes=QUOTA, keeper_s=0.002, wait_s=2.0)
    binding = bound(recorder)
    lost = 0
    for number in range(20_000):
        lost += not finished(binding, number)
        if lost > 50:
            break
    recorder.close()


def test_several_processes_together_stay_within_the_bound(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    gate, opened = os.pipe()
    children = []
    for _ in range(PROCESSES):
        child = os.fork()
        if child == 0:
            try:
                fill(spool, gate)
            except BaseException:  # noqa: BLE001 - the child must not go on as a second test run
                os._exit(1)
            os._exit(0)
        children.append(child)
    os.write(opened, bytes(PROCESSES))
    most, living = 0, set(children)
    while living:
        most = max(most, spool_bytes(spool))
        for child in list(living):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                living.discard(child)
                assert os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.001)
    os.close(gate)
    os.close(opened)
    assert QUOTA - JOURNAL < max(most, spool_bytes(spool)) <= QUOTA


def test_content_and_journals_share_the_bound(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool", journal_bytes=JOURNAL, spool_bytes=JOURNAL + (32 << 10))
    assert finished(bound(recorder), 1)
    assert recorder.content_files.append(bytes(16 << 10)) is None
    assert recorder.content_files.append(bytes(16 << 10)) is GapReason.QUOTA
    assert spool_bytes(recorder.spool) <= JOURNAL + (32 << 10)
    recorder.close()


def test_what_others_make_let_grow_and_delete_is_seen_in_the_next_turn(tmp_path: Path) -> None:
    quota = Quota(tmp_path, 100 << 10)
    theirs = tmp_path / "theirs"
    theirs.write_bytes(b"")
    with quota.room(16 << 10, 0.0):
        pass
    theirs.write_bytes(bytes(90 << 10))
    with pytest.raises(JournalUnavailableError), quota.room(16 << 10, 0.0):
        pass
    theirs.unlink()
    with quota.room(16 << 10, 0.0):
        pass


def test_sizes_are_those_on_disk_and_of_whole_segments(tmp_path: Path) -> None:
    (tmp_path / "x.segment").mkdir()
    (tmp_path / "x.segment" / "a.parquet").write_bytes(bytes(5000))
    (tmp_path / "x.segment" / "b.parquet").write_bytes(bytes(3000))
    (tmp_path / "y.journal").write_bytes(bytes(100))
    found = sizes(tmp_path)
    assert found == {"x.segment": 12 << 10, "y.journal": 4 << 10}
    assert spool_bytes(tmp_path) == 16 << 10
    assert sizes(tmp_path, {"x.segment": 7, "y.journal": 7, "gone": 5}) == {"x.segment": 7, "y.journal": 4 << 10}
    assert sizes(tmp_path / "none") == {}


def test_a_process_that_keeps_its_turn_holds_nobody_up_for_longer_than_the_wait(tmp_path: Path) -> None:
    """A frozen holder: the others wait as long as they said, and go by their own look."""
    recorder = started(tmp_path / "spool", journal_bytes=JOURNAL, wait_s=0.05)
    binding = bound(recorder)
    folder = os.open(recorder.spool, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    first = recorder.journal
    number = 0
    while recorder.journal is first:
        assert finished(binding, number)
        number += 1
    os.close(folder)
    assert recorder.losses.total == 0
    assert len(rows(recorder, tmp_path, "attempt")) == number


def test_the_bound_holds_for_a_process_that_could_not_get_its_turn(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool", journal_bytes=JOURNAL, spool_bytes=JOURNAL + 4096, wait_s=0.01)
    binding = bound(recorder)
    folder = os.open(recorder.spool, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    kept = sum(finished(binding, number) for number in range(300))
    os.close(folder)
    assert gaps(recorder, tmp_path / "gaps") == {"quota": 300 - kept}
    assert spool_bytes(recorder.spool) <= JOURNAL + 4096


def test_a_turn_is_given_back_though_a_child_was_forked_in_it(tmp_path: Path) -> None:
    mine, other = Quota(tmp_path, 1 << 20), Quota(tmp_path, 1 << 20)
    gate, opened = os.pipe()
    with mine.room(1, 0.0):
        child = os.fork()
        if child == 0:
            os.close(opened)
            os.read(gate, 1)  # lives on with all it inherited
            os._exit(0)
    with other.room(1, 0.0):
        assert other._handle >= 0
        fresh = os.open(tmp_path, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(fresh, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(fresh)
    os.close(gate)
    os.close(opened)
    os.waitpid(child, 0)


def test_threads_of_one_process_take_turns(tmp_path: Path) -> None:
    quota = Quota(tmp_path, 10 * 4096)
    made = []

    def make(worker: int) -> None:
        for number in range(10):
            with contextlib.suppress(JournalUnavailableError), quota.room(4096, 5.0):
                (tmp_path / f"{worker}-{number}").write_bytes(b"x")
                made.append(number)

    workers = [threading.Thread(target=make, args=(worker,)) for worker in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(made) == 10
    assert spool_bytes(tmp_path) == 10 * 4096


def test_a_keeper_makes_room_as_soon_as_there_is_some(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool", journal_bytes=JOURNAL, spool_bytes=JOURNAL)
    blocker = recorder.spool / "blocker"
    recorder.close()
    second = started(recorder.spool, journal_bytes=JOURNAL, spool_bytes=JOURNAL + 8192)
    assert finished(bound(second), 1) is False
    for path in recorder.spool.glob("*.journal"):
        if path != blocker and path.stat().st_size > 20_000:
            path.unlink()
    keep(second)
    assert finished(bound(second), 2)
    second.close()
