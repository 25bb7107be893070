"""A segment is acknowledged once its account is in the lake, and only then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from weighbridge.pipeline.ingest.acknowledge import acknowledge
from weighbridge.pipeline.ingest.batch import Batch
from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.errors import LakeError
from weighbridge.schemas.segment import sha256_file

Take = Callable[..., IngestResult]
Row = Callable[..., dict[str, object]]
Segment = Callable[..., Path]


def acks(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.ack"))


def test_every_segment_is_acknowledged_beside_it(lake: Lake, take: Take, segment: Segment, attempt: Row) -> None:
    paths = [segment(f"s{number}", attempt=[attempt(number)]) for number in range(2)]
    take(paths, lake)
    digests = [sha256_file(path / "manifest.json") for path in paths]
    assert acks(paths[0].parent) == sorted(f"{digest}.ack" for digest in digests)


def test_a_folder_of_their_own_may_be_named(
    lake: Lake, take: Take, segment: Segment, attempt: Row, tmp_path: Path
) -> None:
    path = segment("s", attempt=[attempt(1)])
    (tmp_path / "acks").mkdir()
    take([path], lake, acks=tmp_path / "acks")
    assert acks(path.parent) == []
    assert acks(tmp_path / "acks") == [sha256_file(path / "manifest.json") + ".ack"]


def test_an_acknowledgement_that_was_lost_is_written_again(
    lake: Lake, take: Take, segment: Segment, attempt: Row
) -> None:
    path = segment("s", attempt=[attempt(1)])
    take([path], lake)
    (ack,) = path.parent.glob("*.ack")
    ack.unlink()
    assert take([path], lake).files[0].skipped
    assert acks(path.parent) == [ack.name]


def test_nothing_is_acknowledged_before_the_account_is_committed(
    lake: Lake, take: Take, segment: Segment, attempt: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = Batch._append

    def fails(self: Batch, table: str, rows: object) -> None:
        if table == "segment":
            raise LakeError("full")
        append(self, table, rows)  # type: ignore[arg-type]

    monkeypatch.setattr(Batch, "_append", fails)
    path = segment("s", attempt=[attempt(1)])
    with pytest.raises(LakeError):
        take([path], lake)
    assert acks(path.parent) == []


def test_a_segment_of_which_nothing_could_be_read_is_kept(
    lake: Lake, take: Take, segment: Segment, attempt: Row
) -> None:
    path = segment("s", attempt=[attempt(1, status="no such status")])
    (file,) = take([path], lake).files
    assert file.rows_quarantined == file.rows_in == 1
    assert acks(path.parent) == []


def test_other_files_are_not_acknowledged(lake: Lake, take: Take, jsonl: Callable[..., Path], answer: Row) -> None:
    path = jsonl("a.jsonl", [answer(1)])
    assert take([path], lake).files[0].rows_out == 1
    assert acks(path.parent) == []


def test_a_segment_that_could_not_be_acknowledged_is_named(
    lake: Lake, take: Take, segment: Segment, attempt: Row, jsonl: Callable[..., Path], answer: Row, tmp_path: Path
) -> None:
    """It is in the lake all the same; other files need no acknowledgement."""
    path, other = segment("s", attempt=[attempt(1)]), jsonl("a.jsonl", [answer(1)])
    told = take([path, other], lake, acks=tmp_path / "nowhere")
    assert (told.unacknowledged, lake.rows("segment")) == (("s.segment",), 2)
    assert take([path, other], lake).unacknowledged == ()
    assert len(acks(path.parent)) == 1


def test_a_folder_that_cannot_be_written_is_no_error(segment: Segment, attempt: Row, tmp_path: Path) -> None:
    path = segment("s", attempt=[attempt(1)])
    assert acknowledge(path, "0" * 64, tmp_path / "nowhere") is None
