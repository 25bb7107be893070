"""The page of data quality: what it says, and that nothing in it runs, is fetched, or was a value of a row."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import cast

import polars as pl
import pytest
from tests.pipeline.report.browser import found, tab
from tests.pipeline.validate.conftest import DAY, TODAY, Rows, account, clean

from weighbridge.pipeline.reconcile.life.status import acknowledge
from weighbridge.pipeline.validate.arrivals import Freshness, Volume
from weighbridge.pipeline.validate.counts import Counted
from weighbridge.pipeline.validate.measure import Measured
from weighbridge.pipeline.validate.page_tables import table_of
from weighbridge.pipeline.validate.quarantine import entries, release
from weighbridge.pipeline.validate.validate import validate

pytestmark = pytest.mark.usefixtures("by_hand")
A_DAY = timedelta(days=1)
VOID = {"meta", "br"}


class Outline(HTMLParser):
    """The tags of a page with their attributes, whether they close, and the text of each row of a table."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


def page_of(rows: Rows, path: Path) -> str:
    validate(rows.lake, today=TODAY, page=path)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page with every kind of thing on it: broken rules, warnings, notes, arrivals and rules without a verdict."""
    folder = tmp_path_factory.mktemp("page")
    rows = Rows(folder / "lake", pytest.MonkeyPatch())
    number = 0
    for back in range(20, -1, -1):
        made = (clean("attempt", number + n, DAY - back * A_DAY, arrived_at=None) for n in range(50 if back else 4))
        rows.put("attempt", *made)
        number += 50
    rows.put(
        "attempt",
        clean("attempt", 2000, queue_us=-1),
        clean("attempt", 2001, drafted=3, accepted=1, rejected=1, tenant="unassigned"),
    )
    rows.put("segment", account(rows=20 * 50 + 4 + 2))
    unread = {"rule": None, "table_name": None, "importer": "mapped"}
    rows.put(
        "quarantine",
        *(
            clean("quarantine", n, reason=r, path=f"usage.{r}") | unread
            for n, r in ((7, "type"), (7, "range"), (9, "type"))
        ),
    )
    return page_of(rows, folder / "out" / "quality.html")


def section(page: str, name: str) -> dict[str, list[str]]:
    """The rows of the tables of one section, by their first cell."""
    (text,) = re.findall(rf'<section id="{name}".*?</section>', page, re.DOTALL)
    return {row[0]: row for row in Outline(text).rows if row}


def test_every_tag_closes_and_every_reference_leads_somewhere(page: str) -> None:
    outline = Outline(page)
    assert outline.open == []
    ids = [attributes["id"] for _, attributes in outline.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = {attributes["href"].removeprefix("#") for tag, attributes in outline.tags if tag == "a"}
    named = {attributes["aria-labelledby"] for _, attributes in outline.tags if "aria-labelledby" in attributes}
    assert links | named <= set(ids)


def test_nothing_in_it_runs_or_is_fetched(page: str) -> None:
    outline = Outline(page)
    assert not {tag for tag, _ in outline.tags} & {"script", "link", "iframe", "object", "embed", "img", "base", "form"}
    for _, attributes in outline.tags:
        assert not {"src", "srcset", "style", "action"} & set(attributes)
        assert not any(name.startswith("on") for name in attributes)
        assert attributes.get("href", "#").startswith("#")
    assert not re.search(r"https?:|url\(|@import", page)


def test_the_policy_allows_its_own_style_and_nothing_else(page: str) -> None:
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (policy,) = [a["content"] for tag, a in Outline(page).tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def test_a_reader_of_any_kind_can_use_it(page: str) -> None:
    outline = Outline(page)
    tags = [tag for tag, _ in outline.tags]
    assert ("html", {"lang": "en"}) in outline.tags
    assert tags.count("h1") == tags.count("main") == 1
    assert tags.count("caption") == tags.count("table") > 3
    assert all(a.get("scope") in {"col", "row"} for tag, a in outline.tags if tag == "th")
    regions = [a for tag, a in outline.tags if a.get("role") == "region"]
    assert all({"aria-labelledby", "tabindex"} <= set(region) for region in regions)
    assert len(regions) == tags.count("table")


def test_the_gate_is_the_first_thing_it_says(page: str) -> None:
    assert "The gate is shut: 1 critical rule does not hold." in page
    main = page[page.index("<main>") :]
    assert main.index("The gate is shut") < main.index("What does not hold") < main.index("What was not checked")
    assert f"attempt.queue_us is at least 0: not so for 1 row on {DAY}" in page


def test_counts_per_day_of_each_rule(page: str) -> None:
    """The last 10 days have a column each; those before are added up in one."""
    rows = section(page, "attempt")
    days = [f"{DAY - back * A_DAY:%m-%d}" for back in range(9, -1, -1)]
    assert rows["Rule"] == ["Rule", "Gravity", "before", *days, "Total"]
    assert rows["drafted = accepted + rejected"] == ["drafted = accepted + rejected", "warning", *["0"] * 10, "1", "1"]
    assert rows["queue_us is at least 0"] == ["queue_us is at least 0", "critical", *["0"] * 10, "1", "1"]
    assert rows["tenant is assigned"][-2:] == ["1", "1"]
    assert rows["62 columns with a least value"][-2:] == ["1", "1"]
    assert rows["Rows looked at"][2:] == ["550", *["50"] * 9, "6", "1,006"]


def test_what_arrived_stands_beside_its_limits(page: str) -> None:
    rows = section(page, "attempt")
    assert rows["name"] == ["name", *["50"] * 9, "6", "15 to 85", str(DAY), "1", "2"]
    broken = [row for row in Outline(page).rows if "volume_low" in "".join(row)]
    assert broken[0][4:6] == ["6 rows", "15"]


def test_what_is_in_quarantine_is_told_by_reason(page: str) -> None:
    """Why, reason, table and rule, importer, records, files, days."""
    (text,) = re.findall(r'<section id="held".*?</section>', page, re.DOTALL)
    _, *rows = (row for row in Outline(text).rows if row)
    assert rows == [
        ["could not be read", "type", "", "mapped", "2", "1", "1"],
        ["could not be read", "range", "", "mapped", "1", "1", "1"],
        ["breaks a rule", "contract", "attemptidentity.drafted", "segment", "1", "1", "1"],
        ["breaks a rule", "contract", "attemptminimum.queue_us", "segment", "1", "1", "1"],
    ]
    assert "3 records of these days could not be read, and count nowhere" in page


def test_what_was_not_checked_is_there_with_the_reason(page: str) -> None:
    rows = [row for row in Outline(page).rows if row]
    assert any("child" in row[0] and row[1:] == ["the table", "it has no rows"] for row in rows)
    assert ["attempt", "identity.forward"] in [row[:2] for row in rows]
    assert any(row[:2] == ["attempt", "volume"] for row in rows)


def test_the_same_lake_gives_the_same_bytes(rows: Rows, tmp_path: Path) -> None:
    rows.attempts(clean("attempt", 1, queue_us=-1))
    first = page_of(rows, tmp_path / "a.html")
    validate(rows.lake, today=TODAY, page=tmp_path / "b.html")
    again = page_of(rows, tmp_path / "b.html")
    assert again == page_of(rows, tmp_path / "c.html")
    assert "The gate is shut" in first
    assert sorted(path.name for path in tmp_path.glob("*.html")) == ["a.html", "b.html", "c.html"]
    assert list(tmp_path.glob(".*")) == [], "no draft is left"


def test_an_open_gate_says_so(rows: Rows, tmp_path: Path) -> None:
    empty = page_of(rows, tmp_path / "empty.html")
    assert "There was nothing to check." in empty
    assert "No rule was judged" in empty
    rows.attempts(clean("attempt", 1))
    assert "The gate is open: every rule holds that could be checked." in page_of(rows, tmp_path / "clean.html")
    rows.put("attempt", clean("attempt", 2, drafted=1, accepted=2, rejected=0))
    rows.lake.replace("segment", rows.lake.scan("segment").collect().with_columns(rows_in=2, rows_out=2), days=None)
    assert "The gate is open; 1 finding to look at." in page_of(rows, tmp_path / "warned.html")


def test_a_decision_opens_the_gate_and_is_told(rows: Rows, tmp_path: Path) -> None:
    """Released rows are counted, and what is acknowledged is no finding to look at."""
    rows.attempts(clean("attempt", 1, queue_us=-1), clean("attempt", 2, drafted=1, accepted=2, rejected=0))
    shut = page_of(rows, tmp_path / "shut.html")
    assert "It opens when these rows are mended" in shut
    now = datetime(2026, 1, 6, 9, tzinfo=UTC)
    chosen = entries(rows.lake, where=pl.col("rule") == "minimum.queue_us")
    release(rows.lake, chosen, by="ann", reason="a clock went back", now=now)
    told = page_of(rows, tmp_path / "released.html")
    assert "The gate is open; 1 finding to look at." in told
    assert "0 could not be read; 1 row more may stand" in told
    (finding,) = rows.lake.scan("finding").collect()["finding_id"]
    acknowledge(rows.lake, finding, by="ann", now=now)
    rested = page_of(rows, tmp_path / "rested.html")
    assert "The gate is open: what does not hold rests by a decision." in rested
    assert "It opens when these rows are mended" not in rested


def test_a_day_on_which_nothing_arrived_shows_who_is_missed(rows: Rows, tmp_path: Path) -> None:
    for back in range(15):
        made = (clean("attempt", back * 50 + n, DAY - back * A_DAY, arrived_at=None) for n in range(50))
        rows.put("attempt", *made)
    rows.put("segment", account(rows=15 * 50))
    path = tmp_path / "empty-day.html"
    validate(rows.lake, today=TODAY + 2 * A_DAY, days=[TODAY], page=path)
    told = section(path.read_text(encoding="utf-8"), "attempt")
    assert told["name"] == ["name", "0", "15 to 85", str(DAY), "3", "2"]
    assert told["Rows looked at"][-1] == "0"


def test_a_limit_that_is_not_known_is_no_zero(rows: Rows, tmp_path: Path) -> None:
    """Of a day that is not over only the upper limit is known."""
    for back in range(15):
        made = (clean("attempt", back * 50 + n, DAY - back * A_DAY, arrived_at=None) for n in range(50))
        rows.put("attempt", *made)
    rows.put("segment", account(rows=15 * 50))
    path = tmp_path / "today.html"
    validate(rows.lake, today=DAY, page=path)
    assert section(path.read_text(encoding="utf-8"), "attempt")["name"][-4] == "up to 85"


def test_a_row_of_a_day_still_to_come_hides_no_limits() -> None:
    usual = Volume("name", DAY, 50, 15, 85, 20, 4 / 21)
    found = Measured("attempt", (), {DAY: Counted(50), DAY + 2 * A_DAY: Counted(1)})
    found.volumes = [usual, Volume("name", DAY + 2 * A_DAY, 1, ahead=2)]
    found.freshnesses = [Freshness("name", DAY, 0, 2, ended=False)]
    (row,) = cast("list[dict[str, object]]", table_of(found)["arrivals"])
    assert (row["cells"], row["limits"]) == ([("50", ""), ("1", "warn")], "15 to 85")


@pytest.mark.browser
def test_a_browser_shows_it_and_asks_for_nothing(page: str, tmp_path: Path) -> None:
    browser = found()
    if browser is None:
        pytest.skip("there is no Chromium on this machine")
    path = tmp_path / "shown.html"
    path.write_text(page, encoding="utf-8")
    with tab(browser, tmp_path / "profile") as shown:
        for width in (1280, 390):
            shown.size(width)
            shown.open(path)
            asked = [
                e["params"]["request"]["url"] for e in shown.events if e.get("method") == "Network.requestWillBeSent"
            ]
            assert [url for url in asked if not url.startswith("file:")] == []
            assert [e for e in shown.events if e.get("method") in {"Log.entryAdded", "Runtime.exceptionThrown"}] == []
            # Wide tables scroll in their own box; the page itself never does sideways.
            assert shown.ask("document.documentElement.scrollWidth <= window.innerWidth")
            assert shown.ask("getComputedStyle(document.querySelector('.answer')).borderLeftWidth") == "5px"
