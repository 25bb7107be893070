"""What DuckDB may take of the host, and where it spills."""

from __future__ import annotations

from pathlib import Path

import pytest

from weighbridge.pipeline.reconcile.engines.engine import using
from weighbridge.pipeline.reconcile.engines.on_duckdb import MEMORY
from weighbridge.schemas.errors import ConfigError

duckdb = pytest.importorskip("duckdb")
SORTED = "SELECT count(*) FROM (SELECT range AS x, hash(range)::VARCHAR AS y FROM range(2000000) ORDER BY y)"


def set_to(name: str) -> str:
    """A setting of the connection that computes."""
    ((value,),) = duckdb.default_connection().execute(f"SELECT current_setting('{name}')").fetchall()
    return str(value)


def test_what_does_not_fit_spills_out_of_sight_and_a_later_run_may_do_it_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Not into the folder the process was started in, which may not be written to."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(MEMORY, "48MB")
    for _ in range(2):
        with using("duckdb"):
            assert set_to("memory_limit") == "45.7 MiB"
            assert duckdb.default_connection().execute(SORTED).fetchall() == [(2000000,)]
    assert list(Path(set_to("temp_directory")).iterdir())
    assert not list(tmp_path.iterdir())
    monkeypatch.delenv(MEMORY)
    with using("duckdb"):
        assert set_to("memory_limit").endswith("GiB")


def test_what_is_no_amount_of_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what would be one."""
    monkeypatch.setenv(MEMORY, "plenty")
    with pytest.raises(ConfigError, match=r"WEIGHBRIDGE_DUCKDB_MEMORY is no amount.*4GB or 50%"), using("duckdb"):
        pass
