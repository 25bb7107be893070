"""Cost pages that name no organization: a later fetch is a revision, another organization's bill is refused."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import cast

import polars as pl
import pytest
from tests.pipeline.ingest.bill_samples import as_json, cost, costs

from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.errors import ContractError

Take = Callable[..., IngestResult]
DAY = 86_400
APRIL = 1_775_001_600


def page(folder: Path, name: str, *days: tuple[str, ...]) -> Path:
    """A page of some days, each with its line items' amounts, and nobody's name."""
    items = ("gpt-4o, input", "gpt-4o, output", "web search")
    data: list[object] = []
    for number, amounts in enumerate(days):
        results = [cost(paid, project_id=None, line_item=item) for paid, item in zip(amounts, items, strict=False)]
        (bucket,) = cast("list[object]", costs(*results, start=APRIL + number * DAY)["data"])
        data.append(bucket)
    path = folder / f"{name}.json"
    path.write_text(as_json({"object": "page", "data": data, "has_more": False}), encoding="utf-8")
    return path


def sums(lake: Lake) -> list[str]:
    """For each account the sum of the last revisions of its lines."""
    rows = lake.scan("invoice_line").sort("revision").collect()
    last = rows.unique(["invoice_id", "line_id"], keep="last", maintain_order=True)
    told = last.group_by("account").agg(pl.col("amount").sum()).sort("amount")
    return [f"{total.normalize():f}" for total in told["amount"]]


def test_a_later_fetch_repeats_what_was_over(lake: Lake, take: Take, tmp_path: Path) -> None:
    """The newest day grew, a day that was over was corrected, and there is one day more."""
    take([page(tmp_path, "first", ("1", "2"), ("3", "4"), ("5", "6"))], lake)
    take([page(tmp_path, "later", ("1", "2"), ("3", "4.5"), ("7", "8"), ("9",))], lake)
    assert sums(lake) == ["34.5"]


@pytest.mark.parametrize(
    "other",
    [(("1.1", "2.2"), ("3.3", "4.4"), ("50", "60")), (("1.1",), ("3.3", "4.1", "9")), (("7",),)],
    ids=["every day", "some days", "one line"],
)
def test_the_bill_of_another_organization_is_refused(
    lake: Lake, take: Take, tmp_path: Path, other: tuple[tuple[str, ...], ...]
) -> None:
    """What was over comes to something else throughout; said whose it is, both are there; nothing is written before."""
    take([page(tmp_path, "first", ("1", "2"), ("3", "4"), ("5", "6"))], lake)
    strange = page(tmp_path, "other", *other)
    before = lake.digests()
    with pytest.raises(ContractError, match=r"other.json charges the same .* --account NAME.*--revision"):
        take([strange], lake)
    assert lake.digests() == before
    take([strange], lake, account="second")
    whole = sum((Decimal(paid) for day in other for paid in day), Decimal(0))
    assert sorted(sums(lake)) == sorted(["21", f"{whole.normalize():f}"])


def test_days_that_are_not_over_only_grow(lake: Lake, take: Take, tmp_path: Path) -> None:
    """Of a single day that may still have been open, what has become less is somebody else's."""
    take([page(tmp_path, "first", ("1", "2"))], lake)
    take([page(tmp_path, "later", ("1.5", "2"))], lake)
    with pytest.raises(ContractError, match="names no organization"):
        take([page(tmp_path, "other", ("9", "1"))], lake)
    assert sums(lake) == ["3.5"]


def test_a_correction_of_all_lines_can_be_said(lake: Lake, take: Take, tmp_path: Path) -> None:
    """The provider charged a month anew."""
    take([page(tmp_path, "first", ("1", "2"), ("3", "4"))], lake)
    anew = page(tmp_path, "anew", ("2", "1"), ("4", "3"))
    take([anew], lake, revision=True)
    assert sums(lake) == ["10"]


def test_two_files_of_one_call_are_held_against_each_other(lake: Lake, take: Take, tmp_path: Path) -> None:
    """Neither was taken in before."""
    files = [page(tmp_path, "a", ("1", "2"), ("3",)), page(tmp_path, "b", ("4", "5"), ("6",))]
    with pytest.raises(ContractError, match=r"b\.json"):
        take(files, lake)
    assert lake.rows("invoice_line") == 0
    same = page(tmp_path, "c", ("1", "2"), ("3",), ("1",))
    take([files[0], same], lake)
    assert sums(lake) == ["7"]


def test_pages_by_project_need_no_name(lake: Lake, take: Take, tmp_path: Path) -> None:
    """A project is of one organization, so its lines are others."""
    for name, paid in (("proj_a", "1"), ("proj_b", "2")):
        path = tmp_path / f"{name}.json"
        path.write_text(as_json(costs(cost(paid, project_id=name))), encoding="utf-8")
        take([path], lake)
    assert sums(lake) == ["3"]
