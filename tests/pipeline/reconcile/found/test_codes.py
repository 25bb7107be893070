"""A code that no finding can have is a mistake, and is told what was probably meant."""

from __future__ import annotations

import inspect
import re

import pytest
from tests.pipeline.reconcile.conftest import DAY, World, crowd, weighed

from weighbridge.pipeline.reconcile.found import gap_findings, of_attempts, of_files, of_reports, record_findings
from weighbridge.pipeline.reconcile.found.codes import checked_code, finding_codes
from weighbridge.pipeline.reconcile.recount import recount_constants
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.finding import CODE, Finding


def test_every_code_that_is_written_down_is_known() -> None:
    """The codes of the modules that make findings, as their source has them."""
    source = "".join(map(inspect.getsource, (of_attempts, of_files, of_reports, gap_findings, recount_constants)))
    written = set(re.findall(r'code="(\w+)"', source))
    assert {"gap_records", "ids_missing", "empty_month", "unassigned_tenant", "unmatched_report"} <= written
    assert written <= finding_codes()
    assert set(record_findings.CODES) <= written
    assert all(CODE.fullmatch(code) for code in finding_codes())


def test_every_code_that_is_found_is_known(world: World) -> None:
    """Of a crowd of attempts with every kind and fault."""
    crowd(world, 150, seed=8)
    found = set(weighed(world).codes)
    assert len(found) > 10
    assert found <= finding_codes()


@pytest.mark.parametrize(
    ("code", "meant"),
    [
        ("duplicate_reports", "duplicate_report"),
        ("quarantine", "quarantined_rows"),
        ("usage-missing", "usage_missing"),
        ("GAP_RECORDS", "gap_records"),
        ("totals_mismatch", "total_mismatch"),
    ],
)
def test_a_mistake_is_told_the_nearest_code(world: World, code: str, meant: str) -> None:
    with pytest.raises(
        ConfigError, match=f"no finding has the code '{code}'; did you mean {meant}\\? Known are aborted, "
    ):
        checked_code(world.lake(), code)


def test_what_is_near_nothing_is_told_all(world: World) -> None:
    with pytest.raises(ConfigError, match="no finding has the code 'zzz'; Known are") as told:
        checked_code(world.lake(), "zzz")
    assert all(code in str(told.value) for code in finding_codes())


def test_a_code_of_the_lake_is_known_whoever_wrote_it(world: World) -> None:
    """A later version, or a rule of the user's own."""
    row = Finding(code="own_rule", severity="info", period="2026-03", subject={}, rows=1, cure="None.").row()  # type: ignore[arg-type]
    world.add("finding", {**row, "first_day": DAY})
    assert checked_code(world.lake(), "own_rule") == "own_rule"
