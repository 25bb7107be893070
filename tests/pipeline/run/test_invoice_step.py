"""Bills in a night: months that have any are done once, and again when either side, or a contract, changed."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

from tests.pipeline.invoice.world import PRICES, World, at

from weighbridge.pipeline.run.demo import new_home
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.steps import INVOICE

TODAY = date(2026, 9, 1)


def installation(tmp_path: Path) -> tuple[Home, World]:
    made = new_home(tmp_path / "home", 3)
    prices = tmp_path / "own.toml"
    prices.write_text(PRICES, encoding="utf-8")
    contracts = tmp_path / "contracts"
    contracts.mkdir()
    home = replace(made, settings=replace(made.settings, prices=(prices,), contracts=(contracts,)))
    return home, World(tmp_path)


def test_a_month_is_due_when_it_is_billed_and_again_when_anything_of_it_changes(tmp_path: Path) -> None:
    home, world = installation(tmp_path)
    assert INVOICE.due(home, TODAY) == {}
    world.call(at(12), input_uncached=1000)
    world.line("0.0018", at(12, 0), tokens=1000)
    world.lake(into=home.lake())
    due = INVOICE.due(home, TODAY)
    assert list(due) == ["2026-04"]
    done = INVOICE.run(home, due, TODAY)
    assert done.counts == {"months": 1, "cells": 2, "findings": 1}
    assert INVOICE.due(home, TODAY) == {}
    agreed = 'provider = "openai"\n[[discounts]]\npercent = "10"\n'
    (tmp_path / "contracts" / "openai.toml").write_text(agreed, encoding="utf-8")
    again = INVOICE.due(home, TODAY)
    assert INVOICE.run(home, again, TODAY).counts == {"months": 1, "cells": 2, "findings": 0}


def test_an_open_month_is_looked_at_every_day(tmp_path: Path) -> None:
    home, world = installation(tmp_path)
    world.call(at(12), input_uncached=1000)
    world.line("0.002", at(12, 0), tokens=1000)
    world.lake(into=home.lake())
    early = date(2026, 4, 13)
    INVOICE.run(home, INVOICE.due(home, early), early)
    assert INVOICE.due(home, early) == {}
    assert list(INVOICE.due(home, date(2026, 4, 14))) == ["2026-04"]
