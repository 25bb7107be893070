"""Blinded sheets, and verdicts read back: nobody can tell who made what, and what people say is put to the test."""

from __future__ import annotations

import csv
import stat
import zipfile
from collections import Counter
from pathlib import Path
from random import Random

import pytest
import xlsxwriter

from weighbridge.pipeline.compare.agreement import agreement
from weighbridge.pipeline.compare.blind import Shown, blinded, place
from weighbridge.pipeline.compare.sheet import write_sheet
from weighbridge.pipeline.compare.verdicts import Verdict, judged, read_verdicts
from weighbridge.schemas.enumerations import Judgement
from weighbridge.schemas.errors import ConfigError, ContractError

KEY = bytes(range(32))
SHOWN = [Shown(f"p{at}", f"prompt {at}", f"off {at}", f"on {at}") for at in range(200)]


def places() -> dict[str, object]:
    return {each.pair: place(KEY, "run", "window", each.pair) for each in SHOWN}


def test_sides_and_order_give_nothing_away() -> None:
    items = blinded(KEY, "run", "window", SHOWN)
    sides = Counter(item.a.split()[0] for item in items)
    assert 70 < sides["on"] < 130
    assert [item.prompt for item in items] != [each.prompt for each in SHOWN]
    assert not any("window" in item.item or "p1" in item.item for item in items)
    assert len({item.item for item in items}) == 200
    assert blinded(KEY, "run", "window", SHOWN) == items
    assert blinded(bytes(32), "run", "window", SHOWN) != items, "who has not the key cannot tell"
    assert blinded(KEY, "run", "window", [Shown("p", "x", "same", "same")]) == []


def test_a_sheet_is_three_files_of_its_owner_and_runs_no_formula(tmp_path: Path) -> None:
    shown = [Shown("p", "<b>秤</b>", "=1+1", "<script>alert(1)</script>"), *SHOWN[:2]]
    paths = write_sheet(tmp_path / "sheet", blinded(KEY, "run", "window", shown))
    assert [path.name for path in paths] == ["sheet.csv", "sheet.html", "sheet.xlsx"]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in paths)
    with paths[0].open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    cells = {cell for row in rows for cell in (row["A"], row["B"])}
    assert "'=1+1" in cells
    page = paths[1].read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert page.count("<script>") == 1
    assert "http://" not in page
    assert "https://" not in page
    assert page.count('type="radio"') == 3 * 4
    assert "秤" in zipfile.ZipFile(paths[2]).read("xl/sharedStrings.xml").decode()
    with pytest.raises(ConfigError, match="not empty"):
        write_sheet(tmp_path / "sheet", blinded(KEY, "run", "window", shown))
    with pytest.raises(ConfigError, match="nothing to judge"):
        write_sheet(tmp_path / "other", [])


def said(rate: float, raters: int = 2, seed: int = 1) -> list[Verdict]:
    """Verdicts of raters who prefer the strategy at a rate, and agree mostly."""
    source = Random(seed)
    out = []
    for item in blinded(KEY, "run", "window", SHOWN):
        better = source.random() < rate
        for rater in range(raters):
            picks_on = better if source.random() < 0.9 else not better
            on_is_a = item.a.startswith("on")
            out.append(Verdict(item.item, f"r{rater}", "A" if picks_on == on_is_a else "B"))
    return out


def test_verdicts_find_their_way_back_to_the_strategy() -> None:
    good, bad, even = (judged(said(rate), places()) for rate in (0.9, 0.1, 0.5))  # type: ignore[arg-type]
    assert (good.judgement, bad.judgement, even.judgement) == (
        Judgement.NOT_WORSE, Judgement.WORSE, Judgement.UNDECIDED,
    )  # fmt: skip
    assert (good.pairs, good.raters, good.won + good.lost) == (200, 2, 400)
    assert good.won > 300
    assert good.p < 0.001 < even.p
    assert good.agreed.cohen is not None
    assert judged([*said(0.5), Verdict("ffffffffffff", "r0", "A")], places()).unknown == 1  # type: ignore[arg-type]
    assert judged(said(0.1)[:20], places()).judgement is Judgement.UNDECIDED  # type: ignore[arg-type]


def test_pairs_of_one_session_are_no_independent_verdicts() -> None:
    sessions = {each.pair: f"session {at % 5}" for at, each in enumerate(SHOWN)}
    alone, together = (judged(said(0.9), places(), clusters=held).preference for held in (None, sessions))  # type: ignore[arg-type]
    assert (alone.clusters, together.clusters, together.pairs) == (200, 5, 200)
    assert alone.mean == together.mean


def test_verdicts_are_read_from_files_and_slips_are_named(tmp_path: Path) -> None:
    first, second = tmp_path / "ann.csv", tmp_path / "bob.csv"
    first.write_text("item,prompt,A,B,verdict\nx1,?,1,2,A\nx2,?,1,2,\nx3,?,1,2,Same\n", encoding="utf-8-sig")
    second.write_text("item,verdict,rater\nx1,B,robert\n")
    assert read_verdicts([first, second]) == [
        Verdict("x1", "ann", "A"), Verdict("x3", "ann", "same"), Verdict("x1", "robert", "B"),
    ]  # fmt: skip
    for text, message in (
        ("item,verdict\nx1,left\n", "line 2: a verdict is one of A, B, same, neither"),
        ("item,verdict\nx1,A\nx1,B\n", "line 3: ann says two things of item x1"),
        ("number,verdict\n", "no columns item and verdict"),
    ):
        first.write_text(text)
        with pytest.raises(ContractError, match=message):
            read_verdicts([first])


def test_raters_of_files_called_alike_are_told_apart_or_asked_for(tmp_path: Path) -> None:
    paths = []
    for rater, word in (("ann", "A"), ("bob", "A")):
        (tmp_path / rater).mkdir()
        paths.append(tmp_path / rater / "sheet.csv")
        paths[-1].write_text(f"item,verdict\nx1,{word}\n")
    assert [each.rater for each in read_verdicts(paths)] == ["ann", "bob"]
    assert [each.rater for each in read_verdicts(paths, ["a", "b"])] == ["a", "b"]
    (tmp_path / "ann" / "sheet.tsv").write_text("item,verdict\nx1,B\n")
    alike = [paths[0], tmp_path / "ann" / "sheet.tsv"]
    with pytest.raises(ContractError, match="do not say who filled them in: name raters"):
        read_verdicts(alike)
    with pytest.raises(ContractError, match="do not say who filled them in"):
        read_verdicts([paths[0], paths[0]])
    assert len(read_verdicts(alike, ["ann", "bob"])) == 2
    for names in (["ann"], ["ann", "ann"], ["ann", " "]):
        with pytest.raises(ContractError, match="name each file's rater, each by another name"):
            read_verdicts(alike, names)
    paths[1].write_text("item,verdict,rater\nx1,B,carl\n")
    assert [each.rater for each in read_verdicts(paths)] == ["sheet", "carl"]
    (tmp_path / "ann" / "sheet.tsv").write_text("item,verdict\nx1,\n")
    assert len(read_verdicts(alike)) == 1, "a sheet nobody filled in has no rater"


def test_verdicts_are_read_from_the_workbook(tmp_path: Path) -> None:
    items = blinded(KEY, "run", "window", SHOWN[:3])
    path = tmp_path / "ann.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        page = book.add_worksheet()
        for column, name in enumerate(("item", "prompt", "A", "B", "verdict")):
            page.write(0, column, name)
        for row, (item, word) in enumerate(zip(items, ("A", "", "Neither"), strict=True), start=1):
            page.write_row(row, 0, [item.item, "<秤> & so on", "one", "two", word])
    assert read_verdicts([path]) == [Verdict(items[0].item, "ann", "A"), Verdict(items[2].item, "ann", "neither")]
    written = write_sheet(tmp_path / "sheet", items)[2]
    assert read_verdicts([written]) == [], "nobody has judged yet"
    path.write_bytes(b"no workbook")
    with pytest.raises(ContractError, match="cannot be read as a workbook"):
        read_verdicts([path])
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("xl/worksheets/sheet1.xml", '<!DOCTYPE x [<!ENTITY a "b">]><worksheet/>')
    with pytest.raises(ContractError, match="cannot be read as a workbook"):
        read_verdicts([path])


def test_agreement_is_that_of_worked_examples() -> None:
    """Cohen: 20 yes-yes, 5 and 10 apart, 15 no-no give 0.4. Fleiss: the table of his paper's worked example, 0.210."""
    pairs = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    found = agreement([{"a": one, "b": other} for one, other in pairs])
    assert found.cohen == pytest.approx(0.4)
    table = [
        (0, 0, 0, 0, 14), (0, 2, 6, 4, 2), (0, 0, 3, 5, 6), (0, 3, 9, 2, 0), (2, 2, 8, 1, 1),
        (7, 7, 0, 0, 0), (3, 2, 6, 3, 0), (2, 5, 3, 2, 2), (6, 5, 2, 1, 0), (0, 2, 2, 3, 7),
    ]  # fmt: skip
    items = [
        {str(rater): word for rater, word in enumerate(word for word, n in enumerate(row) for _ in range(n))}
        for row in table
    ]
    several = agreement([{rater: str(word) for rater, word in item.items()} for item in items])
    assert several.fleiss == pytest.approx(0.210, abs=0.0005)
    assert several.cohen is None


def test_alpha_is_that_of_krippendorffs_example_with_gaps() -> None:
    """Twelve units, four observers, some missing, nominal: 0.743 (Krippendorff, Computing alpha-reliability)."""
    rows = {
        "a": "1 2 3 3 2 1 4 1 2 . . .", "b": "1 2 3 3 2 2 4 1 2 5 . 3", "c": ". 3 3 3 2 3 4 2 2 5 1 .",
        "d": "1 2 3 3 2 4 4 1 2 5 1 .",
    }  # fmt: skip
    columns = zip(*(values.split() for values in rows.values()), strict=True)
    items = [{rater: word for rater, word in zip(rows, column, strict=True) if word != "."} for column in columns]
    found = agreement(items)
    assert found.krippendorff == pytest.approx(0.743, abs=0.0005)
    assert found.fleiss is None
    assert agreement([{"a": "A"}]) == (0, None, None, None)
    assert agreement([{"a": "A", "b": "A"}]).krippendorff is None
