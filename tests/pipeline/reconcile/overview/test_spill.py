"""Rows by bucket: each key in one of them, and a piece of work that failed is done again alone."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from weighbridge.pipeline.reconcile.overview.spill import TRIES, Spill, tried
from weighbridge.schemas.errors import ConfigError


def test_few_rows_stay_in_memory(tmp_path: Path) -> None:
    """They come back together, and no file is made."""
    spill = Spill(tmp_path, held=10)
    spill.add("a", pl.DataFrame({"attempt_lo": [1, 2]}))
    spill.add("b", pl.DataFrame({"attempt_lo": [], "x": []}, schema={"attempt_lo": pl.Int64, "x": pl.Int64}))
    (only,) = spill.buckets("a", "b", "c")
    assert {name: rows.height for name, rows in only.items()} == {"a": 2, "b": 0}
    assert not list(tmp_path.iterdir())


def test_all_rows_of_a_key_come_together_and_none_is_lost(tmp_path: Path) -> None:
    """Negative keys too: the bucket is the low six bits of the signed number."""
    spill = Spill(tmp_path, held=50)
    keys = [*range(-100, 100), -(2**63), 2**63 - 1]
    for name in ("a", "b"):
        for start in range(0, len(keys), 7):
            spill.add(name, pl.DataFrame({"attempt_lo": keys[start : start + 7]}))
    pieces = list(spill.buckets("a", "b"))
    assert len(pieces) > 4
    assert all(sum(rows.height for rows in piece.values()) <= 50 for piece in pieces)
    for name in ("a", "b"):
        assert sorted(key for piece in pieces for key in piece[name]["attempt_lo"]) == sorted(keys)
    for piece in pieces:
        assert {key & 63 for key in piece["a"]["attempt_lo"]} == {key & 63 for key in piece["b"]["attempt_lo"]}


def test_work_that_failed_is_done_once_more(tmp_path: Path) -> None:
    """A reader that lost its file, and finds it again."""
    failures = [OSError("gone"), OSError("gone")]

    def work() -> int:
        if failures:
            raise failures.pop()
        return 7

    assert tried(work) == 7


def test_work_that_always_fails_says_so(tmp_path: Path) -> None:
    """After so many tries the error is told, and one that cannot pass is told at once."""
    seen: list[int] = []

    def broken(error: Exception) -> None:
        seen.append(1)
        raise error

    with pytest.raises(OSError, match="gone"):
        tried(lambda: broken(OSError("gone")))
    assert len(seen) == TRIES
    with pytest.raises(ConfigError):
        tried(lambda: broken(ConfigError("wrong")))
    assert len(seen) == TRIES + 1
