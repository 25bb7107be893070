"""Dialects turn into plain values and back: the rules of a closed month are data."""

from __future__ import annotations

import dataclasses
import json
from datetime import date

import polars as pl
import pytest

from weighbridge.pipeline.ingest.dialect import Dialect, Role
from weighbridge.pipeline.ingest.dialect_facts import dialect_of, facts_of
from weighbridge.pipeline.ingest.dialects import all_dialects, dialect_for
from weighbridge.pipeline.ingest.known import Figures
from weighbridge.pipeline.ingest.outcome import words
from weighbridge.pipeline.ingest.readings import read_reports
from weighbridge.pipeline.ingest.solver import solve
from weighbridge.pipeline.ingest.speakers import lookup
from weighbridge.pipeline.lake import polars_schema
from weighbridge.schemas.enumerations import Verdict


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
    kept = lookup(dialect_of(json.loads(json.dumps(facts_of(dialect)))) for dialect in all_dialects().values())
    asked = {
        (provider, api, model, day)
        for dialect in all_dialects().values()
        for provider in (*dialect.providers, *(fact.provider for fact in dialect.facts), "else", None)
        for api in (*dialect.apis, "nothing")
        for model in (None, "gpt-5-mini", "GPT-5.2", "sonar-deep-research")
        for day in (None, date(2026, 3, 1))
    }
    assert len(asked) > 1000
    for one_asked in asked:
        one, other = kept(*one_asked), dialect_for(*one_asked)
        assert (one and fields(one)) == (other and fields(other))


def test_facts_that_were_kept_before_there_were_facts_of_providers_are_still_read() -> None:
    """A month that was closed then is read again as it was: Azure hid its details by a rule of its own name."""
    later = {"open", "rare", "children", "facts", "known", "cached_grain", "reasoning_grain", "repairs"}
    now = facts_of(all_dialects()["openai_chat"])
    hidden = next(rule for name, rule in now["absent"] if name == "hidden")
    then = {name: value for name, value in now.items() if name not in later}
    then |= {"providers": ["openai", "azure"], "absent": [["any", now["absent"][0][1]], ["azure", hidden]]}
    find = lookup([dialect_of(then)])
    assert find("xai", "chat") is None
    for provider, cached in (("openai", 0), ("azure", None)):
        dialect = find(provider, "chat", "gpt-4o", date(2026, 3, 1))
        assert dialect is not None
        solution = solve(dialect, provider, Figures({Role.INPUT: 3, Role.OUTPUT: 4, Role.TOTAL: 7}))
        assert solution.classes[1] == cached
        assert words(dialect, solution.code)[0] is Verdict.PROVED


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
