"""The known faults: how often, on which attempts, and by exactly how much each makes a report differ from the truth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from weighbridge.pipeline.simulate import world
from weighbridge.pipeline.simulate.lengths import Lengths
from weighbridge.pipeline.simulate.traffic import DAY_US, EPOCH, HOUR_US, SUCCEEDED, Traffic
from weighbridge.pipeline.simulate.world import Ints, Mask

NONE = -1
_OUTAGE_EVERY_DAYS = 30
_OUTAGE_HOURS = (11, 12, 13)
_OUTAGE_SHARE = 0.6  # of the attempts of that hour


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault.

    Attributes:
        code: of the cause, and of the finding it has to lead to.
        rate: share of the eligible attempts that have it.
        eligible: the attempts it can happen to, so that the report still reads and the gap has one explanation.
        difference: reported minus observed tokens of an attempt that has it, both directions together.
    """

    code: str
    rate: float
    eligible: Callable[[Traffic, Lengths], Mask]
    difference: Callable[[Lengths], Ints]


def _of_api(traffic: Traffic, *names: str) -> Mask:
    out: Mask = np.array([model.api in names for model in world.MODELS])[traffic.model]
    return out


def _half_cached(traffic: Traffic, tokens: Lengths) -> Mask:
    """OpenAI's form, where the cached tokens still fit into the prompt once they were left out of it."""
    openai = _of_api(traffic, "openai_chat", "openai_responses")
    return openai & (tokens.cached > 0) & (2 * tokens.cached <= tokens.prompt)


def _anthropic_cached(traffic: Traffic, tokens: Lengths) -> Mask:
    return _of_api(traffic, "anthropic_messages") & (tokens.cached > 0)


def _half_reasoned(_: Traffic, tokens: Lengths) -> Mask:
    return tokens.engine & (tokens.reasoning > 0) & (2 * tokens.reasoning <= tokens.output)


def _any(traffic: Traffic, _: Lengths) -> Mask:
    return np.ones(traffic.rows, bool)


def _whole(tokens: Lengths) -> Ints:
    return tokens.prompt + tokens.output


FAULTS: tuple[Fault, ...] = (
    Fault("cache_convention", 0.02, _half_cached, lambda tokens: -tokens.cached),
    Fault("cache_convention", 0.03, _anthropic_cached, lambda tokens: tokens.cached),
    Fault("reasoning_convention", 0.04, _half_reasoned, lambda tokens: -tokens.reasoning),
    Fault("special_tokens", 0.03, lambda _, t: ~t.engine & (t.special > 0), lambda tokens: tokens.special),
    Fault("template_not_applied", 0.012, lambda _, t: ~t.engine, lambda tokens: tokens.template),
    Fault("end_token_convention", 0.03, lambda _, t: t.engine & (t.end > 0), lambda tokens: -tokens.end),
    Fault("usage_missing", 0.005, _any, lambda tokens: -(tokens.prompt + tokens.seen)),
    Fault("duplicate_report", 0.004, _any, _whole),
    # Its rate is that of the outages.
    Fault("capture_gap", 0.0, _any, _whole),
)
OPENAI_CACHE, ANTHROPIC_CACHE, REASONING, SPECIAL, TEMPLATE, END, MISSING, DUPLICATE, LOST = range(len(FAULTS))


def outages(rng: np.random.Generator, start: date, days: int) -> Ints:
    """When the agent's buffer filled up, microseconds since 1970: an hour at noon of one weekday a month."""
    out = []
    for first in range(0, days, _OUTAGE_EVERY_DAYS):
        month = [start + timedelta(days=offset) for offset in range(first, min(first + _OUTAGE_EVERY_DAYS, days))]
        working = [day for day in month if day.weekday() < 5] or month
        day = working[int(rng.integers(len(working)))]
        out.append((day - EPOCH).days * DAY_US + int(rng.choice(_OUTAGE_HOURS)) * HOUR_US)
    return np.array(out, np.int64)


def outage_of(at: Ints, began: Ints) -> Ints:
    """The outage each of these times falls into, as an index into `began`; NONE for most."""
    index = np.searchsorted(began, at, side="right") - 1
    return np.where((index >= 0) & (at - began[index] < HOUR_US), index, NONE)


def assign(rng: np.random.Generator, traffic: Traffic, tokens: Lengths, began: Ints) -> Ints:
    """The fault of each attempt as an index into FAULTS, NONE for most. No attempt has two."""
    out = np.full(traffic.rows, NONE, np.int64)
    answered = traffic.status == SUCCEEDED
    lost = (outage_of(traffic.at, began) != NONE) & (rng.random(traffic.rows) < _OUTAGE_SHARE)
    out[answered & lost] = LOST
    for index, fault in enumerate(FAULTS):
        drawn = rng.random(traffic.rows) < fault.rate
        out[drawn & answered & (out == NONE) & fault.eligible(traffic, tokens)] = index
    return out
