"""Behind cells and findings of bills: calls that contradict themselves, and models that are called otherwise."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from tests.pipeline.invoice.test_grain import contradictory
from tests.pipeline.invoice.world import FILE, World, at

from weighbridge.pipeline.explain.explain import explain
from weighbridge.pipeline.explain.kinds.invoice_cell import SHOWN_SPOILED
from weighbridge.pipeline.explain.source import SHOWN
from weighbridge.pipeline.invoice.contract import Contract
from weighbridge.pipeline.invoice.findings.words import CONTRADICTORY
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.reconcile.tree.node import Node
from weighbridge.schemas.identity import AttemptKey

SPOILED = "calls whose reports contradict themselves"


def below(node: Node, label: str) -> list[Node]:
    return [each for each in node.children if each.label == label]


def weighed(world: World) -> tuple[Lake, Node, Node | None]:
    """The lake, the tree behind its first cell of money, and that of its finding about contradictory calls."""
    lake = world.lake()
    reports = world.called()["usage_report"].with_columns(
        segment=pl.lit(FILE), segment_row=0, part_kind=pl.lit("response")
    )
    lake.append("usage_report", reports)
    found = world.reconcile_in(lake).findings
    about = {"openai": world.contract}
    cell = lake.scan("invoice_gap").collect().row(0, named=True)["cell"]
    told = [explain(lake, each.finding_id, contracts=about) for each in found if each.code == CONTRADICTORY]
    return lake, explain(lake, cell, contracts=about), told[0] if told else None


def test_contradictory_calls_are_named_behind_their_finding_and_their_cell(tmp_path: Path) -> None:
    """The tree of one goes down to its raw leaves; the limits of what it cost are told."""
    _, cell, finding = weighed(contradictory(tmp_path, "0.0025"))
    assert finding is not None
    assert [below(finding, name)[0].value for name in ("amount_low", "amount_high")]
    for tree in (cell, finding):
        (group,) = below(tree, SPOILED)
        (call,) = group.children
        assert (group.value, call.value) == (1, AttemptKey(2, 2).to_hex())
        assert below(call, "usage report of")


def test_of_many_contradictory_calls_all_are_counted_and_the_largest_named(tmp_path: Path) -> None:
    """The first ones with all that is known of them, others by their ids."""
    world = contradictory(tmp_path, "0.0025")
    spoiled = world.calls[1]
    many = SHOWN_SPOILED + 9
    for number in range(3, many + 2):
        key = {"attempt_hi": number, "attempt_lo": number}
        world.calls.append({**spoiled, **key, "leaf_integers": [400, 50, 600 + number]})
    _, _, finding = weighed(world)
    assert finding is not None
    (group,) = below(finding, SPOILED)
    assert (group.value, len(group.children)) == (many, SHOWN_SPOILED)
    assert group.children[0].value == AttemptKey(many + 1, many + 1).to_hex()
    assert [bool(each.children) for each in group.children[: SHOWN + 1]] == [True] * SHOWN + [False]


@pytest.mark.parametrize("renamed", [True, False])
def test_a_renamed_model_is_found_under_both_names(tmp_path: Path, *, renamed: bool) -> None:
    """The bill and half of the calls say `M-One`, which the contract calls m."""
    world = World(tmp_path)
    world.contract = Contract("openai", models={"M-One": "m"} if renamed else {})
    world.call(at(12), input_uncached=1000)
    world.call(at(12, 13), input_uncached=500, model="M-One")
    world.line("0.003", at(12, 0), model="M-One", tokens=1500)
    world.page(at(12, 0), model="M-One", input_uncached=1500)
    lake = world.lake()
    world.reconcile_in(lake)
    cells = lake.scan("invoice_gap").collect()
    told = cells.filter(cells["model"] == ("m" if renamed else "M-One")).to_dicts()
    assert {row["against"] for row in told} == {"invoice", "usage_page"}
    for row in told:
        tree = explain(lake, row["cell"], contracts={"openai": world.contract})
        (calls,) = below(tree, "attempts of its UTC days")
        assert calls.value == (2 if renamed else 1)
        (theirs,) = below(tree, "lines of the bill" if row["against"] == "invoice" else "results of pages")
        assert theirs.value == 1


def test_days_of_a_finding_are_those_of_the_billing_zone(tmp_path: Path) -> None:
    """22:30 UTC of 11 April is the 12th in Berlin."""
    world = contradictory(tmp_path, "0.0025")
    world.contract = Contract("openai", zone="Europe/Berlin")
    world.calls = [{**each, "arrived_at": at(11, 22, 30), "day": date(2026, 4, 11)} for each in world.calls]
    world.lines = [{**each, "period_start": at(11, 22), "period_end": at(12, 22)} for each in world.lines]
    _, _, finding = weighed(replace(world))
    assert finding is not None
    assert below(finding, SPOILED)[0].value == 1
