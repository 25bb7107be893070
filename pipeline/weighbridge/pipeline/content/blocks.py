"""Opening the blocks of one day: ids in memory, for this room alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from weighbridge.schemas.block import BlockError, BlockName, open_block
from weighbridge.schemas.keys import KeyUnavailableError
from weighbridge.schemas.packing import unpack

TABLE = "token_run"
KIND = "ids"
# What all runs of a block share: it is bound to them, or opened with them.
SCOPE = ("tenant", "subject_bucket", "month", "key_id")
Ids = npt.NDArray[np.uint32]


class Shut(StrEnum):
    """Why a block does not open."""

    NO_KEY = "no_key"  # the key was destroyed, or the provider cannot be reached
    NO_CIPHERTEXT = "no_ciphertext"  # the row that held it is not in the lake
    DAMAGED = "damaged"  # it does not open under its key and description, or its runs do not fit it or each other


@dataclass(frozen=True, slots=True)
class Opened:
    """One block.

    Attributes:
        rows: its rows of `token_run`, in the order of their offsets.
        ids: all its ids; empty where it did not open.
        method: how it is packed, 0 where it did not open.
        size: bytes of its ciphertext.
        shut: why it did not open.
    """

    rows: pl.DataFrame
    ids: Ids
    method: int
    size: int
    shut: Shut | None = None


class Reader(Protocol):
    """What this room needs of a key provider: keys by name."""

    def get(self, name: str) -> bytes:
        """See `KeyProvider`."""


class Ring:
    """The keys of one piece of work: each is asked for once, and held no longer than the ring.

    A key that is destroyed meanwhile loses nothing of its meaning: what is written under it then is as good as erased.
    """

    def __init__(self, keys: Reader) -> None:
        self._keys = keys
        self._known: dict[str, bytes | None] = {}

    def get(self, name: str) -> bytes:
        """See `KeyProvider`."""
        if name not in self._known:
            try:
                self._known[name] = self._keys.get(name)
            except KeyUnavailableError:
                self._known[name] = None
        key = self._known[name]
        if key is None:
            raise KeyUnavailableError(f"key {name} cannot be had: it was destroyed, or its provider cannot be reached")
        return key


def open_day(rows: pl.DataFrame, keys: Reader) -> list[Opened]:
    """Open every block among the rows of a day; in the order of block names.

    Args:
        rows: rows of `token_run`.
        keys: who gives the keys.

    Raises:
        CipherMissingError: the package that decrypts is not installed.
    """
    ring = Ring(keys)
    parts = rows.filter(pl.col("block").is_not_null()).sort("block", "block_offset")
    return [_opened(part, ring) for part in parts.partition_by("block", maintain_order=True)]


def _opened(rows: pl.DataFrame, ring: Ring) -> Opened:
    held = rows["ciphertext"].drop_nulls()
    none = np.empty(0, dtype=np.uint32)
    first = rows.row(0, named=True)
    if not held.len():
        return Opened(rows, none, 0, 0, Shut.NO_CIPHERTEXT)
    block: bytes = held[0]
    if rows.select(SCOPE).n_unique() > 1 or rows["block_offset"].null_count():
        return Opened(rows, none, 0, len(block), Shut.DAMAGED)
    try:
        packed = open_block(ring.get(str(first["key_id"])), block_name(first), block)
        ids = np.frombuffer(unpack(packed), dtype="<u4").astype(np.uint32, copy=False)
    except KeyUnavailableError:
        return Opened(rows, none, 0, len(block), Shut.NO_KEY)
    except BlockError:
        return Opened(rows, none, 0, len(block), Shut.DAMAGED)
    if int((rows["block_offset"] + rows["length"]).max() or 0) > len(ids):  # type: ignore[arg-type]
        return Opened(rows, none, 0, len(block), Shut.DAMAGED)
    return Opened(rows, ids, packed[0], len(block))


def block_name(row: dict[str, object]) -> BlockName:
    """What the block of a row is bound to."""
    tenant, bucket, month, block = row["tenant"], row["subject_bucket"], row["month"], row["block"]
    return BlockName(TABLE, str(tenant), int(str(bucket or 0)), str(month), KIND, str(block))
