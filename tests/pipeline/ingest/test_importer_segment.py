"""Sealed segments: proved whole, taken in as they are, and row by row refused where they break the vocabulary."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.errors import ContractError
from weighbridge.schemas.segment import sha256_file, write_segment
from weighbridge.schemas.version import SCHEMA_VERSION

Take = Callable[..., IngestResult]
Row = Callable[..., dict[str, object]]
Segment = Callable[..., Path]
DAY = date(2026, 1, 15)


def test_every_row_is_stored_with_the_segment_and_the_row_it_came_from(
    lake: Lake, take: Take, segment: Segment, attempt: Row, report: Row
) -> None:
    path = segment("s", attempt=[attempt(2), attempt(1)], usage_report=[report(1), report(2)])
    (file,) = take([path], lake).files
    assert (file.name, file.importer, file.rows_in, file.rows_out) == ("s.segment", "segment", 4, 4)
    assert file.segment == sha256_file(path / "manifest.json")
    rows = lake.scan("attempt").sort("attempt_hi").select("attempt_hi", "segment", "segment_row").collect().rows()
    assert rows == [(1001, file.segment, 1), (1002, file.segment, 0)]
    (account,) = lake.scan("segment").collect().rows(named=True)
    assert (account["writer"], account["end"], account["schema_version"]) == (
        "agent-1",
        "complete",
        SCHEMA_VERSION,
    )
    assert account["bytes"] == sum(p.stat().st_size for p in path.iterdir())


def test_pseudonyms_of_another_key_are_kept_and_carry_its_id(
    lake: Lake, take: Take, segment: Segment, attempt: Row
) -> None:
    row = attempt(1, tenant="t_0123456789abcdef", tenant_key_id="ffffffffffff")
    assert take([segment("s", key_id="ffffffffffff", attempt=[row])], lake).files[0].rows_out == 1
    (stored,) = lake.scan("attempt").collect().rows(named=True)
    assert (stored["tenant"], stored["tenant_key_id"]) == ("t_0123456789abcdef", "ffffffffffff")


def test_alias_rows_that_a_segment_brings_are_counted_and_joined_by_those_of_its_identifiers(
    lake: Lake, take: Take, segment: Segment, attempt: Row
) -> None:
    place = {"attempt_hi": 1001, "attempt_lo": -5001, "day": DAY, "source": "agent-1"}
    alias = {"alias_hi": 5, "alias_lo": 6, "kind": "client_request_id", **place}
    foreign = {**place, "kind": "client_request_id", "value": "req-1"}
    (file,) = take([segment("s", attempt=[attempt(1)], alias=[alias], foreign_id=[foreign])], lake).files
    assert (file.rows_in, file.rows_out) == (3, 3)
    assert lake.rows("alias") == 2
    assert (5, 6) in lake.scan("alias", columns=["alias_hi", "alias_lo"]).collect().rows()


def test_records_of_tables_that_keep_no_file_are_counted_so_that_the_account_can_be_held_against_the_lake(
    lake: Lake, take: Take, segment: Segment, attempt: Row
) -> None:
    strategy = {"strategy_id": "0" * 32, "name": "dense", "family": "dense", "token_events": False, "parameters": "{}"}
    take([segment("a", attempt=[attempt(1), attempt(2)], strategy=[strategy])], lake)
    take([segment("b", attempt=[attempt(3)], strategy=[strategy])], lake)
    take([segment("c", attempt=[attempt(4)])], lake)
    accounts = lake.scan("segment").sort("rows_in", "rows_unplaced").select("rows_in", "rows_out", "rows_unplaced")
    assert accounts.collect().rows() == [(1, 1, 0), (2, 2, 1), (3, 3, 1)]


REFUSED = [
    ("negative count", "attempt", {"output_computed": -1}, "schema", "attempt.output_computed"),
    ("negative time", "attempt", {"queue_us": -1}, "negative_time", "attempt.queue_us"),
    ("a name in clear", "attempt", {"tenant": "Miller & Sons"}, "schema", "attempt.tenant"),
    ("a sentence as task", "attempt", {"task": "write a poem about it"}, "schema", "attempt.task"),
    ("a line end behind a name", "attempt", {"task": "chat\n"}, "schema", "attempt.task"),
    ("no member of the enumeration", "attempt", {"status": "fine"}, "schema", "attempt.status"),
    (
        "text in a path",
        "usage_report",
        {"leaf_shape": "usage.secret usage.b usage.c"},
        "schema",
        "usage_report.leaf_shape",
    ),
    ("fewer values than paths", "usage_report", {"leaf_integers": [1]}, "schema", "usage_report.leaf_shape"),
    (
        "text in a leaf",
        "usage_report",
        {"leaf_texts": ["the secret is out", None, None]},
        "schema",
        "usage_report.leaf_texts",
    ),
    ("text in a note", "usage_report", {"notes": ["it was a dark night"]}, "schema", "usage_report.notes"),
]


@pytest.mark.parametrize(
    ("table", "changes", "reason", "path"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_a_value_its_column_does_not_allow_refuses_the_row_and_no_other(
    lake: Lake,
    take: Take,
    segment: Segment,
    attempt: Row,
    report: Row,
    table: str,
    changes: dict[str, object],
    reason: str,
    path: str,
) -> None:
    bad = attempt(2, **changes) if table == "attempt" else attempt(2)
    worse = report(2, **changes) if table == "usage_report" else report(2)
    (file,) = take([segment("s", attempt=[attempt(1), bad], usage_report=[report(1), worse])], lake).files
    assert (file.rows_in, file.rows_out, file.rows_quarantined) == (4, 3, 1)
    (row,) = lake.scan("quarantine").collect().rows(named=True)
    assert (row["reason"], row["path"], row["line"], row["importer"]) == (reason, path, 1, "segment")
    assert lake.rows(table) == 1


def test_a_bad_identifier_is_refused(lake: Lake, take: Take, segment: Segment, attempt: Row) -> None:
    place = {"attempt_hi": 1001, "attempt_lo": -5001, "day": DAY, "source": "agent-1", "kind": "client_request_id"}
    ids = [{**place, "value": "fine-1"}, {**place, "value": "not fine, not at all"}]
    take([segment("s", attempt=[attempt(1)], foreign_id=ids)], lake)
    assert lake.scan("foreign_id").collect()["value"].to_list() == ["fine-1"]
    (row,) = lake.scan("quarantine").collect().rows(named=True)
    assert (row["reason"], row["path"]) == ("bad_identifier", "foreign_id.value")


def test_a_row_with_several_bad_values_is_one_quarantined_row(
    lake: Lake, take: Take, segment: Segment, attempt: Row
) -> None:
    (file,) = take([segment("s", attempt=[attempt(1, task="a b", queue_us=-1, status="x")])], lake).files
    assert (file.rows_in, file.rows_out, file.rows_quarantined) == (1, 0, 1)
    assert lake.scan("quarantine").sort("path").collect()["path"].to_list() == [
        "attempt.queue_us",
        "attempt.status",
        "attempt.task",
    ]


def test_a_strategy_under_a_known_id_with_other_content_is_refused(lake: Lake, take: Take, segment: Segment) -> None:
    def strategy(layers: int) -> dict[str, object]:
        return {
            "strategy_id": "0" * 32,
            "name": "knorm",
            "family": "eviction",
            "token_events": True,
            "parameters": '{"ratio": 0.5}',
            "layers": layers,
        }

    take([segment("a", strategy=[strategy(1)])], lake)
    (file,) = take([segment("b", strategy=[strategy(1), strategy(2)])], lake).files
    # The description stands, and this file says it too: whoever was read first makes no difference to its account.
    assert (file.rows_in, file.rows_out, file.rows_quarantined, file.rows_duplicate) == (2, 1, 1, 0)
    (row,) = lake.scan("quarantine").collect().rows(named=True)
    assert (row["reason"], row["path"], row["line"]) == ("schema", "strategy", 1)


def rewritten(path: Path, **changes: object) -> None:
    """The manifest of a segment, with some of its content changed."""
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps(manifest | changes))


def test_a_later_schema_version_is_refused_with_the_advice_to_upgrade(
    lake: Lake, take: Take, segment: Segment, attempt: Row
) -> None:
    path = segment("s", attempt=[attempt(1)])
    rewritten(path, schema_version=99)
    with pytest.raises(ContractError, match=r"schema_version is 99.*Upgrade weighbridge"):
        take([path], lake)
    assert lake.digests() == {}


def test_a_changed_byte_is_noticed(lake: Lake, take: Take, segment: Segment, attempt: Row) -> None:
    good, bad = segment("a", attempt=[attempt(1)]), segment("b", attempt=[attempt(2)])
    data = bytearray((bad / "attempt.parquet").read_bytes())
    data[len(data) // 2] ^= 1
    (bad / "attempt.parquet").write_bytes(data)
    with pytest.raises(ContractError, match=r"b\.segment/attempt\.parquet differs from its manifest"):
        take([good, bad], lake)
    assert lake.digests() == {}


def test_a_segment_that_was_never_sealed_is_named(lake: Lake, take: Take, tmp_path: Path) -> None:
    (tmp_path / "x.segment").mkdir()
    with pytest.raises(ContractError, match="never sealed"):
        take([tmp_path / "x.segment"], lake)


def test_our_own_conclusions_are_not_taken_from_outside(lake: Lake, take: Take, tmp_path: Path) -> None:
    rows = pa.table(
        {
            "finding_id": ["0" * 32],
            "change": pa.array([0], pa.int32()),
            "state": ["waived"],
            "changed_at": pa.array([0], pa.timestamp("us", "UTC")),
            "changed_by": ["mallory"],
        }
    )
    path = write_segment(tmp_path, "s", {"finding_status": rows}, writer="agent-1")
    with pytest.raises(ContractError, match="finding_status"):
        take([path], lake)


def test_a_writer_must_be_a_name(lake: Lake, take: Take, segment: Segment, attempt: Row) -> None:
    path = segment("s", attempt=[attempt(1)])
    rewritten(path, writer="a long sentence")
    with pytest.raises(ContractError, match="writer must be a name") as caught:
        take([path], lake)
    assert "sentence" not in str(caught.value)


def foreign_segment(folder: Path, table: pa.Table) -> Path:
    """A segment as another program writes it: nothing of our own checks on the way."""
    path = folder / "f.segment"
    path.mkdir(parents=True)
    pq.write_table(table, path / "attempt.parquet")
    manifest = {
        "format": "weighbridge segment",
        "schema_version": 1,
        "writer": "other",
        "sequence_first": None,
        "sequence_last": None,
        "end": "unknown",
        "files": [
            {
                "table": "attempt",
                "rows": table.num_rows,
                "bytes": (path / "attempt.parquet").stat().st_size,
                "sha256": sha256_file(path / "attempt.parquet"),
            }
        ],
    }
    (path / "manifest.json").write_text(json.dumps(manifest))
    return path


@pytest.fixture
def foreign(tmp_path: Path, attempt: Row) -> Callable[..., Path]:
    def write(drop: tuple[str, ...] = (), **columns: pa.Array) -> Path:
        rows = {name: value for name, value in attempt(1).items() if name not in drop}
        table = pa.Table.from_pylist([rows, rows | {"attempt_lo": 7}])
        for name, values in columns.items():
            present = name in table.column_names
            table = table.set_column(table.column_names.index(name), name, values) if present else table
            table = table if present else table.append_column(name, values)
        return foreign_segment(tmp_path / "foreign", table)

    return write


def test_other_types_are_taken_where_every_value_fits(lake: Lake, take: Take, foreign: Segment) -> None:
    path = foreign(output_computed=pa.array([5, 6], pa.int32()), provider=pa.array(["p", "q"]).dictionary_encode())
    assert take([path], lake).files[0].rows_out == 2
    assert lake.scan("attempt").sort("attempt_lo").collect()["output_computed"].to_list() == [5, 6]


def test_a_number_too_large_for_its_column_refuses_its_row(lake: Lake, take: Take, foreign: Segment) -> None:
    (file,) = take([foreign(http_status=pa.array([200, 2**40]))], lake).files
    assert (file.rows_out, file.rows_quarantined) == (1, 1)
    (row,) = lake.scan("quarantine").collect().rows(named=True)
    assert (row["reason"], row["path"], row["line"]) == ("range", "attempt.http_status", 1)


def test_a_missing_value_refuses_its_row(lake: Lake, take: Take, foreign: Segment) -> None:
    (file,) = take([foreign(task=pa.array(["chat", None]))], lake).files
    assert (file.rows_out, file.rows_quarantined) == (1, 1)
    (row,) = lake.scan("quarantine").collect().rows(named=True)
    assert (row["reason"], row["path"], row["source"]) == ("missing_field", "attempt.task", "agent-1")


@pytest.mark.parametrize(
    ("drop", "columns", "said"),
    [
        (("task",), {}, r"required columns that are missing \['task'\]"),
        ((), {"prompt": pa.array(["a secret", "b"])}, "unknown columns prompt;"),
        ((), {"output_computed": pa.array([0.5, 1.0])}, r"output_computed \(Float64\)"),
        ((), {"output_computed": pa.array(["a secret", "b"])}, r"output_computed \(String\)"),
    ],
)
def test_columns_that_are_not_ours_stop_the_call(
    lake: Lake, take: Take, foreign: Segment, drop: tuple[str, ...], columns: dict[str, pa.Array], said: str
) -> None:
    with pytest.raises(ContractError, match=said) as caught:
        take([foreign(drop, **columns)], lake)
    assert "secret" not in str(caught.value)
    assert lake.digests() == {}


def test_an_empty_segment_has_no_rows(lake: Lake, take: Take, tmp_path: Path) -> None:
    (file,) = take([write_segment(tmp_path, "s", {}, writer="agent-1")], lake).files
    assert (file.rows_in, file.rows_out) == (0, 0)
    empty = {"attempt": pa.table({}), "usage_report": pa.table({})}
    (file,) = take([write_segment(tmp_path, "t", empty, writer="agent-1")], lake).files
    assert (file.rows_in, file.rows_out) == (0, 0)
    assert lake.scan("segment").select(pl.len()).collect().item() == 2
