"""The tables: rules that hold for every column of every table, and the words that are frozen."""

from __future__ import annotations

import json
import re
from enum import StrEnum
from pathlib import Path

import pyarrow as pa
import pytest

from weighbridge.schemas import enumerations
from weighbridge.schemas.canonical import encoder
from weighbridge.schemas.enumerations import ENUMERATIONS, OPERATIONS_OF_AXIS, Axis, Domain, Operation
from weighbridge.schemas.export import to_json, vocabulary
from weighbridge.schemas.table import Column, Table
from weighbridge.schemas.tables import TABLES
from weighbridge.schemas.version import SCHEMA_VERSION

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = [
    pytest.param(table, column, id=f"{table.name}.{column.name}")
    for table in TABLES.values()
    for column in table.columns
]
SNAKE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_a_table_is_well_formed(table: Table) -> None:
    assert SNAKE.fullmatch(table.name)
    assert table.doc.endswith(".")
    assert len(set(table.names)) == len(table.names)
    assert set(table.key) <= set(table.names)
    assert len(set(table.key)) == len(table.key)
    assert 1 <= table.since <= SCHEMA_VERSION


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_daily_tables_have_a_required_day_and_only_they(table: Table) -> None:
    if table.daily:
        assert table.column("day").type == pa.date32()
        assert not table.column("day").nullable
    else:
        assert "day" not in table.names


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_content_is_ciphertext_and_kept_apart(table: Table) -> None:
    binaries = [column for column in table.columns if pa.types.is_binary(column.type)]
    assert bool(binaries) is (table.domain is Domain.CONTENT)
    assert all(column.personal for column in binaries)


def test_identifiers_of_others_stand_in_one_restricted_table() -> None:
    assert TABLES["foreign_id"].column("value").personal
    assert [name for name, table in TABLES.items() if table.domain is Domain.OPERATIONS] == [
        "request_scope",
        "strategy",
    ]
    for table in TABLES.values():
        if table.domain is Domain.OPERATIONS:
            assert not {"value", "alias_hi", "invoice_id"} & set(table.names)


def test_what_everybody_may_read_names_no_attempt_tenant_file_or_moment() -> None:
    shared = [table for table in TABLES.values() if table.domain is Domain.SHARED]
    assert [table.name for table in shared] == ["shared_histogram"]
    kept = set("attempt_hi attempt_lo request_hi request_lo tenant segment value arrived_at source".split())
    for table in shared:
        assert not kept & set(table.names)
        assert not any(column.personal or pa.types.is_timestamp(column.type) for column in table.columns)


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_a_column_is_well_formed(table: Table, column: Column) -> None:
    assert SNAKE.fullmatch(column.name)
    assert column.doc
    encoder(column.type)
    assert not pa.types.is_unsigned_integer(column.type)
    assert not pa.types.is_float32(column.type)
    if pa.types.is_decimal(column.type):
        assert column.type == pa.decimal128(38, 18)
    if pa.types.is_timestamp(column.type):
        assert column.type == pa.timestamp("us", tz="UTC")
    if column.pattern is not None:
        assert pa.types.is_string(column.type)
        re.compile(column.pattern)
    if column.values is not None:
        assert column.values in ENUMERATIONS.values()
        assert pa.types.is_string(column.type)


# Ordinals, limits and parameters: never summed. Everything else that counts is a signed 64-bit integer.
NARROW = """
attempt_number base_seq beams change child head_hi head_lo http_status kv_heads layer_hi layer_lo layers length level
max_tokens messages min_tokens n parent_child parent_scope part query_heads report reports revision run schema_version
scope seq start step stop_strings subject_bucket tools top_k
"""


def test_narrow_integers_are_ordinals_and_parameters() -> None:
    """Polars sums 32-bit integers without widening them, so a narrow count would wrap without a word."""
    narrow = {c.name for table in TABLES.values() for c in table.columns if c.type == pa.int32()}
    assert narrow == set(NARROW.split())


def test_what_a_row_cannot_be_without() -> None:
    """Required columns identify a row or say how it ended; every measurement may be unknown."""
    measured = {pa.int64(), pa.float64(), pa.bool_(), pa.decimal128(38, 18)}
    required = {
        (table.name, column.name)
        for table in TABLES.values()
        for column in table.columns
        if not column.nullable and column.type in measured and column.name not in table.key
    }
    assert required == {
        ("strategy", "token_events"),
        ("segment", "rows_in"),
        ("segment", "rows_out"),
        ("segment", "rows_quarantined"),
        ("segment", "rows_duplicate"),
        ("state_event", "n_universe"),
        ("state_event", "n_members"),
        ("gap", "attempts"),
        ("gap_cause", "tokens"),
        ("finding", "rows"),
        ("baseline", "rows"),
        ("baseline", "days"),
        ("baseline", "day_rows"),
        ("baseline", "observed"),
        ("baseline", "reported"),
        ("adjustment", "rows"),
        ("close", "rows"),
        ("receipt", "rows"),
        ("segment", "bytes"),
        ("quarantine_status", "line"),
        ("shared_histogram", "attempts"),
        ("usage_period", "provisional"),
        ("engine_counter", "value"),
        ("engine_counter", "undated"),
        *(("recount_constant", name) for name in ("constant", "per_message", "attempts", "exact", "median")),
        *(("engine_gap", name) for name in ("counted", "attempted", "gap", "explained", "residual")),
        *(("engine_gap", name) for name in ("attempts", "across", "unknown", "reset")),
        ("engine_gap_cause", "tokens"),
        *(("audit_cell", name) for name in ("rows", "pinned", "incomplete", "broken", "gap", "observed")),
        ("audit_tolerance", "rows"),
        *(("comparison", name) for name in ("baseline", "pairs", "recommended")),
    }


def test_absent_counts_stay_absent() -> None:
    for name in ("attempt", "reading", "priced_amount", "reconciled"):
        for column in TABLES[name].columns:
            if column.name.startswith(("input_", "output_", "cache_", "amount", "observed", "reported")):
                assert column.nullable, f"{name}.{column.name}"


def test_signed_columns_are_the_differences_and_the_evidence() -> None:
    negative = {
        f"{table.name}.{column.name}"
        for table in TABLES.values()
        for column in table.columns
        if column.type == pa.int64() and column.minimum is None and not column.name.endswith(("_hi", "_lo"))
    }
    assert negative == {
        "attempt.cache_correction",
        "reading.reported_total",
        "reconciled.gap",
        "reconciled.explained",
        "reconciled.residual",
        "gap_cause.tokens",
        "invoice_line.tokens",
        "finding.expected",
        "finding.observed",
        "finding.difference",
        "adjustment.tokens",
        "audit_cell.gap",
        *(f"recount_constant.{name}" for name in ("constant", "per_message", "median", "lower", "upper")),
        *(f"engine_gap.{name}" for name in ("attempted", "gap", "explained", "residual")),
        *(f"engine_gap_cause.{name}" for name in ("tokens", "low", "high")),
    }


def test_statistics_never_show_what_is_personal_or_nested() -> None:
    assert "value" not in TABLES["foreign_id"].public
    assert "reason" not in TABLES["finding_status"].public
    assert "evidence" not in TABLES["finding"].public
    assert "leaf_integers" not in TABLES["usage_report"].public
    assert {"day", "attempt_lo"} <= set(TABLES["foreign_id"].public)


def test_arrow_schemas_carry_the_declaration() -> None:
    schema = TABLES["reading"].schema()
    version = str(SCHEMA_VERSION).encode()
    assert schema.metadata == {b"table": b"reading", b"domain": b"billing", b"schema_version": version}
    assert schema.field("verdict").nullable is False
    assert schema.field("cache_read").metadata[b"doc"] == b"tokens of class cache_read, all modalities"
    with pytest.raises(KeyError, match="table price has no column 'prize'; it has price_id, provider"):
        TABLES["price"].column("prize")


def test_every_enumeration_is_registered_and_closed() -> None:
    declared = {
        name
        for name, member in vars(enumerations).items()
        if isinstance(member, type) and issubclass(member, StrEnum) and member is not StrEnum
    }
    assert set(ENUMERATIONS) == declared


def test_operations_belong_to_one_axis() -> None:
    placed = [operation for operations in OPERATIONS_OF_AXIS.values() for operation in operations]
    assert sorted(placed) == sorted(Operation)
    assert list(OPERATIONS_OF_AXIS) == list(Axis)


def test_the_exported_vocabulary_is_up_to_date() -> None:
    found = (ROOT / "schemas" / "vocabulary.json").read_text(encoding="utf-8")
    assert found == to_json(), "run `python -m weighbridge.schemas.export schemas/vocabulary.json`"


def test_the_export_can_be_read_by_others() -> None:
    told = json.loads(to_json())
    assert told == json.loads(json.dumps(vocabulary()))
    reading = next(table for table in told["tables"] if table["name"] == "reading")
    verdict = next(column for column in reading["columns"] if column["name"] == "verdict")
    assert verdict["enumeration"] == "Verdict"
    assert told["enumerations"]["Verdict"] == ["PROVED", "ASSUMED", "CONTRADICTORY", "UNKNOWN"]
    assert {"name": "cache_read_audio", "class": "cache_read", "modality": "audio", "direction": "input"} in told[
        "cells"
    ]


@pytest.mark.parametrize("table", [table for table in TABLES.values() if table.daily], ids=lambda table: table.name)
def test_the_key_of_a_daily_table_holds_for_all_its_days(table: Table) -> None:
    """It names one thing that happened once (an attempt, a request, an id, a line of a file, a period), or the day."""
    assert {"attempt_lo", "request_lo", "alias_lo", "segment", "cell_lo", "day"} & set(table.key)
