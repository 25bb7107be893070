"""The settings of baselines: the shipped task table, what may be changed, and what a mistake is told."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from weighbridge.pipeline.baseline.policy import AlertPolicy, BaselinePolicy
from weighbridge.pipeline.settings import Settings, load
from weighbridge.schemas.enumerations import Direction, Severity
from weighbridge.schemas.errors import ConfigError


def set_to(folder: Path, text: str) -> Settings:
    """Settings of a file with this text."""
    path = folder / "weighbridge.toml"
    path.write_text(text, encoding="utf-8")
    return load(path, env={})


@pytest.mark.parametrize(
    ("task", "inputs", "outputs"),
    [
        ("short_classification", (45, 110), (5, 11)),
        ("document_summary", (850, 2300), (85, 230)),
        ("code_generation", (160, 600), (40, 180)),
        ("complex_reasoning", (375, 1250), (75, 375)),
    ],
)
def test_the_shipped_bands_are_low_and_high_with_their_tolerance(
    task: str, inputs: tuple[int, int], outputs: tuple[int, int]
) -> None:
    """[low x (1 - t), high x (1 + t)] in whole tokens: 4.5 begins at 5."""
    band = BaselinePolicy.default().tasks[task]
    assert (band.band(Direction.INPUT), band.band(Direction.OUTPUT)) == (inputs, outputs)


def test_defaults() -> None:
    found = BaselinePolicy.default()
    assert (found.reference_days, found.season_days, found.false_share, found.request_rate, found.floor) == (
        *(28, 84, Fraction(1, 20), Fraction(1, 100), Decimal("1.00")),
    )
    assert (AlertPolicy.default().webhook, AlertPolicy.default().textfile) == ("", None)


def test_a_row_can_be_changed_and_another_added(tmp_path: Path) -> None:
    text = """
    [baseline]
    false_share = 0.1
    floor = "0.25"
    [baseline.tasks.code_generation]
    output = [100, 400]
    [baseline.tasks.triage]
    input = [300, 900]
    output = [10, 40]
    tolerance = 0.2
    [alerts]
    webhook = "https://hooks.example/x"
    severity = "error"
    textfile = "out/weighbridge.prom"
    """
    settings = set_to(tmp_path, text)
    found, alerts = BaselinePolicy.of(settings.baseline), AlertPolicy.of(settings.alerts)
    assert (found.false_share, found.floor, len(found.tasks)) == (Fraction(1, 10), Decimal("0.25"), 5)
    assert found.tasks["code_generation"].band(Direction.INPUT) == (160, 600)
    assert found.tasks["code_generation"].band(Direction.OUTPUT) == (80, 480)
    assert found.tasks["triage"].band(Direction.OUTPUT) == (8, 48)
    assert (alerts.severity, alerts.textfile) == (Severity.ERROR, tmp_path / "out/weighbridge.prom")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[baseline]\nfalse_rate = 0.1", r"baseline.false_rate is unknown; did you mean false_share\? Known are"),
        ("[baseline]\nfalse_share = 0", "baseline.false_share is 0; allowed is a share above 0 and not above 0.5"),
        ("[baseline]\nrequest_rate = 1", "baseline.request_rate is 1; allowed is a share above 0"),
        ("[baseline]\nrequest_rate = inf", "baseline.request_rate is inf; allowed is a share above 0"),
        ("[baseline.tasks.triage]\ntolerance = nan", "triage.tolerance is nan; allowed is a share above 0"),
        ("[baseline]\nreference_days = 3", "baseline.reference_days is 3; allowed is a number of days from 7 to 366"),
        ("[baseline]\nfloor = 1.5", "baseline.floor is a fraction; text is expected"),
        ("[baseline.tasks.chat]\ninput = [9, 1]", r"baseline.tasks.chat.input is \[9, 1\]; allowed is the lowest"),
        ("[baseline.tasks.chat]\ninput = [1, 2, 3]", "allowed is the lowest and the highest whole number"),
        ("[baseline.tasks.chat]\ninput = [0.5, 1]", "allowed is the lowest and the highest whole number"),
        ("[baseline.tasks.chat]\nimput = [1, 2]", "baseline.tasks.chat.imput is unknown; did you mean input"),
        ('[alerts]\nwebhook = "ftp://x/y"', "alerts.webhook is no address that begins with https://"),
        ('[alerts]\nwebhook = "file:///etc/passwd"', "alerts.webhook is no address that begins with https://"),
        ("[alerts]\nattempts = 0", "alerts.attempts is 0; allowed is a whole number from 1 to 60"),
        ('[alerts]\nseverity = "loud"', "alerts.severity is 'loud'; allowed is info, notice, warning, error"),
    ],
)
def test_a_mistake_is_named_with_what_is_right(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        set_to(tmp_path, text)


def test_an_address_with_a_mistake_in_it_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not shown") as told:
        set_to(tmp_path, '[alerts]\nwebhook = "hooks.example/s3cr3t"')
    assert "s3cr3t" not in str(told.value)


def test_a_task_of_ones_own_has_all_lines(tmp_path: Path) -> None:
    settings = set_to(tmp_path, "[baseline.tasks.triage]\ninput = [1, 2]\ntolerance = 0.1")
    with pytest.raises(ConfigError, match=r"baseline.tasks.triage has no output; a task of your own has input, output"):
        BaselinePolicy.of(settings.baseline)


def test_a_season_is_no_shorter_than_the_reference(tmp_path: Path) -> None:
    settings = set_to(tmp_path, "[baseline]\nseason_days = 20")
    with pytest.raises(ConfigError, match="season_days is 20, less than the 28 of reference_days"):
        BaselinePolicy.of(settings.baseline)
