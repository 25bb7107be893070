"""The token ids of one attempt, in memory, for the one verb that shows them."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from weighbridge.pipeline.content.blocks import TABLE, Reader, Shut, open_day
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.identity import AttemptKey


@dataclass(frozen=True, slots=True)
class IdRun:
    """One run of ids of an attempt.

    Attributes:
        source, child, stream: whose.
        start: place of the first one in its stream; of a draft, in the sequence.
        ids: the ids; empty where they do not open.
        shut: why they do not open.
    """

    source: str
    child: int
    stream: str
    start: int
    ids: tuple[int, ...]
    shut: Shut | None


def id_runs(lake: Lake, keys: Reader, attempt: AttemptKey) -> list[IdRun]:
    """The runs of an attempt, in the order of source, child, stream and number.

    Raises:
        CipherMissingError: the package that decrypts is not installed.
    """
    of_it = (pl.col("attempt_lo") == attempt.lo) & (pl.col("attempt_hi") == attempt.hi)
    mine = lake.scan(TABLE).filter(of_it).select("day", "block").unique().collect()
    found: list[tuple[tuple[object, ...], IdRun]] = []
    for day in sorted(set(mine["day"])):
        wanted = mine.filter(pl.col("day") == day)["block"].drop_nulls()
        # A block holds runs of several attempts, and the ciphertext stands in the first.
        rows = lake.scan(TABLE, first=day, last=day).filter(pl.col("block").is_in(wanted.implode())).collect()
        for block in open_day(rows, keys):
            for row in block.rows.filter(of_it).iter_rows(named=True):
                held = (
                    () if block.shut else block.ids[row["block_offset"] : row["block_offset"] + row["length"]].tolist()
                )
                order = (row["source"], row["child"], row["run"])
                run = IdRun(row["source"], row["child"], row["stream"], row["start"], tuple(held), block.shut)
                found.append((order, run))
    return [run for _, run in sorted(found, key=lambda pair: str(pair[0]) if None in pair[0] else pair[0])]
