"""What is in quarantine, added up for people: how many records for which reason, of how many files."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date

import polars as pl

from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.validate.violation import named
from weighbridge.schemas.tables import TABLES


@dataclass(frozen=True, slots=True)
class Holding:
    """Records that are held for one reason.

    Attributes:
        table: the table they are stored in, null where they could not be read.
        rule: the rule they break, null likewise.
        reason: why they are held, a member of `QuarantineReason`.
        importer: what read them.
        records: how many; one that is held for several reasons counts for each.
        files: of how many files.
        days: on how many UTC days.
    """

    table: str | None
    rule: str | None
    reason: str
    importer: str
    records: int
    files: int
    days: int

    @property
    def read(self) -> bool:
        """Whether they could be read, and are rows of the lake."""
        return self.rule is not None


_SAME = ("table_name", "rule", "reason", "importer")


def holdings(lake: Lake, days: Collection[date] | None) -> tuple[Holding, ...]:
    """What is in quarantine on these UTC days, the most frequent first; on all where null.

    The texts of the lake are shown only where they are names, as they may be text where rows break their contract.
    """
    rows = lake.scan("quarantine", columns=[*_SAME, "segment", "line", "path", "day"])
    if days is not None:
        rows = rows.filter(pl.col("day").is_in(list(days)))
    # A sealed segment has a file per table, which the path begins with; a record that could not be read has no other.
    begins = pl.col("path").str.split(".").list.first()
    of = pl.when(begins.is_in(list(TABLES))).then(begins)
    found = rows.group_by(_SAME).agg(
        records=pl.struct("segment", "line", of.alias("of")).n_unique(),
        files=pl.col("segment").n_unique(),
        days=pl.col("day").n_unique(),
    )
    ordered = found.sort("records", *_SAME, descending=[True, *[False] * len(_SAME)]).collect(engine="streaming")
    return tuple(
        Holding(
            table=None if table is None else named(table),
            rule=None if rule is None else named(rule),
            reason=named(reason),
            importer=named(importer),
            records=records,
            files=files,
            days=of_days,
        )
        for table, rule, reason, importer, records, files, of_days in ordered.iter_rows()
    )
