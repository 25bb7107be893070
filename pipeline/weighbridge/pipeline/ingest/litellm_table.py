"""The table `LiteLLM_SpendLogs` in the proxy's own PostgreSQL: rows of a span of time as a file that ingest reads.

    pull("postgresql://...", Window(since, until), folder, key)
        ->  folder/litellm.20260301T000000Z.20260302T000000Z.jsonl

Only the columns the importer looks at are selected, never a message, an answer, a user or a key; of `metadata` only
single fields. The name of a team is a pseudonym before it is written. The session may not write, and rows come in
batches, in the order of the table's own index on the start time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weighbridge.pipeline.ingest.importers.litellm import COLUMNS, METADATA, PULLED
from weighbridge.pipeline.ingest.pseudonyms import tenant
from weighbridge.schemas.errors import ConfigError, ContractError, Transient, WeighbridgeError

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Connection, Cursor

TABLE = "LiteLLM_SpendLogs"
# Without these a row is no row of this table; newer columns may be missing in older releases.
NEEDED = frozenset({"request_id", "call_type", "spend", "startTime", "metadata"})
_STAMP = "%Y%m%dT%H%M%SZ"
_NAME = re.compile(r"litellm\.(?:([a-z][a-z0-9_-]{0,31})\.)?(\d{8}T\d{6}Z)\.(\d{8}T\d{6}Z)\.jsonl")
_TIMES = ("startTime", "endTime", "completionStartTime")
_SHOWN = 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'
# Some clients store the object as a text that holds it.
_METADATA = (
    "CASE WHEN jsonb_typeof(metadata::jsonb) = 'string' AND (metadata::jsonb #>> '{}') LIKE '{%' "
    "THEN (metadata::jsonb #>> '{}')::jsonb ELSE metadata::jsonb END"
)
# Of an error only the code is looked at: its message tells a person what the provider said to somebody's prompt.
_FIELDS: Mapping[str, str] = {
    **{name: f"metadata->'{name}'" for name in METADATA},
    "error_information": (
        "CASE WHEN metadata->'error_information'->>'error_code' IS NOT NULL THEN "
        "jsonb_build_object('error_code', metadata->'error_information'->>'error_code') END"
    ),
}
_NAMES = ("user_api_key_team_id", "user_api_key_alias")


class DatabaseError(WeighbridgeError, Transient):
    """The database of another system cannot be reached or read at the moment."""


@dataclass(frozen=True, slots=True)
class Window:
    """A span of time.

    Attributes:
        since: its first moment, in UTC.
        until: the first moment after it.
        label: which of several databases it is of, a plain word; null where there is one.
    """

    since: datetime
    until: datetime
    label: str | None = None

    def __post_init__(self) -> None:
        """Refuse what is no span."""
        if self.since.tzinfo is None or self.until.tzinfo is None or self.since >= self.until:
            raise ConfigError(f"from {self.since} to {self.until} is no span of time; name its beginning, then its end")

    @property
    def name(self) -> str:
        """The name of the file with its rows, from which the span can be read again."""
        told = [] if self.label is None else [self.label]
        return ".".join(
            ["litellm", *told, *(at.astimezone(UTC).strftime(_STAMP) for at in (self.since, self.until)), "jsonl"]
        )

    @classmethod
    def of(cls, name: str) -> Window | None:
        """The span that a file name tells, null where it is none of ours."""
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        label, *times = found.groups()
        since, until = (datetime.strptime(text, _STAMP).replace(tzinfo=UTC) for text in times)
        return cls(since, until, label) if since < until else None


def pull(connection: str, window: Window, folder: Path, key: bytes, *, updated_since: datetime | None = None) -> Path:
    """Write the rows of calls that began in a span of time to a file for the importer `litellm`.

    Args:
        connection: how libpq reaches the database, a URI as a rule. Never shown.
        window: when the calls began.
        folder: where the file is made; nobody else should be able to read it.
        key: the installation's pseudonym key.
        updated_since: only rows that were written or changed since then; all of them where the table does not tell.

    Returns:
        The file, named after the span. Its first line says which rows it holds, so that no two spans give one file.

    Raises:
        ConfigError: the driver is missing.
        ContractError: the database has no such table, or not with its columns.
        DatabaseError: the database cannot be reached or read.
    """
    path = folder / window.name
    with _session(connection) as cursor, path.open("x", encoding="utf-8") as file:
        there = _columns(cursor)
        about = {
            "table": TABLE,
            **({} if window.label is None else {"source": window.label}),
            "since": window.since.isoformat(),
            "until": window.until.isoformat(),
        }
        if updated_since is not None:
            about["updated_since"] = updated_since.isoformat()
        file.write(json.dumps({PULLED: about}) + "\n")
        cursor.execute(_select(there, window, updated_since))
        for batch in cursor.fetch_record_batch():
            for row in batch.to_pylist():
                file.write(_line(row, key) + "\n")
    return path


@contextmanager
def _session(connection: str) -> Iterator[Cursor]:
    """A session that can only read, with times in UTC. What the database says may hold anything and is not repeated."""
    try:
        from adbc_driver_manager import Error  # noqa: PLC0415 - an extra; nothing else needs it
        from adbc_driver_postgresql import dbapi  # noqa: PLC0415 - as above
    except ImportError:
        raise ConfigError(
            "reading LiteLLM's database needs the driver for PostgreSQL, which is not installed; "
            'install it with `pip install "weighbridge[postgres]"`'
        ) from None
    opened: Connection | None = None
    try:
        opened = dbapi.connect(connection, autocommit=True)
        with opened.cursor() as cursor:
            cursor.execute("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
            cursor.execute("SET TIME ZONE 'UTC'")
            yield cursor
    except Error as error:
        state = f", SQLSTATE {error.sqlstate}" if error.sqlstate else ""
        raise DatabaseError(
            f"LiteLLM's database could not be read ({type(error).__name__}{state}). Look whether the connection string "
            f'is right, the server runs, and its user may SELECT from "{TABLE}"; then run this again.'
        ) from None
    finally:
        if opened is not None:
            opened.close()


def _columns(cursor: Cursor) -> frozenset[str]:
    cursor.execute(
        "SELECT column_name::text FROM information_schema.columns "  # noqa: S608 - a constant
        f"WHERE table_name = '{TABLE}' AND table_schema = ANY (current_schemas(false))"
    )
    found = frozenset(str(row[0]) for row in cursor.fetchall())
    if not found >= NEEDED:
        lacks = f"has no column {', '.join(sorted(NEEDED - found))}" if found else "is not there"
        raise ContractError(
            f'the table "{TABLE}" {lacks}; name the database that the proxy writes to, with the schema of the table in '
            "its search path (?options=-csearch_path%3Dlitellm), and a user who may read it"
        )
    return found


def _select(there: frozenset[str], window: Window, updated_since: datetime | None) -> str:
    """The query. Every part is a constant or a time that is written here."""
    columns = [name for name in COLUMNS if name in there]
    where = [f"\"startTime\" >= '{_literal(window.since)}'", f"\"startTime\" < '{_literal(window.until)}'"]
    if updated_since is not None and "updated_at" in there:
        where.append(f"updated_at >= '{_literal(updated_since)}'")
    plain = [name for name in columns if name != "metadata"]
    inner = ", ".join([*map(_quoted, plain), f"{_METADATA} AS metadata"])
    shown = [f"({_shown(name)})::text AS {_quoted(name)}" for name in plain]
    shown += [f'({made})::text AS "metadata.{name}"' for name, made in _FIELDS.items()]
    return (
        f'SELECT {", ".join(shown)} FROM (SELECT {inner} FROM "{TABLE}" WHERE {" AND ".join(where)}) AS asked '  # noqa: S608
        'ORDER BY asked."startTime", asked.request_id'
    )


def _quoted(name: str) -> str:
    return f'"{name}"'


def _shown(name: str) -> str:
    return f"to_char({_quoted(name)}, '{_SHOWN}')" if name in _TIMES else _quoted(name)


def _literal(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


def _line(row: Mapping[str, Any], key: bytes) -> str:
    """A row as the export of the table has it: numbers as numbers, digit by digit, and names as pseudonyms."""
    shown = {}
    for name, value in row.items():
        if value is None or name.startswith("metadata."):
            continue
        text = json.dumps(tenant(key, value)) if name == "team_id" and value else json.dumps(value)
        shown[name] = value if name in _NUMBERS else text
    fields = {name: row[f"metadata.{name}"] for name in _FIELDS if row.get(f"metadata.{name}") is not None}
    for name in _NAMES:
        told = json.loads(fields[name]) if name in fields else None
        if isinstance(told, str) and told:
            fields[name] = json.dumps(tenant(key, told))
    shown["metadata"] = _object(fields)
    return _object(shown)


_NUMBERS = frozenset({"prompt_tokens", "completion_tokens", "total_tokens"})


def _object(parts: Mapping[str, str]) -> str:
    """A JSON object of values that are JSON already."""
    return "{" + ", ".join(f"{json.dumps(name)}: {value}" for name, value in parts.items()) + "}"
