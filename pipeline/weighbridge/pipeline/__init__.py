"""The batch: files in, findings and reports out. `read_usage` is here without importing any of the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weighbridge.pipeline.ingest.reading import UsageReading, read_usage

__all__ = ["UsageReading", "read_usage"]


def __getattr__(name: str) -> object:
    """Import on first use, so that importing one room of the pipeline does not import the others."""
    if name in __all__:
        from weighbridge.pipeline.ingest import reading  # noqa: PLC0415 - the point of this module

        return getattr(reading, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
