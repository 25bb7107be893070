"""Azure-style token traces: three columns, every row a call."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.lake import Lake

Take = Callable[..., IngestResult]
HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"


def test_a_row_is_a_succeeded_attempt_with_its_two_totals(lake: Lake, take: Take, tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(HEADER + "2023-11-16 18:17:03.9799600,4808,10\n")
    (file,) = take([path], lake).files
    assert (file.importer, file.rows_out) == ("azure_trace", 1)
    (attempt,) = lake.scan("attempt").collect().rows(named=True)
    assert attempt["arrived_at"] == datetime(2023, 11, 16, 18, 17, 3, 979960, UTC)
    assert (attempt["source"], attempt["provider"], attempt["model_served"]) == (
        "azure-trace",
        "azure-trace",
        "unnamed",
    )
    assert (attempt["status"], attempt["usage_expected"], attempt["day"]) == ("succeeded", True, date(2023, 11, 16))
    (report,) = lake.scan("usage_report").collect().rows(named=True)
    assert (report["api"], report["leaf_shape"]) == ("declared", "usage.input_total usage.output_total")
    assert report["leaf_integers"] == [4808, 10]
    (reading,) = lake.scan("reading").collect().rows(named=True)
    assert (reading["input_total"], reading["output_total"], reading["verdict"]) == (4808, 10, "PROVED")


def test_rows_that_are_alike_are_calls_of_their_own_and_the_same_file_is_known(
    lake: Lake, take: Take, tmp_path: Path
) -> None:
    row = "2023-11-16 18:17:03.9799600,4808,10\n"
    (tmp_path / "a.csv").write_text(HEADER + row * 3)
    (tmp_path / "b.csv").write_text(HEADER + row * 4)
    assert take([tmp_path / "a.csv"], lake).files[0].rows_out == 3
    (file,) = take([tmp_path / "b.csv"], lake).files
    assert (file.rows_out, file.rows_duplicate) == (1, 3)
    assert lake.rows("attempt") == 4
    assert lake.scan("attempt").collect()["attempt_lo"].n_unique() == 4


def test_rows_a_tenth_of_a_microsecond_apart_are_two(lake: Lake, take: Take, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(HEADER + "2023-11-16 18:17:03.9799600,1,1\n2023-11-16 18:17:03.9799601,1,1\n")
    take([tmp_path / "a.csv"], lake)
    (tmp_path / "b.csv").write_text(HEADER + "2023-11-16 18:17:03.9799601,1,1\n")
    assert take([tmp_path / "b.csv"], lake).files[0].rows_duplicate == 1


def test_provider_and_model_may_be_named(lake: Lake, take: Take, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(HEADER + "2023-11-16 18:17:03.9799600,1,1\n")
    take([tmp_path / "a.csv"], lake, provider="azure", model="gpt-4")
    (report,) = lake.scan("usage_report").collect().rows(named=True)
    assert (report["provider"], report["model"]) == ("azure", "gpt-4")


@pytest.mark.real
def test_the_published_trace_is_taken_in_whole(lake: Lake, take: Take, shared_real: Path) -> None:
    path = shared_real / "traces" / "azure2023_code.csv"
    lines = path.read_text().splitlines()[1:]
    sums = [sum(int(line.split(",")[column]) for line in lines) for column in (1, 2)]
    (file,) = take([path], lake).files
    assert (file.rows_in, file.rows_out, file.rows_quarantined, file.rows_duplicate) == (8819, 8819, 0, 0)
    assert len(lines) == 8819
    leaves = lake.scan("usage_report").collect()["leaf_integers"]
    assert [leaves.list.get(0).sum(), leaves.list.get(1).sum()] == sums
    readings = lake.scan("reading").collect()
    assert [readings["input_total"].sum(), readings["output_total"].sum()] == sums
    assert readings["verdict"].unique().to_list() == ["PROVED"]
    assert lake.scan("attempt").collect()["attempt_lo"].n_unique() == 8819
