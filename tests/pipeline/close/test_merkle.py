"""The tree: the shape of RFC 6962, blocks that are nodes of it, salts that tell nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import pytest

from weighbridge.pipeline.close import merkle

KEY = bytes(range(32))


def by_definition(leaves: Sequence[bytes]) -> bytes:
    """The tree hash as RFC 6962 defines it: split at the largest power of two below the number of leaves."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\x01" + by_definition(leaves[:split]) + by_definition(leaves[split:])).digest()


def some(number: int) -> list[bytes]:
    return [hashlib.sha256(str(n).encode()).digest() for n in range(number)]


@pytest.mark.parametrize("number", [0, 1, 2, 3, 5, 8, 255, 256, 257, 511, 512, 513, 1000])
def test_the_root_is_that_of_the_definition(number: int) -> None:
    assert merkle.root(some(number)) == by_definition(some(number))


@pytest.mark.parametrize("number", [1, 255, 256, 257, 512, 700, 1025])
def test_the_root_over_blocks_is_the_root_over_all_leaves(number: int) -> None:
    leaves = some(number)
    blocks = merkle.block_roots(b"".join(leaves))
    assert len(blocks) == -(-number // merkle.BLOCK_ROWS)
    assert merkle.root(blocks) == merkle.root(leaves)


def test_a_leaf_binds_salt_and_row() -> None:
    row, salt = b"row", b"s" * merkle.SALT_BYTES
    assert merkle.leaf(salt, row) == hashlib.sha256(b"\x00" + salt + row).digest()
    assert merkle.leaf(salt, row) != merkle.leaf(b"t" * merkle.SALT_BYTES, row) != merkle.leaf(salt, b"other")


def test_every_row_of_every_block_has_a_salt_of_its_own() -> None:
    places = [("2026-03", "attempt", "all", n) for n in range(3)] + [("2026-04", "attempt", "all", 0)]
    salts = [salt for place in places for salt in merkle.row_salts(merkle.block_salt(KEY, *place), merkle.BLOCK_ROWS)]
    assert len(set(salts)) == len(salts) == 4 * merkle.BLOCK_ROWS
    assert {len(salt) for salt in salts} == {merkle.SALT_BYTES}
    assert merkle.block_salt(KEY, *places[0]) != merkle.block_salt(bytes(32), *places[0])


def test_leaves_follow_their_blocks() -> None:
    rows = [str(n).encode() for n in range(merkle.BLOCK_ROWS + 2)]
    blocks = [merkle.block_salt(KEY, "m", n) for n in range(2)]
    found = list(merkle.leaves(blocks, rows))
    assert len(found) == len(rows)
    first = list(merkle.row_salts(blocks[1], 2))
    assert found[-2:] == [merkle.leaf(salt, row) for salt, row in zip(first, rows[-2:], strict=True)]
