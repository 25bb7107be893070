"""The report in a real browser: nothing is fetched, nothing complains, nothing hangs over the edge, all can be read."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.pipeline.report.browser import Tab, found, tab
from tests.pipeline.report.conftest import QWEN, rich

from weighbridge.pipeline.report.report import write_report

pytestmark = pytest.mark.browser
HUGE = 2**62
WIDTHS = (320, 360, 768, 1280)

# Elements outside any scrolling box that reach beyond the window, by how they are called.
OVERHANGING = """
[...document.querySelectorAll('body *')]
  .filter(e => !e.closest('.box') && !e.closest('svg') && !e.classList.contains('skip'))
  .filter(e => e.getBoundingClientRect().right > innerWidth + 1)
  .map(e => e.tagName + '.' + e.className)
"""
# Text whose colour is too close to what is behind it: contrast below 4.5, or 3 where it is large (WCAG 2, AA).
FAINT = """
(() => {
  const channel = v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = c => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
  const parts = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const behind = e => {
    for (; e; e = e.parentElement) {
      const c = parts(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] > 0.99) return c;
    }
    return [255, 255, 255];
  };
  const found = new Set();
  for (const e of document.querySelectorAll('body *')) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !e.getClientRects().length) continue;
    const style = getComputedStyle(e);
    const ink = parts(e.closest('svg') ? style.fill : style.color);
    const pair = [light(ink), light(behind(e))].sort((a, b) => b - a);
    const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5)) found.add(`${e.tagName}.${e.getAttribute('class')} ${ratio.toFixed(2)}`);
  }
  return [...found];
})()
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with everything that is hard to set: long names, Chinese, huge counts, thirty tasks, no unit."""
    world = rich()
    for number in range(100, 130):
        world.attempt(number, "2026-03-20T10:00:00", task=f"{number}-{'long-task-name-' * 6}", model_served=QWEN * 2)
        world.reading(number, "2026-03-20", HUGE, 7, input_uncached=HUGE, output_visible=7, model="通义千问" * 20)
        world.price(number, "2026-03-20", "12345678901234567.890123456789012345")
    return write_report(world, month="2026-03", out=tmp_path_factory.mktemp("browser"), simulated=True).html


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """A tab of headless Chromium."""
    path = found()
    if path is None:
        pytest.skip("no Chromium on this machine; install the package chromium to run this test")
    with tab(path, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def opened(browser: Tab, page: Path) -> Tab:
    """The page, loaded afresh at the width of a desk."""
    browser.size(1280)
    browser.open(page)
    return browser


def test_no_request_leaves_and_nothing_complains(opened: Tab, page: Path) -> None:
    opened.ask("document.documentElement.getBoundingClientRect().height")
    requests = [event["params"]["request"]["url"] for event in opened.events if "request" in event.get("params", {})]
    assert requests == [page.as_uri()]
    complaints = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Network.loadingFailed")
    assert [event for event in opened.events if event.get("method") in complaints] == []


def test_the_style_applies_under_its_policy(opened: Tab) -> None:
    assert opened.ask("getComputedStyle(document.querySelector('.tiles')).display") == "grid"
    assert opened.ask("getComputedStyle(document.querySelector('h1')).fontFamily.includes('Georgia')") is True


def test_the_policy_would_stop_a_script(opened: Tab) -> None:
    opened.ask(
        "document.body.appendChild(Object.assign(document.createElement('script'), {text: 'window.ran = 1'}))&&0"
    )
    opened.ask("document.body.appendChild(Object.assign(document.createElement('img'), {src: 'x.png'}))&&0")
    assert opened.ask("window.ran === undefined") is True
    blocked = [event["params"]["entry"]["text"] for event in opened.events if event.get("method") == "Log.entryAdded"]
    assert any("Content Security Policy" in text for text in blocked)


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_hangs_over_the_edge(opened: Tab, width: int) -> None:
    opened.size(width)
    assert opened.ask("document.documentElement.scrollWidth") <= width
    assert opened.ask(OVERHANGING) == []


def test_wide_tables_scroll_inside_their_own_box(opened: Tab) -> None:
    opened.size(360)
    scrolling = "[...document.querySelectorAll('.box')].filter(b => b.scrollWidth > b.clientWidth)"
    assert opened.ask(f"{scrolling}.length") > 10
    assert opened.ask(f"{scrolling}.every(b => getComputedStyle(b).overflowX === 'auto' && b.tabIndex === 0)") is True


def test_one_picture_of_two_is_shown_and_is_as_wide_as_its_place(opened: Tab) -> None:
    shown = "[...document.querySelectorAll('figure > svg')].filter(s => s.getClientRects().length)"
    for width, kind in ((360, "narrow"), (1280, "wide")):
        opened.size(width)
        assert opened.ask(f"{shown}.map(s => s.getAttribute('class'))") == [kind] * 6


def test_all_text_stands_out_from_what_is_behind_it(opened: Tab) -> None:
    assert opened.ask(FAINT) == []


def test_the_check_of_contrast_can_fail(opened: Tab) -> None:
    opened.ask("document.querySelector('h1').style.setProperty('color', '#bbb')")
    assert opened.ask(FAINT) == ["H1.null 1.92"]


def test_on_paper_it_is_a4_and_no_table_is_cut_off(opened: Tab) -> None:
    opened.call("Emulation.setEmulatedMedia", media="print")
    opened.size(688)  # the width between the margins of A4, in CSS pixels
    assert opened.ask("[...document.querySelectorAll('.box')].every(b => getComputedStyle(b).overflowX === 'visible')")
    assert opened.ask("getComputedStyle(document.querySelector('thead')).display") == "table-header-group"
    assert opened.ask("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert opened.ask("document.documentElement.scrollWidth") <= 688
    opened.call("Emulation.setEmulatedMedia", media="")
    paper = base64.b64decode(opened.call("Page.printToPDF", preferCSSPageSize=True)["data"])
    boxes = set(re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", paper))
    assert {(round(float(wide)), round(float(high))) for wide, high in boxes} == {(595, 842)}
    assert 5 < len(re.findall(rb"/Type\s*/Page\b", paper)) < 40
