"""Any CSV, JSON Lines or Parquet table, with a mapping file that says what its columns mean (see `mapping`)."""

from __future__ import annotations

from pathlib import Path

from weighbridge.pipeline.ingest.importer import Heading, Importer, Source, Staged
from weighbridge.pipeline.ingest.mapped_rows import staged
from weighbridge.pipeline.ingest.mapping import TableMapping, load_mapping
from weighbridge.pipeline.ingest.tabular import check
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.segment import sha256_file


def _recognises(path: Path) -> bool:  # noqa: ARG001 - a table says nothing of what its columns mean
    return False


def _mapping(source: Source) -> TableMapping:
    if source.mapping is None:
        raise ConfigError(
            f"{source.path} needs a mapping file: name it with --mapping. It says which column is what, as in "
            '[source] name = "acme", [leaves] "usage.input_total" = "prompt_tokens".'
        )
    return load_mapping(source.mapping)


def _check(source: Source) -> Heading:
    mapping = _mapping(source)
    check(source.path, mapping.layout, mapping.wanted)
    return Heading(sha256_file(source.path), source.path.stat().st_size)


def _read(source: Source, heading: Heading) -> Staged:  # noqa: ARG001 - one signature for all importers
    return staged(source, _mapping(source))


IMPORTER = Importer(
    name="mapped",
    doc="Tables as CSV, JSON Lines or Parquet, with a mapping file that says what each column means.",
    recognises=_recognises,
    check=_check,
    read=_read,
)
