"""Findings and figures that came from other rooms lead to windows, cells, lines, changes and attempts."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from tests.pipeline.explain.rooms import ALLOCATED, AUDIT, BILL, CELL_ID, SERVER, SINCE, UNTIL, WINDOW, rooms
from tests.pipeline.explain.test_kinds import at, figure, view
from tests.pipeline.reconcile.conftest import DAY, PRICE_ID, World, key

from weighbridge.pipeline.explain.explain import explain
from weighbridge.pipeline.explain.sources import all_behind, behind_findings
from weighbridge.pipeline.lake import Lake, polars_schema
from weighbridge.pipeline.reconcile.reconcile import reconcile
from weighbridge.pipeline.reconcile.tree.node import Node
from weighbridge.pipeline.report.report import contents
from weighbridge.pipeline.report.sheet import sheets_of
from weighbridge.schemas.enumerations import FindingOrigin, Severity
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.finding import Finding

SERVED = {"instance": SERVER, "framework": "vllm", "arrived_at": datetime(2026, 3, 2, 10, 10, tzinfo=UTC)}
LEAVES = {
    "ended": "complete",
    "leaf_shape": "usage.prompt_tokens",
    "leaf_integers": [1800],
    "leaf_texts": [None],
    "part_kind": "whole",
}


def finding(code: str, origin: FindingOrigin, subject: dict[str, str], **others: Any) -> Finding:
    told = {"severity": Severity.WARNING, "period": "2026-03", "rows": 1, "cure": "-", **others}
    return Finding(code=code, origin=origin, subject=subject, first_day=DAY, last_day=DAY, **told)


ENGINE = {"engine": "vllm", "model": "m-1", "instance": SERVER, "counter": "prompt_tokens", "source": "scrape"}
OF_MODEL = {"provider": "openai", "model": "m-1"}
FOUND = {
    "engine": finding("engine_health_checks", FindingOrigin.ENGINE, ENGINE, cause="health_checks"),
    "all servers": finding(
        "engine_gap_unexplained", FindingOrigin.ENGINE, {name: ENGINE[name] for name in ENGINE if name != "instance"}
    ),
    "bill": finding(
        "tool_fee",
        FindingOrigin.INVOICE,
        {"provider": "openai", "against": "invoice"},
        cause="tool_fee",
        segments=(BILL,),
    ),
    "lines": finding("currency_missing", FindingOrigin.INVOICE, {"provider": "openai"}, segments=(BILL,)),
    "audit": finding(
        "audit_suspected",
        FindingOrigin.AUDIT,
        {"measure": "hidden_reasoning", **OF_MODEL, "api": "openai_chat", "grade": "G4"},
        evidence=(key(1).to_hex(),),
    ),
    "price": finding("price_changed", FindingOrigin.PRICE, OF_MODEL, amount=Decimal(-1), currency="USD"),
    "probe": finding("cache_convention", FindingOrigin.PROBE, {**OF_MODEL, "api": "openai_chat"}),
    "compare": finding(
        "strategy_worse", FindingOrigin.COMPARE, {"strategy": "window", "baseline": "dense"}, cause="context_evicted"
    ),
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Two attempts with raw leaves, one reported 300 tokens too large; and what each room left of them."""
    world = World(tmp_path_factory.mktemp("rooms"))
    for number in (1, 2):
        world.attempt(number, input_computed=900, segment_row=number, **SERVED)
        world.reading(number, input_uncached=900 * number, input_total=900 * number, total=900 * number)
        world.priced(number, amount=Decimal("0.0018") * number)
        hi, lo = key(number)
        place = {"attempt_hi": hi, "attempt_lo": lo, "day": DAY, "source": "agent", "child": 0, "report": 0, "part": 0}
        world.add("usage_report", {**place, **LEAVES, "segment": "a" * 64, "segment_row": 41, "revision": 0})
    world.prices()
    rooms(world)
    made = world.lake()
    reconcile(made)
    rows = pl.DataFrame([each.row() for each in FOUND.values()], schema=polars_schema("finding"))
    made.replace("finding", pl.concat([made.scan("finding").collect(), rows]), days=None)
    return made


def tree(lake: Lake, name: str) -> Node:
    return explain(lake, FOUND[name].finding_id)


def test_a_finding_about_an_engine_leads_to_its_window_its_scrapes_and_raw_leaves(lake: Lake) -> None:
    """The server counted 500 at the first scrape and 3,500 at the last: 3,000, beside 2,700 of two attempts."""
    found = tree(lake, "engine")
    assert at(found, "cause", "meaning").value
    window = at(found, "windows", "engine window")
    assert (at(found, "windows").value, window.value) == (1, WINDOW)
    assert [at(window, name).value for name in ("counted", "attempted", "gap", "residual")] == [3000, 2700, 300, 200]
    assert at(window, "causes", "health_checks").value == 100
    scrapes = at(window, "first and last scrapes in it")
    assert (scrapes.value, [child.value for child in scrapes.children]) == (3, [500, 3500])
    assert [at(child, "file", "row").value for child in scrapes.children] == [1, 3]
    attempts = at(window, "attempts that touch it")
    assert (attempts.value, at(attempts, "attempt").value) == (2, key(1).to_hex()), "of equal ones the first"
    assert at(attempts, "attempt", "usage report of", "part", "usage.prompt_tokens").value == 1800


def test_what_a_subject_does_not_name_is_what_is_not_known_and_not_anything(lake: Lake) -> None:
    """The window of all servers together has no server; that of the one server is not shown with it."""
    windows = at(tree(lake, "all servers"), "windows")
    assert (windows.value, windows.children[0].value) == (1, WINDOW.replace(SERVER, "-"))


def test_a_finding_about_a_bill_leads_to_its_cell_its_lines_and_our_attempts(lake: Lake) -> None:
    """Of the line the last revision; a line of another model is of another cell."""
    cell = at(tree(lake, "bill"), "cells of bills", "invoice cell")
    assert cell.value == CELL_ID
    assert [at(cell, name).value for name in ("expected", "charged", "gap", "residual")] == [10, 13, 3, 2]
    assert (at(cell, "causes").value, at(cell, "causes", "tool_fee").value) == (1, 1)
    lines = at(cell, "lines of the bill")
    assert [(line.value, at(line, "amount").value) for line in lines.children] == [("inv-2/charged-1", 13)]
    assert at(lines, "line", "file", "row").value == 9
    attempt = at(cell, "attempts of its UTC days", "attempt")
    assert at(attempt, "usage report of", "price").value == PRICE_ID
    assert at(attempt, "usage report of", "part", "file", "row").value == 42


def test_a_finding_about_lines_leads_to_the_last_revision_of_each(lake: Lake) -> None:
    lines = at(tree(lake, "lines"), "lines")
    assert [(line.value, at(line, "amount").value) for line in lines.children] == [
        ("inv-2/charged-1", 13),
        ("inv-2/charged-2", 12),
    ]


def test_an_audit_leads_to_evidence_tolerance_and_words_that_claim_no_more_than_they_may(lake: Lake) -> None:
    """1.5 beside the 4.605 that an accusation at one in a hundred takes; and hidden tokens are never right."""
    cell = at(tree(lake, "audit"), "audit cells", "audit cell")
    assert (cell.value, at(cell, "day").value, at(cell, "rows").value) == (AUDIT, date(2026, 3, 3), 90)
    words = at(cell, "verdict", "that is").value
    assert isinstance(words, str)
    assert "consistent" in words
    assert "verified" not in words
    bet = at(cell, "evidence", "logarithm of the e-value for too much")
    asked = at(bet, "to be reached").value
    assert isinstance(asked, float)
    assert (bet.value, round(asked, 3)) == (1.5, 4.605)
    assert at(cell, "slope").value == 0.001
    assert (at(cell, "tolerance", "over, relative").value, at(cell, "tolerance", "steepest").value) == (0.04, 0.03)
    assert at(tree(lake, "audit"), "evidence", "attempt").value == key(1).to_hex()
    own = explain(lake, AUDIT)
    assert at(own, "answers with the largest gaps", "attempt").value == key(1).to_hex()


def test_a_changed_price_leads_to_before_and_after_and_to_what_it_prices(lake: Lake) -> None:
    """Only of its provider: what is new has no before, and another provider's name begins likewise."""
    found = tree(lake, "price")
    changes = at(found, "changes")
    assert [(child.value, at(child, "by").value) for child in changes.children] == [("openai equals m-1", "bob")]
    assert [at(changes, "change", name).value for name in ("before", "after")] == ["input 3", "input 2"]
    assert at(found, "prices", "price").value == PRICE_ID
    assert at(found, "attempts", "attempt").value == key(2).to_hex()


def test_a_finding_of_a_probe_leads_to_attempts_of_the_same_model(lake: Lake) -> None:
    found = at(tree(lake, "probe"), "attempts of the same model on that day")
    assert (found.value, at(found, "attempt").value) == (2, key(2).to_hex())


def test_an_allocated_amount_leads_to_all_that_was_divided_and_to_the_bill(lake: Lake) -> None:
    """9 of 13, and 1,800 of 2,700 tokens."""
    found = explain(lake, ALLOCATED)
    assert (found.value, at(found, "all that was divided").value, at(found, "tokens divided").value) == (9, 13, 2700)
    assert [child.value for child in at(found, "all that was divided").children] == [4, 9]
    cells = at(found, "cells of its bills")
    assert (cells.value, at(cells, "invoice cell").value) == (2, CELL_ID)


@pytest.mark.parametrize(
    ("sheet", "column", "where", "path", "value"),
    [
        ("engine_counters", "gap", {"instance": SERVER}, ("windows", "engine window"), WINDOW),
        ("engine_causes", "tokens", {"cause": "health_checks"}, ("windows", "engine window"), WINDOW),
        ("invoices", "residual", {"unit": "USD"}, ("cells of bills", "invoice cell"), CELL_ID),
        ("invoice_causes", "amount", {"cause": "tool_fee"}, ("cells of bills", "invoice cell"), CELL_ID),
        ("audits", "gap", {"model": "m-1"}, ("audit cells", "audit cell"), AUDIT),
        ("matches", "attempts", {"matched_by": "key"}, ("attempts", "attempt"), key(2).to_hex()),
        ("residual_money", "residual", {"model": "m-1"}, ("attempts", "attempt"), key(2).to_hex()),
    ],
)
def test_a_figure_of_every_newer_sheet_leads_to_what_it_adds_up(
    lake: Lake, sheet: str, column: str, where: dict[str, str], path: tuple[str, str], value: str
) -> None:
    name = figure(lake, sheet, column, **where)
    assert at(explain(lake, name, views=lambda _: view(lake)), *path).value == value


def test_every_room_that_is_followed_names_sheets_that_there_are(lake: Lake) -> None:
    sheets = {sheet.name for _, blocks in contents(view(lake)) for sheet in sheets_of(blocks)}
    named = [sheet for each in all_behind() for sheet in each.sheets]
    assert set(named) <= sheets
    assert len(named) == len(set(named))
    assert len(behind_findings()) == len([each for each in all_behind() if each.origin is not None])
    assert {"engine", "invoice", "audit", "price", "probe", "baseline", "reconcile"} <= set(behind_findings())


@pytest.mark.parametrize(
    "name",
    [
        "engine/",
        "engine/a/b/c/d/e/f/2026-99-99",
        "audit/2026-13/x",
        "audit/2026-03/x",
        "allocated/x",
        "engine/x/2026-03-02",
    ],
)
def test_a_name_that_only_looks_like_one_finds_nothing(lake: Lake, name: str) -> None:
    with pytest.raises(ConfigError, match="is no id of ours"):
        explain(lake, name)


@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        ("other_service", ["disk", "machine"]),
        ("tool_fee", ["fee", "search"]),
        (None, ["machine", "odd"]),
        ("tokens", ["input"]),
    ],
)
def test_the_lines_of_a_cell_are_those_of_its_kind_also_where_the_bill_names_none(
    world: World, kind: str | None, lines: list[str]
) -> None:
    period = {"period_start": SINCE, "period_end": UNTIL}
    line = {
        "invoice_id": "i",
        "provider": "openai",
        "category": "Usage",
        "currency": "USD",
        "amount": Decimal(1),
        **period,
    }
    told = {
        "input": ("tokens", "Models", "USD"), "search": ("tool_fee", "Models", "USD"), "odd": (None, "Models", "USD"),
        "fee": ("request_fee", "Models", "USD"), "machine": (None, "Machines", "USD"),
        "disk": ("storage", "Disks", "USD"), "abroad": (None, "Machines", "EUR"), "gone": (None, "Machines", "USD"),
    }  # fmt: skip
    for name, (own, service, currency) in told.items():
        notes = ["line_withdrawn"] if name == "gone" else None
        about = {"line_id": name, "kind": own, "service": service, "currency": currency, "notes": notes}
        world.add("invoice_line", {**line, **about, "segment": "9" * 64, "segment_row": 1, "revision": 0})
    cell = {"cell": "9" * 32, "period": "2026-03", "against": "invoice", "unit": "USD", "provider": "openai",
            "kind": kind, **period, "attempts": 0, "lines": 2, "status": "MATCHED", "segments": ["9" * 64]}  # fmt: skip
    world.add("invoice_gap", cell)
    found = at(explain(world.lake(), "9" * 32), "lines of the bill")
    assert sorted(str(each.value).removeprefix("i/") for each in found.children) == lines
