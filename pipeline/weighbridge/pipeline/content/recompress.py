"""Recompressing: the small blocks of a day become large ones, under the same keys.

A serving host writes a block per tenant as soon as it is worth while or half a minute old. Here all blocks of one
(tenant, subject bucket, key) and day become one, packed by rank. The key stays the one the ids were written under, so
destroying it still erases exactly them. A block that does not open is left as it is.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date

import numpy as np
import polars as pl

from weighbridge.pipeline.content.blocks import TABLE, Opened, Shut, block_name, open_day
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.block import seal_block
from weighbridge.schemas.keys import KeyProvider
from weighbridge.schemas.packing import RANKS, pack_ranks

# Ids of one block at most: large enough that its dictionary costs little, small enough to open in memory.
BLOCK_IDS = 4 << 20
_SCOPE = ("tenant", "subject_bucket", "month", "key_id")
_ORDER = ("source", "attempt_hi", "attempt_lo", "child", "run")


@dataclass(slots=True)
class Recompressed:
    """What one call did.

    Attributes:
        ids: ids in the blocks that were written anew.
        blocks_before, blocks_after: how many blocks those were and are.
        bytes_before, bytes_after: their ciphertext.
        shut: blocks that did not open and were left, by reason.
        days: days that were written anew.
    """

    ids: int = 0
    blocks_before: int = 0
    blocks_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    shut: Counter[Shut] = field(default_factory=Counter)
    days: list[date] = field(default_factory=list)


def recompress(lake: Lake, keys: KeyProvider, days: Collection[date]) -> Recompressed:
    """Pack the token runs of days into larger blocks. A day that is packed so already is left as it is.

    Args:
        lake: the lake.
        keys: the provider the ids were encrypted with; it only has to `get`.
        days: UTC days; the ids of one are in memory at a time.

    Raises:
        CipherMissingError: the package that decrypts is not installed.
        LakeError: the lake cannot be written; running it again finishes it.
    """
    out = Recompressed()
    with lake.lock():
        for day in sorted(days):
            rows = lake.scan(TABLE, first=day, last=day).collect()
            opened = open_day(rows, keys)
            out.shut.update(block.shut for block in opened if block.shut is not None)
            fresh = [part for group in _groups(opened) for part in _repacked(group, keys, out)]
            if fresh:
                gone = {str(block) for part in fresh for block in part["_old"]}
                kept = rows.filter(~pl.col("block").is_in(sorted(gone)).fill_null(value=False))
                lake.replace(TABLE, pl.concat([kept, *(part.drop("_old") for part in fresh)]), days=[day])
                out.days.append(day)
    return out


def _groups(opened: Sequence[Opened]) -> Iterator[list[Opened]]:
    """Blocks that may become one, and of which at least one is not packed as well as it could be."""
    groups: dict[tuple[object, ...], list[Opened]] = {}
    for block in opened:
        if block.shut is None:
            groups.setdefault(block.rows.select(_SCOPE).row(0), []).append(block)
    for group in groups.values():
        if any(block.method != RANKS for block in group):
            yield group


def _repacked(group: Sequence[Opened], keys: KeyProvider, out: Recompressed) -> Iterator[pl.DataFrame]:
    rows = pl.concat([block.rows.with_columns(_in=pl.lit(n, dtype=pl.Int64)) for n, block in enumerate(group)])
    rows = rows.sort(_ORDER).with_columns(_old=pl.col("block"))
    out.blocks_before += len(group)
    out.bytes_before += sum(block.size for block in group)
    part = (pl.col("length").cast(pl.Int64).cum_sum() - 1) // BLOCK_IDS
    for chunk in rows.with_columns(_part=part).partition_by("_part", maintain_order=True):
        ids = np.concatenate(
            [
                group[place].ids[start : start + length]
                for place, start, length in chunk.select("_in", "block_offset", "length").iter_rows()
            ]
        )
        yield _written(chunk.drop("_in", "_part"), ids.astype("<u4").tobytes(), keys, out)


def _written(rows: pl.DataFrame, ids: bytes, keys: KeyProvider, out: Recompressed) -> pl.DataFrame:
    first = rows.row(0, named=True) | {"block": os.urandom(16).hex()}
    sealed = seal_block(keys.get(first["key_id"]), block_name(first), pack_ranks(ids))
    out.ids += len(ids) // 4
    out.blocks_after += 1
    out.bytes_after += len(sealed)
    length = pl.col("length").cast(pl.Int64)
    return rows.with_columns(
        block=pl.lit(first["block"]),
        block_offset=length.cum_sum() - length,
        ciphertext=pl.Series([sealed, *[None] * (rows.height - 1)], dtype=pl.Binary),
    )
