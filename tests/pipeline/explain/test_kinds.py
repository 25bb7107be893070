"""Every kind of thing that can be explained is found by its name alone, and has a tree that is plain JSON."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import polars as pl
import pytest
from tests.pipeline.explain.rooms import ALLOCATED, AUDIT, CELL_ID, WINDOW, rooms
from tests.pipeline.reconcile.conftest import DAY, PRICE_ID, SEGMENT, TENANT, World, key

from weighbridge.pipeline.explain.explain import all_kinds, cut, explain
from weighbridge.pipeline.explain.kind import Asked
from weighbridge.pipeline.lake import Lake, polars_schema
from weighbridge.pipeline.reconcile.life.status import dispute
from weighbridge.pipeline.reconcile.reconcile import reconcile
from weighbridge.pipeline.reconcile.tree.node import Node
from weighbridge.pipeline.report.period import period_of
from weighbridge.pipeline.report.report import contents
from weighbridge.pipeline.report.sheet import Column, Kind, Sheet, sheets_of
from weighbridge.pipeline.report.view import View
from weighbridge.schemas.enumerations import FindingOrigin, Severity
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.finding import Finding

LINE = {
    "invoice_id": "inv-1",
    "line_id": "line-7",
    "provider": "openai",
    "category": "Usage",
    "period_start": datetime(2026, 3, 1, tzinfo=UTC),
    "period_end": datetime(2026, 4, 1, tzinfo=UTC),
    "amount": Decimal("12.5"),
    "currency": "USD",
    "segment": SEGMENT,
    "segment_row": 6,
    "revision": 0,
}
CELL = {
    "day": DAY,
    "tenant": TENANT,
    "task": "chat",
    "model": "m-1",
    "measure": "tokens",
    "token_class": "output_visible",
    "method": "conformal",
    "rows": 300,
    "days": 28,
    "lower": 10,
    "upper": 200,
    "limit": 400,
    "day_rows": 9,
    "expected": 900,
    "observed": 1800,
    "reported": True,
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Two attempts that are priced, one of which was reported twice as large; a line, a file, a cell that stood out."""
    world = World(tmp_path_factory.mktemp("kinds"))
    for number in (1, 2):
        world.attempt(number, input_computed=900, segment_row=number)
        world.reading(number, input_uncached=900 * number, input_total=900 * number, total=900 * number)
        world.priced(number, amount=Decimal("0.0018") * number, amount_input_uncached=Decimal("0.0018") * number)
    world.prices()
    world.add("invoice_line", LINE, {**LINE, "revision": 1, "amount": Decimal(13)})
    world.add("baseline", CELL, {**CELL, "token_class": "reasoning", "reported": False})
    counted = {"rows_in": 3, "rows_out": 3, "rows_quarantined": 0, "rows_duplicate": 0, "bytes": 9, "end": "complete"}
    world.add("segment", {"segment": SEGMENT, "importer": "mapped", "name": "log.csv", "schema_version": 1, **counted})
    rooms(world)
    made = world.lake()
    reconcile(made)
    subject = {"tenant": TENANT, "task": "chat", "model": "m-1", "driver": "longer_outputs"}
    days = {"first_day": DAY, "last_day": DAY, "origin": FindingOrigin.BASELINE, "evidence": (key(1).to_hex(),)}
    found = Finding(
        code="baseline_exceeded",
        severity=Severity.WARNING,
        period="2026-03",
        subject=subject,
        rows=9,
        cure="-",
        amount=Decimal(2),
        currency="USD",
        **days,  # type: ignore[arg-type]
    )
    frame = pl.DataFrame([found.row()], schema=polars_schema("finding"))
    made.replace("finding", pl.concat([made.scan("finding").collect(), frame]), days=None)
    dispute(made, found.finding_id, by="ann", reference="CASE-1", now=datetime(2026, 4, 1, tzinfo=UTC))
    return made


def view(lake: Lake) -> View:
    return View(lake, period_of(month="2026-03", first=None, last=None, zone="UTC", held=[]))


def at(node: Node, *labels: str) -> Node:
    """The first node on a path of labels."""
    for label in labels:
        node = next(child for child in node.children if child.label == label)
    return node


def figure(lake: Lake, sheet: str, column: str, **where: object) -> str:
    """The name of one figure of the report of March."""
    for _, blocks in contents(view(lake)):
        for found in sheets_of(blocks):
            if found.name == sheet:
                return f"2026-03/{found.figure(column, **where).name}"  # type: ignore[arg-type]
    raise AssertionError(sheet)


def names(lake: Lake) -> dict[str, str]:
    """Kind -> something of that kind. A new kind needs a line here; a figure of a close is in `test_close_figure`."""
    finding = lake.scan("finding").filter(pl.col("code") == "baseline_exceeded").collect()["finding_id"].item()
    return {
        "finding": finding,
        "attempt": key(2).to_hex(),
        "segment": SEGMENT,
        "price": PRICE_ID,
        "invoice line": "inv-1/line-7",
        "engine window": WINDOW,
        "invoice cell": CELL_ID,
        "audit cell": AUDIT,
        "allocated": ALLOCATED,
        "figure of a report": figure(lake, "by_model", "tokens", model="m-1"),
    }


def test_every_kind_is_found_by_its_own_name_and_no_other(lake: Lake) -> None:
    named = names(lake)
    assert {kind.name for kind in all_kinds()} == {*named, "figure of a close"}
    for name, held in named.items():
        asked = Asked(lake, held, views=lambda _: view(lake))
        assert [kind.name for kind in all_kinds() if list(kind.find(asked))] == [name]
        tree = explain(lake, held, views=lambda _: view(lake))
        assert tree.children, name
        assert json.loads(json.dumps(tree.to_dict(), default=str))["label"] == tree.label
        for kind in all_kinds():
            assert not list(kind.find(Asked(lake, "no such thing", views=lambda _: view(lake)))), kind.name
            assert kind.title


def test_a_finding_of_baselines_leads_to_its_cell_and_to_what_became_of_it(lake: Lake) -> None:
    tree = explain(lake, names(lake)["finding"])
    cell = at(tree, "cells", "cell")
    assert (at(tree, "cells").value, cell.value, at(cell, "upper").value, at(cell, "observed").value) == (
        *(1, DAY, 200, 1800),
    )
    life = at(tree, "life")
    assert (life.value, at(life, "outstanding").value, at(life, "reference").value) == ("disputed", 2, "CASE-1")
    assert at(tree, "evidence", "attempt").value == key(1).to_hex()


def test_an_amount_leads_to_its_row_of_prices_with_origin(lake: Lake) -> None:
    report = at(explain(lake, key(2).to_hex()), "usage report of")
    assert at(report, "amount").value == Decimal("0.0036")
    assert at(report, "amount_input_uncached", "per_million").value == Decimal(2)
    assert (at(report, "price").value, at(report, "price", "origin").value) == (PRICE_ID, "a test")
    price = explain(lake, PRICE_ID[:8])
    assert at(price, "per million tokens", "cache_read text").value == Decimal("0.5")
    assert at(price, "amounts made with it").value == 2


def test_a_line_of_an_invoice_has_all_its_revisions_and_its_row(lake: Lake) -> None:
    for name in ("line-7", "inv-1/line-7"):
        tree = explain(lake, name)
        assert [(child.value, at(child, "amount").value) for child in tree.children] == [
            (1, Decimal(13)),
            (0, Decimal("12.5")),
        ]
        assert at(tree, "revision", "file", "row").value == 7


def test_a_figure_of_the_report_leads_to_the_attempts_it_is_made_of(lake: Lake) -> None:
    """900 and 1,800 tokens of one model; the largest attempt comes first."""
    tree = explain(lake, names(lake)["figure of a report"], views=lambda _: view(lake))
    assert (tree.label, tree.value) == ("figure", 2700)
    assert at(tree, "model").value == "m-1"
    assert (at(tree, "attempts").value, at(tree, "attempts", "tokens of all of them").value) == (2, 2700)
    assert at(tree, "attempts", "attempt").value == key(2).to_hex()
    assert at(tree, "made from", "reading").value == 2


def test_a_figure_of_a_finding_leads_to_the_finding(lake: Lake) -> None:
    finding = names(lake)["finding"]
    tree = explain(lake, figure(lake, "findings", "amount", finding_id=finding), views=lambda _: view(lake))
    assert (tree.value, at(tree, "finding").value) == (Decimal(2), finding)


def test_a_figure_keeps_its_name_when_other_rows_come(lake: Lake) -> None:
    """The name follows from what the row is about; rows about the same are numbered."""
    columns = (Column("model", "Model"), Column("day", "Day", Kind.DAY), Column("tokens", "Tokens", Kind.COUNT))

    def named(*rows: tuple[str, date, int]) -> list[str]:
        sheet = Sheet(name="s", title="-", columns=columns, rows=rows, sources=(), empty="-")
        return [sheet.figure("tokens", tokens=row[2]).name for row in rows]

    one, two = ("m-1", DAY, 5), ("m-2", DAY, 7)
    assert named(two, one)[::-1] == named(one, two)
    twins = named(one, ("m-1", DAY, 6), two)
    assert twins[1] == twins[0].replace("/tokens", "-2/tokens")
    assert twins[2] == named(two)[0]


def test_only_so_many_levels_are_shown(lake: Lake) -> None:
    tree = explain(lake, names(lake)["finding"])
    flat = cut(tree, 1)
    assert [child.label for child in flat.children] == [child.label for child in tree.children]
    assert at(flat, "evidence").children == (Node("further down", 1),)
    assert cut(tree, 0).children == (Node("further down", len(tree.children)),)
    assert cut(tree, 99) == tree == explain(lake, names(lake)["finding"], depth=99)


@pytest.mark.parametrize(
    "name",
    ["2026-03/by_model/00000000/tokens", "2026-03/by_model/tokens", "2031-01/by_model/total/tokens", "2026-03/x/y/z"],
)
def test_a_figure_that_is_not_there_says_what_was_looked_for(lake: Lake, name: str) -> None:
    with pytest.raises(ConfigError, match="figure of a report: MONTH/SHEET/ROW/COLUMN"):
        explain(lake, name, views=lambda month: view(lake) if month == "2026-03" else None)
