"""The spool's verbs: what is nobody's any more is sealed once, shipped whole, deleted only when acknowledged."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from pyarrow import fs

from weighbridge.capture import layout, sealing, shipping
from weighbridge.capture.content import Run
from weighbridge.capture.context import Context
from weighbridge.capture.keys import KeyFolder
from weighbridge.capture.recorder import Limits, Recorder
from weighbridge.capture.sealing import seal_spool
from weighbridge.capture.shipping import ship
from weighbridge.capture.spool import main
from weighbridge.schemas.block import BlockName, open_block
from weighbridge.schemas.enumerations import AttemptStatus, RunStream
from weighbridge.schemas.packing import unpack
from weighbridge.schemas.segment import read_manifest, read_table, verify_segment

DONE = layout.outcome_word(AttemptStatus.SUCCEEDED)
CONTEXT = Context(tenant="acme", subject_bucket=5, task="chat")


def attempts(recorder: Recorder, count: int, *, expected: int = 8, brought: int = 8) -> list[tuple[int, int]]:
    """Finish attempts that expect `expected` ids and bring `brought`."""
    binding = recorder.bind(CONTEXT, counts=("output_computed",))
    keys = []
    for number in range(count):
        attempt = binding.begin()
        attempt.finish(DONE, (number,), None, ids_expected=expected)
        ids = [100 + number] * brought
        half = len(ids) // 2
        runs = [
            Run(attempt.hi, attempt.lo, 0, 0, RunStream.PROMPT, 0, ids[:half]),
            Run(attempt.hi, attempt.lo, 0, 1, RunStream.OUTPUT, 0, ids[half:]),
        ]
        if ids:
            assert recorder.offer_ids(attempt, runs) == brought
        keys.append((attempt.hi, attempt.lo))
    return keys


def gaps(spool: Path) -> list[tuple[str, int, int | None]]:
    """Reason, attempts and tokens of every gap row in the sealed segments."""
    rows = []
    for segment in sorted(spool.glob("*.segment")):
        if "gap" in read_manifest(segment)[0].files:
            rows += read_table(segment, "gap").to_pylist()
    return [(row["reason"], row["attempts"], row["tokens"]) for row in rows]


def test_sealing_makes_segments_of_attempts_and_of_ids_and_leaves_no_journal(
    recorder: Recorder, keys: KeyFolder
) -> None:
    known = attempts(recorder, 3)
    recorder.close()
    done = seal_spool(recorder.spool)
    assert (len(done.segments), done.left, done.failed) == (2, [], [])
    assert {path.suffix for path in recorder.spool.iterdir()} == {".segment"}
    ids = next(path for path in done.segments if path.name.endswith("-ids.segment"))
    rows = read_table(ids, "token_run").to_pylist()
    assert [(row["attempt_hi"], row["attempt_lo"]) for row in rows] == [key for key in known for _ in range(2)]
    assert [(row["stream"], row["length"], row["block_offset"]) for row in rows] == [
        ("prompt", 4, 0), ("output", 4, 4), ("prompt", 4, 8), ("output", 4, 12), ("prompt", 4, 16), ("output", 4, 20)
    ]  # fmt: skip
    assert [row["ciphertext"] is None for row in rows] == [False] + [True] * 5
    first = rows[0]
    name = BlockName("token_run", first["tenant"], first["subject_bucket"], first["month"], "ids", first["block"])
    packed = open_block(keys.get(first["key_id"]), name, first["ciphertext"])
    assert memoryview(unpack(packed)).cast("I").tolist() == [100] * 8 + [101] * 8 + [102] * 8
    assert gaps(recorder.spool) == []
    assert seal_spool(recorder.spool).segments == []


def test_an_attempt_says_how_many_ids_follow_and_nothing_where_none_were_announced(recorder: Recorder) -> None:
    attempts(recorder, 1)
    attempts(recorder, 1, expected=0, brought=0)
    attempts(recorder, 1, expected=-1, brought=0)
    attempts(recorder, 1, expected=-7, brought=0)
    recorder.close()
    (segment,) = [path for path in seal_spool(recorder.spool).segments if not path.stem.endswith("-ids")]
    assert read_table(segment, "attempt")["ids_expected"].to_pylist() == [8, 0, None, None]


def test_files_are_private(recorder: Recorder) -> None:
    attempts(recorder, 1)
    recorder.drain_content(all_=True)
    assert stat.S_IMODE(recorder.spool.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in recorder.spool.iterdir()} == {0o600}


def test_a_living_process_keeps_its_files(recorder: Recorder) -> None:
    attempts(recorder, 2)
    recorder.drain_content(all_=True)
    done = seal_spool(recorder.spool)
    assert done.segments == []
    assert {path.suffix for path in done.left} == {".journal", ".content"}
    assert main(["ls", str(recorder.spool)]) == main(["verify", str(recorder.spool)]) == 0
    recorder.close()
    assert len(seal_spool(recorder.spool).segments) == 2


CHILD = """
import os, sys
sys.path[:0] = {paths!r}
from pathlib import Path
from weighbridge.capture import layout
from weighbridge.capture.content import Run
from weighbridge.capture.context import Context
from weighbridge.capture.keys import KeyFolder
from weighbridge.capture.recorder import Limits, Recorder
from weighbridge.schemas.enumerations import AttemptStatus, RunStream
here = Path(sys.argv[1])
recorder = Recorder.start(here / "spool", installation="test-1", key=bytes(32), keys=KeyFolder(here / "keys"))
binding = recorder.bind(Context(tenant="acme"))
for number in range(10):
    attempt = binding.begin()
    attempt.finish(layout.outcome_word(AttemptStatus.SUCCEEDED), (), None, ids_expected=7)
    if number < 6:
        recorder.offer_ids(attempt, [Run(attempt.hi, attempt.lo, 0, 0, RunStream.OUTPUT, 0, [1] * 7)])
    if number == 3:
        recorder.drain_content(all_=True)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The spool of a process that finished 10 attempts, got the ids of 4 to disk, and was killed."""
    code = CHILD.format(paths=sys.path)
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    assert seal_spool(tmp_path / "spool").segments == [], "it lives"
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert child.stdin is not None
    child.stdin.close()
    return tmp_path / "spool"


def test_of_a_killed_process_all_attempts_are_there_and_missing_ids_are_a_gap(killed: Path) -> None:
    assert main(["seal", str(killed)]) == 0
    found = [read_manifest(path)[0] for path in sorted(killed.glob("*.segment"))]
    assert sum(manifest.files.get("attempt", (0, 0, ""))[0] for manifest in found) == 10
    assert sum(manifest.files.get("token_run", (0, 0, ""))[0] for manifest in found) == 4
    assert {str(manifest.end) for manifest in found} == {"unknown", "complete"}
    assert [row for row in gaps(killed) if row[0] == "ids_missing"] == [("ids_missing", 6, 42)]
    assert {path.suffix for path in killed.iterdir()} == {".segment"}


@pytest.mark.parametrize("step", ["write_segment", "verify_segment", "_note_ids", "unlink"])
def test_sealing_cut_off_anywhere_is_finished_by_the_next_pass(
    killed: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    class CutOff(BaseException):
        pass

    def cut(*_: object, **__: object) -> None:
        raise CutOff

    with monkeypatch.context() as patched:
        if step == "unlink":
            patched.setattr(Path, "unlink", cut)
        elif step == "write_segment":
            patched.setattr("weighbridge.capture.seal.write_segment", cut)
        else:
            patched.setattr(sealing, step, cut)
        with pytest.raises(CutOff):
            seal_spool(killed)
    assert seal_spool(killed).failed == []
    assert [row for row in gaps(killed) if row[0] == "ids_missing"] == [("ids_missing", 6, 42)]
    rows = [read_manifest(path)[0].files.get("attempt", (0, 0, ""))[0] for path in killed.glob("*.segment")]
    assert sum(rows) == 10
    assert {path.suffix for path in killed.iterdir()} == {".segment"}


def test_what_is_damaged_is_named_and_kept(recorder: Recorder, capsys: pytest.CaptureFixture[str]) -> None:
    attempts(recorder, 2)
    recorder.close()
    (journal,) = recorder.spool.glob("*.journal")
    raw = bytearray(journal.read_bytes())
    raw[20] ^= 1
    journal.write_bytes(raw)
    assert main(["verify", str(recorder.spool)]) == 1
    assert journal.name in capsys.readouterr().err
    assert main(["seal", str(recorder.spool)]) == 1
    assert journal.name in capsys.readouterr().err
    assert journal.read_bytes() == raw
    assert main(["ls", str(recorder.spool)]) == 1


def test_a_damaged_segment_is_named_and_not_shipped(
    recorder: Recorder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    attempts(recorder, 2, brought=0)
    recorder.close()
    segment = next(path for path in seal_spool(recorder.spool).segments if "missing" not in path.name)
    table = segment / "attempt.parquet"
    raw = bytearray(table.read_bytes())
    raw[len(raw) // 2] ^= 4
    table.write_bytes(raw)
    assert main(["verify", str(recorder.spool)]) == 1
    assert "attempt.parquet" in capsys.readouterr().err
    assert main(["ship", str(recorder.spool), str(tmp_path / "there")]) == 1
    assert not (tmp_path / "there" / segment.name).exists()
    assert segment.exists()


def test_a_damaged_block_of_ids_is_a_gap_and_the_others_are_kept(recorder: Recorder) -> None:
    for _ in range(3):
        attempts(recorder, 1)
        recorder.drain_content(all_=True)
    recorder.close()
    (content,) = recorder.spool.glob("*.content")
    raw = bytearray(content.read_bytes())
    second = raw.index(b"WBCN", raw.index(b"WBCN", raw.index(b"WBCN") + 1) + 1)
    raw[second + 30] ^= 1
    content.write_bytes(raw)
    assert seal_spool(recorder.spool).failed == []
    (ids,) = recorder.spool.glob("*-ids.segment")
    assert read_table(ids, "token_run").num_rows == 4
    assert str(read_manifest(ids)[0].end) == "unknown"
    assert sorted(gaps(recorder.spool), key=str) == [("corrupt", 0, None), ("ids_missing", 1, 8)]


@pytest.fixture
def sealed(recorder: Recorder) -> Path:
    attempts(recorder, 2)
    recorder.close()
    seal_spool(recorder.spool)
    return recorder.spool


def test_a_segment_is_shipped_once_and_deleted_only_when_acknowledged(sealed: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    names = sorted(path.name for path in sealed.iterdir())
    assert sorted(ship(sealed, str(there)).copied) == names
    assert sorted(ship(sealed, str(there)).present) == names
    assert sorted(path.name for path in sealed.iterdir()) == names
    digests = [verify_segment(there / name)[1] for name in names]
    (there / f"{digests[0]}.ack").touch()
    (sealed / f"{digests[1]}.ack").touch()
    assert sorted(ship(sealed, str(there)).deleted) == names
    assert list(sealed.iterdir()) == []
    assert sorted(path.name for path in there.glob("*.segment")) == names


def test_an_acknowledgement_of_another_segment_deletes_nothing(sealed: Path, tmp_path: Path) -> None:
    (sealed / f"{'0' * 64}.ack").touch()
    before = sorted(path.name for path in sealed.iterdir())
    assert ship(sealed, str(tmp_path / "there")).deleted == []
    assert sorted(path.name for path in sealed.iterdir()) == before


def test_acknowledgements_may_lie_in_a_folder_of_their_own(sealed: Path, tmp_path: Path) -> None:
    """Only what is acknowledged goes; the folder is read and never written."""
    there, acks = tmp_path / "there", tmp_path / "acks"
    acks.mkdir()
    names = sorted(path.name for path in sealed.iterdir())
    command = ["ship", str(sealed), str(there), "--acks", str(acks)]
    assert main(command) == 0
    assert sorted(path.name for path in sealed.iterdir()) == names
    _, digest = verify_segment(there / names[0])
    (acks / f"{'0' * 64}.ack").touch()
    (acks / f"{digest}.ack").mkdir()
    assert main(command) == 0
    assert sorted(path.name for path in sealed.iterdir()) == names, "a folder of that name is no acknowledgement"
    (acks / f"{digest}.ack").rmdir()
    (acks / f"{digest}.ack").touch()
    before = sorted(acks.iterdir())
    assert main(command) == 0
    assert sorted(path.name for path in sealed.iterdir()) == names[1:]
    assert sorted(acks.iterdir()) == before
    (there / f"{verify_segment(there / names[1])[1]}.ack").touch()
    assert main(command) == 0
    assert list(sealed.iterdir()) == [], "one beside the segment counts as before"


def test_a_folder_of_acknowledgements_that_is_not_there_is_told_and_the_rest_is_done(
    sealed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = sorted(path.name for path in sealed.iterdir())
    assert main(["ship", str(sealed), str(tmp_path / "there"), "--acks", str(tmp_path / "none")]) == 1
    assert "no such folder of acknowledgements" in capsys.readouterr().err
    assert sorted(path.name for path in (tmp_path / "there").iterdir()) == names
    assert sorted(path.name for path in sealed.iterdir()) == names
    assert main(["ship", str(sealed), str(tmp_path / "there"), "--acks", "nothing://x"]) == 2
    assert not (tmp_path / "none").exists()


def test_a_segment_whose_journal_is_still_there_is_not_shipped(sealed: Path, tmp_path: Path) -> None:
    name = next(path.stem for path in sealed.iterdir() if not path.stem.endswith("-ids"))
    (sealed / f"{name}.journal").touch()
    assert f"{name}.segment" not in ship(sealed, str(tmp_path / "there")).copied


def test_shipping_cut_off_leaves_no_segment_and_is_done_again(
    sealed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(shipping, "_same", lambda *_: False)
        assert len(ship(sealed, str(tmp_path / "there")).failed) == 2
    assert list((tmp_path / "there").glob("*.segment")) == []
    assert len(ship(sealed, str(tmp_path / "there")).copied) == 2


def test_an_object_store_gets_the_manifest_last(sealed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system, root = fs.FileSystem.from_uri("mock:///bucket")
    monkeypatch.setattr(shipping, "_opened", lambda _: (system, root))
    assert len(ship(sealed, "mock:///bucket").copied) == 2
    assert len(ship(sealed, "mock:///bucket").present) == 2
    for segment in sealed.iterdir():
        held = [info.base_name for info in system.get_file_info(fs.FileSelector(f"{root}/{segment.name}"))]
        assert sorted(held) == sorted(path.name for path in segment.iterdir())
    _, digest = verify_segment(next(sealed.iterdir()))
    with system.open_output_stream(f"{root}/{digest}.ack") as file:
        file.write(b"")
    assert len(ship(sealed, "mock:///bucket").deleted) == 1


def test_a_destination_that_cannot_be_used_is_wrong_usage(sealed: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert main(["ship", str(sealed), str(tmp_path / "file" / "x")]) == 2
    assert main(["ship", str(sealed), "nothing://x"]) == 2
    with pytest.raises(SystemExit, match="2"):
        main(["ls", str(tmp_path / "nowhere")])


def test_a_file_that_is_being_made_is_left_alone_and_later_removed(tmp_path: Path) -> None:
    fresh = tmp_path / "test-1-1-1-0.journal"
    fresh.write_bytes(bytes(4096))
    assert seal_spool(tmp_path).left == [fresh]
    os.utime(fresh, (0, 0))
    assert seal_spool(tmp_path).left == []
    assert not fresh.exists()


def test_the_quota_is_kept_and_what_it_costs_is_counted(tmp_path: Path, key: bytes, keys: KeyFolder) -> None:
    limits = Limits(spool_bytes=(256 << 10) + (8 << 10), journal_bytes=256 << 10, keeper_s=60)
    recorder = Recorder.start(tmp_path / "spool", installation="test-1", key=key, keys=keys, limits=limits)
    attempts(recorder, 1)
    big = os.urandom(64 << 10)
    attempt = recorder.bind(CONTEXT).begin()
    recorder.offer_ids(attempt, [Run(attempt.hi, attempt.lo, 0, 0, RunStream.OUTPUT, 0, memoryview(big).cast("I"))])
    recorder.drain_content(all_=True)
    assert recorder.losses.snapshot() == {"quota": 0}
    used = sum(path.stat().st_blocks * 512 for path in recorder.spool.iterdir())
    assert used <= limits.spool_bytes
    recorder.close()
    seal_spool(recorder.spool)
    assert ("quota", 0, 16 * 1024 + 8) in gaps(recorder.spool)


def test_a_recorder_on_a_full_spool_starts_and_counts(tmp_path: Path, key: bytes) -> None:
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / "filler").write_bytes(bytes(64 << 10))
    limits = Limits(spool_bytes=64 << 10, keeper_s=60)
    recorder = Recorder.start(tmp_path / "spool", installation="test-1", key=key, limits=limits)
    binding = recorder.bind(CONTEXT)
    assert binding.begin().finish(DONE) is False
    assert recorder.losses.snapshot() == {"quota": 1}
    recorder.close()


def test_it_runs_as_a_module(sealed: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "weighbridge.capture.spool", "ls", str(sealed)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("sealed") == 2
