"""Numbers in no order, put into order with their places."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.pipeline.reconcile.overview.numbers import dealt
from weighbridge.pipeline.reconcile.overview.numbers.dealt import in_order

ENDS = (-(2**63), 2**63 - 1)
NUMBER = st.one_of(st.integers(-3, 3), st.integers(*ENDS), st.sampled_from(ENDS))


@given(numbers=st.lists(NUMBER, min_size=1, max_size=60), near=st.sampled_from([1, 10, 100]))
def test_the_order_is_that_of_a_stable_sort(numbers: list[int], near: int) -> None:
    """Equal numbers keep the order they lie in, whether numbers are dealt out into parts or not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dealt, "_NEAR", near)
        held, places = in_order(np.array(numbers, np.int64))
    expected = sorted(range(len(numbers)), key=numbers.__getitem__)
    assert places.tolist() == expected
    assert held.tolist() == [numbers[place] for place in expected]
