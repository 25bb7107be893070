"""Which attempt a record is about, where two sources know it by one identifier.

A record that carries no recorder's id has a key of its own source (`Staged.derived`). Before it is stored it takes
the key of the attempt it is known to be about:

1. the attempt its own source already has under the identifier that names it (the record was read before), else
2. the one attempt that other sources have under an identifier all share (a response id, a client's request id).

Where other sources have several attempts under it, or its own source claims that attempt already, nothing is
matched: the record keeps its own key, both alias rows stay, and that the identifier is ambiguous shows in `alias`.
"""

from __future__ import annotations

import polars as pl

from weighbridge.pipeline.ingest.keys import SHARED_KINDS
from weighbridge.pipeline.lake import Lake

HASH = ["alias_lo", "alias_hi", "kind"]
ATTEMPT = ["attempt_hi", "attempt_lo"]
TARGET = ["target_hi", "target_lo"]
ALIAS = [*HASH, *ATTEMPT, "source"]
_AS_TARGET = [pl.col(name).alias(target) for name, target in zip(ATTEMPT, TARGET, strict=True)]


def known_aliases(lake: Lake, staged: pl.DataFrame) -> pl.DataFrame:
    """The alias rows of the lake that share a hash with staged ones: hash, kind, attempt, source."""
    wanted = staged.lazy().select("alias_lo", "alias_hi").unique()
    found = lake.scan("alias", columns=ALIAS).join(wanted, on=["alias_lo", "alias_hi"], how="semi")
    return found.unique().collect(engine="streaming").sort(ALIAS)


def resolve(aliases: pl.DataFrame, derived: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """attempt_hi, attempt_lo, target_hi, target_lo: the derived attempts of one source that are about a known one.

    Args:
        aliases: staged alias rows of that source, in the order of files and records: hash, kind, attempt, source.
        derived: its staged attempts with a key of their own; see `Staged.derived`.
        known: the alias rows that were there before, of all sources.
    """
    own = _of_own_source(derived, known)
    rest = aliases.join(derived.select(ATTEMPT), on=ATTEMPT, how="semi", maintain_order="left")
    rest = rest.join(own, on=ATTEMPT, how="anti", maintain_order="left")
    return pl.concat([own, _of_other_sources(rest, known)])


def _of_own_source(derived: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Step 1: the identifying id is there, from the same source, for exactly one attempt."""
    named = derived.filter(pl.col("alias_lo").is_not_null()).unique(maintain_order=True)
    there = known.select("alias_lo", "alias_hi", "source", *_AS_TARGET).unique()
    return _unique_target(named.join(there, on=["alias_lo", "alias_hi", "source"], maintain_order="left"))


def _of_other_sources(rest: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Step 2: identifiers that other sources share name exactly one attempt of theirs, not claimed by its own yet."""
    shared = rest.filter(pl.col("kind").is_in([str(kind) for kind in SHARED_KINDS]))
    others = known.select(*HASH, *_AS_TARGET, by="source")
    met = shared.join(others, on=HASH, maintain_order="left").filter(pl.col("source") != pl.col("by")).drop("by")
    met = met.unique(maintain_order=True)
    met = met.join(_unique_target(met), on=[*ATTEMPT, *TARGET], how="semi", maintain_order="left")
    claim = [*HASH, "source", *TARGET]
    free = met.join(known.select(*HASH, "source", *_AS_TARGET), on=claim, how="anti", maintain_order="left")
    return free.unique(claim, keep="first", maintain_order=True).select(*ATTEMPT, *TARGET).unique(maintain_order=True)


def _unique_target(found: pl.DataFrame) -> pl.DataFrame:
    """The attempts for which all rows found name one and the same target."""
    targets = found.select(*ATTEMPT, *TARGET).unique(maintain_order=True)
    return targets.filter(pl.len().over(ATTEMPT) == 1)


def rekeyed(rows: pl.DataFrame, matches: pl.DataFrame) -> pl.DataFrame:
    """`rows` with the keys of matched attempts replaced."""
    if matches.is_empty() or "attempt_hi" not in rows.columns:
        return rows
    joined = rows.join(matches, on=ATTEMPT, how="left", maintain_order="left")
    return joined.with_columns(
        attempt_hi=pl.coalesce("target_hi", "attempt_hi"), attempt_lo=pl.coalesce("target_lo", "attempt_lo")
    ).drop(TARGET)
