"""What an importer is: one file format, read into rows of the vocabulary. One module of `importers/` declares one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from weighbridge.schemas.discovery import declared
from weighbridge.schemas.enumerations import Ended
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import NAME
from weighbridge.schemas.version import SCHEMA_VERSION

if TYPE_CHECKING:
    import polars as pl

    from weighbridge.schemas.keys import KeyProvider


@dataclass(frozen=True, slots=True)
class Source:
    """One file (or sealed segment) to read, and what stands in where its records do not say.

    Attributes:
        path: the file.
        key: the installation's pseudonym key.
        day: the UTC day of records without a time.
        provider, model, tenant, task: override or fill in what the records say; null leaves it to them.
        mapping: the mapping file, for the importers that need one.
        account: whose bill a file of charges is, where its lines name no account; kept as a pseudonym.
        keys: who gives the keys token ids are encrypted with; null for nobody.
        ids_of: only of these lines are token ids kept, as those of the others are already; null for all.
    """

    path: Path
    key: bytes
    day: date
    provider: str | None = None
    model: str | None = None
    tenant: str | None = None
    task: str | None = None
    mapping: Path | None = None
    account: str | None = None
    keys: KeyProvider | None = None
    ids_of: frozenset[int] | None = None

    def __post_init__(self) -> None:
        """Refuse names that are no names, so that no sentence enters a column for names."""
        for what in ("provider", "model", "task"):
            name = getattr(self, what)
            if name is not None and not NAME.fullmatch(name):
                raise ConfigError(
                    f"the {what} given for {self.path.name} is no name: letters, digits and ._:/@- are allowed, "
                    "at most 128, the first a letter or digit. Choose such a name."
                )


@dataclass(frozen=True, slots=True)
class Heading:
    """What is known of a file before its rows are read.

    Attributes:
        digest: SHA-256 of the file, or of the manifest of a sealed segment.
        bytes: its size.
        writer, sequence, end, schema_version: what a sealed segment says of itself; else nothing is known.
    """

    digest: str
    bytes: int
    writer: str | None = None
    sequence: tuple[int | None, int | None] = (None, None)
    end: Ended = Ended.COMPLETE
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class Staged:
    """The rows of one file, ready to be settled against the lake.

    Attributes:
        records: how many records were read.
        tables: table name -> its rows. Columns that are missing are null; `ingest` fills in `segment`. `segment_row`
            is the record's place in the file; `revision` and `report` are what the writer says and are settled.
        by_line: one record may give rows of several tables, told apart by `segment_row`; else every row is a record.
        refused: rows of `quarantine` for the records that could not be read.
        refused_records: how many records those are.
        derived: the attempts whose key was made from what identifies them in their own source, one row each:
            attempt_hi, attempt_lo, source, and alias_hi, alias_lo: the keyed hash of the identifying id, null where
            content identifies them. Attempts that are not named here have their recorder's key.
        repeated: records that only say again what another record of the file says; no row stands for them.
    """

    records: int
    tables: dict[str, pl.DataFrame]
    by_line: bool
    refused: pl.DataFrame | None = None
    refused_records: int = 0
    derived: pl.DataFrame | None = None
    repeated: int = 0

    @property
    def rows(self) -> int:
        """How many rows its tables have."""
        return sum(rows.height for rows in self.tables.values())


@dataclass(frozen=True, slots=True)
class Importer:
    """How one format is read.

    Attributes:
        name: the name of its module, stored in the table `segment`.
        doc: one sentence for users.
        recognises: whether a file, by its name and its first bytes, is of this format. Never raises.
        check: looks at the whole file before anything is written, and gives its heading.
            Raises ContractError where it cannot be read at all, ConfigError where the mapping does not fit it.
        read: its rows.
        recorded: attempts come with their recorder's own key (sealed segments); such files are settled first.
    """

    name: str
    doc: str
    recognises: Callable[[Path], bool]
    check: Callable[[Source], Heading]
    read: Callable[[Source, Heading], Staged]
    recorded: bool = False


def importers() -> dict[str, Importer]:
    """Every importer, by name."""
    from weighbridge.pipeline.ingest import importers as folder  # noqa: PLC0415 - the members import this module

    return declared(folder, "IMPORTER", Importer)
