"""Opening the blocks of one day: ids in memory, for this room alone."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt
import polars as pl

from weighbridge.schemas.block import BlockError, BlockName, open_block
from weighbridge.schemas.keys import KeyProvider, KeyUnavailableError
from weighbridge.schemas.packing import unpack

TABLE = "token_run"
KIND = "ids"
Ids = npt.NDArray[np.uint32]


class Shut(StrEnum):
    """Why a block does not open."""

    NO_KEY = "no_key"  # the key was destroyed, or the provider cannot be reached
    NO_CIPHERTEXT = "no_ciphertext"  # the row that held it is not in the lake
    DAMAGED = "damaged"  # it does not open under its key and description, or its runs do not fit it


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


def open_day(rows: pl.DataFrame, keys: KeyProvider) -> list[Opened]:
    """Open every block among the rows of a day; in the order of block names.

    Args:
        rows: rows of `token_run`.
        keys: who gives the keys.

    Raises:
        CipherMissingError: the package that decrypts is not installed.
    """
    known: dict[str, bytes | None] = {}
    parts = rows.filter(pl.col("block").is_not_null()).sort("block", "block_offset")
    return [_opened(part, keys, known) for part in parts.partition_by("block", maintain_order=True)]


def _opened(rows: pl.DataFrame, keys: KeyProvider, known: dict[str, bytes | None]) -> Opened:
    held = rows["ciphertext"].drop_nulls()
    none = np.empty(0, dtype=np.uint32)
    first = rows.row(0, named=True)
    if not held.len():
        return Opened(rows, none, 0, 0, Shut.NO_CIPHERTEXT)
    block: bytes = held[0]
    key = _key(first["key_id"], keys, known)
    if key is None:
        return Opened(rows, none, 0, len(block), Shut.NO_KEY)
    try:
        packed = open_block(key, block_name(first), block)
        ids = np.frombuffer(unpack(packed), dtype="<u4").astype(np.uint32, copy=False)
    except BlockError:
        return Opened(rows, none, 0, len(block), Shut.DAMAGED)
    if int((rows["block_offset"] + rows["length"]).max() or 0) > len(ids):  # type: ignore[arg-type]
        return Opened(rows, none, 0, len(block), Shut.DAMAGED)
    return Opened(rows, ids, packed[0], len(block))


def _key(name: str, keys: KeyProvider, known: dict[str, bytes | None]) -> bytes | None:
    if name not in known:
        try:
            known[name] = keys.get(name)
        except KeyUnavailableError:
            known[name] = None
    return known[name]


def block_name(row: dict[str, object]) -> BlockName:
    """What the block of a row is bound to."""
    tenant, bucket, month, block = row["tenant"], row["subject_bucket"], row["month"], row["block"]
    return BlockName(TABLE, str(tenant), int(str(bucket or 0)), str(month), KIND, str(block))
