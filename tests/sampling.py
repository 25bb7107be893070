"""How much of a large space of cases a run looks at: the whole with `make test-full`, a fixed sample before that.

The sample is the same in every run, so that a test that passed here passes there.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from hypothesis import settings

WHOLE = "whole"
Case = TypeVar("Case")


def whole() -> bool:
    """Whether this run was asked for everything."""
    return settings.get_current_profile_name() == WHOLE


def examples(few: int, many: int) -> int:
    """Examples of a property: `few`, or `many` where everything was asked for."""
    return many if whole() else few


def some(cases: Sequence[Case], count: int) -> list[Case]:
    """A sample of so many cases with the first and the last among them, in their order; or all of them."""
    if count < 2:
        raise ValueError(f"a sample of {count} leaves out the first case or the last; ask for 2 or more")
    if whole() or count >= len(cases):
        return list(cases)
    last = len(cases) - 1
    inner = random.Random(len(cases)).sample(range(1, last), count - 2)
    return [cases[place] for place in sorted({0, last, *inner})]
