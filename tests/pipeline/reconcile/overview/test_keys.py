"""Second halves of keys: in order, and which of them come twice, however many are held."""

from __future__ import annotations

from collections import Counter
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weighbridge.pipeline.reconcile.overview.keys import LEAD, Keys, look
from weighbridge.schemas.errors import LakeError

ENDS = (-(2**63), 2**63 - 1)
KEY = st.one_of(st.integers(-3, 3), st.sampled_from(ENDS))


def rows(keys: list[int | None]) -> pl.DataFrame:
    """Rows with these second halves."""
    return pl.DataFrame({LEAD: keys}, schema={LEAD: pl.Int64})


@pytest.mark.parametrize(
    ("keys", "each", "again"),
    [
        ([], [], []),
        ([*ENDS], [*ENDS], []),
        ([1, 1, 2, 2, 2], [1, 2], [1, 2]),
        ([2, 1, 2], [1, 2], [2]),
        ([ENDS[1], ENDS[0]], [*ENDS], []),
    ],
)
def test_rows_are_looked_at_in_the_order_they_lie_in(keys: list[int | None], each: list[int], again: list[int]) -> None:
    """The least and the greatest number have no difference that fits, and are compared all the same."""
    seen = look(rows(keys))
    assert (seen.each.tolist(), seen.again.tolist()) == (each, again)


def test_a_row_without_a_key_is_an_error() -> None:
    """It would be no number, and neither rise nor fall."""
    with pytest.raises(LakeError, match="rows without attempt_lo"):
        look(rows([1, None]))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(added=st.lists(st.sets(KEY, max_size=9), max_size=6), at_once=st.sampled_from([1, 4, 1000]))
def test_every_key_is_in_a_rising_run(
    added: list[set[int]], at_once: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """In memory or put away, where what rises further is put behind what is there."""
    keys = Keys(tmp_path_factory.mktemp("runs"), "attempt", at_once)
    for each in added:
        keys.add(np.array(sorted(each), np.int64))
    runs = [run.piece(0, run.size).tolist() for run in keys.runs()]
    assert all(below <= above for run in runs for below, above in pairwise(run))
    assert Counter(chain(*runs)) == Counter(chain(*added))


def test_no_more_keys_are_held_than_may_be(tmp_path: Path) -> None:
    """What is beyond goes to disk, eight bytes each; stretches that follow one another are one run."""
    keys = Keys(tmp_path, "attempt", 10)
    for start in range(0, 40, 8):
        keys.add(np.arange(start, start + 8))
    assert [path.stat().st_size for path in tmp_path.iterdir()] == [8 * 32]
    assert [run.size for run in keys.runs()] == [40]
    keys.add(np.arange(9))
    assert [run.size for run in keys.runs()] == [40, 9]
