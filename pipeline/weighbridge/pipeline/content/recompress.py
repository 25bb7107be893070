"""Recompressing: the small blocks of a day become large ones, under the same keys.

A serving host writes a block per tenant as soon as it is worth while or half a minute old. Here all blocks of one
(tenant, subject bucket, key) and day become one, packed by rank. The key stays the one the ids were written under, so
destroying it still erases exactly them. A block that does not open is left as it is.

A day is written anew in one commit, after every new block was opened again and compared: a process that is killed
anywhere leaves the day as it was or as it is to be, and running it again finishes the others. What the old blocks took
on disk is given back by `Lake.compact`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date

import numpy as np
import polars as pl

from weighbridge.pipeline.content.blocks import SCOPE, TABLE, Opened, Reader, Ring, Shut, block_name, open_day
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.block import open_block, seal_block
from weighbridge.schemas.packing import RANKS, pack_ranks, unpack

# Ids of one block at most: large enough that its dictionary costs little, small enough to open in memory.
BLOCK_IDS = 4 << 20
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

    @property
    def unsound(self) -> bool:
        """Whether a block did not open although its key is there."""
        return bool(self.shut[Shut.DAMAGED] or self.shut[Shut.NO_CIPHERTEXT])

    def add(self, made: Recompressed) -> None:
        """Count what was done for one more day."""
        self.ids += made.ids
        self.blocks_before += made.blocks_before
        self.blocks_after += made.blocks_after
        self.bytes_before += made.bytes_before
        self.bytes_after += made.bytes_after
        self.shut += made.shut
        self.days += made.days


class PackingError(Exception):
    """A block that was written does not give back the ids it was made from. Nothing was changed."""


def recompress(lake: Lake, keys: Reader, days: Collection[date]) -> Recompressed:
    """Pack the token runs of days into larger blocks. A day that is packed so already is left as it is.

    Args:
        lake: the lake; its lock is held for one day at a time.
        keys: the provider the ids were encrypted with; it only has to `get`.
        days: UTC days; the ids of one are in memory at a time.

    Raises:
        CipherMissingError: the package that decrypts is not installed.
        LakeError: the lake cannot be written; days that are done stay so, and running it again finishes the others.
        PackingError: a fault of the program; nothing of that day was changed.
    """
    out = Recompressed()
    for day in sorted(days):
        with lake.lock():
            out.add(_of_day(lake, Ring(keys), day))
    return out


def crowded(lake: Lake) -> list[date]:
    """The days that have more blocks than their ids need; no block is opened."""
    runs = lake.scan(TABLE, columns=["day", *SCOPE, "block", "length"]).filter(pl.col("block").is_not_null())
    scopes = runs.group_by("day", *SCOPE).agg(
        blocks=pl.col("block").n_unique().cast(pl.Int64), ids=pl.col("length").cast(pl.Int64).sum()
    )
    needed = pl.max_horizontal(1, (pl.col("ids") + BLOCK_IDS - 1) // BLOCK_IDS)
    days = scopes.filter(pl.col("blocks") > needed).select(pl.col("day").unique().sort())
    return days.collect(engine="streaming")["day"].to_list()


def _of_day(lake: Lake, ring: Ring, day: date) -> Recompressed:
    rows = lake.scan(TABLE, first=day, last=day).collect()
    opened = open_day(rows, ring)
    made = Recompressed(shut=Counter(block.shut for block in opened if block.shut is not None))
    fresh = [part for group in _groups(opened) for part in _repacked(group, ring, made)]
    if fresh:
        gone = {str(block) for part in fresh for block in part["_old"]}
        kept = rows.filter(~pl.col("block").is_in(sorted(gone)).fill_null(value=False))
        lake.replace(TABLE, pl.concat([kept, *(part.drop("_old") for part in fresh)]), days=[day])
        made.days.append(day)
    return made


def _groups(opened: Sequence[Opened]) -> Iterator[list[Opened]]:
    """Blocks that may become one, and of which at least one is not packed as well as it could be."""
    groups: dict[tuple[object, ...], list[Opened]] = {}
    for block in opened:
        if block.shut is None:
            groups.setdefault(block.rows.select(SCOPE).row(0), []).append(block)
    for group in groups.values():
        if any(block.method != RANKS for block in group):
            yield group


def _repacked(group: Sequence[Opened], ring: Ring, made: Recompressed) -> Iterator[pl.DataFrame]:
    rows = pl.concat([block.rows.with_columns(_in=pl.lit(n, dtype=pl.Int64)) for n, block in enumerate(group)])
    rows = rows.sort(_ORDER).with_columns(_old=pl.col("block"))
    made.blocks_before += len(group)
    made.bytes_before += sum(block.size for block in group)
    part = (pl.col("length").cast(pl.Int64).cum_sum() - 1) // BLOCK_IDS
    for chunk in rows.with_columns(_part=part).partition_by("_part", maintain_order=True):
        ids = np.concatenate(
            [
                group[place].ids[start : start + length]
                for place, start, length in chunk.select("_in", "block_offset", "length").iter_rows()
            ]
        )
        yield _written(chunk.drop("_in", "_part"), ids.astype("<u4").tobytes(), ring, made)


def _written(rows: pl.DataFrame, ids: bytes, ring: Ring, made: Recompressed) -> pl.DataFrame:
    first = rows.row(0, named=True) | {"block": os.urandom(16).hex()}
    key, name = ring.get(first["key_id"]), block_name(first)
    sealed = seal_block(key, name, pack_ranks(ids))
    if unpack(open_block(key, name, sealed)) != ids:
        raise PackingError(f"block {name.block} does not give back its ids; keep the lake as it is and report it")
    made.ids += len(ids) // 4
    made.blocks_after += 1
    made.bytes_after += len(sealed)
    length = pl.col("length").cast(pl.Int64)
    return rows.with_columns(
        block=pl.lit(first["block"]),
        block_offset=length.cum_sum() - length,
        ciphertext=pl.Series([sealed, *[None] * (rows.height - 1)], dtype=pl.Binary),
    )
