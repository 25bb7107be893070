"""The contract as pytest tests, one per check.

    # test_my_adapter.py
    from weighbridge.capture.contract.as_tests import contract_tests

    test_contract = contract_tests(MyEngine)

A check the engine does not offer is a skip that says why. This module is the only one that imports pytest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from weighbridge.capture.contract.engine import Engine
from weighbridge.capture.contract.prove import CHECKS, check
from weighbridge.capture.contract.report import Outcome


def contract_tests(make: Callable[[], Engine]) -> Callable[..., Any]:
    """A test function with one case per check; `make` gives the engine, anew for each."""

    @pytest.mark.parametrize("name", CHECKS)
    def test(name: str) -> None:
        done = check(make(), name)
        if done.outcome is Outcome.NOT_OFFERED:
            pytest.skip("; ".join(done.notes))
        assert not done.broken, "\n".join(f"{each.code}: {each.found}" for each in done.broken)

    return test
