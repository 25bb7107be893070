"""An engine: what turns rows and files into lazy frames, and lazy frames into rows.

Which one computes is a matter of the run, not of the functions: `using` sets it for a block, and `frames.frame_of` and
`frames.collected` ask for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol, TypeAlias

import narwhals as nw
import polars as pl

from weighbridge.pipeline.settings.kinds import ENGINES
from weighbridge.schemas.errors import ConfigError

Frame: TypeAlias = nw.LazyFrame[Any]

POLARS, DUCKDB, SPARK = ENGINES
_MODULES = {POLARS: "on_polars", DUCKDB: "on_duckdb", SPARK: "on_spark"}
_PACKAGES = {DUCKDB: ("duckdb", "duckdb"), SPARK: ("pyspark", "weighbridge[spark]")}


class Engine(Protocol):
    """What computes lazy frames."""

    name: str

    def frame(self, rows: pl.DataFrame | pl.LazyFrame) -> Frame:
        """Rows of this process as a lazy frame."""
        ...

    def scan(self, table: str, files: Sequence[str], columns: Sequence[str]) -> Frame:
        """Columns of data files of a table, which lie where the engine can read them; at least one file.

        The day, which no file holds, is that of the file's folder.
        """
        ...

    def kept(self, frame: Frame) -> Frame:
        """The same rows, computed once although they are asked for several times."""
        ...

    def collected(self, frame: Frame) -> pl.DataFrame:
        """The rows of a frame of this engine.

        Raises:
            SumError: a sum is beyond 64 bits.
        """
        ...

    def close(self) -> None:
        """Give up what was kept."""
        ...


_current: ContextVar[Engine | None] = ContextVar("engine", default=None)


def current() -> Engine:
    """The engine that computes here: Polars, unless `using` says otherwise."""
    return _current.get() or _made(POLARS)


@contextmanager
def using(engine: str | Engine) -> Iterator[Engine]:
    """Compute on an engine while the block runs.

    Raises:
        ConfigError: there is no such engine, or its package is not installed.
    """
    own = isinstance(engine, str)
    made = _made(engine) if isinstance(engine, str) else engine
    token = _current.set(made)
    try:
        yield made
    finally:
        _current.reset(token)
        if own:
            made.close()


@contextmanager
def on_driver() -> Iterator[None]:
    """Compute rows that are in this process already, and few, without sending them to a cluster and back.

    Only Spark makes a difference: there the block runs on Polars. Frames of either side of the block do not mix.
    """
    if current().name != SPARK:
        yield
        return
    with using(POLARS):
        yield


def check_installed(name: str) -> None:
    """See that an engine is known and its package is there.

    Raises:
        ConfigError: it is not.
    """
    if name not in ENGINES:
        raise ConfigError(f"{name!r} is no engine; choose one of {', '.join(ENGINES)}")
    package, asked = _PACKAGES.get(name, (None, None))
    if package is not None and find_spec(package) is None:
        raise ConfigError(f"the engine {name} needs the package {package}: run `pip install {asked}`, or use polars")


def _made(name: str) -> Engine:
    check_installed(name)
    module = import_module(f"{__package__}.{_MODULES[name]}")
    engine: Engine = module.engine()
    return engine
