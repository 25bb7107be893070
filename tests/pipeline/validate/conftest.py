"""Lakes with rows built by hand: clean ones of every table, and the same with one thing wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from tests.by_hand import judging_by_hand
from tests.conftest import KEY

from weighbridge.pipeline.ingest.ingest import IngestResult, ingest
from weighbridge.pipeline.lake import Lake, polars_schema
from weighbridge.pipeline.lake import lake as lake_module
from weighbridge.schemas.segment import write_segment
from weighbridge.schemas.table import Column
from weighbridge.schemas.tables import CURRENCY, HEX32, HEX64, NAME, PSEUDONYM, ROUTE, TABLES, UNASSIGNED

DAY = date(2026, 1, 5)
TODAY = date(2026, 1, 6)
MOMENT = datetime(2026, 1, 5, 10, 30, tzinfo=UTC)
FILE = "a" * 64

Row = dict[str, Any]

# A text that fits each pattern of the vocabulary.
FITTING = {
    NAME: "name",
    HEX32: "0" * 32,
    HEX64: FILE,
    CURRENCY: "USD",
    ROUTE: "/v1/chat",
    f"{PSEUDONYM}|{UNASSIGNED}": "t_0123456789abcdef",
    PSEUDONYM: "t_0123456789abcdef",
    r"\d{4}-\d{2}|all": "2026-01",
    r"\d{4}-\d{2}": "2026-01",
    r"[0-9a-f]{12}": "0" * 12,
    r"[a-z][a-z0-9_]{2,47}": "some_code",
    r"[A-Za-z0-9][A-Za-z0-9._:/@+=-]{0,199}": "id-1",
}
# What a clean row has beside its required columns, or instead of what is made up for them.
SPECIAL: dict[str, Row] = {
    "attempt": {"arrived_at": MOMENT, "task": "chat"},
    "usage_report": {"leaf_shape": "usage.prompt_tokens", "leaf_integers": [3]},
    "state_event": {"n_universe": 8, "n_members": 3},
    "segment": {"rows_in": 1, "rows_out": 1, "rows_quarantined": 0, "rows_duplicate": 0},
    "invoice_line": {"period_start": MOMENT, "period_end": MOMENT},
    "usage_period": {"leaf_shape": "result.input_tokens", "leaf_integers": [3]},
}


def value(column: Column, number: int) -> Any:
    """A value the column allows, another one for each number where that is possible."""
    kind = column.type
    if column.values is not None:
        return str(next(iter(column.values)))
    if pa.types.is_string(kind):
        if column.pattern is None:
            return f"text-{number}"
        fitting = FITTING[column.pattern]
        if fitting == "2026-01":
            return f"{2000 + number}-01"
        if column.pattern == HEX32 or (column.pattern == HEX64 and column.name != "segment"):
            return f"{number:0{len(fitting)}x}"
        return f"{fitting}{number}" if column.pattern == NAME and column.name not in {"source", "provider"} else fitting
    if pa.types.is_integer(kind):
        return max(column.minimum or 0, number) if column.name in _COUNTED_UP else max(column.minimum or 0, 1)
    if pa.types.is_decimal(kind):
        return Decimal(1)
    made: Mapping[str, Any] = {"bool": True, "double": 0.5, "date32[day]": DAY, "binary": b"x"}
    return made.get(str(kind), MOMENT if pa.types.is_timestamp(kind) else [])


_COUNTED_UP = set("attempt_hi attempt_lo request_hi request_lo alias_hi alias_lo cell_hi cell_lo line low".split())


# Tables whose rows differ by this column where nothing else of their key does.
NUMBERED = {"change": "number", "currency_rate": "revision"}


def clean(table: str, number: int, day: date = DAY, **changes: Any) -> Row:
    """Row `number` of a table, with which nothing is wrong; `changes` say what is."""
    about = TABLES[table]
    needed = {*about.key, *(column.name for column in about.columns if not column.nullable)}
    row = {column.name: value(column, number) for column in about.columns if column.name in needed}
    if "segment" in about.names:
        row["segment"] = f"{number:064x}" if table == "segment" else FILE
    if "segment_row" in about.names:
        row["segment_row"] = number
    if about.daily:
        row["day"] = day
    if table in NUMBERED:
        row[NUMBERED[table]] = number
    return row | SPECIAL.get(table, {}) | changes


def frame(table: str, rows: Sequence[Row]) -> pl.DataFrame:
    """Rows as a frame in the types of their table."""
    names = [name for name in polars_schema(table) if any(name in row for row in rows)]
    return pl.DataFrame(list(rows), schema={name: polars_schema(table)[name] for name in names}, orient="row")


def account(digest: str = FILE, rows: int = 1, **changes: Any) -> Row:
    """The account of a sealed segment of which every row was stored."""
    figures: Row = {"rows_in": rows, "rows_out": rows, "rows_quarantined": 0, "rows_duplicate": 0, "rows_unplaced": 0}
    return clean("segment", 0, segment=digest, importer="segment", name="a.segment", **figures) | changes


class Rows:
    """A lake and what is put into it."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.lake = Lake.create(root)
        self._patch = patch

    def put(self, table: str, *rows: Row) -> None:
        """Append rows as they are: what the lake would refuse (a null where none may be) is put in all the same."""
        with self._patch.context() as patch:
            patch.setattr(lake_module, "fitted", lambda _, given: given)
            self.lake.append(table, frame(table, rows))

    def attempts(self, *rows: Row, digest: str = FILE) -> None:
        """Append attempts and the account of their file."""
        self.put("attempt", *rows)
        self.put("segment", account(digest, len(rows)))


@pytest.fixture
def lines(tmp_path: Path) -> Callable[..., Path]:
    """Write lines (objects, or bytes as they are) as JSON Lines and return the path."""

    def write(name: str, *lines: object) -> Path:
        path = tmp_path / name
        path.write_bytes(b"".join((x if isinstance(x, bytes) else json.dumps(x).encode()) + b"\n" for x in lines))
        return path

    return write


@pytest.fixture
def sealed(tmp_path: Path) -> Callable[..., Path]:
    """Write rows as a sealed segment: sealed("name", attempt=[...])."""

    def write(name: str, **tables: list[Row]) -> Path:
        made = {
            table: pa.Table.from_pylist(
                rows, schema=pa.schema([f for f in TABLES[table].schema() if any(f.name in row for row in rows)])
            )
            for table, rows in tables.items()
        }
        return write_segment(tmp_path / "spool", name, made, writer="agent-1")

    return write


def take(lake: Lake, *paths: Path, **given: Any) -> IngestResult:
    """Ingest with the test's key and day."""
    return ingest(paths, lake, key=KEY, day=DAY, **given)


@pytest.fixture
def by_hand() -> Iterator[None]:
    """For tests that validate many times over and are about something else."""
    with judging_by_hand():
        yield


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rows:
    return Rows(tmp_path / "lake", monkeypatch)


@pytest.fixture
def new_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Rows]:
    """As `rows`, for a test that needs several lakes."""
    number = count()
    return lambda: Rows(tmp_path / f"lake-{next(number)}", monkeypatch)
