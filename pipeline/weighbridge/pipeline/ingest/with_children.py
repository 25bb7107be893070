"""Children of calls beside the rows of a stage: which attempt they belong to is known by the record they came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime

import polars as pl

from weighbridge.pipeline.ingest.importer import Staged
from weighbridge.pipeline.lake import polars_schema

_KEY = ("segment_row", "attempt_hi", "attempt_lo")


@dataclass(slots=True)
class Children:
    """Rows of `child` while they are gathered: one call a record.

    Attributes:
        source: the system that wrote the records.
        day: the UTC day of records without a time.
    """

    source: str
    day: date
    _rows: list[dict[str, object]] = field(default_factory=list)

    def add(self, number: int, created: datetime | None, rows: Sequence[Mapping[str, object]]) -> None:
        """Add the children of the call of one record, in their order.

        Args:
            number: the place of the record in its file.
            created: when the call began.
            rows: columns of each child but those of the attempt.
        """
        place = {"day": created.date() if created else self.day, "source": self.source, "segment_row": number}
        self._rows += [{**place, "child": child, **row} for child, row in enumerate(rows, 1)]

    def beside(self, staged: Staged) -> Staged:
        """The staged rows with the children of those calls that were not refused."""
        if not self._rows or "attempt" not in staged.tables:
            return staged
        types = {**polars_schema("child"), "segment_row": pl.Int64()}
        names = list(dict.fromkeys(name for row in self._rows for name in row))
        rows = pl.DataFrame(self._rows, schema={name: types[name] for name in names})
        named = staged.tables["attempt"].select(_KEY)
        found = rows.join(named, on="segment_row", how="inner", maintain_order="left")
        return replace(staged, tables={**staged.tables, "child": found}) if found.height else staged
