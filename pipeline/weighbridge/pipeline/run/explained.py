"""Explain whatever has a name in an installation: its lake, its reports and its closes."""

from __future__ import annotations

from weighbridge.pipeline.explain.explain import explain
from weighbridge.pipeline.reconcile.life.material import Materiality
from weighbridge.pipeline.reconcile.tree.node import Node
from weighbridge.pipeline.report.period import period_of
from weighbridge.pipeline.report.view import View
from weighbridge.pipeline.run.bills import agreed_with
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.run.rooms import all_months, closes_for, is_simulated, records_of


def explained(home: Home, name: str, depth: int | None = None) -> Node:
    """The tree behind a finding, an attempt, a file, a row of prices, a line of an invoice or a figure.

    Raises:
        ConfigError: nothing is called so, several things are, or a contract cannot be used as written.
        DamagedError: it is a figure of a closed month, and its pack is not the one that was closed.
    """
    lake = home.lake()

    def view(month: str) -> View | None:
        if month not in all_months(lake):
            return None
        period = period_of(month=month, first=None, last=None, zone=home.settings.timezone, held=[])
        simulated = is_simulated(lake)
        material = Materiality.of(home.settings.material)
        records, closes = records_of(home, month), closes_for(home, month)
        return View(records, period, simulated=simulated, closes=closes, material=material)

    contracts = agreed_with(home)
    return explain(lake, name, home.key, packs=home.settings.closes, views=view, contracts=contracts, depth=depth)
