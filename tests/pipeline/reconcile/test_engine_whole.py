"""A whole reconciliation on each engine: the same rows, findings and digests; and what an engine may not do."""

from __future__ import annotations

import ast
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl
import pytest
from tests.pipeline.reconcile.conftest import World, crowd

import weighbridge.pipeline.reconcile as room
from weighbridge.pipeline.reconcile.engines import ENGINES, current, on_driver, using
from weighbridge.pipeline.reconcile.engines.engine import check_installed
from weighbridge.pipeline.reconcile.engines.on_polars import OnPolars
from weighbridge.pipeline.reconcile.engines.sums import exact_sum
from weighbridge.pipeline.reconcile.found.tally import added, tallied
from weighbridge.pipeline.reconcile.frames import collected, frame_of
from weighbridge.pipeline.reconcile.reconcile import reconcile
from weighbridge.schemas.errors import ConfigError, SumError

DRIVER = ("polars", "duckdb")


def test_a_whole_reconciliation_is_the_same_on_duckdb(world: World) -> None:
    """Every table that a reconciliation writes has the same digest, and what it says is the same."""
    crowd(world, 60, 5)
    world.prices()
    found = {}
    for engine in DRIVER:
        lake = world.lake()
        result = reconcile(lake, engine=engine)
        found[engine] = (result, {table: lake.digest(table) for table in ("reconciled", "gap_cause", "finding")})
    assert found["duckdb"] == found["polars"]
    assert set(found["polars"][0].statuses) == {"MATCHED", "EXPLAINED", "UNEXPLAINED", "NOT_COMPARED"}


def test_polars_computes_unless_another_is_named() -> None:
    """Whatever happens inside the block, outside of it Polars is at work again."""
    assert current().name == "polars"

    def fail() -> None:
        with using("duckdb") as engine:
            assert current() is engine
            assert engine.name == "duckdb"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert current().name == "polars"


def test_few_rows_that_are_here_already_are_not_sent_to_a_cluster() -> None:
    """Within the block Polars computes instead of Spark; DuckDB is in this process itself."""
    cluster: Any = OnPolars(name="spark")
    with using(cluster):
        with on_driver():
            assert current().name == "polars"
        assert current() is cluster
    with using("duckdb") as engine, on_driver():
        assert current() is engine


def test_an_engine_that_is_not_there_is_named_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which ones there are, and what to install."""
    with pytest.raises(ConfigError, match="'sqlite' is no engine; choose one of polars, duckdb, spark"):
        check_installed("sqlite")
    monkeypatch.setattr("weighbridge.pipeline.reconcile.engines.engine.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"pip install weighbridge\[spark\]"):
        check_installed("spark")
    check_installed("polars")
    assert ENGINES == ("polars", "duckdb", "spark")


@pytest.mark.parametrize("engine", DRIVER)
@pytest.mark.parametrize(
    ("values", "total"),
    [
        ([2**62, 2**62 - 1], 2**63 - 1),
        ([-(2**62), -(2**62)], -(2**63)),
        ([2**63 - 1, -(2**63), 0, None], -1),
        ([0, 0], 0),
        ([2**63 - 1, 1], None),
        ([-(2**63), -1], None),
        ([2**62] * 7, None),
    ],
)
def test_a_sum_is_exact_or_an_error(engine: str, values: list[int | None], total: int | None) -> None:
    """Alone, by group, and over a window; a sum that fits only because of what is negative in it is a sum."""
    rows = pl.DataFrame({"g": [1] * len(values), "x": values}, schema={"g": pl.Int64, "x": pl.Int64})
    with using(engine):
        frame = frame_of(rows)
        asked: tuple[Callable[[], pl.DataFrame], ...] = (
            lambda: collected(frame.select(s=exact_sum(nw.col("x")))),
            lambda: collected(frame.group_by("g").agg(s=exact_sum(nw.col("x")))),
            lambda: collected(frame.with_columns(s=exact_sum(nw.col("x")).over("g"))),
        )
        for ask in asked:
            if total is None:
                with pytest.raises(SumError, match=r"beyond 2\^63.*weighbridge validate") as told:
                    ask()
                assert str(values[0]) not in str(told.value)
            else:
                assert ask()["s"].unique().to_list() == [total]
                assert ask()["s"].dtype == pl.Int64


def test_other_failures_of_an_engine_are_not_taken_for_sums() -> None:
    """A text that is no number."""
    with using("polars"), pytest.raises(Exception, match="conversion") as told:
        collected(frame_of(pl.DataFrame({"x": ["a"]})).select(nw.col("x").cast(nw.Int64)))
    assert not isinstance(told.value, SumError)


def test_functions_over_frames_make_no_sums_of_their_own() -> None:
    """In the common subset every sum of figures goes through `exact_sum`; the others only count rows."""
    stray = []
    for path in sorted(Path(room.__path__[0]).rglob("*.py")):
        tree = ast.parse(path.read_text())
        imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
        if "narwhals" not in imported or path.name == "sums.py":
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "sum":
                text = ast.unparse(node.func.value)
                own = "nw." in text or "polars" not in imported
                if own and "tokens(1)" not in text and "_one(" not in text:
                    stray.append(f"{path.name}:{node.lineno} {text}")
    assert stray == []


def test_findings_do_not_add_up_beyond_64_bits_in_silence() -> None:
    """Neither within a batch nor over several; what just fits is a figure."""
    rows = pl.DataFrame(
        {"attempt_lo": [1, 2], "attempt_hi": [1, 2], "day": [date(2026, 3, 1)] * 2, "expected": [2**62, 2**62 - 1]}
    ).with_columns(about=pl.lit("x"))
    fits = tallied(rows.lazy(), ["about"])
    assert fits["expected"].to_list() == [2**63 - 1]
    with pytest.raises(SumError, match=r"beyond 2\^63"):
        tallied(rows.with_columns(expected=pl.lit(2**62)).lazy(), ["about"])
    with pytest.raises(SumError, match=r"beyond 2\^63"):
        added([fits, fits], ["about"])
    with pytest.raises(SumError):
        added([tallied(rows.with_columns(expected=-(2**62)).lazy(), ["about"])] * 2, ["about"])
