"""A recorder's attempt that comes after records of it were stored: they take its key, late as it is.

A provider's export may be read before the segments of the agent that recorded the same calls. Its rows then stand
under a key of their own. When the recorded attempt arrives and shares an identifier with them, and nothing else
claims it, they are moved to the recorder's key. So the order in which files are read does not matter.

The alias is moved last, when readings follow already. A run that is cut off before that finds the same rows again
and finishes the move.
"""

from __future__ import annotations

from datetime import date

import polars as pl

from weighbridge.pipeline.ingest.keys import SHARED_KINDS
from weighbridge.pipeline.ingest.readings import refresh_readings
from weighbridge.pipeline.ingest.resolve import ATTEMPT, HASH, TARGET, rekeyed
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.identity import AttemptKey, keyed_key

MOVED = ("attempt", "child", "usage_report", "foreign_id")
_CLAIM = [*HASH, "source", *TARGET]


def adopt(lake: Lake, key: bytes, recorded: pl.DataFrame, known: pl.DataFrame) -> tuple[pl.DataFrame, set[date]]:
    """Move stored records to recorded attempts that share an identifier with them.

    Args:
        lake: the lake; its lock is held.
        key: the installation's pseudonym key.
        recorded: staged alias rows of attempts that have their recorder's key.
        known: the lake's alias rows that share a hash with staged ones.

    Returns:
        `known` as it stands afterwards, and the days whose rows were moved.
    """
    moves = _derived_only(lake, key, _moves(recorded, known))
    if moves.is_empty():
        return known, set()
    matches = moves.select(*ATTEMPT, *TARGET).unique(maintain_order=True)
    days: set[date] = set()
    for table in MOVED:
        days |= _move(lake, table, matches)
    refresh_readings(lake, sorted(days))
    _move(lake, "alias", matches)
    return rekeyed(known, matches), days


def _moves(recorded: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Attempt, its source, and the one recorded attempt it shares identifiers with."""
    targets = recorded.filter(pl.col("kind").is_in([str(kind) for kind in SHARED_KINDS])).select(
        *HASH, by="source", target_hi="attempt_hi", target_lo="attempt_lo"
    )
    alone = targets.unique().filter(pl.struct(TARGET).n_unique().over(HASH) == 1)
    met = known.filter(pl.struct(ATTEMPT).n_unique().over(HASH) == 1).join(alone, on=HASH, maintain_order="left")
    apart = (pl.col("attempt_lo") != pl.col("target_lo")) | (pl.col("attempt_hi") != pl.col("target_hi"))
    met = met.filter(apart & (pl.col("source") != pl.col("by")))
    met = met.join(known.rename(dict(zip(ATTEMPT, TARGET, strict=True))), on=_CLAIM, how="anti", maintain_order="left")
    return met.filter(pl.struct(TARGET).n_unique().over(ATTEMPT) == 1)


def _derived_only(lake: Lake, key: bytes, moves: pl.DataFrame) -> pl.DataFrame:
    """The moves away from keys that were made from an identifier of their own source, never from a recorder's."""
    if moves.is_empty():
        return moves
    held = pl.concat([moves.select(ATTEMPT), moves.select(attempt_hi="target_hi", attempt_lo="target_lo")])
    foreign = lake.scan("foreign_id", columns=[*ATTEMPT, "source", "kind", "value"]).join(
        held.lazy().unique(), on=ATTEMPT, how="semi"
    )
    made = {
        (source, keyed_key(key, source, kind, value))
        for source, kind, value in foreign.select("source", "kind", "value").collect().iter_rows()
    }
    ours = [(source, AttemptKey(hi, lo)) in made for source, hi, lo in moves.select("source", *ATTEMPT).iter_rows()]
    return moves.filter(pl.Series(ours, dtype=pl.Boolean))


def _move(lake: Lake, table: str, matches: pl.DataFrame) -> set[date]:
    # Days already moved by a run that was cut off are named too: their readings may be missing.
    targets = matches.select(attempt_hi="target_hi", attempt_lo="target_lo")
    held = pl.concat([matches.select(ATTEMPT), targets]).unique()
    present = lake.scan(table, columns=["day", *ATTEMPT]).join(held.lazy(), on=ATTEMPT, how="semi")
    days = present.select("day").unique().collect()["day"].sort().to_list()
    for day in days:
        rows = lake.scan(table, first=day, last=day).collect()
        lake.replace(table, rekeyed(rows, matches), days=[day], note={"adopted": "true"})
    return set(days)
