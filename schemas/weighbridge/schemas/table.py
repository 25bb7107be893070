"""How a table is declared. Arrow schemas, checks and the JSON export all derive from this one declaration."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import pyarrow as pa

from weighbridge.schemas.enumerations import Domain
from weighbridge.schemas.version import SCHEMA_VERSION

MONEY = pa.decimal128(38, 18)
TIME = pa.timestamp("us", tz="UTC")
IDENTIFIER_LIST = pa.list_(pa.string())


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        name: snake_case.
        type: the Arrow type. Counts are signed Int64: Delta refuses unsigned types, Polars sums narrow ones unwidened.
        doc: what it holds, with its unit.
        nullable: null means *unknown*, never zero.
        values: the closed enumeration its values come from, or null.
        minimum: the smallest allowed value of a number, or null.
        pattern: the regular expression a string must match whole, or null.
        personal: kept out of file statistics and shown in restricted editions only.
    """

    name: str
    type: pa.DataType
    doc: str
    nullable: bool = True
    values: type[StrEnum] | None = None
    minimum: int | None = None
    pattern: str | None = None
    personal: bool = False

    def field(self) -> pa.Field:
        """The Arrow field, with the documentation as metadata."""
        return pa.field(self.name, self.type, self.nullable, {"doc": self.doc})


@dataclass(frozen=True, slots=True)
class Table:
    """One table of the lake.

    Attributes:
        name: snake_case, singular.
        domain: the privacy domain, which is the folder it lies in.
        doc: one sentence.
        columns: in the order they are stored.
        key: the columns that identify a row; also the order of rows inside a file.
        daily: partitioned by the column `day`.
        since: the schema version that introduced it.
        names: the column names, in order.
        public: the columns that may appear in file statistics.
    """

    name: str
    domain: Domain
    doc: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    daily: bool = True
    since: int = 1
    # Asked for with every look at a table, so they are made once.
    names: tuple[str, ...] = field(init=False, compare=False, repr=False)
    public: tuple[str, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Name the columns."""
        object.__setattr__(self, "names", tuple(column.name for column in self.columns))
        public = tuple(c.name for c in self.columns if not c.personal and not pa.types.is_nested(c.type))
        object.__setattr__(self, "public", public)

    def schema(self) -> pa.Schema:
        """The Arrow schema, with name, domain and version as metadata."""
        return pa.schema(
            [column.field() for column in self.columns],
            metadata={"table": self.name, "domain": self.domain, "schema_version": str(SCHEMA_VERSION)},
        )

    def column(self, name: str) -> Column:
        """The column called `name`.

        Raises:
            KeyError: there is none.
        """
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"table {self.name} has no column {name!r}; it has {', '.join(c.name for c in self.columns)}")


def text(name: str, doc: str, *, required: bool = False, pattern: str | None = None, personal: bool = False) -> Column:
    """A pattern-checked string column."""
    return Column(name, pa.string(), doc, not required, pattern=pattern, personal=personal)


def closed(name: str, values: type[StrEnum], doc: str, *, required: bool = False) -> Column:
    """A string column whose values come from a closed enumeration."""
    return Column(name, pa.string(), doc, not required, values=values)


def count(name: str, doc: str, *, required: bool = False, signed: bool = False) -> Column:
    """An Int64 count. Null is unknown. `signed` allows negative values (differences, and figures kept as evidence)."""
    return Column(name, pa.int64(), doc, not required, minimum=None if signed else 0)


def small(name: str, doc: str, *, required: bool = False, minimum: int | None = 0) -> Column:
    """An Int32: ordinals and parameters, never summed."""
    return Column(name, pa.int32(), doc, not required, minimum=minimum)


def real(name: str, doc: str) -> Column:
    """A floating-point parameter; never money, never a count."""
    return Column(name, pa.float64(), doc)


def flag(name: str, doc: str, *, required: bool = False) -> Column:
    """A boolean."""
    return Column(name, pa.bool_(), doc, not required)


def moment(name: str, doc: str, *, required: bool = False) -> Column:
    """A UTC time in microseconds."""
    return Column(name, TIME, doc, not required)


def money(name: str, doc: str) -> Column:
    """An exact amount: decimal with 18 places. Null is unknown, never zero."""
    return Column(name, MONEY, doc)


def binary(name: str, doc: str) -> Column:
    """Bytes (ciphertext or an encoded set of positions)."""
    return Column(name, pa.binary(), doc, personal=True)


def strings(name: str, doc: str, *, personal: bool = False) -> Column:
    """A list of pattern-checked strings."""
    return Column(name, IDENTIFIER_LIST, doc, personal=personal)


def integers(name: str, doc: str) -> Column:
    """A list of Int64."""
    return Column(name, pa.list_(pa.int64()), doc)


def reals(name: str, doc: str) -> Column:
    """A list of floating-point numbers: where a computation stands, never money."""
    return Column(name, pa.list_(pa.float64()), doc)


def day() -> Column:
    """The UTC day: the partition of daily tables."""
    return Column("day", pa.date32(), "UTC day of the attempt (or of the event); the partition", nullable=False)


def attempt_key(*, required: bool = True) -> tuple[Column, Column]:
    """The two halves of an attempt key."""
    return (
        Column("attempt_hi", pa.int64(), "first 8 bytes of the attempt id, big-endian, signed", not required),
        Column("attempt_lo", pa.int64(), "last 8 bytes of the attempt id, big-endian, signed", not required),
    )


def provenance() -> tuple[Column, ...]:
    """Where a row came from."""
    return (
        text("segment", "SHA-256 of the file or sealed segment the row came from", pattern=r"[0-9a-f]{64}"),
        count("segment_row", "0-based row or line in that file"),
        small("revision", "0 for the first report of a key, then 1, 2, ...; the last one counts", required=True),
    )
