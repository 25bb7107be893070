"""What every section promises: it renders an empty month, and every number traces to a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from altair import Chart as Drawing
from altair.utils.schemapi import debug_mode
from tests.pipeline.report.conftest import World, rich

from weighbridge.pipeline.report import sections
from weighbridge.pipeline.report.report import contents
from weighbridge.pipeline.report.sheet import (
    Answer,
    Block,
    Chart,
    Figure,
    Prose,
    Section,
    Sheet,
    Steps,
    Tiles,
    sheets_of,
)
from weighbridge.pipeline.report.svg import WIDE
from weighbridge.pipeline.report.view import View
from weighbridge.schemas.discovery import declared
from weighbridge.schemas.tables import TABLES

Viewed = Callable[..., View]
SECTIONS = declared(sections, "SECTION", Section)
DIGITS = re.compile(r"\d")


def worlds() -> dict[str, World]:
    """An empty lake, the rich one, and one whose only attempt has no report."""
    single = World()
    single.attempt(1, "2026-03-01T10:00:00")
    return {"empty": World(), "single": single, "rich": rich()}


@pytest.fixture(params=["empty", "single", "rich"])
def lake(request: pytest.FixtureRequest) -> World:
    """Each of the worlds in turn."""
    return worlds()[request.param]


def figures(blocks: tuple[Block, ...]) -> Iterator[Figure]:
    """Every number in prose."""
    for block in blocks:
        if isinstance(block, Tiles):
            yield from (tile.figure for tile in block.tiles)
        for prose in proses(block):
            yield from (part for part in prose.parts if isinstance(part, Figure))


def proses(block: Block) -> list[Prose]:
    """The sentences of a block."""
    if isinstance(block, Prose):
        return [block]
    if isinstance(block, Answer):
        return [block.headline, *block.details]
    if isinstance(block, Tiles):
        return [tile.remark for tile in block.tiles]
    return list(block.steps) if isinstance(block, Steps) else []


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_renders_whatever_the_lake_holds(name: str, lake: World, march: Viewed) -> None:
    blocks = SECTIONS[name].query(march(lake))
    assert blocks
    for sheet in sheets_of(blocks):
        assert all(len(row) == len(sheet.columns) for row in sheet.rows), sheet.name
        assert sheet.total is None or len(sheet.total) == len(sheet.columns), sheet.name


@pytest.mark.parametrize("name", SECTIONS)
def test_every_sheet_names_the_tables_it_comes_from(name: str, march: Viewed) -> None:
    for sheet in sheets_of(SECTIONS[name].query(march(rich()))):
        assert set(sheet.sources) <= set(TABLES), sheet.name
        assert sheet.sources or sheet.name == "about"
        assert sheet.empty or sheet.rows
        assert re.fullmatch(r"[a-z_]{1,31}", sheet.name)


def test_numbers_in_prose_stand_in_a_sheet(lake: World, march: Viewed) -> None:
    filled = contents(march(lake))
    sheets = {sheet.name: sheet for _, blocks in filled for sheet in sheets_of(blocks)}
    seen = [figure for _, blocks in filled for figure in figures(blocks)]
    assert seen
    for figure in seen:
        rows = [*sheets[figure.sheet].rows, sheets[figure.sheet].total or ()]
        assert figure.value is None or any(figure.value in row for row in rows), figure


def test_prose_has_no_numbers_but_figures(march: Viewed) -> None:
    for section, blocks in contents(march(rich())):
        for block in blocks:
            for prose in proses(block):
                words = "".join(part for part in prose.parts if isinstance(part, str))
                assert not DIGITS.search(words), (section.anchor, words)


def test_charts_are_what_vega_lite_allows(march: Viewed) -> None:
    """Pages are drawn without asking, so it is asked here; and that makes no other picture."""
    charts = [block for _, blocks in contents(march(rich())) for block in blocks if isinstance(block, Chart)]
    for chart in charts:
        with debug_mode(False):
            unasked = chart.draw(WIDE)
        assert unasked == chart.draw(WIDE)
        Drawing.from_dict({**unasked}, validate=True)
    with pytest.raises(Exception, match="lorry"):
        Drawing.from_dict({**charts[0].draw(WIDE), "mark": "lorry"}, validate=True)


def test_charts_show_a_sheet_of_the_report(march: Viewed) -> None:
    filled = contents(march(rich()))
    names = {sheet.name for _, blocks in filled for sheet in sheets_of(blocks)}
    charts = [block for _, blocks in filled for block in blocks if isinstance(block, Chart)]
    assert {chart.sheet for chart in charts} <= names
    assert [chart.name for chart in charts] == [
        "daily_tokens",
        "daily_amount_eur",
        "daily_amount_usd",
        "gap_input",
        "gap_output",
        "classes",
    ]


def test_anchors_orders_and_sheets_are_unique(march: Viewed) -> None:
    filled = contents(march(rich()))
    orders = [section.order for section, _ in filled]
    sheets: list[Sheet] = [sheet for _, blocks in filled for sheet in sheets_of(blocks)]
    assert orders == sorted(set(orders))
    assert len({section.anchor for section, _ in filled}) == len(filled)
    assert len({sheet.name for sheet in sheets}) == len(sheets)


@pytest.mark.parametrize("name", SECTIONS)
def test_rows_come_in_one_order_whatever_order_the_lake_gives_them(name: str, march: Viewed) -> None:
    turned = rich()
    for rows in turned.put.values():
        rows.reverse()
    straight = sheets_of(SECTIONS[name].query(march(rich())))
    assert sheets_of(SECTIONS[name].query(march(turned))) == straight
