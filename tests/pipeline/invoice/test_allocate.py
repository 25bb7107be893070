"""Who bears what: rules, shared costs and own machines, worked out by hand, to the cent."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from tests.pipeline.invoice.world import FIRST, LATER, MONTH, World, at

from weighbridge.pipeline.invoice.accrual import accruals
from weighbridge.pipeline.invoice.allocate import allocate
from weighbridge.pipeline.invoice.allocation import load_allocation
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import pseudonym

KEY = bytes(range(32))
FILE = """
[[rules]]
team = "search"
tenant = ["acme"]
[[rules]]
team = "ads"
task = "banner"
[[shared]]
name = "platform"
amount = "100.00"
currency = "USD"
by = "tokens"
[[shared]]
name = "desk"
amount = "1.00"
currency = "USD"
by = "fixed"
shares = { search = "1", ads = "2" }
[[machines]]
name = "cluster"
framework = "vllm"
currency = "EUR"
gpus = 2
gpu_hour = "1.00"
prefill_weight = "1"
decode_weight = "4"
tokens_per_gpu_hour = "10"
"""


def world(folder: Path) -> Lake:
    made = World(folder)
    own = {"tenant": pseudonym(KEY, "tenant", "acme")}
    computed = {"framework": "vllm", "prefill_computed": 600, "output_computed": 300}
    made.call(at(12), input_uncached=3000, attempt={**own, **computed})
    made.call(at(13), input_uncached=2000, attempt={"task": "banner", "framework": "vllm", "prefill_computed": 1800})
    made.call(at(14), input_uncached=1000)
    return made.lake()


def test_a_month_goes_to_teams_to_the_cent(tmp_path: Path) -> None:
    """Two machines of 720 hours cost 1,440; of 14,400 weighted tokens they can compute 3,600 were: a quarter."""
    path = tmp_path / "a.toml"
    path.write_text(FILE, encoding="utf-8")
    lake = world(tmp_path)
    done = allocate(lake, load_allocation(path), MONTH, KEY)
    told = {(row["pool"], row["team"], row["allocated_as"]): (row["tokens"], row["amount"]) for row in done.rows}
    assert told == {
        ("usage", "search", "direct"): (3000, Decimal("0.006")),
        ("usage", "ads", "direct"): (2000, Decimal("0.004")),
        ("usage", "unassigned", "unassigned"): (1000, Decimal("0.002")),
        ("platform", "search", "shared"): (0, Decimal("50.00")),
        ("platform", "ads", "shared"): (0, Decimal("33.33")),
        ("platform", "unassigned", "unassigned"): (0, Decimal("16.67")),
        ("desk", "search", "shared"): (0, Decimal("0.33")),
        ("desk", "ads", "shared"): (0, Decimal("0.67")),
        ("cluster", "search", "direct"): (900, Decimal("180.00")),
        ("cluster", "ads", "direct"): (1800, Decimal("180.00")),
        ("cluster", "idle", "idle"): (0, Decimal("1080.00")),
    }
    assert {row["basis"] for row in done.rows if row["pool"] == "cluster"} == {"computed"}
    version = lake.version("allocated")
    allocate(lake, load_allocation(path), MONTH, KEY)
    assert lake.version("allocated") == version


def test_a_cost_that_is_not_known_divides_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(FILE.replace('by = "tokens"', 'by = "cost"'), encoding="utf-8")
    made = World(tmp_path)
    made.call(at(12), input_uncached=5, model="nobody-knows")
    rows = allocate(made.lake(), load_allocation(path), MONTH, KEY).rows
    assert [(row["team"], row["amount"]) for row in rows if row["pool"] == "platform"] == [("unassigned", Decimal(100))]
    assert [row["amount"] for row in rows if row["pool"] == "usage"] == [None]


@pytest.mark.parametrize(
    ("was", "becomes", "match"),
    [
        ('tenant = ["acme"]', "", "would take everything"),
        ('tenant = ["acme"]', 'tenat = "acme"', "did you mean tenant"),
        ('by = "fixed"\n', 'by = "tokens"\n', "goes with by"),
        ('framework = "vllm"', 'framework = "vllm"\nsource = "a"', "either framework or source"),
        ("gpus = 2", "gpus = 0", "whole number from 1 up"),
        ('name = "desk"', 'name = "platform"', "name of two"),
        ('amount = "1.00"', "amount = 1", "number in quotes"),
    ],
)
def test_an_allocation_that_cannot_be_used_says_what_is_allowed(
    tmp_path: Path, was: str, becomes: str, match: str
) -> None:
    path = tmp_path / "a.toml"
    path.write_text(FILE.replace(was, becomes, 1), encoding="utf-8")
    with pytest.raises(ConfigError, match=match):
        load_allocation(path)


def test_what_is_used_and_on_no_bill_yet_is_accrued(tmp_path: Path) -> None:
    """0.006 of the 12th is on a line; 0.004 of the 13th is not."""
    made = World(tmp_path)
    made.call(at(12), input_uncached=3000)
    made.call(at(13), input_uncached=2000)
    made.line("0.006", at(12, 0), tokens=3000)
    made.line("-1", FIRST, kind="credit", category="Credit", model=None, token_class=None)
    lake, _ = made.reconcile(now=at(14))
    (told,) = accruals(lake, {}, at(14))
    assert (told.period, told.provider, told.currency) == (MONTH, "openai", "USD")
    assert (told.expected, told.invoiced, told.accrued, told.other) == (
        Decimal("0.010"),
        Decimal("0.006"),
        Decimal("0.004"),
        Decimal(-1),
    )
    assert accruals(lake, {}, LATER)[-1].period == MONTH


def test_a_month_without_any_bill_is_accrued_as_a_whole(tmp_path: Path) -> None:
    made = World(tmp_path)
    made.call(at(12), input_uncached=3000)
    (told,) = accruals(made.lake(), {}, at(20))
    assert (told.period, told.expected, told.invoiced, told.accrued) == (
        MONTH,
        Decimal("0.006"),
        Decimal(0),
        Decimal("0.006"),
    )
