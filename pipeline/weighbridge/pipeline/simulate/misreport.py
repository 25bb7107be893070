"""What a misreport is: one way in which bills differ from what was served, with the cause an audit has to name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from weighbridge.pipeline.simulate import misreports
from weighbridge.pipeline.simulate.answers import Answers
from weighbridge.schemas.discovery import declared
from weighbridge.schemas.errors import ConfigError

Draw = Callable[[np.random.Generator, tuple[int, int], float], Answers]


@dataclass(frozen=True, slots=True, kw_only=True)
class Misreport:
    """One way of billing, honest ones included.

    Attributes:
        code: M0 to M17.
        title: what is done.
        draw: answers and bills of the shape (runs, answers), at a factor.
        factor: the usual factor.
        means: what the factor is.
        expected: code of the cause that an audit has to name; null where it must detect nothing.
        verdict: of the audit.
        rounding: how injected amounts become whole tokens.
        honest: the factor that calibration traffic of the same cell has; null: it is that of M0.
        engine: whether the road goes by an engine of our own, so that what it counted is known and not recounted.
    """

    code: str
    title: str
    draw: Draw
    factor: float
    means: str
    expected: str | None
    verdict: str
    rounding: str
    honest: float | None = None
    engine: bool = False


@cache
def all_misreports() -> dict[str, Misreport]:
    """Every misreport of the folder by its code, in order."""
    found = declared(misreports, "MISREPORT", Misreport).values()
    return {each.code: each for each in sorted(found, key=lambda each: int(each.code[1:]))}


def misreport_of(code: str) -> Misreport:
    """The misreport called so.

    Raises:
        ConfigError: there is none; names all.
    """
    found = all_misreports().get(code.upper())
    if found is None:
        known = "; ".join(f"{each.code} {each.title}" for each in all_misreports().values())
        raise ConfigError(f"there is no misreport {code!r}; known are {known}")
    return found
