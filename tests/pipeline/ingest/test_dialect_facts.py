"""Dialects turn into plain values and back: the rules of a closed month are data."""

from __future__ import annotations

import dataclasses
import json
from datetime import date

import polars as pl
import pytest

from weighbridge.pipeline.ingest.dialect import Dialect
from weighbridge.pipeline.ingest.dialect_facts import dialect_of, facts_of
from weighbridge.pipeline.ingest.dialects import all_dialects, dialect_for
from weighbridge.pipeline.ingest.readings import read_reports
from weighbridge.pipeline.ingest.speakers import lookup
from weighbridge.pipeline.lake import polars_schema


def fields(dialect: Dialect) -> dict[str, object]:
    return {item.name: getattr(dialect, item.name) for item in dataclasses.fields(dialect)}


@pytest.mark.parametrize("name", all_dialects())
def test_every_dialect_survives_json(name: str) -> None:
    dialect = all_dialects()[name]
    again = dialect_of(json.loads(json.dumps(facts_of(dialect))))
    assert fields(again) == fields(dialect)
    assert again.readings == dialect.readings
    assert list(again.roles) == list(dialect.roles)


@pytest.mark.parametrize("name", all_dialects())
def test_the_facts_name_every_field(name: str) -> None:
    assert set(facts_of(all_dialects()[name])) == {item.name for item in dataclasses.fields(Dialect)}


def test_a_lookup_over_kept_facts_finds_what_the_folder_finds() -> None:
    kept = lookup(dialect_of(facts_of(dialect)) for dialect in all_dialects().values())
    pairs = [
        (p, a) for d in all_dialects().values() for a in (*d.apis, "nothing") for p in (*d.providers, "else", None)
    ]
    assert pairs
    for provider, api in pairs:
        one, other = kept(provider, api), dialect_for(provider, api)
        assert (one and one.name) == (other and other.name)


def test_a_report_is_read_by_the_dialects_that_are_handed_in() -> None:
    row = {
        "attempt_hi": 1,
        "attempt_lo": 1,
        "day": date(2026, 3, 1),
        "source": "agent",
        "child": 0,
        "report": 0,
        "part": 0,
        "part_kind": "whole",
        "provider": "openai",
        "api": "openai_chat",
        "ended": "complete",
        "leaf_shape": "usage.prompt_tokens usage.completion_tokens usage.total_tokens",
        "leaf_integers": [3, 4, 7],
        "leaf_texts": [None, None, None],
        "revision": 0,
    }
    reports = pl.DataFrame([row], schema=polars_schema("usage_report"))
    (own,) = read_reports(reports)["input_total"]
    facts = facts_of(all_dialects()["openai_chat"])
    swapped = facts | {"roles": [["prompt_tokens", "output"], ["completion_tokens", "input"]]}
    (other,) = read_reports(reports, lookup([dialect_of(swapped)]))["input_total"]
    assert (own, other) == (3, 4)
