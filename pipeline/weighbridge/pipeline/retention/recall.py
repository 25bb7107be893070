"""Who is meant by an erasure that is remembered by hashes: the tenant and attempts of the lake that have them."""

from __future__ import annotations

import polars as pl

from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.retention.places import Places
from weighbridge.pipeline.retention.request import Request, hash_of
from weighbridge.pipeline.retention.subject import KEY, NO_ATTEMPTS
from weighbridge.schemas.identity import AttemptKey, erased
from weighbridge.schemas.tables import TABLES


def attempts_of(places: Places, request: Request) -> pl.DataFrame:
    """The attempts in the lake that an erasure is about, by their hashes: attempt_hi, attempt_lo."""
    if not request.attempts:
        return NO_ATTEMPTS
    found: set[tuple[int, int]] = set()
    for table, about in TABLES.items():
        if set(KEY) <= set(about.names) and places.lake.version(table) is not None:
            keys = places.lake.scan(table, columns=KEY).drop_nulls().unique().collect(engine="streaming")
            found.update(key for key in keys.iter_rows() if hash_of(key) in request.attempts)
    return pl.DataFrame(sorted(found), schema=NO_ATTEMPTS.schema, orient="row")


def tenant_of(lake: Lake, request: Request) -> str | None:
    """The pseudonym of the tenant an erasure is about, null where the lake has no row of it."""
    if request.tenant is None:
        return None
    for table, about in TABLES.items():
        if "tenant" in about.names:
            names = lake.scan(table, columns=["tenant"]).unique().collect(engine="streaming")["tenant"].drop_nulls()
            for name in names:
                if erased(name) == request.tenant:
                    return str(name)
    return None


def evidence_of(places: Places, request: Request) -> pl.DataFrame:
    """The attempts that findings list as evidence and that an erasure is about, by their hashes."""
    told = places.lake.scan("finding", columns=["evidence"]).select(pl.col("evidence").explode()).unique()
    hexes = told.drop_nulls().collect()["evidence"].to_list()
    keys = [AttemptKey.from_hex(text) for text in hexes if erased(text) in request.attempts]
    return pl.DataFrame(sorted(keys), schema=NO_ATTEMPTS.schema, orient="row")
