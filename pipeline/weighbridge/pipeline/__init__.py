"""The batch: files in, findings and reports out.

`read_usage` reads one record, `read_usage_batch` many and `read_usage_file` a file of them, without any of the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weighbridge.pipeline.ingest.many.many import read_usage_batch, read_usage_file
    from weighbridge.pipeline.ingest.reading import UsageReading, read_usage

__all__ = ["UsageReading", "read_usage", "read_usage_batch", "read_usage_file"]
_MANY = frozenset({"read_usage_batch", "read_usage_file"})


def __getattr__(name: str) -> object:
    """Import on first use, so that importing one room of the pipeline does not import the others."""
    if name in _MANY:
        from weighbridge.pipeline.ingest.many import many  # noqa: PLC0415 - the point of this module

        return getattr(many, name)
    if name in __all__:
        from weighbridge.pipeline.ingest import reading  # noqa: PLC0415 - the point of this module

        return getattr(reading, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
