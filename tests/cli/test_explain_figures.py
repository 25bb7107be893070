"""Every figure of the monthly page has a name that `explain` takes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.cli.conftest import Terminal as Run


def figures(page: str) -> dict[str, str]:
    """Name -> what the page shows there, of the cells and of the figures in sentences."""
    found = re.findall(r'<(?:td|data)[^>]*title="(2026-01/[^"]+)"[^>]*>(.*?)</(?:td|data)>', page)
    return {name: re.sub(r"<[^>]+>|[ ,]", "", shown) for name, shown in found}


def at(tree: dict[str, Any], label: str) -> dict[str, Any]:
    return next(child for child in tree["children"] if child["label"] == label)


def test_figures_of_the_page_are_explained(weighbridge: Run, weighed: Path, tmp_path: Path) -> None:
    assert weighbridge("report", "--month", "2026-01", "--out", tmp_path, "--config", weighed).code == 0
    found = figures((tmp_path / "weighbridge-2026-01.html").read_text(encoding="utf-8"))
    assert len(found) > 100
    counts = {name: shown for name, shown in found.items() if shown.isdecimal()}
    for name in sorted(counts)[:: len(counts) // 6]:
        tree = weighbridge("explain", name, "--config", weighed, "--depth", "2", "--json").json
        assert (tree["label"], tree["value"]) == ("figure", int(counts[name])), name
        assert at(tree, "sheet")["value"]
    name = next(name for name in sorted(counts) if name.startswith("2026-01/by_model/") and name.endswith("/tokens"))
    shown = weighbridge("explain", name, "--config", weighed)
    assert shown.code == 0
    assert "usage report of" in shown.out
    assert "digest" in shown.out


def test_a_range_of_days_and_the_shared_edition_name_no_figures(
    weighbridge: Run, weighed: Path, tmp_path: Path
) -> None:
    options = ["--since", "2026-01-02", "--until", "2026-01-04", "--out", tmp_path, "--config", weighed]
    assert weighbridge("report", *options).code == 0
    (page,) = tmp_path.glob("*.html")
    assert 'title="' not in page.read_text(encoding="utf-8").partition("<body")[2]
