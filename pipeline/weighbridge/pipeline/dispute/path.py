"""Paths of a Merkle tree: what has to be known beside one leaf to come to the root of all of them.

The tree is that of `close.merkle`: a level is paired from the left, and a node without a partner moves up as it is. So
how many leaves there are and which one it is says of each level whether there is a partner, and on which side.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def path(leaves: Sequence[bytes], place: int) -> list[bytes]:
    """The partners of a leaf and of the nodes above it, from below; levels without a partner are left out.

    Args:
        leaves: all of them, in order.
        place: which one, from 0.
    """
    found = []
    level = list(leaves)
    while len(level) > 1:
        partner = place ^ 1
        if partner < len(level):
            found.append(level[partner])
        pairs = zip(level[::2], level[1::2], strict=False)
        level = [_node(left, right) for left, right in pairs] + (level[-1:] if len(level) % 2 else [])
        place //= 2
    return found


def root_by(leaf: bytes, place: int, many: int, partners: Sequence[bytes]) -> bytes | None:
    """The root that a leaf leads to along a path; null where the path has too many partners or too few.

    Args:
        leaf: the leaf.
        place: which one of the leaves it is, from 0.
        many: how many leaves there are.
        partners: as `path` gives them.
    """
    left = list(partners)
    node = leaf
    while many > 1:
        if place ^ 1 < many:
            if not left:
                return None
            partner = left.pop(0)
            node = _node(partner, node) if place & 1 else _node(node, partner)
        place, many = place // 2, -(-many // 2)
    return None if left or place else node


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()
