"""A contract every adapter can be held against, and with which the maker of an own engine proves one.

    from weighbridge.capture.contract import Call, Engine, Truth, prove

    report = prove(MyEngine())
    print(report.text())        # what held, what broke, what the engine does not offer
    assert report.proved

An `Engine` lends the contract what it needs: how to install the adapter, and one method per kind of call, which makes
the call and says what was true of it. `python -m weighbridge.capture.contract package.module:MyEngine` prints the
report; `contract.as_tests` makes pytest tests of it. How to write an adapter is told in docs/own-engine.md.
"""

from __future__ import annotations

from weighbridge.capture.contract.engine import Call, Engine, NotOfferedError, Truth
from weighbridge.capture.contract.prove import CHECKS, prove
from weighbridge.capture.contract.report import Broken, Outcome, Report

__all__ = ["CHECKS", "Broken", "Call", "Engine", "NotOfferedError", "Outcome", "Report", "Truth", "prove"]
