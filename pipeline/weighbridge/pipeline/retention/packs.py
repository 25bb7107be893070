"""Whose attempts the packs of closed months hold: an erasure that was cut off finds there what the lake has lost.

The rows themselves are taken out by the room that closes (`Places.forget_closed`), which knows how a pack goes on
proving its figures without them.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from weighbridge.pipeline.retention.subject import KEY, NO_ATTEMPTS, Subject
from weighbridge.schemas.identity import AttemptKey, erased


def attempts(closes: Path | None, subject: Subject) -> pl.DataFrame:
    """The attempts of a subject that packs hold, of its days; of everybody where it names nobody: attempt_hi, _lo."""
    found = [NO_ATTEMPTS]
    for path in files(closes):
        rows = pl.scan_parquet(path, hive_partitioning=False)
        mine = [pl.col(name) == value for name, value in subject.columns.items()]
        dated = [pl.col("day") <= subject.last] if subject.last is not None else []
        dated += [pl.col("day") >= subject.first] if subject.first is not None else []
        found.append(rows.filter(*mine, *dated).select(KEY).unique().collect())
    return pl.concat(found).unique()


def count(closes: Path | None, attempts: pl.DataFrame) -> int:
    """How many packs hold any of these attempts."""
    found = set()
    for path in files(closes) if attempts.height else ():
        held = pl.scan_parquet(path, hive_partitioning=False).select(KEY)
        if held.join(attempts.lazy(), on=KEY, how="semi").head(1).collect().height:
            found.add(path.parents[2])
    return len(found)


def hashed(closes: Path | None, hashes: frozenset[str]) -> pl.DataFrame:
    """The attempts that packs hold and whose hashes are these: attempt_hi, attempt_lo."""
    keys: set[tuple[int, int]] = set()
    for path in files(closes):
        held = pl.scan_parquet(path, hive_partitioning=False).select(KEY).unique().collect()
        keys.update(key for key in held.iter_rows() if erased(AttemptKey(*key).to_hex()) in hashes)
    return pl.DataFrame(sorted(keys), schema=NO_ATTEMPTS.schema, orient="row")


def files(closes: Path | None, table: str = "attempt") -> list[Path]:
    """The files of a table's rows in packs, `*` for every table; packs that are being made are left out."""
    found = [] if closes is None else closes.glob(f"*/rows/{table}/*.parquet")
    return sorted(path for path in found if not path.parts[-4].startswith("."))
