"""Attempts by what other systems call them, such as the response id of a provider, through the alias table."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from weighbridge.pipeline.ingest.keys import OWN_KINDS, SHARED_KINDS, alias_key
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.schemas.enumerations import ForeignIdKind
from weighbridge.schemas.identity import IDENTIFIER, AttemptKey

_ALIAS = ("alias_hi", "alias_lo")


def attempts_named(lake: Lake, key: bytes, identifier: str) -> dict[str, tuple[str, ...]]:
    """The attempts that another system calls so: attempt id -> the kinds of identifier it is.

    Args:
        key: the installation's pseudonym key, which the alias table is hashed with.
        identifier: the whole identifier; upper and lower case differ.
    """
    if not IDENTIFIER.fullmatch(identifier):
        return {}
    hashed = {(str(kind), *alias_key(key, kind, source, identifier)) for kind, source in _askable(lake)}
    wanted = pl.DataFrame(sorted(hashed), schema={"kind": pl.String, **dict.fromkeys(_ALIAS, pl.Int64)}, orient="row")
    rows = (
        lake.scan("alias", columns=["kind", *_ALIAS, "attempt_hi", "attempt_lo"])
        .filter(pl.col("alias_lo").is_in(wanted["alias_lo"].implode()))
        .join(wanted.lazy(), on=["kind", *_ALIAS], how="semi")
        .select("attempt_hi", "attempt_lo", "kind")
        .unique()
        .sort(pl.all())
        .collect(engine="streaming")
    )
    found: dict[str, tuple[str, ...]] = {}
    for hi, lo, kind in rows.iter_rows():
        attempt = AttemptKey(hi, lo).to_hex()
        found[attempt] = (*found.get(attempt, ()), kind)
    return found


def _askable(lake: Lake) -> Iterator[tuple[ForeignIdKind, str]]:
    """The kinds that may be meant; of numbers that are a source's own, once per source."""
    yield from ((kind, "") for kind in SHARED_KINDS)
    own = pl.col("kind").is_in([str(kind) for kind in OWN_KINDS])
    known = lake.scan("alias", columns=["kind", "source"]).filter(own).unique().sort("kind", "source")
    yield from ((ForeignIdKind(kind), source) for kind, source in known.collect(engine="streaming").iter_rows())
