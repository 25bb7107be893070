"""Whatever goes wrong around the agent: the host goes on, each loss is counted by reason and becomes a gap row."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.capture.recording import COUNTS, DONE, KEY, USAGE, bound, finished, gaps, rows, started

from weighbridge.capture import binding as binding_module
from weighbridge.capture import layout, reader
from weighbridge.capture.binding import Attempt, Binding
from weighbridge.capture.context import Context, Parameters
from weighbridge.capture.file_journal import FileJournal
from weighbridge.capture.guard import RAISE_VARIABLE, Guard, guarded
from weighbridge.capture.journal import JournalHeader, NoJournal, new_path
from weighbridge.capture.keeper import keep
from weighbridge.capture.layout import Kind
from weighbridge.capture.mapped_journal import MappedJournal
from weighbridge.capture.quota import spool_bytes
from weighbridge.capture.recorder import Limits, Recorder
from weighbridge.schemas.enumerations import AttemptStatus, Ended, GapReason


@pytest.fixture
def swallows(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in production: what the guard meets does not come out."""
    monkeypatch.delenv(RAISE_VARIABLE)


# -- no file ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "reason"), [(28, GapReason.DISK_FULL), (122, GapReason.DISK_FULL), (30, GapReason.READ_ONLY)]
)
def test_what_no_file_could_take_becomes_a_gap_when_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, reason: GapReason
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", refuse)
        patched.setattr(os, "pwrite", refuse)
        recorder = started(tmp_path / "spool")
        binding = bound(recorder)
        assert [finished(binding, n) for n in range(3)] == [False] * 3
        keep(recorder)
        assert recorder.losses.snapshot() == {reason: 3}
        assert list(recorder.spool.iterdir()) == []
    keep(recorder)
    assert finished(binding, 3) is True
    assert gaps(recorder, tmp_path / "gaps") == {reason: 3}
    assert [row["input_computed"] for row in rows(recorder, tmp_path, "attempt")] == [3]


@pytest.fixture
def small_disk(tmp_path: Path) -> Any:
    """A file system of its own with room for one journal and a half."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", str(place)]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount command here")
    if done.returncode:
        pytest.skip("a small file system cannot be mounted here: it takes root")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_losses_on_a_full_disk_go_to_the_reserved_slots_of_the_last_file(small_disk: Path, tmp_path: Path) -> None:
    recorder = started(small_disk / "spool", journal_bytes=64 << 10)
    binding = bound(recorder)
    kept = sum(finished(binding, n) for n in range(300))
    assert 0 < kept < 300
    keep(recorder)
    lost_later = sum(not finished(binding, n) for n in range(5))
    assert lost_later == 5
    keep(recorder)
    assert gaps(recorder, tmp_path / "gaps") == {"disk_full": 300 - kept + 5}
    assert len(rows(recorder, tmp_path, "attempt")) == kept


def test_the_quota_is_a_hard_bound(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool", journal_bytes=64 << 10, spool_bytes=200 << 10)
    binding = bound(recorder)
    kept = 0
    for number in range(1_000):
        kept += finished(binding, number)
        if number % 100 == 0:
            keep(recorder)
    assert spool_bytes(recorder.spool) <= 200 << 10
    assert gaps(recorder, tmp_path / "gaps") == {"quota": 1_000 - kept}
    assert len(rows(recorder, tmp_path, "attempt")) == kept


def test_a_spool_that_is_deleted_under_the_agent_is_made_again_with_what_it_held(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool")
    binding = bound(recorder)
    for number in range(5):
        assert finished(binding, number)
    for path in recorder.spool.iterdir():
        path.unlink()
    recorder.spool.rmdir()
    assert finished(binding, 5)
    keep(recorder)
    assert finished(binding, 6)
    keep(recorder)
    assert sorted(row["input_computed"] for row in rows(recorder, tmp_path, "attempt")) == list(range(7))
    assert recorder.losses.total == 0


def test_a_file_that_was_prepared_and_then_cut_is_refused_whole(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool")
    finished(bound(recorder), 1)
    recorder.close()
    (path,) = reader.journals(recorder.spool)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(Exception, match="no journal of this product"):
        reader.read_journal(path)


# -- the fallback ----------------------------------------------------------------------------------------------------


class Disk:
    """A write function that is slow, or full after so many bytes."""

    def __init__(self, wait_s: float = 0.0, room: int = 1 << 40) -> None:
        self.wait_s = wait_s
        self.room = room

    def __call__(self, handle: int, data: bytes) -> int:
        if self.room <= 0:
            raise OSError(28, "no space")
        time.sleep(self.wait_s)
        written = os.write(handle, data[: self.room])
        self.room -= written
        return written


def on_disk(recorder: Recorder, disk: Disk, buffer_bytes: int = 1 << 20, wait_s: float = 0.5) -> Binding:
    """Go on in a fallback file on this disk."""
    binding = bound(recorder)
    made = FileJournal(
        new_path(recorder.spool, "test-1", 99), JournalHeader("test-1", {"tail": recorder.tail}), 99, wait_s=wait_s,
        buffer_bytes=buffer_bytes, losses=recorder.losses, write=disk,
    )  # fmt: skip
    with recorder.dictionary.lock:
        recorder.journals.change(recorder.journal, recorder.journals.filled(made))
    return binding


def test_a_slow_disk_holds_a_finish_no_longer_than_the_wait(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool")
    disk = Disk()
    binding = on_disk(recorder, disk)
    assert finished(binding, 0)
    disk.wait_s = 3.0
    began = time.monotonic()
    assert finished(binding, 1) is False
    assert 0.5 <= time.monotonic() - began < 2.5
    assert recorder.not_durable == 1
    disk.wait_s = 0.0
    assert sorted(row["input_computed"] for row in rows(recorder, tmp_path, "attempt")) == [0, 1]
    assert recorder.losses.total == 0


def test_what_a_slow_disk_leaves_no_room_for_is_counted(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool")
    disk = Disk()
    binding = on_disk(recorder, disk, buffer_bytes=8192, wait_s=0.05)
    assert finished(binding, 0)
    disk.wait_s = 2.0
    for number in range(1, 11):
        assert finished(binding, number) is False
    disk.wait_s = 0.0
    lost = recorder.losses.total
    assert lost >= 3
    assert gaps(recorder, tmp_path / "gaps") == {"slow_disk": lost}
    assert len(rows(recorder, tmp_path, "attempt")) == 11 - lost


def test_a_fallback_file_that_failed_half_way_is_left_and_followed(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool")
    disk = Disk()
    binding = on_disk(recorder, disk)
    assert finished(binding, 0)
    disk.room = 100
    assert finished(binding, 1) is False
    assert finished(binding, 2) is False
    keep(recorder)
    assert finished(binding, 3) is True
    assert gaps(recorder, tmp_path / "gaps")["disk_full"] == 2
    assert sorted(row["input_computed"] for row in rows(recorder, tmp_path, "attempt")) == [0, 3]


def test_the_fallback_keeps_every_attempt_of_many_threads(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool", mapped=False)
    in_threads(bound(recorder), 4, 200)
    assert sorted(row["input_computed"] for row in rows(recorder, tmp_path, "attempt")) == list(range(800))


# -- threads, forks, tasks, the end ------------------------------------------------------------------------------------


def in_threads(binding: Binding, threads: int, each: int) -> None:
    def serve(worker: int) -> None:
        for number in range(each):
            finished(binding, worker * each + number)

    workers = [threading.Thread(target=serve, args=(worker,)) for worker in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def test_eight_threads_lose_and_double_nothing(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool", keeper_s=0.01, journal_bytes=1 << 20)
    in_threads(bound(recorder), 8, 5_000)
    recorder.close()
    seen: list[int] = []
    for path in reader.journals(recorder.spool):
        contents = reader.read_journal(path)
        assert (contents.end, contents.damaged, contents.unfinished) == (Ended.COMPLETE, 0, 0)
        seen += [words[10] for _, words in contents.slots if words[0] & 0xFF == Kind.ATTEMPT]
    assert sorted(seen) == list(range(40_000))
    assert recorder.losses.total == 0


def test_two_threads_that_finish_one_attempt_store_it_once(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool")
    binding = bound(recorder)
    attempts = [binding.begin() for _ in range(2_000)]

    def serve() -> None:
        for attempt in attempts:
            attempt.finish(DONE, (1, 2), USAGE)

    workers = [threading.Thread(target=serve) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert recorder.repeated == 3 * 2_000
    assert len(rows(recorder, tmp_path, "attempt")) == 2_000


def test_new_shapes_and_contexts_while_files_roll_do_not_lock_up(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool", keeper_s=0.005, journal_bytes=64 << 10)

    def serve(worker: int) -> None:
        for number in range(300):
            binding = recorder.bind(
                Context(task=f"task-{worker}-{number % 20}"), counts=COUNTS, parameters=Parameters(max_tokens=number)
            )
            binding.begin().finish(DONE, (worker * 300 + number, 2), {f"key{number % 5}": 1, "prompt_tokens": 2})

    workers = [threading.Thread(target=serve, args=(worker,), daemon=True) for worker in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=60)
        assert not worker.is_alive()
    found = rows(recorder, tmp_path, "attempt")
    assert sorted(row["input_computed"] for row in found) == list(range(1_200))
    assert all(row["max_tokens"] == row["input_computed"] % 300 for row in found)
    assert all(row["task"] == f"task-{row['input_computed'] // 300}-{row['input_computed'] % 20}" for row in found)


def test_a_store_under_way_at_a_close_spoils_nothing_of_its_page(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool")
    binding = bound(recorder)
    assert finished(binding, 0)
    journal = recorder.journal
    assert isinstance(journal, MappedJournal)
    offset = next(journal.places)
    assert finished(binding, 1)
    recorder.close()
    # The thread that had taken the slot goes on only now.
    store, tag = binding.hot
    attempt = binding.begin()
    store(
        journal, offset, (tag, attempt.hi, attempt.lo, 0, 0, attempt.arrived_us, -1, DONE | 1 << 32, 1, -1), (2, 2),
        USAGE,
    )  # fmt: skip
    (path,) = reader.journals(recorder.spool)
    contents = reader.read_journal(path)
    assert sorted(words[10] for _, words in contents.slots) == [0, 1, 2]
    assert (contents.end, contents.damaged, contents.unfinished) == (Ended.COMPLETE, 0, 0)
    assert contents.unchecked


def test_a_child_forked_beside_threads_has_files_and_locks_of_its_own(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool", keeper_s=0.001)
    binding = bound(recorder)
    stop = threading.Event()

    def serve() -> None:
        while not stop.is_set():
            recorder.bind(Context(task=f"task-{time.time_ns()}"), counts=COUNTS)
            recorder.losses.count(GapReason.FORK, attempts=0)

    workers = [threading.Thread(target=serve) for _ in range(3)]
    for worker in workers:
        worker.start()
    children = []
    for number in range(5):
        child = os.fork()
        if child == 0:
            kept = finished(binding, 100 + number) and bool(recorder.bind(Context(task="child"), counts=COUNTS))
            recorder.close()
            os._exit(0 if kept else 1)
        children.append(child)
    stop.set()
    for worker in workers:
        worker.join()
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert codes == [0] * 5
    assert finished(binding, 0)
    found = rows(recorder, tmp_path, "attempt")
    assert sorted(row["input_computed"] for row in found) == [0, 100, 101, 102, 103, 104]


def test_a_child_that_records_nothing_makes_no_file(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool")
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    assert len(list(recorder.spool.iterdir())) == 1
    recorder.close()


def test_a_cancelled_task_leaves_an_aborted_attempt(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool")
    binding = bound(recorder)

    async def serve(number: int) -> None:
        attempt = binding.begin()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            attempt.finish(layout.outcome_word(AttemptStatus.ABORTED), (number, -1))
            raise

    async def all_of_them() -> None:
        tasks = [asyncio.create_task(serve(number)) for number in range(50)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(all_of_them())
    found = rows(recorder, tmp_path, "attempt")
    assert sorted(row["input_computed"] for row in found) == list(range(50))
    assert {row["status"] for row in found} == {"aborted"}


def test_an_interpreter_that_ends_closes_its_journal(tmp_path: Path) -> None:
    source = f"""
import threading, time
from weighbridge.capture import layout
from weighbridge.capture.context import Context
from weighbridge.capture.recorder import Recorder
from weighbridge.schemas.enumerations import AttemptStatus
recorder = Recorder.start({str(tmp_path / "spool")!r}, installation="test-1", key=bytes(32))
binding = recorder.bind(Context(task="chat"), counts=("input_computed",))
done = layout.outcome_word(AttemptStatus.SUCCEEDED)
def serve():
    while True:
        binding.begin().finish(done, (1,))
        time.sleep(0.001)
threading.Thread(target=serve, daemon=True).start()
time.sleep(0.1)
binding.begin().finish(done, (7,))
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    files = [reader.read_journal(path) for path in reader.journals(tmp_path / "spool")]
    assert {contents.end for contents in files} == {Ended.COMPLETE}
    attempts = [words[10] for contents in files for _, words in contents.slots if words[0] & 0xFF == Kind.ATTEMPT]
    assert 7 in attempts
    # The thread went on to the very end: what it finished after the close, and before the last look, was lost and said.
    assert len(files) <= 2


def test_after_the_close_the_host_goes_on_and_attempts_are_counted(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool")
    binding = bound(recorder)
    recorder.close()
    recorder.close()
    assert finished(binding, 1) is False
    assert recorder.losses.snapshot() == {"shutdown": 1}
    recorder.bind(Context(task="late"), counts=COUNTS)


def test_a_clock_that_jumps_disturbs_neither_keys_nor_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = started(tmp_path / "spool")
    binding = bound(recorder)
    real = time.time_ns
    ten_years = 10 * 365 * 86_400 * 10**9
    for number, jump in enumerate((0, -ten_years, ten_years, -60 * 10**9, 0)):
        monkeypatch.setattr(time, "time_ns", lambda jump=jump: real() + jump)
        monkeypatch.setattr(binding_module, "_now", time.time_ns)
        assert finished(binding, number)
        recorder.losses.count(GapReason.QUOTA)
    found = rows(recorder, tmp_path, "attempt")
    assert sorted(row["input_computed"] for row in found) == list(range(5))
    assert len({(row["attempt_hi"], row["attempt_lo"]) for row in found}) == 5
    (gap,) = rows(recorder, tmp_path, "gap")
    assert gap["attempts"] == 5
    assert gap["began_at"] <= gap["ended_at"]


# -- what a host may pass ----------------------------------------------------------------------------------------------


class Raising(dict[str, int]):
    """A usage object that raises when it is read."""

    def __getitem__(self, key: str) -> int:
        raise RuntimeError("CANARY")

    def items(self) -> Any:
        raise RuntimeError("CANARY")


class Changing(dict[str, int]):
    """A usage object that grows while it is read."""

    def __len__(self) -> int:
        self[f"key{super().__len__()}"] = 1
        return super().__len__()


class Injected(str):
    """A key whose `repr` is a piece of code."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'x'] or print('CANARY') or u['x'"


BIG = "x" * 10_000_000
HOSTILE: list[object] = [
    None, "CANARY text", 7, 7.5, b"CANARY", object(), [1, 2], [[1]], Raising(prompt_tokens=1),
    Changing(prompt_tokens=1),
    {Injected("prompt_tokens"): 1}, {1: 2}, {"prompt_tokens": BIG}, {BIG: 1}, {"prompt": BIG, "prompt_tokens": 3},
    {f"k{n}": n for n in range(100_000)}, {"prompt_tokens": 1 << 70}, {"prompt_tokens": float("nan")},
    {"cost": float("inf")}, {"prompt_tokens": object()},
    {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": 1}}}}}}}}},
    {"\ud800": 1, "'; import os": 2, "\n": 3},
]  # fmt: skip


@pytest.mark.usefixtures("swallows")
def test_any_usage_object_leaves_its_attempt_standing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorder = started(tmp_path / "spool")
    binding = bound(recorder)
    began = time.monotonic()
    for number, usage in enumerate(HOSTILE):
        assert binding.begin().finish(DONE, (number, 2), usage), number
    assert time.monotonic() - began < 20
    assert finished(binding, len(HOSTILE))
    found = rows(recorder, tmp_path, "attempt")
    assert sorted(row["input_computed"] for row in found) == list(range(len(HOSTILE) + 1))
    assert recorder.losses.total == 0
    assert "CANARY" not in capsys.readouterr().out
    assert not any(b"CANARY" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_a_bool_and_a_nan_are_not_stored_as_numbers(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool")
    binding = bound(recorder)
    for usage in ({"prompt_tokens": 5}, {"prompt_tokens": True}, {"cost": 0.5}, {"cost": float("nan")}, {"cost": 1}):
        assert binding.begin().finish(DONE, (1, 2), usage)
    reports = [
        (row["leaf_shape"], row["leaf_integers"], row["leaf_texts"]) for row in rows(recorder, tmp_path, "usage_report")
    ]
    assert sorted(reports, key=str) == [
        ("usage.cost", [1], None),
        ("usage.cost", [None], ["0.5"]),
        ("usage.prompt_tokens", [5], None),
    ]
    assert sorted(row["reason"] for row in rows(recorder, tmp_path, "quarantine")) == ["not_a_number", "type"]


@pytest.mark.usefixtures("swallows")
def test_wrong_types_everywhere_are_unknown_not_fatal(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool")
    binding = bound(recorder)
    calls: list[Callable[[Attempt], bool]] = [
        lambda a: a.finish(None),  # type: ignore[arg-type]
        lambda a: a.finish("text", "text", "text", "text"),  # type: ignore[arg-type]
        lambda a: a.finish(DONE, (1, None), USAGE),  # type: ignore[arg-type]
        lambda a: a.finish(DONE, (1.5, 1 << 70), USAGE),  # type: ignore[arg-type]
        lambda a: a.finish(DONE, (1, 2, 3, 4), USAGE),
        lambda a: a.finish(DONE, object(), USAGE),  # type: ignore[arg-type]
        lambda a: a.finish(1 << 80, (1, 2), USAGE),
    ]
    for call in calls:
        assert call(binding.begin()) is True
    bad = binding.begin(key=("a", "b"), request=5, scope="x", number=None, level="high")  # type: ignore[arg-type]
    assert bad.finish(DONE, (1, 2), USAGE) is True
    assert recorder.finish_many([None, 3]) == 0  # type: ignore[list-item]
    assert recorder.finish_many(None) == 0  # type: ignore[arg-type]
    found = rows(recorder, tmp_path, "attempt")
    assert len(found) == len(calls) + 1
    assert [row["input_computed"] for row in found].count(None) == 4
    assert sum(row["status"] == "unknown" for row in found) == 3


@pytest.mark.usefixtures("swallows")
def test_an_outcome_that_means_nothing_is_counted_and_stops_no_other(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool")
    binding = bound(recorder)
    assert binding.begin().finish(255, (1, 2), USAGE)
    assert finished(binding, 2)
    assert gaps(recorder, tmp_path / "gaps") == {"corrupt": 1}
    assert [row["input_computed"] for row in rows(recorder, tmp_path, "attempt")] == [2]


@pytest.mark.usefixtures("swallows")
def test_the_guard_swallows_what_a_callback_raises_and_nothing_else() -> None:
    @guarded(default=0)
    def fails() -> int:
        raise ValueError("CANARY")

    assert fails() == 0
    with Guard("test"):
        raise ValueError("CANARY")
    with pytest.raises(KeyboardInterrupt), Guard("test"):
        raise KeyboardInterrupt


# -- bounds ------------------------------------------------------------------------------------------------------------


def test_a_hundred_thousand_attempts_in_flight_stay_under_their_bound(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool")
    binding = bound(recorder)
    before = resident()
    waiting = [binding.begin() for _ in range(100_000)]
    assert resident() - before < 64 << 20
    assert len({(attempt.hi, attempt.lo) for attempt in waiting}) == 100_000
    assert sum(attempt.finish(DONE, (1, 2), USAGE) for attempt in waiting) == 100_000
    assert recorder.losses.total == 0
    recorder.close()


def resident() -> int:
    """Bytes of this process that are in memory and its own."""
    with Path("/proc/self/statm").open(encoding="ascii") as file:
        words = file.read().split()
    return (int(words[1]) - int(words[2])) * os.sysconf("SC_PAGE_SIZE")


def test_the_dictionary_forgets_what_no_one_uses_and_files_stay_readable(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool", journal_bytes=64 << 10)
    kept = recorder.bind(Context(task="kept"), counts=COUNTS)
    for number in range(2_000):
        other = recorder.bind(Context(task=f"task-{number}"), counts=COUNTS)
        assert other.begin().finish(DONE, (number, 2), USAGE)
        del other
    assert kept.begin().finish(DONE, (9_999, 2), USAGE)
    assert len(recorder.dictionary) < 500
    found = rows(recorder, tmp_path, "attempt")
    assert {row["input_computed"]: row["task"] for row in found} == {
        **{number: f"task-{number}" for number in range(2_000)},
        9_999: "kept",
    }


def test_a_plan_that_is_in_use_is_kept_however_many_shapes_stand_beside_it(tmp_path: Path) -> None:
    """Shapes of further usage push a plan out of the list its binding tries, not out of the files."""
    recorder = started(tmp_path / "spool", journal_bytes=64 << 10)
    binding = bound(recorder)
    attempt = binding.begin()
    assert finished(binding, 0)
    for number in range(250):
        assert recorder.put_usage(binding, attempt, DONE, {f"key{number}": 1}, number + 1)
    for number in range(1, 3_000):
        assert finished(binding, number)
    assert attempt.finish(DONE, (3_000, 2), USAGE)
    assert sorted(row["input_computed"] for row in rows(recorder, tmp_path, "attempt")) == list(range(3_001))
    assert gaps(recorder, tmp_path / "gaps") == {}


def test_a_new_policy_is_named_by_the_file_that_follows(tmp_path: Path) -> None:
    policy = tmp_path / "policy.json"
    policy.write_text('{"version": 1}')
    recorder = Recorder.start(
        tmp_path / "spool", installation="a/b", key=KEY, limits=Limits(keeper_s=3600), policy_file=policy
    )
    binding = bound(recorder)
    assert finished(binding, 1)
    policy.write_text('{"version": 1, "cells": [{"level": 2, "purpose": "billing_audit", "expires": "2999-01-01"}]}')
    keep(recorder)
    assert finished(binding, 2)
    assert binding.decision is not None
    binding.decision = dataclasses.replace(binding.decision, until_ns=time.time_ns() - 1)
    assert finished(binding, 3)
    recorder.close()
    told = {}
    for path in recorder.spool.iterdir():
        contents = reader.read_journal(path)
        for _, words in contents.slots:
            told[words[10]] = (contents.header["policy"], layout.Outcome.of(words[7]).level)
    assert told[1][0] != told[2][0]
    assert (told[1][1], told[2][1], told[3][1]) == (1, 2, 1)


def test_no_journal_means_no_raise_when_binding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    recorder = started(tmp_path / "file" / "spool")
    assert isinstance(recorder.journal, NoJournal)
    binding = bound(recorder)
    assert finished(binding, 1) is False
    assert recorder.losses.snapshot() == {"read_only": 1}
    with contextlib.suppress(OSError):
        recorder.close()
