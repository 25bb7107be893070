"""Rows that are followed by index: what is told is what was taken, and what cannot be told is not."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from weighbridge.capture.adapters._followed import Followed, following

torch = pytest.importorskip("torch")
ROWS, CHANNELS = 12, 3


def cache() -> tuple[Any, Any]:
    """Rows of one head, and where each stands in the sequence."""
    return torch.arange(ROWS * CHANNELS).view(1, 1, ROWS, CHANNELS), (torch.arange(ROWS) * 5 + 2).view(1, 1, ROWS)


def followed(take: Callable[[Any], Any]) -> tuple[Any, list[int] | None]:
    """What `take` made of the rows, and the positions that are told of it."""
    keys, positions = cache()
    watch = Followed()
    watch.add(keys, lambda: positions)
    with following()(watch):
        out = take(keys)
    found = watch.positions(out)
    return out, None if found is None else found[0, 0].tolist()


def spread(*rows: int) -> Any:
    return torch.tensor(rows).view(1, 1, -1, 1).expand(-1, -1, -1, CHANNELS)


@pytest.mark.parametrize(
    "take",
    [
        lambda keys: keys.gather(2, spread(7, 0, 3)),
        lambda keys: torch.gather(keys, dim=-2, index=spread(7, 0, 3)).contiguous(),
        lambda keys: keys.gather(2, spread(7, 0, 3).contiguous()).clone(),
        lambda keys: keys.gather(2, spread(9, 7, 0, 3)).gather(2, spread(1, 2, 3)),
        lambda keys: keys.index_select(2, torch.tensor([7, 0, 3])),
        lambda keys: torch.cat([keys[:, :, 7:8], keys.gather(2, spread(0, 3))], dim=2),
    ],
    ids=["method", "function", "copied index", "twice", "select", "parts"],
)
def test_rows_are_told_by_their_positions_in_the_order_they_were_taken(take: Callable[[Any], Any]) -> None:
    out, told = followed(take)
    assert told == [37, 2, 17]
    assert (out[0, 0, :, 0] // CHANNELS * 5 + 2).tolist() == told, "as the rows themselves say"


def test_rows_taken_under_inference_mode_are_told_though_their_index_is_written_to_afterwards() -> None:
    with torch.inference_mode():
        index = spread(7, 0, 3).contiguous()

        def take(keys: Any) -> Any:
            out = keys.gather(2, index)
            index.zero_()
            return out

        assert followed(take)[1] == [37, 2, 17]


def test_an_index_that_is_written_to_before_it_was_read_is_not_believed() -> None:
    def take(keys: Any) -> Any:
        index = spread(7, 0, 3).contiguous()
        out = keys.gather(2, index)
        index[0, 0, 0] = 1
        return out

    assert followed(take)[1] is None


def test_a_choice_of_another_row_for_each_channel_is_no_row() -> None:
    mixed = torch.tensor([[7, 0, 3], [7, 7, 7]]).view(1, 1, 2, CHANNELS)
    assert followed(lambda keys: keys.gather(2, mixed))[1] is None
    assert followed(lambda keys: keys * 2)[1] is None


def test_nothing_that_was_followed_is_held_afterwards() -> None:
    keys, positions = cache()
    watch = Followed()
    watch.add(keys, lambda: positions)
    with following()(watch):
        kept = keys.gather(2, spread(7, 0, 3))
    assert watch.positions(kept) is not None
    held = weakref.ref(keys)
    gc.disable()  # the cache of a long prompt must not wait for the collector
    try:
        del watch, keys
        assert held() is None
    finally:
        gc.enable()
