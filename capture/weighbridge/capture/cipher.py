"""Content blocks: ids of one (tenant, subject bucket), compressed and then sealed with AES-256-GCM.

A block is `nonce (12) | ciphertext | tag (16)`. Its plaintext is one method byte and the compressed ids. What the
block is about stands in the additional authenticated data, so a block moved to another tenant, month or table does
not open. Random 96-bit nonces: at most 2**32 blocks under one key (NIST SP 800-38D); a key covers one month.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from weighbridge.schemas.identity import framed

NONCE: Final = 12
PLANES: Final = 1
RANKS: Final = 2
_SPOOL_LEVEL: Final = 3
_LAKE_LEVEL: Final = 9


class CipherMissingError(Exception):
    """The package `cryptography` is not installed: `pip install "weighbridge[ids]"`."""


class BlockError(Exception):
    """A block that does not open: the key, the block or its description was changed."""


@dataclass(frozen=True, slots=True)
class BlockName:
    """What a block is about; bound to it as authenticated data."""

    table: str
    tenant: str
    bucket: int
    month: str
    kind: str
    block: str

    def aad(self) -> bytes:
        """The authenticated data."""
        return framed("weighbridge block", self.table, self.tenant, self.bucket, self.month, self.kind, self.block)


def seal_block(key: bytes, name: BlockName, plaintext: bytes) -> bytes:
    """Encrypt a block.

    Raises:
        CipherMissingError: the package that does it is not installed.
    """
    nonce = os.urandom(NONCE)
    return nonce + bytes(_aes(key).encrypt(nonce, plaintext, name.aad()))


def open_block(key: bytes, name: BlockName, block: bytes) -> bytes:
    """Decrypt a block.

    Raises:
        BlockError: it does not open under this key and name.
        CipherMissingError: the package that does it is not installed.
    """
    aes = _aes(key)
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - an optional package

    try:
        return bytes(aes.decrypt(block[:NONCE], block[NONCE:], name.aad()))
    except (InvalidTag, ValueError) as error:
        raise BlockError(f"block {name.block} does not open: its key or its description differs") from error


def _aes(key: bytes):  # type: ignore[no-untyped-def]
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise CipherMissingError('ids need the package cryptography: pip install "weighbridge[ids]"') from error
    return AESGCM(key)


def pack_planes(ids: bytes) -> bytes:
    """Little-endian unsigned 32-bit ids as compressed byte planes: fast, for the serving host."""
    codec = pa.Codec("zstd", compression_level=_SPOOL_LEVEL)
    count = len(ids) // 4
    out = bytearray([PLANES]) + count.to_bytes(8, "little")
    for plane in range(4):
        data = ids[plane::4]
        packed = b"" if not any(data) else codec.compress(data, asbytes=True)
        out += len(packed).to_bytes(8, "little") + packed
    return bytes(out)


def unpack(packed: bytes) -> bytes:
    """The ids of a packed block, little-endian unsigned 32-bit.

    Raises:
        BlockError: a method this version does not know.
    """
    if packed[0] != PLANES:
        raise BlockError(f"packing method {packed[0]} is of a later version; upgrade weighbridge on this host")
    count = int.from_bytes(packed[1:9], "little")
    out, at = bytearray(4 * count), 9
    for plane in range(4):
        size = int.from_bytes(packed[at : at + 8], "little")
        at += 8
        if size:
            out[plane::4] = pa.decompress(packed[at : at + size], count, codec="zstd", asbytes=True)
        at += size
    return bytes(out)


def join(runs: Sequence[bytes]) -> bytes:
    """The ids of several runs, one after another."""
    return b"".join(runs)
