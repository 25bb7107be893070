"""Where lazy frames are computed: Polars, DuckDB or Spark. The functions over them are the same."""

from weighbridge.pipeline.reconcile.engines.engine import ENGINES, Engine, current, using

__all__ = ["ENGINES", "Engine", "current", "using"]
