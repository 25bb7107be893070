"""Token runs of a segment: a block keeps its ciphertext whatever becomes of the run that brought it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.lake import Lake

Take = Callable[..., IngestResult]
Segment = Callable[..., Path]
Row = dict[str, object]
ONE, TWO = "1" * 32, "2" * 32


def run(number: int, block: str | None, offset: int, ciphertext: bytes | None = None, **changes: object) -> Row:
    """A run of two ids."""
    row: Row = {
        "attempt_hi": 1000 + number, "attempt_lo": -5000 - number, "day": date(2026, 1, 15), "source": "agent-1",
        "child": 0, "run": 0, "stream": "output", "start": 0, "length": 2, "origin": None, "ciphertext": ciphertext,
        "key_id": "unassigned.0.2026-01.ids.1", "block": block, "block_offset": offset, "tenant": "unassigned",
        "subject_bucket": 0, "month": "2026-01",
    }  # fmt: skip
    return row | changes


def held(lake: Lake) -> list[tuple[int, str, int, bytes | None]]:
    """attempt, block, offset and ciphertext of every stored run."""
    rows = lake.scan("token_run").sort("attempt_hi").collect()
    return rows.select("attempt_hi", "block", "block_offset", "ciphertext").rows()


def test_the_first_run_of_a_block_holds_its_ciphertext(lake: Lake, take: Take, segment: Segment) -> None:
    runs = [run(1, ONE, 0, b"one"), run(2, ONE, 2), run(3, TWO, 0, b"two")]
    take([segment("s", token_run=runs)], lake)
    assert held(lake) == [(1001, ONE, 0, b"one"), (1002, ONE, 2, None), (1003, TWO, 0, b"two")]


def test_the_ciphertext_of_a_run_that_cannot_be_read_goes_to_the_next_one(
    lake: Lake, take: Take, segment: Segment
) -> None:
    """Two runs of the first block are odd, and the whole of the third."""
    runs = [
        run(1, ONE, 0, b"one", origin="elsewhere"), run(2, ONE, 2, origin="elsewhere"), run(3, ONE, 4), run(4, ONE, 6),
        run(5, TWO, 0, b"two"), run(6, TWO, 2), run(7, "3" * 32, 0, b"three", origin="elsewhere"),
    ]  # fmt: skip
    (file,) = take([segment("s", token_run=runs)], lake).files
    assert (file.rows_in, file.rows_out, file.rows_quarantined) == (7, 4, 3)
    assert held(lake) == [
        (1003, ONE, 4, b"one"), (1004, ONE, 6, None), (1005, TWO, 0, b"two"), (1006, TWO, 2, None)
    ]  # fmt: skip


@pytest.mark.parametrize("together", [True, False])
def test_the_ciphertext_of_a_run_whose_place_is_taken_goes_to_the_next_one(
    lake: Lake, take: Take, segment: Segment, together: bool
) -> None:
    """The same attempt and number with other ids: which of them is right cannot be told, so the second is refused."""
    first = segment("s1", token_run=[run(1, ONE, 0, b"one")])
    second = segment("s2", token_run=[run(1, TWO, 0, b"two"), run(2, TWO, 2), run(3, TWO, 4)])
    for call in [[first, second]] if together else [[first], [second]]:
        result = take(call, lake)
    assert (result.files[-1].rows_out, result.files[-1].rows_quarantined) == (2, 1)
    assert held(lake) == [(1001, ONE, 0, b"one"), (1002, TWO, 2, b"two"), (1003, TWO, 4, None)]


def test_the_same_segment_twice_changes_no_ciphertext(lake: Lake, take: Take, segment: Segment) -> None:
    path = segment("s", token_run=[run(1, ONE, 0, b"one", origin="elsewhere"), run(2, ONE, 2)])
    take([path], lake)
    before = lake.digest("token_run")
    assert take([path], lake).files[0].skipped
    # As if the account had been lost: the file is read again, and what is there stays.
    lake.replace("segment", lake.scan("segment").collect().clear(), days=None)
    assert take([path], lake).files[0].rows_out == 1
    assert (lake.digest("token_run"), lake.rows("token_run")) == (before, 1)


def test_runs_without_a_block_are_taken_in_too(lake: Lake, take: Take, segment: Segment) -> None:
    """Counts of ids whose ciphertext was never there, one of them odd."""
    bare = {"block_offset": None, "key_id": None}
    odd = run(2, None, 0, origin="elsewhere") | bare
    runs = [run(1, None, 0) | bare, odd, run(3, ONE, 0, b"one")]
    take([segment("s", token_run=runs)], lake)
    assert [row[0] for row in held(lake)] == [1001, 1003]
    assert [row[3] for row in held(lake)] == [None, b"one"]
