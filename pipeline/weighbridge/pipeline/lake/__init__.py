"""The lake: Delta tables by day, one commit at a time, and the shape of their rows."""

from weighbridge.pipeline.lake.failure import LakeFullError
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.lake.shape import empty, may_become, polars_schema, shaped

__all__ = ["Lake", "LakeFullError", "empty", "may_become", "polars_schema", "shaped"]
