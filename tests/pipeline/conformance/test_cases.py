"""The cases that come with the product pass, each for what it asserts; the shared ones end as they must."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from weighbridge.pipeline.conformance import OWN_CASES, Outcome, run_case, run_file
from weighbridge.pipeline.ingest.dialects import all_dialects, dialect_for

CASES: list[dict[str, Any]] = [json.loads(line) for line in OWN_CASES.read_text(encoding="utf-8").splitlines()]
# What cases of the shared file must be right: those of one report and prices by class, of duplicates, of engines
# and of costs.
SHARED_PASS = set(
    "B01 B03 B05 B07 B09 B11a B11b B13 B15 B17 B19 B21 B23 B25 B29 B31 B33 B35 B37 B39 B41 B43 B45 B47 B49 "
    "B51 B53 B55 B57 B59 B61 B63 B67 B69 B71 B73 B75 B77 B79 B81 B83 B85 B85b B87 B89 B91 B93 B95 B95b B97 "
    "B99 B103 B103b B105 B107 B109 B111 B113".split()
)
# Dialects of logs, whose leaves stand where their importer puts them.
LOGS = {
    "anthropic_usage",
    "bedrock_invocation_log",
    "helicone",
    "langfuse",
    "langfuse_input_types",
    "langfuse_output_types",
    "langfuse_totals",
    "langsmith",
    "litellm",
    "openai_usage",
    "openai_usage_input",
    "span_embeddings",
    "strands",
    "vercel_ai",
}


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_every_own_case_passes(case: dict[str, Any]) -> None:
    result = run_case(case)
    assert (result.differences, result.missing) == ([], None)
    assert result.outcome is Outcome.PASS


def test_the_own_cases_cover_every_api_and_every_kind_that_runs() -> None:
    assert len({case["id"] for case in CASES}) == len(CASES)
    spoken = {(case["input"]["provider"], case["input"]["api"]) for case in CASES}
    assert spoken >= {("azure", "chat"), ("azure", "responses"), ("xai", "chat"), ("xai", "responses")}
    dialects = {dialect.name for one in spoken if (dialect := dialect_for(*one)) is not None}
    # What only an importer writes is read in the cases of kind dedup, or nowhere but in its own tests.
    assert set(all_dialects()) - dialects == LOGS
    assert {case["kind"] for case in CASES} == {"usage", "stream", "price", "numeric", "dedup", "other", "period"}
    assert all(case["expect"]["note"] for case in CASES)


def wrong_expectations(case: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The case once for each thing it asserts, with exactly that expectation made wrong."""
    for name, value in case["expect"].items():
        if name == "note":
            continue
        for item in value if isinstance(value, (dict, list)) else [name]:
            changed = copy.deepcopy(case)
            where = changed["expect"]
            if name == "children":
                yield from ((name, one) for one in wrong_children(case))
                break
            if name in {"day", "period"}:
                where[name] = [*value[1:], "1999-01"]
                yield name, changed
                break
            if isinstance(value, dict):
                where[name][item] = other(value[item], name if item != "cost" else item)
                yield f"{name}.{item}", changed
            elif isinstance(value, list):
                where[{"flags": "not_flags", "not_flags": "flags"}[name]] = [item]
                yield str(item).replace("-", "_"), changed
            else:
                where[name] = other(value, name)
                yield name, changed


def wrong_children(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The case with one child too many, and once for each thing it says of a child."""
    more = copy.deepcopy(case)
    more["expect"]["children"].append({})
    yield more
    for number, child in enumerate(case["expect"]["children"]):
        for name in child:
            changed = copy.deepcopy(case)
            changed["expect"]["children"][number][name] = other(child[name], name)
            yield changed


def other(value: object, name: str) -> object:
    if name == "verdict":
        return "assumed" if value != "assumed" else "proved"
    if value is None:
        return "0" if name.startswith("cost") else 0
    return f"{value}1" if isinstance(value, str) else int(str(value)) + 1


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_every_assertion_of_a_case_can_fail_it(case: dict[str, Any]) -> None:
    tried = 0
    for named, changed in wrong_expectations(case):
        result = run_case(changed)
        assert result.outcome is Outcome.FAIL, named
        assert any(named in difference for difference in result.differences), (named, result.differences)
        tried += 1
    assert tried > 0


@pytest.mark.real
def test_the_shared_cases_end_as_they_must(shared_real: Path) -> None:
    results = {result.id: result for result in run_file(shared_real / "bug_cases.jsonl")}
    assert len(results) == 58
    assert {name: result.differences for name, result in results.items() if result.outcome is Outcome.FAIL} == {}
    assert {name for name, result in results.items() if result.outcome is Outcome.PASS} == SHARED_PASS
    assert all(result.missing for name, result in results.items() if name not in SHARED_PASS)
