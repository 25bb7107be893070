"""Attacks on the store through a memoryview: forks, closes and strange objects in the middle of it."""

from __future__ import annotations

import array
import enum
import gc
import itertools
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.capture.recording import DONE, USAGE, bound, finished, rows, started

from weighbridge.capture import journals as journals_module
from weighbridge.capture import plan as plan_module
from weighbridge.capture import reader
from weighbridge.capture.file_journal import FileJournal
from weighbridge.capture.guard import RAISE_VARIABLE
from weighbridge.capture.journal import JournalHeader
from weighbridge.capture.keeper import keep
from weighbridge.capture.layout import HEAD, SLOT, Kind
from weighbridge.capture.mapped_journal import MappedJournal
from weighbridge.capture.plan import Scratch, compile_plan
from weighbridge.capture.recorder import Recorder
from weighbridge.capture.sealing import seal_spool
from weighbridge.schemas.enumerations import Ended


@pytest.fixture
def swallows(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in production: what the guard meets does not come out."""
    monkeypatch.delenv(RAISE_VARIABLE)


def in_child(work: Callable[[], bool]) -> None:
    """Run it in a forked child; whether it went well is what the child says."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if work() else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# -- forks -------------------------------------------------------------------------------------------------------------


class Forking:
    """An integer that forks when its value is asked for, once."""

    def __init__(self) -> None:
        self.child: int | None = None

    def __index__(self) -> int:
        if self.child is None:
            self.child = os.fork()
        return 3


@pytest.mark.usefixtures("swallows")
@pytest.mark.parametrize(
    ("usage", "told"),
    [(USAGE, [[1, 3, 5], [4]]), ({"prompt_tokens": 1, "total_tokens": 2}, [[1, 3, 5], [3, 4]])],
    ids=["in the middle of a store, a slice of the mapping exported", "while a record is rendered"],
)
def test_a_fork_in_the_middle_of_a_finish_spoils_no_file(
    tmp_path: Path, usage: dict[str, int], told: list[list[int]]
) -> None:
    """Both go on: where the store had begun they store the same in the same slot, else each in a file of its own."""
    recorder = started(tmp_path / "spool")
    binding = bound(recorder)
    assert finished(binding, 1)
    forking = Forking()
    kept = binding.begin().finish(DONE, (forking, 2), usage)  # type: ignore[arg-type]
    if forking.child == 0:
        code = 1
        try:
            code = 0 if kept and finished(binding, 4) else 2
            recorder.close()
        finally:
            os._exit(code)
    assert forking.child is not None
    assert kept
    assert os.waitstatus_to_exitcode(os.waitpid(forking.child, 0)[1]) == 0
    assert finished(binding, 5)
    recorder.close()
    files = [reader.read_journal(path) for path in reader.journals(recorder.spool)]
    assert [(contents.damaged, contents.unfinished, contents.end) for contents in files] == [(0, 0, Ended.COMPLETE)] * 2
    assert sorted(sorted(words[10] for _, words in contents.slots) for contents in files) == told


@pytest.mark.usefixtures("swallows")
def test_a_child_that_was_handed_a_slot_of_its_parent_does_not_touch_it(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool")
    binding = bound(recorder)
    assert finished(binding, 1)
    journal = recorder.journal
    assert isinstance(journal, MappedJournal)
    held = journal.words[8:16]  # a frame of another thread keeps the mapping of the child open
    offset = next(journal.places)
    attempt = binding.begin()

    def work() -> bool:
        kept = recorder.write_slow(attempt, DONE, (2, 2), USAGE, -1, journal, offset)
        recorder.close()
        return kept and held[0] is not None

    in_child(work)
    assert journal.buffer[offset : offset + SLOT] == bytes(SLOT)
    journal.void(offset)
    held.release()
    recorder.close()
    files = [reader.read_journal(path) for path in reader.journals(recorder.spool)]
    assert sorted([words[10] for _, words in contents.slots] for contents in files) == [[1], [2]]


def test_forgetting_a_file_twice_or_after_it_was_closed_closes_no_descriptor_of_the_host(tmp_path: Path) -> None:
    for mapped in (True, False):
        recorder = started(tmp_path / f"spool-{mapped}", mapped=mapped)
        assert finished(bound(recorder), 1) or not mapped
        journal = recorder.journal
        recorder.close()
        hosts = [os.open(os.devnull, os.O_RDONLY) for _ in range(8)]  # takes the numbers that were let go of
        assert not journal.vanished()
        for _ in range(2):
            journal.forget()
        for host in hosts:
            os.close(host)


def test_a_fork_while_files_are_closed_leaves_the_child_with_its_own(tmp_path: Path) -> None:
    """The keeper is between closing a file and dropping it from its list: the child may not trip over it."""
    recorder = started(tmp_path / "spool", journal_bytes=64 << 10)
    recorder.keeper.wake = lambda: None  # type: ignore[method-assign]
    binding = bound(recorder)
    first = recorder.journal
    while recorder.journal is first:
        assert finished(binding, 1)
    first.close(2, 0, 0)
    assert recorder.journals._old == [first]

    def work() -> bool:
        kept = finished(binding, 2)
        recorder.close()
        return kept and recorder.losses.total == 0

    in_child(work)
    del recorder.keeper.wake
    recorder.journals._old.clear()
    recorder.close()


def test_a_child_does_not_keep_the_files_of_its_parent_from_being_sealed(tmp_path: Path) -> None:
    """A fork beneath Python inherits every lock; the parent says aloud that it lets go."""
    recorder = started(tmp_path / "spool")
    assert finished(bound(recorder), 1)
    gate, opened = os.pipe()
    before = recorder.journals.forget
    recorder.journals.forget = lambda: None  # type: ignore[method-assign]
    child = os.fork()
    if child == 0:
        os.close(opened)
        os.read(gate, 1)
        os._exit(0)
    recorder.journals.forget = before  # type: ignore[method-assign]
    recorder.close()
    done = seal_spool(recorder.spool)
    os.close(gate)
    os.close(opened)
    os.waitpid(child, 0)
    assert (len(done.segments), done.left) == (1, [])


# -- closes and discards ----------------------------------------------------------------------------------------------


def test_a_file_that_is_let_go_of_stays_mapped_for_whoever_still_stores_in_it(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool")
    binding = bound(recorder)
    assert finished(binding, 1)
    journal = recorder.journal
    assert isinstance(journal, MappedJournal)
    words, reals, offset = journal.words, journal.reals, next(journal.places)
    path = journal.path
    recorder.close()
    del journal
    gc.collect()
    words[offset >> 3] = Kind.VOID
    words[(offset >> 3) + SLOT // 8 - 1] = offset
    assert reals[offset >> 3] != 0
    words.release()
    reals.release()
    assert reader.read_journal(path).damaged == 0


def test_files_that_are_discarded_roll_and_close_while_threads_store(tmp_path: Path) -> None:
    """Small files, a policy that changes, new contexts and a keeper without rest: nothing is lost, doubled or left."""
    recorder = started(tmp_path / "spool", journal_bytes=64 << 10, keeper_s=0.001, journal_roll_s=0.0)
    stop = threading.Event()

    def trouble() -> None:
        while not stop.is_set():
            recorder.journals.rename_policy()
            recorder.journals.follow_old()
            recorder.journals.replace_lost()

    def serve(worker: int) -> None:
        binding = bound(recorder)
        for number in range(600):
            if number % 50 == 0:
                binding = bound(recorder)
            assert finished(binding, worker * 600 + number)

    troubles = [threading.Thread(target=trouble) for _ in range(2)]
    workers = [threading.Thread(target=serve, args=(worker,)) for worker in range(3)]
    for thread in (*troubles, *workers):
        thread.start()
    for thread in workers:
        thread.join()
    stop.set()
    for thread in troubles:
        thread.join()
    recorder.close()
    files = [reader.read_journal(path) for path in reader.journals(recorder.spool)]
    assert {(contents.end, contents.damaged, contents.unfinished) for contents in files} == {(Ended.COMPLETE, 0, 0)}
    seen = [words[10] for contents in files for _, words in contents.slots if words[0] & 0xFF == Kind.ATTEMPT]
    assert sorted(seen) == list(range(1_800))
    assert recorder.losses.total == 0


def test_slots_taken_when_a_file_is_stopped_do_not_make_its_closing_record_doubtful(tmp_path: Path) -> None:
    """A thread may take a slot after the last one that counts. It is given back where it lies, or not touched."""
    journal = MappedJournal(tmp_path / "a.journal", JournalHeader("test-1", {}), 0, 64 << 10)
    slot = bytes((Kind.VOID,)) + bytes(SLOT - 1)
    assert journal.put(slot)
    journal.stop()
    late = [next(journal.places) for _ in range(3)]
    assert [journal.holds(offset) for offset in late] == [False] * 3
    assert journal.put(slot) is None
    assert journal.buffer[late[0] : late[-1] + 2 * SLOT] == bytes(4 * SLOT)
    journal.void(late[1])  # as one that asked before the limit was set
    journal.close(2, 1, 0)
    contents = reader.read_journal(journal.path)
    assert (contents.end, contents.damaged, contents.unfinished) == (Ended.COMPLETE, 0, 0)


SHUTDOWN = """
import atexit, gc, threading, time, sys
from weighbridge.capture import layout
from weighbridge.capture.context import Context
from weighbridge.capture.recorder import Recorder
from weighbridge.capture.sealing import seal_spool
from weighbridge.schemas.enumerations import AttemptStatus
recorder = Recorder.start({spool!r}, installation="test-1", key=bytes(32))
binding = recorder.bind(Context(task="chat"), counts=("input_computed",))
done = layout.outcome_word(AttemptStatus.SUCCEEDED)
binding.begin().finish(done, (1,), {{"prompt_tokens": 1}})
def serve():
    while True:
        binding.begin().finish(done, (5,), {{"prompt_tokens": 1}})
def start(function):
    threading.Thread(target=function, daemon=True).start()
class Last:
    def __init__(self):
        self.binding, self.attempt, self.done = binding, binding.begin(), done
        self.me = self
    def __del__(self):
        self.attempt.finish(self.done, (2,), {{"prompt_tokens": 1}})
        self.binding.begin().finish(self.done, (2,), {{"other": 1}})
{body}
"""


@pytest.mark.parametrize(
    "body",
    [
        "last = Last()",
        "sys.last = Last()",
        "gc.disable(); Last()",
        "threading.last = Last()\nstart(serve)\nstart(serve)\ntime.sleep(0.05)",
    ],
    ids=["module", "sys", "cycle", "threads"],
)
def test_a_finish_while_the_interpreter_is_taken_down_says_nothing_and_stops_nothing(tmp_path: Path, body: str) -> None:
    source = SHUTDOWN.format(spool=str(tmp_path / "spool"), body=body)
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    files = [reader.read_journal(path) for path in reader.journals(tmp_path / "spool")]
    assert {(contents.end, contents.damaged) for contents in files} == {(Ended.COMPLETE, 0)}


# -- numbers and objects that are no plain JSON ------------------------------------------------------------------------


class Stubborn:
    """An object that looks like an integer and is none when it comes to it."""

    def __index__(self) -> int:
        raise RuntimeError("CANARY")


class Flag(enum.IntFlag):
    """Its members are integers."""

    ONE = 1


ODD: list[tuple[object, tuple[int | None, int | None]]] = [
    ((None, -1), (None, None)),
    ((-1, 0), (None, 0)),
    (((1 << 63) - 1, 2), ((1 << 63) - 1, 2)),
    ((1 << 63, 2), (None, 2)),
    ((-(1 << 63) - 1, 2), (None, 2)),
    ((np.int64(5), np.uint64(6)), (5, 6)),
    ((np.uint64((1 << 64) - 1), 2), (None, 2)),
    (np.array([5, 6]), (5, 6)),
    (array.array("q", [5, 6]), (5, 6)),
    ((Stubborn(), 2), (None, 2)),
    ((Flag.ONE, True), (1, 1)),
    ((1.0, 2), (None, 2)),
    (("5", b"6"), (None, None)),
    ((5,), (5, None)),
    ((5, 6, 7), (5, 6)),
    ((), (None, None)),
    (tuple(range(3_000_000)), (0, 1)),
    (range(1 << 62), (0, 1)),
    (itertools.count(), (None, None)),
    ({"input_computed": 5}, (None, None)),
    (None, (None, None)),
]


@pytest.mark.usefixtures("swallows")
@pytest.mark.parametrize("mapped", [True, False])
def test_counts_of_any_kind_are_stored_as_they_are_or_unknown(tmp_path: Path, mapped: bool) -> None:
    recorder = started(tmp_path / "spool", mapped=mapped, wait_s=5.0)
    binding = bound(recorder)
    began = time.monotonic()
    for counts, _ in ODD:
        assert binding.begin().finish(DONE, counts, USAGE)  # type: ignore[arg-type]
    assert time.monotonic() - began < 20
    found = rows(recorder, tmp_path, "attempt")
    assert [(row["input_computed"], row["output_computed"]) for row in found] == [stored for _, stored in ODD]
    assert recorder.losses.total == 0


class Loud(dict[str, Any]):
    """A dict that answers for keys it has not."""

    def __missing__(self, key: str) -> int:
        return 0


@pytest.mark.parametrize(
    "kind",
    [Counter, Loud, OrderedDict, lambda told: defaultdict(int, told)],
    ids=["counter", "loud", "ordered", "default"],
)
def test_a_count_that_a_dict_makes_up_is_not_one_that_was_reported(tmp_path: Path, kind: Any) -> None:
    """A Counter answers 0 for what it has not: as many keys, other names."""
    recorder = started(tmp_path / "spool")
    binding = bound(recorder)
    assert binding.begin().finish(DONE, (1, 2), {"prompt_tokens": 5, "completion_tokens": 6})
    assert binding.begin().finish(DONE, (1, 2), {"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 6}})
    told = kind({"prompt_tokens": 7, "total_tokens": 8})
    nested = {"prompt_tokens": 7, "prompt_tokens_details": kind({"audio_tokens": 8})}
    for usage in (told, nested):
        assert binding.begin().finish(DONE, (1, 2), usage)
    assert dict(told) == {"prompt_tokens": 7, "total_tokens": 8}
    assert len(nested["prompt_tokens_details"]) == 1
    found = [(r["leaf_shape"], r["leaf_integers"]) for r in rows(recorder, tmp_path, "usage_report")][2:]
    assert found == [
        ("usage.prompt_tokens usage.total_tokens", [7, 8]),
        ("usage.prompt_tokens usage.prompt_tokens_details.audio_tokens", [7, 8]),
    ]


@pytest.mark.usefixtures("swallows")
def test_numbers_that_no_slot_holds_teach_the_binding_nothing(tmp_path: Path) -> None:
    """Shapes are learnt, values are not: a provider of absurd numbers may not use up what a binding learns."""
    recorder = started(tmp_path / "spool")
    binding = bound(recorder)
    assert finished(binding, 1)
    usage = {"prompt_tokens": 5, "cost": 0.5}
    for number in range(300):
        assert binding.begin().finish(DONE, (1, 2), {"prompt_tokens": 1 << 63 + number % 3, "completion_tokens": 2})
        assert binding.begin().finish(DONE, (1, 2), usage | {"cost": np.float64(0.5)})
        assert binding.begin().finish(DONE, (1, 2), usage | {"prompt_tokens": Stubborn()})
    assert (len(binding.plans), binding.learnt) == (2, 2)
    assert binding.begin().finish(DONE, (1, 2), {"promptTokenCount": 3})
    assert binding.learnt == 3
    assert len(rows(recorder, tmp_path, "attempt")) == 902


@pytest.mark.usefixtures("swallows")
def test_a_usage_object_that_holds_itself_or_is_deep_leaves_its_attempt_standing(tmp_path: Path) -> None:
    recorder = started(tmp_path / "spool")
    binding = bound(recorder)
    ring: dict[str, Any] = {"prompt_tokens": 1}
    ring["details"] = ring
    counted: dict[str, Any] = Counter({"prompt_tokens": 1})
    counted["details"] = counted
    chain: list[Any] = []
    for _ in range(5_000):
        chain = [chain]
    wide = {"prompt_tokens": 1, "details": [{} for _ in range(70)] + [dict.fromkeys(range(100_000))]}
    strange: list[object] = [ring, counted, {"prompt_tokens": chain}, wide]
    for usage in strange:
        assert binding.begin().finish(DONE, (1, 2), usage)
    assert len(rows(recorder, tmp_path, "attempt")) == 4
    assert recorder.losses.total == 0


# -- other machines ----------------------------------------------------------------------------------------------------


def test_a_slot_is_little_endian_on_every_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a big-endian machine a memoryview stores the words the other way round."""
    usage = {"prompt_tokens": 7, "cost": 0.25}
    plan = compile_plan(1, ("input_computed",), usage, bytes(32))
    scratch = Scratch()
    plan.store(scratch, 0, range(len(HEAD)), (5,), usage)
    here = scratch.slot()
    assert here == bytes(scratch.raw)
    scratch.raw[:] = b"".join(here[at : at + 8][::-1] for at in range(0, SLOT, 8))
    monkeypatch.setattr(plan_module, "BIG_ENDIAN", True)
    assert scratch.slot() == here
    assert struct.unpack_from("<q", here, 8 * len(HEAD)) == (5,)
    assert struct.unpack_from("<d", here, 8 * (len(HEAD) + 1 + plan.kinds.index("d"))) == (0.25,)


def test_where_slots_cannot_be_mapped_in_order_the_fallback_stores_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(recorder: Recorder) -> list[tuple[int, ...]]:
        binding = bound(recorder)
        for number in range(20):
            usage: object = None if number % 3 else {"prompt_tokens": number, "cost": 0.5}
            assert binding.begin().finish(DONE, (number, -1), usage)
        keep(recorder)
        recorder.close()
        (path,) = reader.journals(recorder.spool)
        contents = reader.read_journal(path)
        return [(words[0] & 0x7F, *words[6:9], *words[10:]) for (_, words) in contents.slots]

    mapped = told(started(tmp_path / "mapped"))
    monkeypatch.setattr(journals_module, "MAPPABLE", False)
    recorder = started(tmp_path / "file", wait_s=5.0)
    assert isinstance(recorder.journal, FileJournal)
    assert told(recorder) == mapped


@pytest.mark.parametrize("mapped", [True, False])
def test_a_signal_that_is_handled_in_the_middle_of_finishes_spoils_nothing(tmp_path: Path, mapped: bool) -> None:
    """A handler that finishes attempts of its own, as one that answers open requests at SIGTERM does."""
    recorder = started(tmp_path / "spool", journal_bytes=64 << 10, mapped=mapped, wait_s=0.5)
    binding = bound(recorder)
    inner = itertools.count(1_000_000)
    kept: list[bool] = []

    def handle(*told: object) -> None:
        for _ in range(10):
            kept.append(finished(binding, next(inner)))
        signal.setitimer(signal.ITIMER_REAL, 0.0005)

    before = signal.signal(signal.SIGALRM, handle)
    handle()
    try:
        for number in range(5_000 if mapped else 200):
            kept.append(finished(binding, number))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert all(kept) or not mapped
    recorder.close()
    files = [reader.read_journal(path) for path in reader.journals(recorder.spool)]
    assert {(contents.end, contents.damaged, contents.unfinished) for contents in files} == {(Ended.COMPLETE, 0, 0)}
    seen = [words[10] for contents in files for _, words in contents.slots if words[0] & 0xFF == Kind.ATTEMPT]
    assert len(seen) == len(set(seen)) == len(kept)
    assert recorder.losses.total == 0
