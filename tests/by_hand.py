"""Judging by hand what Great Expectations judges, for tests that validate again and again and are about something else.

That both say the same is tested in `tests/pipeline/validate/test_suite.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from weighbridge.pipeline.validate import validate as validate_module
from weighbridge.pipeline.validate.suite import NoneBreaks, NotBelow, Sheet, Verdict

# A test that asks for the fixture of this name takes the road of the product.
REAL = "by_great_expectations"


def judged_by_hand(sheets: Sequence[Sheet]) -> list[Verdict]:
    """What Great Expectations says of these sheets, without it."""

    def verdict(sheet: Sheet, expected: NoneBreaks | NotBelow) -> Verdict:
        if isinstance(expected, NoneBreaks):
            counts: list[Any] = [*sheet.columns[expected.rule]]
            return Verdict(sheet.name, expected.rule, not sum(counts))
        pairs: list[Any] = list(zip(sheet.columns[expected.column], sheet.columns[expected.limit], strict=True))
        below = tuple(n for n, (figure, limit) in enumerate(pairs) if None not in {figure, limit} and figure < limit)
        return Verdict(sheet.name, expected.rule, not below, below)

    return [verdict(sheet, expected) for sheet in sheets if sheet.rows for expected in sheet.expected]


@contextmanager
def judging_by_hand() -> Iterator[None]:
    """Validations in this block are judged by hand: a second or more less each time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validate_module, "judge", judged_by_hand)
        patch.setattr(validate_module, "load", lambda: None)
        yield


@pytest.fixture(autouse=True)
def mostly_by_hand(request: pytest.FixtureRequest) -> Iterator[None]:
    """A folder whose conftest imports this judges by hand, but for tests that ask for `by_great_expectations`."""
    if REAL in request.fixturenames:
        yield
        return
    with judging_by_hand():
        yield


@pytest.fixture
def by_great_expectations() -> None:
    """The rows of this test are judged by Great Expectations."""
