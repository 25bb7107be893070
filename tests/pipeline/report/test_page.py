"""The page: nothing in it runs or is fetched, everything from the data is text, and a reader of any kind can use it."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from tests.pipeline.report.conftest import World, rich

from weighbridge.pipeline.report.report import ReportFiles, write_report
from weighbridge.schemas.enumerations import Severity

Written = Callable[..., ReportFiles]
Tag = tuple[str, dict[str, str]]
HOSTILE = "<script>alert(1)</script>"
VOID = {"meta", "rect", "line", "path", "wbr"}


class Outline(HTMLParser):
    """The tags of a page in order, and whether they close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[Tag] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def of(self, name: str) -> list[dict[str, str]]:
        """The attributes of every tag called `name`."""
        return [attributes for tag, attributes in self.tags if tag == name]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of the rich world."""
    out: Path = tmp_path_factory.mktemp("page")
    return write_report(rich(), month="2026-03", out=out).html.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def outline(page: str) -> Outline:
    """Its tags."""
    return Outline(page)


def test_every_tag_closes(outline: Outline) -> None:
    assert outline.open == []


def test_nothing_in_it_runs_or_is_fetched(page: str, outline: Outline) -> None:
    assert {tag for tag, _ in outline.tags} & {
        "script",
        "link",
        "iframe",
        "object",
        "embed",
        "img",
        "base",
        "form",
    } == set()
    for tag, attributes in outline.tags:
        assert not [name for name in attributes if name.startswith("on") or name in {"src", "style"}], tag
        assert attributes.get("href", "#").startswith("#"), tag
    assert set(re.findall(r"url\(([^)]*)\)", page)) <= set(re.findall(r"url\((#[^)]*)\)", page))
    assert "@import" not in page
    visible = re.sub(r"<[^>]*>", "", page.split("</style>")[1])
    assert page.count("https://") == visible.count("https://") == 2  # the origin of each price row, as text


def test_the_policy_allows_this_style_and_nothing_else(page: str, outline: Outline) -> None:
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert style is not None
    digest = b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    policy = next(meta["content"] for meta in outline.of("meta") if meta.get("http-equiv"))
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def test_links_and_labels_lead_somewhere_and_ids_are_unique(outline: Outline) -> None:
    ids = [attributes["id"] for _, attributes in outline.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    named = [name for _, attributes in outline.tags for name in attributes.get("aria-labelledby", "").split()]
    linked = [attributes["href"][1:] for attributes in outline.of("a")]
    assert set(named) | set(linked) <= set(ids)
    assert len(linked) == 15


def test_it_can_be_read_out(outline: Outline) -> None:
    assert outline.of("html") == [{"lang": "en"}]
    levels = [int(tag[1]) for tag, _ in outline.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert len(outline.of("table")) == len(outline.of("caption")) > 20
    assert {head.get("scope") for head in outline.of("th")} == {"row", "col"}
    pictures = [svg for svg in outline.of("svg") if svg.get("role") == "img"]
    assert len(pictures) == 2 * 6
    assert len(outline.of("title")) == 1 + len(pictures)
    assert len(outline.of("desc")) == len(pictures)
    assert all("aria-hidden" in svg for svg in outline.of("svg") if svg.get("role") != "img")


def test_unknown_is_said_and_period_unit_and_zone_stand_on_the_totals(page: str) -> None:
    assert page.count('<span class="u">unknown</span>') > 20
    captions = re.findall(r"<caption.*?</caption>", page)
    assert sum("March 2026, UTC" in caption for caption in captions) >= 18
    assert "Days in UTC" in page


def test_names_from_the_data_are_text(bare: World, written: Written) -> None:
    bare.attempt(1, "2026-03-01T10:00:00", task=HOSTILE, route='"onload="x', model_served=HOSTILE, input_computed=9)
    bare.reading(1, "2026-03-01", 10, 5, model=HOSTILE, provider="</style>", input_uncached=10, output_visible=5)
    bare.compare(1, "2026-03-01", "input", 9, 10, {}, model=HOSTILE)
    bare.file("a" * 64, "<img src=x>.jsonl", (1, 1, 0, 0))
    page = written(bare, title="<b>Title</b>").html.read_text(encoding="utf-8")
    outline = Outline(page)
    assert outline.open == []
    assert not outline.of("script")
    assert not outline.of("img")
    assert not outline.of("b")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<title>&lt;b&gt;Title&lt;/b&gt;, March 2026</title>" in page


def test_a_simulated_report_says_so_at_the_top_and_on_every_sheet_of_paper(world: World, written: Written) -> None:
    page = written(world, simulated=True).html.read_text(encoding="utf-8")
    body = page.split("<body>")[1]
    assert body.index("Simulated data: every figure on this page") < body.index("<h1>")
    assert '@top-center { content: "Simulated data"' in page
    assert "Simulated data" not in written(world).html.read_text(encoding="utf-8")


def test_an_empty_month_says_what_is_not_there(bare: World, written: Written) -> None:
    page = written(bare).html.read_text(encoding="utf-8")
    assert Outline(page).open == []
    assert "Nothing was observed or reported in this period." in page
    assert "No findings for this period." in page
    assert 'role="img"' not in page


def test_words_between_backticks_are_code_and_still_text(bare: World, written: Written) -> None:
    bare.find("usage_missing", Severity.WARNING, {"provider": "x"}, cure="Set `<a>` now.")
    bare.find("usage_missing", Severity.WARNING, {"provider": "y"}, cure="A lone ` stays.")
    page = written(bare).html.read_text(encoding="utf-8")
    assert page.count("Set <code>&lt;a&gt;</code> now.") == 3  # first steps, findings, priorities
    assert page.count("A lone ` stays.") == 3


def test_a_number_of_many_digits_can_be_broken_after_its_separators_only(bare: World, written: Written) -> None:
    bare.reading(1, "2026-03-01", 2**62, 5, input_uncached=2**62, output_visible=5)
    page = written(bare).html.read_text(encoding="utf-8")
    assert "4,<wbr>611,<wbr>686,<wbr>018,<wbr>427,<wbr>387,<wbr>904</td>" in page


def test_rows_that_are_left_off_are_counted_and_added_up(bare: World, written: Written) -> None:
    for number in range(1, 15):
        bare.attempt(number, "2026-03-01T10:00:00", task=f"task-{number:02d}")
        bare.reading(number, "2026-03-01", 2**number, 0, input_uncached=2**number)
    files = written(bare)
    page = files.html.read_text(encoding="utf-8")
    assert "12 of 14 rows are shown here; the files hold all." in page
    rest = re.search(r'<tr class="rest">(.*?)</tr>', page)
    assert rest is not None
    assert re.findall(r">([^<>]+)</t[hd]>", rest[1])[:5] == ["2 more", "2", "6", "0", "6"]
    assert len(files.tables["by_task"].read_text(encoding="utf-8").splitlines()) == 15


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
def test_the_zone_is_written_where_days_are(zone: str, written: Written) -> None:
    page = written(rich(), zone=zone).html.read_text(encoding="utf-8")
    assert f"Days in {zone}" in page
    assert f"March 2026, {zone}" in page
