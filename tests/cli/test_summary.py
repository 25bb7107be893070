"""`reconcile --summary` and `--engine`: counts and sums, and nothing written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conftest import KEY

from weighbridge.cli.main import execute
from weighbridge.pipeline.ingest.ingest import ingest
from weighbridge.pipeline.run.home import init_home
from weighbridge.pipeline.simulate.simulate import START, simulate


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_a_summary_counts_everything_and_writes_nothing(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every attempt of the lake is in one group; the tables are as they were."""
    home = init_home(tmp_path / "home", key=KEY)
    simulate(home.spool, attempts=60, seed=3, key=home.key)
    lake = home.lake()
    ingest(sorted(home.spool.glob("*.segment")), lake, key=KEY, day=START)
    before = {table: lake.version(table) for table in lake.digests()}
    with pytest.raises(SystemExit) as left:
        execute(["--config", str(home.root), "reconcile", "--summary", "--json", "--engine", engine])
    told = json.loads(capsys.readouterr().out)
    assert (told["engine"], told["month"]) == (engine, None)
    attempts = lake.scan("attempt", columns=["attempt_lo", "attempt_hi"]).unique().collect().height
    assert sum(group["attempts"] for group in told["groups"] if group["kind"] != "unseen") == attempts
    assert left.value.code == int(any(g["kind"] not in {"matched", "not_compared"} for g in told["groups"]))
    assert {table: lake.version(table) for table in before} == before


def test_an_engine_nobody_knows_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With those there are."""
    home = init_home(tmp_path / "home", key=KEY)
    with pytest.raises(SystemExit) as left:
        execute(["--config", str(home.root), "reconcile", "--engine", "sqlite"])
    assert left.value.code == 2
    assert "choose one of polars, duckdb, spark" in capsys.readouterr().err
