"""Token traces in the form of the Azure LLM inference traces: when, tokens in, tokens out, and nothing else.

    TIMESTAMP,ContextTokens,GeneratedTokens
    2023-11-16 18:17:03.9799600,4808,10

The traces are published by Azure/AzurePublicDataset (CC BY 4.0; Patel et al., Splitwise, ISCA 2024). Rows have no
ids: two that are alike in one file are two calls, told apart by their order.
"""

from __future__ import annotations

from pathlib import Path

from weighbridge.pipeline.ingest.importer import Heading, Importer, Source, Staged
from weighbridge.pipeline.ingest.mapped_rows import staged
from weighbridge.pipeline.ingest.mapping import TableMapping
from weighbridge.pipeline.ingest.tabular import check, kind_of, names_of
from weighbridge.schemas.errors import WeighbridgeError
from weighbridge.schemas.segment import sha256_file

_MAPPING = TableMapping(
    name="azure-trace",
    provider="azure-trace",
    model="unnamed",
    columns={"time": "TIMESTAMP"},
    leaves={"usage.input_total": "ContextTokens", "usage.output_total": "GeneratedTokens"},
)


def _recognises(path: Path) -> bool:
    if not path.is_file() or kind_of(path) != "csv":
        return False
    try:
        return set(_MAPPING.wanted) <= set(names_of(path, _MAPPING.layout))
    except (WeighbridgeError, OSError):
        return False


def _check(source: Source) -> Heading:
    check(source.path, _MAPPING.layout, _MAPPING.wanted)
    return Heading(sha256_file(source.path), source.path.stat().st_size)


def _read(source: Source, heading: Heading) -> Staged:  # noqa: ARG001 - one signature for all importers
    return staged(source, _MAPPING)


IMPORTER = Importer(
    name="azure_trace",
    doc="Token traces with the columns TIMESTAMP, ContextTokens, GeneratedTokens, as Azure publishes them.",
    recognises=_recognises,
    check=_check,
    read=_read,
)
