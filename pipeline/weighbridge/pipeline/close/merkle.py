"""Salted Merkle trees over the canonical bytes of rows: a root that stands for every row, and outlives their erasure.

    leaf = SHA-256(0x00 | salt of the row | canonical row)        node = SHA-256(0x01 | left | right)

A level is paired from the left, and a node without a partner moves up as it is (the tree of RFC 6962), so the root of
a block of `BLOCK_ROWS` rows is a node of the tree over all of them. The salt of a row follows from that of its block.
A leaf whose salt is gone says nothing about its row, and still takes its place in the tree.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Iterable, Iterator, Sequence

from weighbridge.schemas.identity import framed

BLOCK_ROWS = 256
HASH_BYTES = 32
SALT_BYTES = 16
_ORDINAL = struct.Struct(">I")
EMPTY = hashlib.sha256(b"").digest()


def block_salt(key: bytes, *place: str | int) -> bytes:
    """The salt of a block: it follows from the installation's key and the place, so a close repeated is the same.

    Args:
        key: the pseudonym key of the installation, 16 to 64 bytes.
        place: month, table, part and number of the block.
    """
    return hmac.new(key, framed("close salt", *place), hashlib.sha256).digest()


def row_salts(salt: bytes, rows: int) -> Iterator[bytes]:
    """The salts of the first rows of a block."""
    for ordinal in range(rows):
        yield hashlib.sha256(salt + _ORDINAL.pack(ordinal)).digest()[:SALT_BYTES]


def leaf(salt: bytes, row: bytes) -> bytes:
    """The commitment to one row."""
    return hashlib.sha256(b"\x00" + salt + row).digest()


def leaves(block_salts: Iterable[bytes], rows: Iterable[bytes]) -> Iterator[bytes]:
    """The leaves of rows in their order, block after block."""
    held = iter(rows)
    for salt in block_salts:
        for own, row in zip(row_salts(salt, BLOCK_ROWS), held, strict=False):
            yield leaf(own, row)


def root(nodes: Sequence[bytes]) -> bytes:
    """The root over leaves, or over the roots of whole blocks of them, in their order."""
    level = list(nodes)
    if not level:
        return EMPTY
    while len(level) > 1:
        paired = [
            hashlib.sha256(b"\x01" + left + right).digest()
            for left, right in zip(level[::2], level[1::2], strict=False)
        ]
        level = paired + level[-1:] if len(level) % 2 else paired
    return level[0]


def block_roots(leaf_hashes: bytes) -> list[bytes]:
    """The root of each block, from the leaves one after the other."""
    size = BLOCK_ROWS * HASH_BYTES
    return [root(split(leaf_hashes[start : start + size])) for start in range(0, len(leaf_hashes), size)]


def split(hashes: bytes, size: int = HASH_BYTES) -> list[bytes]:
    """Hashes, or salts, that stand one after the other."""
    return [hashes[start : start + size] for start in range(0, len(hashes), size)]
