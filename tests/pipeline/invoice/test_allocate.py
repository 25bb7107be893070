"""Who bears what: rules, shared costs and own machines, worked out by hand, to the cent."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
from tests.pipeline.invoice.world import FIRST, LATER, MONTH, PRICES, InMemory, World, at

from weighbridge.pipeline.invoice.accrual import accruals
from weighbridge.pipeline.invoice.contract import Contract
from weighbridge.pipeline.invoice.teams.allocate import allocate, allocated
from weighbridge.pipeline.invoice.teams.allocation import load_allocation
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


KINDS = {"credit", "other_service"}
TEAMS = """
usage = "invoiced"
[[rules]]
team = "search"
tenant = ["acme"]
[[rules]]
team = "ads"
task = "banner"
"""


def invoiced(folder: Path, text: str = TEAMS, **lines: str) -> dict[tuple[str, str, str], Decimal | None]:
    """Search and ads use model m, 6 and 2 at list; ads uses half of long, the other half of which is nobody's."""
    made = World(folder, prices=PRICES.replace('models = ["m"]', 'models = ["m", "long"]'))
    own = {"tenant": pseudonym(KEY, "tenant", "acme")}
    made.call(at(12), input_uncached=3_000_000, attempt=own)
    made.call(at(13), input_uncached=1_000_000, attempt={"task": "banner"})
    made.call(at(13), input_uncached=500_000, model="long", attempt={"task": "banner"})
    made.call(at(14), input_uncached=500_000, model="long")
    made.call(at(14), input_uncached=9_000_000, status="failed", attempt={"task": "banner"})
    for model, paid in lines.items():
        about = {"model": None, "token_class": None, "kind": model} if model in KINDS else {}
        made.line(paid, FIRST, FIRST + timedelta(days=30), **{"model": model, "sku": model, **about})
    tables, _ = made.reconcile()
    path = folder / "a.toml"
    path.write_text(text, encoding="utf-8")
    rows = allocated(tables, load_allocation(path), MONTH, KEY).rows
    assert sum(Decimal(str(row["amount"])) for row in rows if row["pool"] == "invoice") == sum(
        (Decimal(paid) for paid in lines.values()), start=Decimal(0)
    )
    return {
        (str(row["pool"]), str(row["team"]), str(row["allocated_as"])): row["amount"]  # type: ignore[misc]
        for row in rows
    }


def test_a_bill_is_divided_after_discounts_and_credits(tmp_path: Path) -> None:
    """Of m half is charged: 3 and 1. A credit of 1 goes by all usage at list: 6 of 10, 3, and 1 that is nobody's."""
    assert invoiced(tmp_path, m="4", long="2", credit="-1") == {
        ("invoice", "search", "direct"): Decimal(3),
        ("invoice", "search", "shared"): Decimal("-0.6"),
        ("invoice", "ads", "direct"): Decimal(2),
        ("invoice", "ads", "shared"): Decimal("-0.3"),
        ("invoice", "unassigned", "unassigned"): Decimal("0.9"),
    }


def test_what_no_usage_divides_is_unassigned(tmp_path: Path) -> None:
    told = invoiced(tmp_path, m="8", unused="5", other_service="7")
    assert told["invoice", "unassigned", "unassigned"] == Decimal(7) + Decimal(5)


def test_a_provider_without_a_bill_stays_at_list_prices_which_are_the_default(tmp_path: Path) -> None:
    told = invoiced(tmp_path)
    assert told["usage", "search", "direct"] == 6
    (tmp_path / "b").mkdir()
    plain = invoiced(tmp_path / "b", TEAMS.replace('usage = "invoiced"\n', ""))
    assert plain == told


def test_amounts_of_more_digits_than_decimals_usually_hold_are_added_exactly(tmp_path: Path) -> None:
    """Each call costs 99,999,999,999,999,999.099999 and more: 31 digits, of which the usual context keeps 28."""
    made = World(tmp_path, prices=PRICES.replace('input = "2"', 'input = "99999.999999999999"'))
    for _ in range(3):
        made.call(at(12), input_uncached=10**18 + 1, total=10**18 + 1)
    path = tmp_path / "a.toml"
    path.write_text(TEAMS, encoding="utf-8")
    tables, _ = made.reconcile()
    (row,) = allocated(tables, load_allocation(path), MONTH, KEY).rows
    assert row["amount"] == 3 * (10**18 + 1) * Fraction("99999.999999999999") / 10**6


def test_a_cost_that_is_not_known_divides_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(FILE.replace('by = "tokens"', 'by = "cost"'), encoding="utf-8")
    made = World(tmp_path)
    made.call(at(12), input_uncached=5, model="nobody-knows")
    rows = allocated(InMemory(made.rows()), load_allocation(path), MONTH, KEY).rows
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
        ("[[rules]]", 'usage = "billed"\n[[rules]]', "allowed are reported, invoiced"),
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
    made.line("900", FIRST, kind="other_service", model=None, token_class=None, sku="machines")
    made.line("-1", FIRST, kind="credit", category="Credit", model=None, token_class=None)
    lake, _ = made.reconcile(now=at(14))
    (told,) = accruals(lake, {})
    assert (told.period, told.provider, told.currency) == (MONTH, "openai", "USD")
    assert (told.expected, told.invoiced, told.accrued, told.other) == (
        Decimal("0.010"),
        Decimal("0.006"),
        Decimal("0.004"),
        Decimal(-1),
    )


def test_a_month_without_any_bill_is_accrued_as_a_whole(tmp_path: Path) -> None:
    made = World(tmp_path)
    made.call(at(12), input_uncached=3000)
    (told,) = accruals(made.lake(), {})
    assert (told.period, told.expected, told.invoiced, told.accrued) == (
        MONTH,
        Decimal("0.006"),
        Decimal(0),
        Decimal("0.006"),
    )


def test_past_months_without_a_bill_are_accrued_beside_one_that_has_one(tmp_path: Path) -> None:
    """The bill is of April alone: 1,000 tokens of March at 3 a million and 2,000 of May at 2 are on none."""
    made = World(tmp_path)
    month = timedelta(days=31)
    made.call(at(12) - month, input_uncached=1000)
    made.call(at(12), input_uncached=3000)
    made.call(at(12) + month, input_uncached=2000)
    made.line("0.006", at(12, 0), tokens=3000)
    lake, _ = made.reconcile(now=LATER)
    told = [(each.period, each.expected, each.invoiced, each.accrued) for each in accruals(lake, {})]
    assert told == [
        ("2026-03", Decimal("0.003"), Decimal(0), Decimal("0.003")),
        (MONTH, Decimal("0.006"), Decimal("0.006"), Decimal(0)),
        ("2026-05", Decimal("0.004"), Decimal(0), Decimal("0.004")),
    ]


def test_a_month_without_a_bill_is_that_of_the_billing_zone(tmp_path: Path) -> None:
    """Two in the morning of 1 April, UTC, is March in Los Angeles; 1,000 tokens at 3 a million."""
    made = World(tmp_path)
    made.call(FIRST + timedelta(hours=2), input_uncached=1000)
    (told,) = accruals(made.lake(), {"openai": Contract("openai", zone="America/Los_Angeles")})
    assert (told.period, told.accrued) == ("2026-03", Decimal("0.003"))


def test_a_task_is_what_the_last_revision_of_a_source_that_knows_it_says(tmp_path: Path) -> None:
    """The gateway said first `draft`, then `banner`; an agent whose name comes before it knows no task."""
    (tmp_path / "a.toml").write_text('[[rules]]\nteam = "ads"\ntask = "banner"\n', encoding="utf-8")
    made = World(tmp_path)
    made.call(at(12), input_uncached=1000, attempt={"task": "draft"})
    tables = made.rows()
    told = tables["attempt"]
    revised = told.with_columns(revision=pl.lit(1, pl.Int64), task=pl.lit("banner"))
    agent = told.with_columns(source=pl.lit("agent"), task=pl.lit("unassigned"))
    tables["attempt"] = pl.concat([told, revised.cast(told.schema), agent])
    done = allocated(InMemory(tables), load_allocation(tmp_path / "a.toml"), MONTH, KEY)
    assert [(row["team"], row["amount"]) for row in done.rows] == [("ads", Decimal("0.002"))]
