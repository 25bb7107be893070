"""Ids reach the disk encrypted or not at all; what waits is bounded; what is lost is counted as ids, not attempts."""

from __future__ import annotations

import array
import os
import threading
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from weighbridge.capture import guard
from weighbridge.capture.binding import Binding
from weighbridge.capture.content import Content, ContentWriter, Place, Run, opening, read_content
from weighbridge.capture.context import Context
from weighbridge.capture.keys import KeyFolder, KeyScope
from weighbridge.capture.layout import outcome_word
from weighbridge.capture.losses import Losses
from weighbridge.capture.recorder import Limits, Recorder
from weighbridge.schemas.block import BlockName, open_block
from weighbridge.schemas.enumerations import AttemptStatus, GapReason, RunStream
from weighbridge.schemas.errors import ContractError
from weighbridge.schemas.packing import unpack

TENANT = "t_0123456789abcdef"
NEW_YEAR = Place(TENANT, 3, (date(2026, 1, 1) - date(1970, 1, 1)).days)
OLD_YEAR = Place(TENANT, 3, NEW_YEAR.day - 1)
# No two bytes of it are alike, so it would be found in any file that held it in clear.
CANARY = [0x1F2E3D4C, 0x5B6A7988, 0x90A1B2C3]


def run(ids: object, lo: int = 2) -> Run:
    return Run(1, lo, 0, 0, RunStream.OUTPUT, 0, ids)


class Written:
    """Where frames go."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "test-1-1-1-0.content"
        self.file = ContentWriter(self.path, opening("test-1", "p" * 16, "0" * 12))

    def __call__(self, frame: bytes) -> GapReason | None:
        self.file.append(frame)
        return None


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path)


@pytest.fixture
def losses() -> Losses:
    return Losses()


@pytest.fixture
def content(keys: KeyFolder, losses: Losses) -> Content:
    return Content(keys, losses, buffer_bytes=1 << 20)


def test_ids_are_encrypted_under_the_key_of_their_own_day(content: Content, keys: KeyFolder, written: Written) -> None:
    assert content.offer(OLD_YEAR, [run([*CANARY])]) == 3
    assert content.offer(NEW_YEAR, [run(array.array("I", CANARY)), run([7], 3)]) == 4
    content.drain(written, all_=True)
    written.file.close()
    found = read_content(written.path)
    assert (found.complete, found.damaged, found.header["installation"]) == (True, 0, "test-1")
    assert [(about["day"], about["key"]) for about, _ in found.blocks] == [
        ("2025-12-31", f"{TENANT}.3.2025-12.ids.1"),
        ("2026-01-01", f"{TENANT}.3.2026-01.ids.1"),
    ]
    about, block = found.blocks[1]
    name = BlockName("token_run", TENANT, 3, "2026-01", "ids", about["block"])
    assert memoryview(unpack(open_block(keys.get(about["key"]), name, block))).cast("I").tolist() == [*CANARY, 7]
    raw = written.path.read_bytes()
    assert not any(value.to_bytes(4, order) in raw for value in CANARY for order in ("little", "big"))
    assert content.held == 0


def test_without_a_provider_nothing_is_kept_and_each_attempt_is_counted_once(losses: Losses) -> None:
    content = Content(None, losses, buffer_bytes=1 << 20)
    assert content.offer(NEW_YEAR, [run([1, 2]), run([3])]) == -1
    loss = losses.drain()[GapReason.NO_KEY]
    assert (loss.attempts, loss.tokens) == (1, 3)


def test_a_provider_that_fails_later_costs_the_ids_and_writes_nothing(
    content: Content, keys: KeyFolder, losses: Losses, written: Written, tmp_path: Path
) -> None:
    (tmp_path / "keys").write_text("a file where the folder should be")
    assert content.offer(NEW_YEAR, [run(CANARY), run([1], 3)]) == 4
    content.drain(written, all_=True)
    written.file.close()
    assert read_content(written.path).blocks == []
    loss = losses.drain()[GapReason.NO_KEY]
    assert (loss.attempts, loss.tokens) == (2, 4)
    assert content.held == 0


def test_without_the_cipher_package_ids_are_no_key_and_never_in_clear(
    content: Content, losses: Losses, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    content.offer(NEW_YEAR, [run(CANARY)])
    content.drain(written, all_=True)
    assert losses.snapshot() == {"no_key": 1}
    assert read_content(written.path).blocks == []


def test_what_waits_never_exceeds_its_bound(keys: KeyFolder, losses: Losses, written: Written) -> None:
    content = Content(keys, losses, buffer_bytes=100_000)
    ids = array.array("I", range(1000))
    told = [content.offer(Place(TENANT, bucket % 64, NEW_YEAR.day), [run(ids, bucket)]) for bucket in range(200)]
    assert content.held <= 100_000
    taken = told.count(1000)
    assert 0 < taken < 200
    assert told.count(-1) == 200 - taken
    loss = losses.drain()[GapReason.BUFFER_FULL]
    assert (loss.attempts, loss.tokens) == (0, 1000 * (200 - taken)), "ids are lost, the attempts are not"
    content.drain(written)
    assert content.held * 2 <= 100_000, "under pressure young blocks are written too"
    content.drain(written, all_=True)
    assert content.held == 0
    written.file.close()
    assert sum(len(about["runs"]) for about, _ in read_content(written.path).blocks) == taken


def test_offers_of_many_threads_are_all_there(keys: KeyFolder, losses: Losses, written: Written) -> None:
    content = Content(keys, losses, buffer_bytes=64 << 20)

    def offer(lo: int) -> None:
        for _ in range(300):
            content.offer(NEW_YEAR, [run([lo] * 5, lo)])

    threads = [threading.Thread(target=offer, args=(lo,)) for lo in range(8)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        content.drain(written)
    content.drain(written, all_=True)
    written.file.close()
    assert sum(r[6] for about, _ in read_content(written.path).blocks for r in about["runs"]) == 8 * 300 * 5
    assert content.held == 0


@pytest.mark.parametrize("ids", [[-1], [2**32], ["text"], [None], [1.5]])
def test_what_is_no_id_is_counted_and_the_others_go_on(
    content: Content, losses: Losses, written: Written, ids: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(guard.RAISE_VARIABLE)
    content.offer(NEW_YEAR, [run(ids), run([5], 3)])
    content.drain(written, all_=True)
    loss = losses.drain()[GapReason.SERIALISE]
    assert (loss.attempts, loss.tokens) == (0, 1)
    assert [r[1] for about, _ in read_content(written.path).blocks for r in about["runs"]] == [3]
    assert content.held == 0


@pytest.fixture
def file(content: Content, written: Written) -> Iterator[Path]:
    """A content file of three blocks."""
    for number in range(3):
        content.offer(NEW_YEAR, [run([number] * 20, number)])
        content.drain(written, all_=True)
    written.file.close()
    return iter([written.path])


def test_no_flipped_bit_of_a_content_file_is_accepted_in_silence(file: Iterator[Path]) -> None:
    path = next(file)
    raw, whole = path.read_bytes(), read_content(path)
    assert whole.complete
    for bit in range(0, len(raw) * 8, 17):
        changed = bytearray(raw)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        try:
            found = read_content(path)
        except ContractError:
            continue
        assert found.damaged == 1
        assert all(block in whole.blocks for block in found.blocks)
        assert len(found.blocks) + (not found.complete) >= 3


def test_a_content_file_that_was_cut_says_its_end_is_unknown(file: Iterator[Path]) -> None:
    path = next(file)
    raw, whole = path.read_bytes(), read_content(path)
    for size in range(0, len(raw), 7):
        path.write_bytes(raw[:size])
        try:
            found = read_content(path)
        except ContractError:
            continue
        assert not found.complete
        assert found.blocks == whole.blocks[: len(found.blocks)]


def test_a_write_that_fails_half_way_leaves_whole_frames(
    written: Written, content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    content.offer(NEW_YEAR, [run([1], 1)])
    content.drain(written, all_=True)
    write = os.write
    with monkeypatch.context() as patched:
        told: list[int] = []

        def short(handle: int, data: bytes) -> int:
            if told:
                raise OSError(28, "No space left on device")
            told.append(1)
            return write(handle, data[:10])

        patched.setattr(os, "write", short)
        with pytest.raises(OSError, match="No space"):
            written.file.append(b"x" * 100)
    content.offer(NEW_YEAR, [run([2], 2)])
    content.drain(written, all_=True)
    written.file.close()
    found = read_content(written.path)
    assert (len(found.blocks), found.damaged, found.complete) == (2, 0, True)


def test_a_content_file_is_followed_by_the_next_one(tmp_path: Path, key: bytes, keys: KeyFolder) -> None:
    limits = Limits(content_bytes=1, keeper_s=60)
    recorder = Recorder.start(tmp_path / "spool", installation="test-1", key=key, keys=keys, limits=limits)
    attempt = recorder.bind(Context(tenant="acme")).begin()
    for _ in range(3):
        recorder.offer_ids(attempt, [Run(attempt.hi, attempt.lo, 0, 0, RunStream.OUTPUT, 0, [1, 2])])
        recorder.drain_content(all_=True)
    recorder.close()
    found = [read_content(path) for path in sorted(recorder.spool.glob("*.content"))]
    assert [len(one.blocks) for one in found] == [1, 1, 1, 0]
    assert all(one.complete for one in found)
    assert len({one.header["process"] for one in found}) == 1


def test_a_rotated_key_is_used_from_the_next_block_on(content: Content, keys: KeyFolder, written: Written) -> None:
    for _ in range(2):
        content.offer(NEW_YEAR, [run([1])])
        content.drain(written, all_=True)
        keys.rotate(KeyScope(TENANT, 3, "2026-01"))
    assert [about["key"][-1] for about, _ in read_content(written.path).blocks] == ["1", "2"]


COUNTS = ("input_computed", "output_computed")
DONE = outcome_word(AttemptStatus.SUCCEEDED)


def started(spool: Path, key: bytes, keys: KeyFolder | None, **limits: Any) -> tuple[Recorder, Binding]:
    """A recorder, its keeper at rest unless told otherwise, and a binding."""
    bounds = Limits(**{"keeper_s": 3600.0, **limits})
    recorder = Recorder.start(spool, installation="test-1", key=key, keys=keys, limits=bounds)
    return recorder, recorder.bind(Context(tenant="acme"), counts=COUNTS)


def written_runs(recorder: Recorder) -> list[list[Any]]:
    """Close, and read back what describes each run."""
    recorder.close()
    (path,) = recorder.spool.glob("*.content")
    return [run for about, _ in read_content(path).blocks for run in about["runs"]]


def test_a_pair_handed_over_by_reference_becomes_two_runs_of_its_attempt(
    tmp_path: Path, key: bytes, keys: KeyFolder
) -> None:
    recorder, binding = started(tmp_path / "spool", key, keys)
    attempt = binding.begin(level=2)
    assert attempt.offer([1, 2, 3], array.array("I", [9, 9])) == 5
    assert recorder.content.held > 0
    attempt.finish(DONE, (3, 2), None, 5)
    hi, lo = attempt.key
    assert [run[:7] for run in written_runs(recorder)] == [
        [hi, lo, 0, 0, "prompt", 0, 3],
        [hi, lo, 0, 1, "output", 0, 2],
    ]
    assert recorder.content.held == 0


def test_pairs_that_cannot_be_taken_are_counted_and_never_raise(
    tmp_path: Path, key: bytes, keys: KeyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(guard.RAISE_VARIABLE)
    recorder, binding = started(tmp_path / "spool", key, keys, buffer_bytes=10_000)
    bare, without_keys = started(tmp_path / "bare", key, None)
    assert binding.begin(level=2).offer([1] * 5_000, [2]) == -1
    assert binding.begin(level=2).offer([], []) == 0
    assert binding.begin(level=2).offer(None, [1, 2]) == 2
    assert binding.begin(level=2).offer(7, [1]) == -1
    assert without_keys.begin(level=2).offer([1, 2], [3]) == -1
    losses = recorder.losses.drain()
    assert losses[GapReason.BUFFER_FULL].tokens == 5_001
    assert {reason: loss.attempts for reason, loss in losses.items()} == {
        GapReason.BUFFER_FULL: 0, GapReason.SERIALISE: 0,
    }  # fmt: skip
    assert bare.losses.drain()[GapReason.NO_KEY].tokens == 3
    bare.close()
    assert [run[4:7] for run in written_runs(recorder) if run[6]] == [["output", 0, 2]]
    assert recorder.content.held == 0


def test_pairs_of_many_threads_are_all_there_and_no_room_is_lost(tmp_path: Path, key: bytes, keys: KeyFolder) -> None:
    recorder, binding = started(tmp_path / "spool", key, keys, buffer_bytes=64 << 20, keeper_s=0.001)
    durable: list[bool] = []

    def serve() -> None:
        for _ in range(300):
            attempt = binding.begin(level=2)
            durable.append(attempt.finish(DONE, (2, 1), None, attempt.offer([1, 2], [3])))

    threads = [threading.Thread(target=serve) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(durable), all(durable)) == (8 * 300, True)
    runs = written_runs(recorder)
    assert recorder.content.held == 0
    assert len(runs) == 2 * 8 * 300
    assert len({(run[0], run[1]) for run in runs}) == 8 * 300
