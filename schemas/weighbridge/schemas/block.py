"""Content blocks: ids of one (tenant, subject bucket, month), packed and then sealed with AES-256-GCM.

A block is `nonce (12) | ciphertext | tag (16)`. Encrypted is `length (8, little-endian) | packed ids | zeros`, filled
up to a multiple of 64 bytes, so that the size of a block tells no more than that; the length is authenticated with the
rest. What the block is about stands in the additional authenticated data, so a block moved to another tenant, month or
table does not open.
Random 96-bit nonces: at most 2**32 blocks under one key (NIST SP 800-38D); a key covers one month.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Final

from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import framed

NONCE: Final = 12
TAG: Final = 16
# What is encrypted is filled up to a multiple of so many bytes.
STEP: Final = 64
_LENGTH: Final = 8


class CipherMissingError(ConfigError):
    """The package `cryptography` is not installed: `pip install "weighbridge[ids]"`."""


class BlockError(Exception):
    """A block that does not open: the key, the block or its description was changed."""


@dataclass(frozen=True, slots=True)
class BlockName:
    """What a block is about; bound to it as authenticated data.

    Attributes:
        table: the table its rows stand in.
        tenant: pseudonym of the tenant, or unassigned.
        bucket: bucket of the data subject.
        month: UTC month of the data, YYYY-MM.
        kind: class of the key, such as ids.
        block: its random name, 32 hexadecimal digits.
    """

    table: str
    tenant: str
    bucket: int
    month: str
    kind: str
    block: str

    def aad(self) -> bytes:
        """The authenticated data; the name of the format comes first, so that a block of another one does not open."""
        about = (self.table, self.tenant, self.bucket, self.month, self.kind, self.block)
        return framed("weighbridge padded block", *about)


def check_cipher() -> None:
    """See that blocks can be sealed and opened here.

    Raises:
        CipherMissingError: the package that does it is not installed.
    """
    _aes(bytes(32))


def seal_block(key: bytes, name: BlockName, plaintext: bytes) -> bytes:
    """Encrypt a block; it has `NONCE + TAG` bytes more than a multiple of `STEP`.

    Raises:
        CipherMissingError: the package that does it is not installed.
    """
    nonce = os.urandom(NONCE)
    return nonce + bytes(_aes(key).encrypt(nonce, _padded(plaintext), name.aad()))


def open_block(key: bytes, name: BlockName, block: bytes) -> bytes:
    """Decrypt a block.

    Raises:
        BlockError: it does not open under this key and name.
        CipherMissingError: the package that does it is not installed.
    """
    aes = _aes(key)
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - an optional package

    try:
        padded = bytes(aes.decrypt(block[:NONCE], block[NONCE:], name.aad()))
    except (InvalidTag, ValueError) as error:
        raise BlockError(f"block {name.block} does not open: its key or its description differs") from error
    return _unpadded(padded, name)


def _padded(plaintext: bytes) -> bytes:
    filled = len(plaintext).to_bytes(_LENGTH, "little") + plaintext
    return filled + bytes(-len(filled) % STEP)


def _unpadded(padded: bytes, name: BlockName) -> bytes:
    plaintext = padded[_LENGTH : _LENGTH + int.from_bytes(padded[:_LENGTH], "little")]
    if _padded(plaintext) != padded:
        raise BlockError(f"block {name.block} opened, but its length is not the one it states; it was written wrongly")
    return plaintext


def _aes(key: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise CipherMissingError('ids need the package cryptography: pip install "weighbridge[ids]"') from error
    return AESGCM(key)
