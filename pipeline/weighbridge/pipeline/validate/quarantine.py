"""The quarantine as people see it: one entry per record and rule, what is known of it, and what was decided about it.

An entry is a record that could not be read, or a stored row that breaks a rule. Releasing is for the latter: a person
says, with a reason, that the row may stand as it is; it then no longer counts against its rule, and leaves the
quarantine. A record that could not be read has no figures that could stand: it is read again (`retry`).

Deciding is two commits, the decision first. A run that is cut off between them is made whole by running it again: the
same decision is not written twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import polars as pl

from weighbridge.pipeline.ingest.importers.segment import IMPORTER as SEALED
from weighbridge.pipeline.lake import Lake, polars_schema
from weighbridge.schemas.enumerations import QuarantineState
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import NAME, framed
from weighbridge.schemas.tables import TABLES

TABLE, STATUS = "quarantine", "quarantine_status"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One record in quarantine.

    Attributes:
        entry_id: hash of file, line, table and rule.
        segment: digest of its file.
        line: its 0-based line or row in that file.
        day: the UTC day it is kept under.
        source, importer: who wrote it, what read it.
        table: the table it is stored in, or of a sealed segment was to be; null where that is not known.
        rule: the rule it breaks; null where it could not be read.
        reasons: why, a word each.
        paths: the values it is about.
        leaves: path -> figure of what could be read of it; numbers and words of closed lists.
    """

    entry_id: str
    segment: str
    line: int
    day: date
    source: str
    importer: str
    table: str | None
    rule: str | None
    reasons: tuple[str, ...]
    paths: tuple[str, ...]
    leaves: tuple[tuple[str, int | str | None], ...] = ()

    @property
    def stored(self) -> bool:
        """Whether it is a row of the lake; else it could not be read."""
        return self.rule is not None


def entry_id(segment: str, line: int, table: str | None, rule: str | None) -> str:
    """The id of an entry: 32 hexadecimal digits."""
    return hashlib.sha256(framed(segment, line, table or "", rule or "")).hexdigest()[:32]


def entries(
    lake: Lake,
    *,
    first: date | None = None,
    last: date | None = None,
    files: Collection[str] | None = None,
    where: pl.Expr | None = None,
) -> list[Entry]:
    """What is in quarantine, by day, file, line, table and rule.

    Args:
        first, last: only these UTC days, both inclusive.
        files: only of the files with these digests.
        where: only rows of the table `quarantine` for which this holds.
    """
    rows = lake.scan(TABLE, first=first, last=last)
    if files is not None:
        rows = rows.filter(pl.col("segment").is_in(list(files)))
    if where is not None:
        rows = rows.filter(where)
    names = ["day", "segment", "line", "_table", "rule"]
    told = rows.with_columns(_table=_table()).collect(engine="streaming").sort([*names, "reason", "path"])
    records = told.group_by(names, maintain_order=True).agg(
        pl.col("source", "importer", "leaf_shape", "leaf_integers", "leaf_texts").first(),
        reasons=pl.col("reason").unique(maintain_order=True),
        paths=pl.col("path").drop_nulls().unique(maintain_order=True),
    )
    return [_entry(record) for record in records.iter_rows(named=True)]


def _table() -> pl.Expr:
    """The table of a row: its own; of a sealed segment, which has a file per table, the one its path begins with."""
    begins = pl.col("path").str.split(".").list.first()
    sealed = (pl.col("importer") == SEALED.name) & begins.is_in(list(TABLES))
    return pl.coalesce("table_name", pl.when(sealed).then(begins))


def _entry(row: Mapping[str, Any]) -> Entry:
    paths = (row["leaf_shape"] or "").split()
    figures = [
        integer if text is None else text
        for integer, text in zip(
            row["leaf_integers"] or [None] * len(paths), row["leaf_texts"] or [None] * len(paths), strict=False
        )
    ]
    return Entry(
        entry_id=entry_id(row["segment"], row["line"], row["_table"], row["rule"]),
        segment=row["segment"],
        line=row["line"],
        day=row["day"],
        source=row["source"],
        importer=row["importer"],
        table=row["_table"],
        rule=row["rule"],
        reasons=tuple(row["reasons"]),
        paths=tuple(row["paths"]),
        leaves=tuple(zip(paths, figures, strict=False)),
    )


def history(lake: Lake, ids: Iterable[str]) -> list[dict[str, object]]:
    """What was decided about entries, oldest first."""
    wanted = pl.col("entry_id").is_in(list(ids))
    return lake.scan(STATUS).filter(wanted).sort("entry_id", "change").collect().to_dicts()


def last_decisions(lake: Lake, digits: str) -> list[dict[str, object]]:
    """The last thing that was decided about each entry whose id begins with these digits, held or not."""
    about = lake.scan(STATUS).filter(pl.col("entry_id").str.starts_with(digits)).sort("entry_id", "change")
    return about.group_by("entry_id", maintain_order=True).last().collect().to_dicts()


def release(lake: Lake, chosen: Sequence[Entry], *, by: str, reason: str, now: datetime) -> int:
    """Let stored rows stand as they are; how many left the quarantine.

    Args:
        lake: the lake.
        chosen: entries of `entries`.
        by: who says so, a name without blanks.
        reason: why, in the user's words; kept in `quarantine_status` and nowhere else.
        now: the time, with its zone.

    Raises:
        ConfigError: a record among them could not be read; a name, reason or time that cannot be used.
        LakeBusyError: another process is writing.
    """
    unread = [entry for entry in chosen if not entry.stored]
    if unread:
        raise ConfigError(
            f"{unread[0].entry_id[:8]} could not be read, so there is no row that could stand; read its file again "
            "with `weighbridge quarantine retry`, or waive the finding about it"
        )
    check_reason(reason)
    with lake.lock():
        decide(lake, chosen, QuarantineState.RELEASED, by=by, reason=reason, now=now)
        return remove(lake, chosen)


def decide(
    lake: Lake, chosen: Sequence[Entry], state: QuarantineState, *, by: str, reason: str | None, now: datetime
) -> None:
    """Write what was decided about entries; those whose last state it is already are passed over."""
    check_decision(by, now)
    last = {
        row["entry_id"]: (row["change"], row["state"]) for row in history(lake, (entry.entry_id for entry in chosen))
    }
    rows = [
        {
            "entry_id": entry.entry_id,
            "change": last.get(entry.entry_id, (-1, None))[0] + 1,  # type: ignore[operator]
            "state": str(state),
            "segment": entry.segment,
            "line": entry.line,
            "table_name": entry.table,
            "rule": entry.rule,
            "changed_at": now.astimezone(UTC),
            "changed_by": by,
            "reason": reason,
        }
        for entry in {entry.entry_id: entry for entry in chosen}.values()
        if last.get(entry.entry_id, (-1, None))[1] != str(state)
    ]
    lake.append(STATUS, pl.DataFrame(rows, schema=polars_schema(STATUS)))


def check_reason(reason: str) -> None:
    """Refuse to let a row stand without a reason.

    Raises:
        ConfigError: says so.
    """
    if not reason.strip():
        raise ConfigError("releasing a row needs a reason; say in a few words why it may stand")


def check_decision(by: str, now: datetime) -> None:
    """Refuse a name or time that cannot be kept with a decision.

    Raises:
        ConfigError: says which, and what can.
    """
    if not NAME.fullmatch(by):
        raise ConfigError(f"{by!r} cannot be used as a name; letters, digits and . _ : / @ - are allowed, no blanks")
    if now.tzinfo is None:
        raise ConfigError("the time of a decision has no time zone; give it one, for example datetime.now(UTC)")


def remove(lake: Lake, chosen: Sequence[Entry]) -> int:
    """Take entries out of the quarantine; how many were there."""
    if not chosen:
        return 0
    keys = pl.DataFrame(
        [(entry.day, entry.segment, entry.line, entry.table, entry.rule) for entry in chosen],
        schema={"day": pl.Date, "segment": pl.String, "line": pl.Int64, "_table": pl.String, "rule": pl.String},
        orient="row",
    ).unique()
    days = keys["day"].unique().to_list()
    held = lake.scan(TABLE).filter(pl.col("day").is_in(days)).with_columns(_table=_table()).collect()
    gone = held.join(keys, on=keys.columns, how="semi", nulls_equal=True)
    kept = held.join(keys, on=keys.columns, how="anti", nulls_equal=True)
    lake.replace(TABLE, kept.drop("_table"), days=days)
    return gone.select(keys.columns).n_unique()
