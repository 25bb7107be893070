"""The bill of a cloud has more than models: services that serve none are one finding each, and held against nothing."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from tests.pipeline.invoice.world import FIRST, World, at


def bill(folder: Path) -> World:
    """Three lines of machines, one of disks, and one of the service that serves models, of which nobody knows what."""
    world = World(folder)
    world.call(at(12), input_uncached=1000)
    world.line("0.002", at(12, 0), tokens=1000, service="Models")
    for number, service in enumerate(("Machines", "Machines", "Machines", "Disks", "Models")):
        kind = "storage" if service == "Disks" else None
        about = {"model": None, "token_class": None, "sku": f"sku-{number}"}
        world.line("1.5", FIRST, FIRST + timedelta(days=30), kind=kind, service=service, **about)
    return world


def test_a_service_without_models_is_one_finding_with_its_lines_and_their_sum(tmp_path: Path) -> None:
    found = {
        (f.code, f.subject.get("service") or f.subject["sku"]): (f.rows, f.amount, str(f.severity))
        for f in bill(tmp_path).weighed().findings
    }
    assert found == {
        ("other_service", "Machines"): (3, Decimal("4.5"), "info"),
        ("other_service", "Disks"): (1, Decimal("1.5"), "info"),
        ("unmapped_line", "sku-4"): (1, Decimal("1.5"), "warning"),
    }


def test_what_other_services_charge_is_compared_with_nothing_and_stays_on_the_bill(tmp_path: Path) -> None:
    weighed = bill(tmp_path).weighed()
    (cell,) = [row for row in weighed.gaps if row["kind"] == "other_service"]
    assert (cell["charged"], cell["expected"], cell["status"]) == (Decimal(6), None, "NOT_COMPARED")
    assert {row["cause"]: row["amount"] for row in weighed.causes} == {"unmapped_line": Decimal("1.5")}


def test_without_the_name_of_a_service_a_line_is_told_by_its_sku(tmp_path: Path) -> None:
    world = bill(tmp_path)
    for line in world.lines:
        line["service"] = None
    codes = [finding.code for finding in world.weighed().findings]
    assert codes.count("unmapped_line") == 4
    assert "other_service" not in codes


@pytest.mark.parametrize(("provider", "code"), [("openai", "unmapped_line"), ("cloud", "other_service")])
def test_of_a_provider_that_answered_calls_of_ours_a_bill_of_unknown_lines_is_no_bill_of_other_services(
    tmp_path: Path, provider: str, code: str
) -> None:
    world = World(tmp_path)
    world.call(at(12), input_uncached=1000)
    about = {"kind": None, "model": None, "token_class": None, "service": "Something new", "provider": provider}
    world.line("9.99", FIRST, FIRST + timedelta(days=30), **about)
    told = [(finding.code, finding.amount) for finding in world.weighed().findings]
    assert (code, Decimal("9.99")) in told
