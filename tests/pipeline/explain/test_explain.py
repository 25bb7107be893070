"""From a finding, an attempt or a file down to raw leaves and their place in a file."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from tests.pipeline.reconcile.conftest import DAY, SEGMENT, World, key

from weighbridge.pipeline.explain.explain import all_kinds, explain
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.reconcile.reconcile import reconcile
from weighbridge.pipeline.reconcile.tree.node import Node
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import AttemptKey


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Two attempts, of which the first was reported by another convention, with leaves and the file they came from."""
    world = World(tmp_path_factory.mktemp("explain"))
    for number in (1, 2):
        world.attempt(number, input_computed=900, segment_row=number)
    world.reading(1, input_total=600, cache_read=300, flags=["integral_float"])
    world.reading(2, input_total=900)
    world.priced(1, amount=Decimal("0.0009"))
    world.prices()
    hi, lo = key(1)
    part = {"attempt_hi": hi, "attempt_lo": lo, "day": DAY, "source": "agent", "child": 0, "report": 0, "part": 0}
    leaves = {
        "leaf_shape": "usage.prompt_tokens usage.prompt_tokens_details.cached_tokens usage.service_tier",
        "leaf_integers": [600, 300, None],
        "leaf_texts": [None, None, "default"],
    }
    ends = {"part_kind": "whole", "ended": "complete", "segment": SEGMENT, "segment_row": 41, "revision": 0}
    world.add("usage_report", {**part, **leaves, **ends})
    counted = {"rows_in": 3, "rows_out": 3, "rows_quarantined": 0, "rows_duplicate": 0, "bytes": 9, "end": "complete"}
    world.add("segment", {"segment": SEGMENT, "importer": "mapped", "name": "log.csv", "schema_version": 1, **counted})
    found = world.lake()
    reconcile(found)
    return found


def at(node: Node, *labels: str) -> Node:
    """The first node on a path of labels."""
    for label in labels:
        node = next(child for child in node.children if child.label == label)
    return node


def flat(node: Node) -> list[tuple[str, Any]]:
    """Labels and values of a whole tree."""
    return [(node.label, node.value), *(pair for child in node.children for pair in flat(child))]


def test_a_finding_leads_down_to_raw_leaves_and_their_row_in_a_file(lake: Lake) -> None:
    """Finding, cause, attempt, report, part, leaf, file."""
    finding_id = lake.scan("finding").filter(pl.col("code") == "cache_convention").collect()["finding_id"].item()
    tree = explain(lake, finding_id[:8])
    assert (tree.label, tree.value) == ("finding", finding_id)
    assert at(tree, "cause", "meaning").value == "Cached tokens counted by another convention"
    attempt = at(tree, "evidence", "attempt")
    assert (at(tree, "evidence").value, attempt.value) == (1, key(1).to_hex())
    assert [at(attempt, "input", name).value for name in ("observed", "reported", "gap", "residual")] == [
        *(900, 600, -300, 0),
    ]
    assert at(attempt, "input", "cache_convention").value == -300
    assert at(attempt, "input", "cache_convention", "amount").value == Decimal("-0.0006")
    part = at(attempt, "usage report of", "part")
    assert flat(part)[2:5] == [
        ("usage.prompt_tokens", 600),
        ("usage.prompt_tokens_details.cached_tokens", 300),
        ("usage.service_tier", "default"),
    ]
    assert flat(at(part, "file")) == [("file", "log.csv"), ("digest", SEGMENT), ("row", 42)]
    assert flat(at(tree, "files")) == [("files", 1), ("file", "log.csv"), ("digest", SEGMENT)]


def test_an_attempt_is_found_by_its_first_digits_or_as_a_uuid(lake: Lake) -> None:
    """Both halves are searched; hyphens and capitals do not matter."""
    digits = key(2).to_hex()
    uuid = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])).upper()
    for text in (digits[:9], digits[:16], digits[:31], digits, uuid):
        assert explain(lake, text).value == digits
    tree = explain(lake, digits)
    assert at(tree, "recorded by", "input_computed").value == 900
    assert at(tree, "recorded by", "file", "row").value == 3
    assert at(tree, "usage report of", "verdict").value == "PROVED"


@pytest.mark.parametrize("attempt", [AttemptKey(-1, -1), AttemptKey(-(2**63), 0), AttemptKey(2**63 - 1, -(2**63))])
def test_ids_at_the_ends_of_the_range_are_found(attempt: AttemptKey, world: World) -> None:
    """Keys are signed, digits are not."""
    world.attempt(1, attempt_hi=attempt.hi, attempt_lo=attempt.lo)
    lake, digits = world.lake(), attempt.to_hex()
    for length in (8, 15, 16, 17, 32):
        assert explain(lake, digits[:length]).value == digits


def test_an_attempt_that_only_a_report_knows_of_is_explained_too(world: World) -> None:
    """Nobody recorded it."""
    world.reading(7, input_total=100)
    lake = world.lake()
    tree = explain(lake, key(7).to_hex())
    assert [child.label for child in tree.children] == ["usage report of"]
    assert at(tree, "usage report of", "input_total").value == 100


def test_a_file_tells_its_rows_and_the_findings_it_is_evidence_of(lake: Lake) -> None:
    """By the digest of its bytes."""
    tree = explain(lake, SEGMENT[:40])
    assert (tree.label, tree.value) == ("file", "log.csv")
    values = dict(flat(tree))
    assert (values["rows of attempt"], values["rows of usage_report"], values["rows_in"]) == (2, 1, 3)
    assert [child.label for child in tree.children].count("finding") == len(lake.scan("finding").collect())


def test_a_tree_is_plain_json(lake: Lake) -> None:
    """Amounts as decimal text, never as binary numbers; days as ISO text."""
    plain = json.loads(json.dumps(explain(lake, key(1).to_hex()).to_dict()))
    side = next(child for child in plain["children"] if child["label"] == "input")
    shown = {child["label"]: child["value"] for child in side["children"]}
    assert (shown["day"], shown["gap"], shown["status"]) == ("2026-03-02", -300, "EXPLAINED")
    report = next(child for child in plain["children"] if child["label"] == "usage report of")
    assert {"label": "amount", "value": "0.000900000000000000"} in report["children"]
    assert {"label": "flag", "value": "integral_float"} in report["children"]


def test_what_is_not_there_and_what_is_there_twice_are_said(lake: Lake, world: World) -> None:
    """With the candidates, so that one of them can be chosen."""
    with pytest.raises(ConfigError, match="nothing here has an id that begins with 9999999999"):
        explain(lake, "9999999999")
    with pytest.raises(ConfigError, match="is no id of ours"):
        explain(lake, "1234567")
    with pytest.raises(ConfigError, match="is no id of ours") as told:
        explain(lake, "all of it")
    # One form a line, each with every part of its name.
    lines = str(told.value).splitlines()
    assert lines[1:-1] == [f"  {kind.name}: {kind.title}" for kind in all_kinds()]
    audit = "audit/MONTH/MEASURE/PROVIDER/API/MODEL/TOKENIZER/TEMPLATE/SCRIPT/GRADE, `-` for what is not known"
    assert f"  audit cell: {audit}" in lines
    world.attempt(1)
    world.attempt(3, attempt_hi=1 << 32, attempt_lo=77)
    twice = f"attempt {key(1).to_hex()}, attempt {AttemptKey(1 << 32, 77).to_hex()}; give more digits"
    with pytest.raises(ConfigError, match=twice):
        explain(world.lake(), key(1).to_hex()[:16])
