"""How far the report can be trusted, and the checks it makes on itself."""

from __future__ import annotations

from collections.abc import Callable

from tests.pipeline.report.conftest import FILE_A, QWEN, World

from weighbridge.pipeline.report.query import quality
from weighbridge.pipeline.report.query.checks import checks
from weighbridge.pipeline.report.view import View
from weighbridge.schemas.lattice import REPORTED_CLASSES

Viewed = Callable[..., View]


def test_coverage_counts_attempts(world: World, march: Viewed) -> None:
    sheet = quality.coverage(march(world))
    assert set(sheet.cells("of")) == {9}
    assert dict(zip(sheet.cells("measure"), sheet.cells("attempts"), strict=True)) == {
        "with_attempt_record": 8,  # all but 6
        "report_only": 1,  # 6
        "with_usage": 7,  # all but 4 and 9
        "with_readable_usage": 6,  # 10 contradicts itself
        "usage_missing": 1,  # 4
        "several_reports": 1,  # 2
        "with_engine_counts": 6,  # 1, 2, 4, 5, 7, 10
        "with_recount": 1,  # 3
        "compared": 6,
        "not_compared": 3,
        "not_reconciled": 0,
        "priced": 5,
        "without_price": 2,  # 5 and 10
        "undated": 1,  # 9
        "task_unassigned": 2,  # 6 and 9
        "route_unassigned": 1,
        "tenant_unassigned": 1,
    }


def test_verdicts_by_provider(world: World, march: Viewed) -> None:
    sheet = quality.verdicts(march(world))
    assert [row[:6] for row in sheet.rows] == [
        ("openai", 5, 4, 0, 1, 0),
        ("anthropic", 1, 1, 0, 0, 0),
        ("google", 1, 0, 1, 0, 0),
        ("vllm", 1, 1, 0, 0, 0),
    ]
    assert sheet.total is not None
    assert sheet.total[:6] == ("All", 8, 6, 1, 1, 0)


def test_usage_without_a_price_says_why(world: World, march: Viewed) -> None:
    assert quality.price_statuses(march(world)).rows == (
        ("contradictory", "openai", "gpt-4.1-mini", 1),
        ("no_price", "vllm", QWEN, 1),
    )


def test_flags_quarantine_and_losses_of_the_month_only(world: World, march: Viewed) -> None:
    view = march(world)
    assert quality.flags(view).rows == (("total_mismatch", "openai", 1),)
    assert quality.quarantine(view).rows == (("fraction", "mapped", 2, 1),)
    assert quality.gap_records(view).rows == (("buffer_full", "gpu-1", 1, 5, None),)


def test_files_behind_the_month_and_a_record_that_is_not_accounted_for(world: World, march: Viewed) -> None:
    sheet = quality.segments(march(world))
    lost = dict(zip(sheet.cells("name"), sheet.cells("rows_lost"), strict=True))
    assert lost == {"gpu-1-000001.segment": 0, "答案 <b>.jsonl": 0, "import.csv": 1}
    assert sheet.foot("rows_in").value == 21


def test_the_report_checks_its_own_sums(world: World, march: Viewed) -> None:
    sheet = checks(march(world))
    outcome = dict(zip(sheet.cells("check"), sheet.cells("outcome"), strict=True))
    assert outcome.pop("records in = stored + quarantined + held already") == "differs"
    assert set(outcome.values()) == {"holds"}
    assert len(outcome) == 8


def test_a_check_fails_where_tables_do_not_agree(world: World, march: Viewed) -> None:
    world.put["gap_cause"][0]["tokens"] += 1
    world.price(1, "2026-03-01", "0.5", report=1, amounts=dict.fromkeys(map(str, REPORTED_CLASSES), "0.1"))
    sheet = checks(march(world))
    failing = {name for name, end in zip(sheet.cells("check"), sheet.cells("outcome"), strict=True) if end == "differs"}
    assert failing == {
        "records in = stored + quarantined + held already",
        "input: observed + causes + residual = reported",
        "USD: amount = the amounts of its classes",
    }


def test_a_check_that_has_one_side_only_is_not_possible(bare: World, march: Viewed) -> None:
    bare.file(FILE_A, "x.jsonl", (1, 1, 0, 0))
    bare.reading(1, "2026-03-01", 10, 5, input_uncached=10, output_visible=5)
    sheet = checks(march(bare))
    row = sheet.row(check="input: reported by readings = reported in the reconciliation")
    assert row is not None
    assert row[1:] == (None, None, None, "not possible")
