"""Where lazy frames are computed: Polars, DuckDB or Spark. The functions over them are the same."""

from weighbridge.pipeline.reconcile.engines.engine import Engine, current, on_driver, using
from weighbridge.pipeline.settings.kinds import ENGINES

__all__ = ["ENGINES", "Engine", "current", "on_driver", "using"]
