"""A path leads from one leaf to the root of all of them, and from no other leaf or place."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.pipeline.close import merkle
from weighbridge.pipeline.dispute.path import path, root_by


def leaves(many: int) -> list[bytes]:
    return [hashlib.sha256(bytes([number % 256, number // 256])).digest() for number in range(many)]


@pytest.mark.parametrize("many", [1, 2, 3, 4, 5, 7, 8, 255, 256, 257, 600])
def test_every_leaf_leads_to_the_root_of_a_close(many: int) -> None:
    """The root of a part is that of its blocks of 256 leaves."""
    own = leaves(many)
    root = merkle.root(merkle.block_roots(b"".join(own)))
    for place in {0, 1, many // 2, many - 2, many - 1} & set(range(many)):
        assert root_by(own[place], place, many, path(own, place)) == root


def test_three_leaves_by_hand() -> None:
    """The third has no partner at the bottom: it moves up, and its only partner is the node of the first two."""
    one, two, three = leaves(3)
    pair = hashlib.sha256(b"\x01" + one + two).digest()
    assert path([one, two, three], 2) == [pair]
    assert path([one, two, three], 0) == [two, three]
    assert root_by(three, 2, 3, [pair]) == hashlib.sha256(b"\x01" + pair + three).digest()


@given(st.integers(2, 40).flatmap(lambda many: st.tuples(st.just(many), st.integers(0, many - 1))), st.integers(0, 9))
def test_nothing_else_leads_there(drawn: tuple[int, int], other: int) -> None:
    """Another leaf, place or number of leaves, a partner too few or too many, or a partner that was changed."""
    many, place = drawn
    own = leaves(many)
    root, partners = merkle.root(own), path(own, place)
    assert root_by(own[place], place, many, partners) == root
    assert root_by(leaves(99)[90 - other], place, many, partners) != root
    assert root_by(own[place], place, many, partners[:-1]) is None
    assert root_by(own[place], place, many, [*partners, own[0]]) is None
    assert root_by(own[place], many, many, partners) != root
    changed = [bytes(32), *partners[1:]]
    assert root_by(own[place], place, many, changed) != root
