"""A batch of staged files: resolved, settled, counted and committed together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from itertools import groupby

import polars as pl

from weighbridge.pipeline.ingest.adopt import adopt
from weighbridge.pipeline.ingest.door import Admitted
from weighbridge.pipeline.ingest.importer import Staged
from weighbridge.pipeline.ingest.keys import aliases
from weighbridge.pipeline.ingest.readings import refresh_readings
from weighbridge.pipeline.ingest.resolve import ALIAS, ATTEMPT, TARGET, known_aliases, rekeyed, resolve
from weighbridge.pipeline.ingest.settle import CONFLICT, DUPLICATE, NEW, THERE, settle
from weighbridge.pipeline.ingest.token_runs import TABLE as TOKEN_RUN
from weighbridge.pipeline.ingest.token_runs import with_ciphertext
from weighbridge.pipeline.lake import Lake, polars_schema
from weighbridge.schemas.enumerations import QuarantineReason
from weighbridge.schemas.errors import LakeError
from weighbridge.schemas.identity import NAME

# The alias comes first: where a run is cut off after it, the files of a later run still find each other.
COMMIT_ORDER = (
    "alias",
    "foreign_id",
    "strategy",
    "request_scope",
    "attempt",
    "child",
    "usage_report",
    "token_run",
    "state_event",
    "invoice_line",
    "invoice_detail",
    "currency_rate",
    "usage_period",
    "engine_counter",
    "gap",
    "quarantine",
)
# What the lake calls a file whose name is no name; its digest tells which it is.
UNNAMED = "unnamed"
# What the record of a line is counted by; its identifiers go with it.
OF_A_LINE = (
    *("request_scope", "attempt", "child", "usage_report"),
    *("invoice_line", "invoice_detail", "currency_rate", "usage_period", "engine_counter"),
)
# Tables of which the lake cannot tell how many rows were records of a file: they do not keep it, or have others too.
UNPLACED = ("strategy", "alias", "quarantine")
_DERIVED = {**dict.fromkeys((*ATTEMPT, "alias_hi", "alias_lo"), pl.Int64), "source": pl.String}


@dataclass(slots=True)
class Account:
    """The rows of one file: records = out + quarantined + duplicate; some of those that are out are unplaced.

    `first_day` and `last_day` are those of the UTC days its stored rows lie on; null where none lies on a day.
    """

    records: int = 0
    out: int = 0
    quarantined: int = 0
    duplicate: int = 0
    unplaced: int = 0
    first_day: date | None = None
    last_day: date | None = None


@dataclass(slots=True)
class Batch:
    """Files that are committed together.

    Attributes:
        lake: the lake; its lock is held.
        key: the installation's pseudonym key.
        files: what was added, in the order of settling.
        accounts: the account of each file; complete once the batch is committed.
        rows: how many rows were added.
    """

    lake: Lake
    key: bytes
    files: list[Admitted] = field(default_factory=list)
    accounts: list[Account] = field(default_factory=list)
    rows: int = 0
    _tables: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    _derived: list[pl.DataFrame] = field(default_factory=list)

    def add(self, file: Admitted, staged: Staged) -> None:
        """Add a file; files with recorded attempts come first."""
        index = len(self.files)
        self.files.append(file)
        self.accounts.append(
            Account(records=staged.records, quarantined=staged.refused_records, duplicate=staged.repeated)
        )
        self.rows += staged.rows
        derived = pl.DataFrame(schema=_DERIVED) if staged.derived is None else staged.derived
        self._derived.append(derived.select(pl.col(name).cast(kind) for name, kind in _DERIVED.items()))
        about = {"_file": pl.lit(index, dtype=pl.Int32), "segment": pl.lit(file.heading.digest)}
        for name, rows in staged.tables.items():
            self._put(name, rows.with_columns(**about, _counted=pl.lit(not staged.by_line)))
        if "foreign_id" in staged.tables:
            hashed = aliases(self.key, staged.tables["foreign_id"])
            self._put("alias", hashed.with_columns(**about, _counted=pl.lit(value=False)))
        if staged.refused is not None:
            refused = staged.refused.with_columns(**about, importer=pl.lit(file.importer.name))
            self._put("quarantine", refused.with_columns(_counted=pl.lit(value=False)))

    def _put(self, table: str, rows: pl.DataFrame) -> None:
        """Keep rows in the types of their table; null columns are left out, an attempt has many."""
        types = polars_schema(table)
        typed = rows.with_columns(pl.col(n).cast(types[n]) for n in rows.columns if n in types)
        self._tables.setdefault(table, []).append(typed)

    def commit(self) -> set[date]:
        """Settle and store the files. Returns the days touched.

        Raises:
            LakeError: the lake cannot be written; what was committed is found again by the next run.
        """
        tables = {name: pl.concat(parts, how="diagonal_relaxed") for name, parts in self._tables.items()}
        self._tables.clear()
        moved = self._resolve(tables)
        rows: dict[str, pl.DataFrame] = {}
        told: dict[str, pl.DataFrame] = {}
        for name in COMMIT_ORDER:
            parts = [tables.pop(name)] if name in tables else []
            if name == "quarantine":
                parts += [self._conflicts(table, outcome) for table, outcome in told.items()]
            if parts:
                rows[name], told[name] = self._settled(name, pl.concat(parts, how="diagonal_relaxed"))
        self._count(told)
        for name in list(rows):
            self._append(name, rows.pop(name))
        reports = moved | (_days(told["usage_report"]) if "usage_report" in told else set())
        if reports:
            refresh_readings(self.lake, sorted(reports))
        self._append("segment", self._segments())
        return moved.union(*map(_days, told.values()))

    def _resolve(self, tables: dict[str, pl.DataFrame]) -> set[date]:
        """Give records the key of the attempt they are known to be about. Returns days whose stored rows moved."""
        if "alias" not in tables:
            return set()
        staged = tables["alias"]
        known = known_aliases(self.lake, staged)
        derived = pl.concat(self._derived)
        recorded = staged.join(derived.select(ATTEMPT), on=ATTEMPT, how="anti", maintain_order="left")
        known, moved = adopt(self.lake, self.key, recorded, known)
        known = pl.concat([known, recorded.select(known.columns)])
        matches = [pl.DataFrame(schema=dict.fromkeys([*ATTEMPT, *TARGET], pl.Int64))]
        for _, group in groupby(range(len(self.files)), key=self._source):
            files = list(group)
            of_group = staged.filter(pl.col("_file").is_in(files)).select(ALIAS)
            found = resolve(of_group, pl.concat([self._derived[index] for index in files]), known)
            known = pl.concat([known, rekeyed(of_group, found).select(known.columns)])
            matches.append(found)
        found = pl.concat(matches).unique(maintain_order=True)
        for name, rows in tables.items():
            tables[name] = rekeyed(rows, found)
        return moved

    def _source(self, index: int) -> str | None:
        derived = self._derived[index]
        return None if derived.is_empty() else str(derived["source"][0])

    def _settled(self, table: str, rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        settled = settle(self.lake, table, rows.drop("_counted"))
        stored = with_ciphertext(settled.rows, rows) if table == TOKEN_RUN else settled.rows
        return stored, settled.outcome.with_columns(rows["_counted"])

    def _conflicts(self, table: str, outcome: pl.DataFrame) -> pl.DataFrame:
        """Rows whose key is taken by other content go to quarantine, and are counted there."""
        conflicts = outcome.filter(pl.col("outcome") == CONFLICT)
        if table == TOKEN_RUN:
            # Ids of a line are encrypted anew whenever it is read, and so are never equal: those that stand stay.
            conflicts = conflicts.filter("_counted")
        for index, rows in conflicts.filter("_counted").group_by("_file").len().iter_rows():
            self.accounts[index].quarantined += rows
        files = pl.DataFrame(
            {
                "_file": range(len(self.files)),
                "segment": [file.heading.digest for file in self.files],
                "importer": [file.importer.name for file in self.files],
                "source": [file.heading.writer or file.importer.name for file in self.files],
                "_day": [file.source.day for file in self.files],
            },
            schema_overrides={"_file": pl.Int32, "_day": pl.Date},
        )
        return conflicts.join(files, on="_file", maintain_order="left").select(
            "_file",
            "segment",
            "importer",
            "source",
            line="segment_row",
            day=pl.coalesce("day", "_day"),
            reason=pl.lit(str(QuarantineReason.SCHEMA)),
            path=pl.lit(table),
            _counted=pl.lit(value=False),
        )

    def _count(self, told: dict[str, pl.DataFrame]) -> None:
        """Complete the accounts, and see that each of them balances before anything is written."""
        rows = [outcome.filter("_counted").select("_file", "outcome") for outcome in told.values()]
        rows.append(self._lines(told))
        counts = pl.concat(rows).group_by("_file", "outcome").len()
        for index, outcome, number in counts.iter_rows():
            if outcome in {NEW, THERE}:
                self.accounts[index].out += number
            elif outcome == DUPLICATE:
                self.accounts[index].duplicate += number
        for name in UNPLACED:
            if name in told:
                stored = told[name].filter("_counted", pl.col("outcome").is_in([NEW, THERE]))
                for index, number in stored.group_by("_file").len().iter_rows():
                    self.accounts[index].unplaced += number
        for index, first, last in _days_of_files(told).iter_rows():
            self.accounts[index].first_day, self.accounts[index].last_day = first, last
        for file, account in zip(self.files, self.accounts, strict=True):
            if account.records != account.out + account.quarantined + account.duplicate:
                raise LakeError(
                    f"the account of {file.source.path.name} does not balance: {account}; nothing was written. "
                    f"This is an error of the importer {file.importer.name}: report it with the shape of the file, not "
                    "its text."
                )

    def _lines(self, told: dict[str, pl.DataFrame]) -> pl.DataFrame:
        """One outcome per record of the files that are counted by line: stored if any of its rows is."""
        rows = [told[name].filter(~pl.col("_counted")) for name in OF_A_LINE if name in told]
        if not rows:
            return pl.DataFrame(schema={"_file": pl.Int32, "outcome": pl.String})
        stored = pl.col("outcome").is_in([NEW, THERE]).any()
        lines = pl.concat(rows).group_by("_file", "segment_row").agg(stored.alias("stored"))
        return lines.select("_file", outcome=pl.when("stored").then(pl.lit(NEW)).otherwise(pl.lit(DUPLICATE)))

    def _segments(self) -> pl.DataFrame:
        return pl.DataFrame(
            [
                {
                    "segment": file.heading.digest,
                    "importer": file.importer.name,
                    "name": _told_name(file.source.path.name),
                    "bytes": file.heading.bytes,
                    "writer": file.heading.writer,
                    "sequence_first": file.heading.sequence[0],
                    "sequence_last": file.heading.sequence[1],
                    "end": str(file.heading.end),
                    "rows_in": account.records,
                    "rows_out": account.out,
                    "rows_quarantined": account.quarantined,
                    "rows_duplicate": account.duplicate,
                    "rows_unplaced": account.unplaced,
                    "schema_version": file.heading.schema_version,
                    "first_day": account.first_day,
                    "last_day": account.last_day,
                }
                for file, account in zip(self.files, self.accounts, strict=True)
            ],
            schema=polars_schema("segment"),
        )

    def _append(self, table: str, rows: pl.DataFrame) -> None:
        names = [name for name in polars_schema(table) if name in rows.columns]
        self.lake.append(table, rows.select(names), note={"files": str(len(self.files))})


def _days_of_files(told: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """_file, and the first and last day of its stored rows."""
    stored = pl.col("outcome").is_in([NEW, THERE])
    days = [told[name].filter(stored).select("_file", "day") for name in told if name not in UNPLACED]
    if not days:
        return pl.DataFrame(schema={"_file": pl.Int32, "first": pl.Date, "last": pl.Date})
    return pl.concat(days).group_by("_file").agg(first=pl.col("day").min(), last=pl.col("day").max())


def forget(lake: Lake, digests: set[str]) -> None:
    """Take the quarantine rows and the accounts of files that are about to be read again out of the lake."""
    if not digests:
        return
    gone = pl.col("segment").is_in(sorted(digests))
    days = lake.scan("quarantine").filter(gone).select("day").unique().collect()["day"].to_list()
    kept = lake.scan("quarantine").filter(pl.col("day").is_in(days) & ~gone).collect()
    lake.replace("quarantine", kept, days=days)
    lake.replace("segment", lake.scan("segment").filter(~gone).collect(), days=None)


def _told_name(name: str) -> str:
    """The name of a file as the lake keeps it; one that may be a sentence, or is no text at all, is not kept."""
    return name if NAME.fullmatch(name) else UNNAMED


def _days(outcome: pl.DataFrame) -> set[date]:
    stored = outcome.filter(pl.col("outcome").is_in([NEW, THERE]))
    return set(stored["day"].drop_nulls().unique())
