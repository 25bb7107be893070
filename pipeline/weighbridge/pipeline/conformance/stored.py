"""Cases of a store that fails once: the records are taken in, the first write fails, and the same run is repeated.

Nothing of a record is kept but in its file until a write of it is committed, so the second run finds all of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from weighbridge.pipeline.conformance import dedup
from weighbridge.pipeline.conformance.case import RECORDS, TOTALS, Case, count
from weighbridge.pipeline.conformance.compare import compared, differs
from weighbridge.pipeline.ingest.ingest import ingest
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.errors import LakeError

FAULT = "fault"
INPUT = frozenset({"provider", "api", "model", "context", RECORDS})
CONTEXT = frozenset({FAULT})
EXPECT = frozenset({"rows_in", "rows_out", "lost", "counts", "note", *TOTALS})


class FailingOnce(Lake):
    """A lake whose first write fails before anything is committed."""

    failed = False

    def append(self, table: str, frame: pl.DataFrame, *, note: Mapping[str, str] = {}) -> int:
        """Fail once, then write."""
        if not self.failed:
            self.failed = True
            raise LakeError("the store failed, as the case asks")
        return super().append(table, frame, note=note)


def is_one(case: Case) -> bool:
    """Whether the case is one of these: records, and a store that fails."""
    return RECORDS in case.given and FAULT in case.context


def compared_store(case: Case) -> Iterator[str | None]:
    """One item for each thing the case asserts: the difference in words, or null where there is none.

    Raises:
        MalformedCaseError: a record or an expectation cannot be read.
    """
    with TemporaryDirectory(prefix="weighbridge-") as folder:
        lake = FailingOnce.create(Path(folder) / "lake")
        path = Path(folder) / "records.jsonl"
        importer, lines = dedup.file_of(case)
        path.write_text("".join(json.dumps(line, default=str) + "\n" for line in lines), encoding="utf-8")
        try:
            ingest([path], lake, key=dedup.CASE_KEY, day=dedup.CASE_DAY, importer=importer)
        except LakeError:
            pass
        else:
            yield "the store did not fail: nothing was written at all"
        result = ingest([path], lake, key=dedup.CASE_KEY, day=dedup.CASE_DAY, importer=importer).files[0]
        readings = dedup.latest(lake, "reading", dedup.REPORT)
    found = {
        "rows_in": result.rows_in,
        "rows_out": readings.height,
        "lost": result.rows_in - result.rows_quarantined - result.rows_duplicate - readings.height,
    }
    for name, value in found.items():
        if name in case.expect:
            yield differs(name, count(case.expect[name], f"expect.{name}"), value)
    yield from compared(case, dedup.summed(case, readings), lambda _, __: None)
