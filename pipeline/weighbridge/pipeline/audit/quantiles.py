"""Quantiles of Student's t, from the continued fraction of the incomplete beta function, to ten digits."""

from __future__ import annotations

import math
from functools import cache

_TINY = 1e-300
_STEPS = 300


def student_tail(t: float, freedom: int) -> float:
    """P(T > t) for t >= 0 and at least one degree of freedom."""
    return 0.5 * _incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))


@cache
def student_quantile(probability: float, freedom: int) -> float:
    """The value that T does not exceed with this probability, 0.5 or more and less than 1."""
    tail = 1.0 - probability
    low, high = 0.0, 1.0
    while student_tail(high, freedom) > tail:
        low, high = high, 2.0 * high
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if student_tail(middle, freedom) > tail else (low, middle)
    return 0.5 * (low + high)


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by Lentz' evaluation of its continued fraction."""
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _fraction(a, b, x) / a
    return 1.0 - front * _fraction(b, a, 1.0 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1.0 / _apart(1.0 - (a + b) * x / (a + 1.0))
    out = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1.0 / _apart(1.0 + term * d)
            c = _apart(1.0 + term / c)
            out *= d * c
        if abs(d * c - 1.0) < 1e-15:
            break
    return out


def _apart(value: float) -> float:
    """A divisor, kept off zero."""
    return value if abs(value) > _TINY else _TINY
