"""Whether anything here is of a tenant, or of one bucket of its data subjects.

A mistyped name becomes a pseudonym like any other, and an erasure of nobody looks like one that was done. Known is who
stands in a table of the lake, a segment, a close pack, the name of a key, an unsealed file or a page, and who was
erased before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from weighbridge.pipeline.retention.folders import Sealed, open_files
from weighbridge.pipeline.retention.packs import files
from weighbridge.pipeline.retention.places import Places
from weighbridge.pipeline.retention.repeat import requests
from weighbridge.pipeline.retention.search import Needles, within_file
from weighbridge.pipeline.retention.spool import Segment
from weighbridge.pipeline.retention.subject import Subject
from weighbridge.pipeline.retention.trace import pages
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import erased
from weighbridge.schemas.keys import KEY_NAME, KeyScope
from weighbridge.schemas.tables import TABLES

_BUCKET = "subject_bucket"
_SHOWN = 10
_ANYWAY = "Nothing was erased or remembered. Where rows of it may still come, say so with --even-if-unknown"


def check_known(places: Places, subject: Subject, sealed: Sequence[Sealed]) -> None:
    """Refuse a tenant, or a bucket of one, of which nothing is known here; single attempts are not asked for.

    Args:
        places: where things lie.
        subject: whom.
        sealed: the segments of the spools.

    Raises:
        ConfigError: nothing here is of it.
        KeyUnavailableError: keys cannot be listed.
    """
    tenant, bucket = subject.tenant, subject.bucket
    if tenant is None:
        return
    before = [request for request in requests(places) if request.tenant == erased(tenant)]
    if any(request.bucket in {None, bucket} for request in before):
        return
    found: set[int | None] = set()
    for buckets in _buckets(places, tenant, sealed):
        found |= buckets
        if found and bucket in {None, *found}:
            return
    if not (found or before or _named(places, tenant)):
        raise ConfigError(
            "the lake knows no such tenant, nor does a segment, a close pack, a key or an earlier erasure. A name "
            f"counts to the letter; a pseudonym is taken as reports show it. {_ANYWAY}"
        )
    if bucket is not None:
        known = sorted(each for each in found if each is not None)
        told = ", ".join(map(str, known[:_SHOWN])) + (", ..." if len(known) > _SHOWN else "") or "none"
        waiting = len(open_files(places.spools))
        unsealed = f" {waiting} files are not sealed yet and tell no bucket." if waiting else ""
        raise ConfigError(f"the tenant has no bucket {bucket} here; known of it: {told}.{unsealed} {_ANYWAY}")


def _buckets(places: Places, tenant: str, sealed: Sequence[Sealed]) -> Iterator[set[int | None]]:
    """The buckets of a tenant, place by place: 0 where a row was given none, null of tables that have none."""
    for rows in _rows(places, sealed):
        names = rows.collect_schema().names()
        if "tenant" in names:
            bucket = pl.col(_BUCKET).fill_null(0) if _BUCKET in names else pl.lit(None)
            # With columns first: of no rows, a literal selected alone makes one.
            mine = (
                rows.filter(pl.col("tenant") == tenant)
                .with_columns(bucket.cast(pl.Int64).alias(_BUCKET))
                .select(_BUCKET)
            )
            yield set(mine.unique().collect(engine="streaming")[_BUCKET])
    keys = places.keys
    names = (keys.names() if keys is not None and keys.erases else None) or []
    scopes = [KeyScope.of(name) for name in names if KEY_NAME.fullmatch(name)]
    yield {scope.bucket for scope in scopes if scope.tenant == tenant}


def _rows(places: Places, sealed: Sequence[Sealed]) -> Iterator[pl.LazyFrame]:
    for table, about in TABLES.items():
        if "tenant" in about.names:
            yield places.lake.scan(table, columns=[name for name in ("tenant", _BUCKET) if name in about.names])
    for one in sealed:
        segment = Segment(one.path)
        yield from (segment.scan(table) for table in segment.manifest.files)
    for path in files(places.closes, "*"):
        yield pl.scan_parquet(path, hive_partitioning=False)


def _named(places: Places, tenant: str) -> bool:
    """Whether a file that is not sealed yet, or a page, names the tenant."""
    needles = Needles({tenant.encode(): "the tenant"}, {})
    return any(within_file(path, needles) for path in open_files(places.spools)) or bool(pages(places, needles))
