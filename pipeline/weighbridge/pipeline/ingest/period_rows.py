"""Results of usage pages as rows of `usage_period`: read by their dialect, named by a hash of what they are about.

Accounts, projects, keys and users of a page are names of somebody. Projects and keys stay as pseudonyms, users and
accounts only inside the hash that tells two rows of one period apart.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, time

import polars as pl

from weighbridge.pipeline.ingest.importer import Source, Staged
from weighbridge.pipeline.ingest.log_files import part_of
from weighbridge.pipeline.ingest.log_leaves import PAGE_PATHS, WRITES, named_leaves
from weighbridge.pipeline.ingest.parts import Part
from weighbridge.pipeline.ingest.pseudonyms import tenant
from weighbridge.pipeline.ingest.reading import UsageReading, read_parts
from weighbridge.pipeline.ingest.record_fields import digits, name_of
from weighbridge.pipeline.lake import polars_schema
from weighbridge.schemas.enumerations import Ended, ReportPart
from weighbridge.schemas.identity import key_id, keyed_key, pseudonym
from weighbridge.schemas.leaves import Flattened, Refusal
from weighbridge.schemas.tables import UNASSIGNED

SOURCE = "usage-pages"
PAGES_MISSING = "pages_missing"
_TABLE = "usage_period"


@dataclass(frozen=True, slots=True)
class Result:
    """One result of a page.

    Attributes:
        provider, api: whose page, and which.
        start, end: its period, in UTC.
        values: its fields.
        grouped: by what its page is grouped.
        pages_missing: the page says that more follow, and the file has no further one.
    """

    provider: str
    api: str
    start: datetime
    end: datetime
    values: Mapping[str, object]
    grouped: tuple[str, ...]
    pages_missing: bool


@dataclass(slots=True)
class PeriodRows:
    """The rows of one file while they are gathered."""

    source: Source
    records: int = 0
    refused: int = 0
    _rows: list[dict[str, object]] = field(default_factory=list)
    _quarantine: list[dict[str, object]] = field(default_factory=list)

    def add(self, item: Result | Refusal) -> None:
        """Add a result, or why one cannot be read."""
        number = self.records
        self.records += 1
        if isinstance(item, Refusal):
            self._refuse(number, [item], None, Flattened())
            return
        leaves = named_leaves(_counts(item.values))
        if leaves.refusals:
            self._refuse(number, leaves.refusals, item, leaves)
        else:
            self._rows.append({"segment_row": number, **_row(item, leaves, self.source)})

    def staged(self) -> Staged:
        """The rows of all results."""
        tables = {_TABLE: _frame(_TABLE, self._rows)} if self._rows else {}
        refused = _frame("quarantine", self._quarantine) if self._quarantine else None
        return Staged(self.records, tables, by_line=True, refused=refused, refused_records=self.refused)

    def _refuse(self, number: int, refusals: list[Refusal], item: Result | None, leaves: Flattened) -> None:
        self.refused += 1
        for path, reason in dict.fromkeys(refusals):
            self._quarantine.append(
                {
                    "line": number,
                    "day": item.start.date() if item else self.source.day,
                    "source": SOURCE,
                    "provider": item.provider if item else None,
                    "api": item.api if item else None,
                    "leaf_shape": leaves.shape,
                    "leaf_integers": leaves.integers(),
                    "leaf_texts": leaves.texts(),
                    "reason": str(reason),
                    "path": path if path in PAGE_PATHS else "",
                }
            )


def _frame(table: str, rows: list[dict[str, object]]) -> pl.DataFrame:
    types = {**polars_schema(table), "segment_row": pl.Int64()}
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pl.DataFrame(rows, schema={name: types[name] for name in names})


def _counts(values: Mapping[str, object]) -> dict[str, object]:
    """The counts of a result under their whole names."""
    flat: dict[str, object] = {}
    for name, value in values.items():
        inner = value.items() if isinstance(value, Mapping) else ()
        flat |= {f"result.{name}.{key}": item for key, item in inner} if inner else {f"result.{name}": value}
    return {WRITES.get(path, path): value for path, value in flat.items() if value is not None}


def _row(item: Result, leaves: Flattened, source: Source) -> dict[str, object]:
    notes: list[str] = []
    values, key = item.values, source.key
    model = name_of(values.get("model"), notes)
    parts = part_of(leaves, Ended.COMPLETE) or [Part(ReportPart.WHOLE, Flattened(), Ended.COMPLETE)]
    reading = read_parts(item.provider, item.api, model, parts, day=item.start.date())
    assigned = tenant(key, source.tenant)
    hi, lo = _cell(item, key)
    return {
        "cell_hi": hi,
        "cell_lo": lo,
        "day": item.start.date(),
        "source": SOURCE,
        "provider": item.provider,
        "api": item.api,
        "period_start": item.start,
        "period_end": item.end,
        "grouped_by": list(item.grouped),
        "model": model,
        "project": _pseudonym(key, "project", values.get("project_id", values.get("workspace_id"))),
        "api_key": _pseudonym(key, "key", values.get("api_key_id")),
        "tenant": assigned,
        "tenant_key_id": None if assigned == UNASSIGNED else key_id(key),
        "service_tier": name_of(values.get("service_tier"), notes),
        "context_window": name_of(values.get("context_window"), notes),
        "batch": values["batch"] if isinstance(values.get("batch"), bool) else None,
        "provisional": item.end > datetime.combine(source.day, time(), UTC),
        "requests": digits(values.get("num_model_requests")),
        **_figures(reading, item),
        "leaf_shape": leaves.shape,
        "leaf_integers": leaves.integers(),
        "leaf_texts": leaves.texts(),
        "notes": [*parts[0].notes, *dict.fromkeys(notes)] or None,
    }


def _figures(reading: UsageReading, item: Result) -> dict[str, object]:
    flags = [*reading.flags, PAGES_MISSING] if item.pages_missing else list(reading.flags)
    return {
        "verdict": str(reading.verdict),
        "reason": reading.reason,
        "rule": reading.rule,
        **reading.counts,
        **reading.cells,
        "input_total": reading.input_total,
        "output_total": reading.output_total,
        "total": reading.total,
        "flags": sorted(flags) or None,
    }


def _pseudonym(key: bytes, kind: str, value: object) -> str | None:
    return pseudonym(key, kind, value) if isinstance(value, str) and value else None


def _cell(item: Result, key: bytes) -> tuple[int, int]:
    """The keyed hash of what a row is about: page, period and whatever it is grouped by, also what is not kept."""
    counted = {path.split(".")[1].split("[")[0] for path in PAGE_PATHS} | {"input_cache_write_12h_tokens", "object"}
    about = {name: value for name, value in item.values.items() if name not in counted and value is not None}
    about = {name: value for name, value in about.items() if not isinstance(value, Mapping)}
    shown = json.dumps(about, sort_keys=True, default=str, separators=(",", ":"))
    times = (item.start.isoformat(), item.end.isoformat())
    grouped = ",".join(item.grouped)
    return keyed_key(key, SOURCE, item.api, *times, grouped, shown.encode("utf-8", "surrogatepass"))
