"""When attempts arrive, from whom, for what, and how they end: season, growth, retries."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import date, timedelta
from typing import Self

import numpy as np

from weighbridge.pipeline.simulate import world
from weighbridge.pipeline.simulate.world import Ints, Mask
from weighbridge.schemas.enumerations import AttemptStatus

EPOCH = date(1970, 1, 1)
DAY_US = 86_400_000_000
HOUR_US = 3_600_000_000
STATUSES: tuple[AttemptStatus, ...] = (AttemptStatus.SUCCEEDED, AttemptStatus.REJECTED, AttemptStatus.FAILED)
HTTP: tuple[int, ...] = (200, 429, 500)
SUCCEEDED, REJECTED, FAILED = range(3)


@dataclass(slots=True)
class Traffic:
    """Attempts in the order of their arrival; every attribute is an array with one item per attempt.

    Attributes:
        at: arrival, microseconds since 1970, UTC.
        tenant, task, route, environment, model: indices into the tables of `world`; -1 is unassigned.
        status: index into STATUSES.
        number: 1 for the first try of a request, 2 for the second.
        attempt_hi, attempt_lo, request_hi, request_lo: keys.
        undated: the agent could not tell the time.
    """

    at: Ints
    tenant: Ints
    task: Ints
    route: Ints
    environment: Ints
    model: Ints
    status: Ints
    number: Ints
    attempt_hi: Ints
    attempt_lo: Ints
    request_hi: Ints
    request_lo: Ints
    undated: Mask

    @property
    def rows(self) -> int:
        """How many attempts there are."""
        return len(self.at)

    @property
    def day(self) -> Ints:
        """UTC day of the arrival, days since 1970."""
        return self.at // DAY_US

    def take(self, index: Ints) -> Self:
        """These attempts, in this order."""
        return type(self)(*(getattr(self, item.name)[index] for item in fields(self)))


def day_weights(start: date, days: int) -> world.Floats:
    """How much traffic each day gets, relative to the others: week and growth."""
    dates = [start + timedelta(days=offset) for offset in range(days)]
    week = np.array([world.WEEKDAYS[day.weekday()] for day in dates])
    return week * world.MONTHLY_GROWTH ** (np.arange(days) / 30)


def traffic(rng: np.random.Generator, attempts: int, start: date, days: int) -> Traffic:
    """`attempts` attempts over `days` days from `start`, sorted by arrival."""
    # How many were rejected and how many failed; each of them was tried again.
    tries = np.minimum(rng.binomial(attempts, [world.REJECTED_SHARE, world.FAILED_SHARE]), attempts // 4)
    requests = _requests(rng, attempts - int(tries.sum()), start, days)
    return _with_retries(rng, requests, tries, start)


def _requests(rng: np.random.Generator, rows: int, start: date, days: int) -> Traffic:
    at = np.sort(_arrivals(rng, rows, start, days))
    task = rng.choice(len(world.TASKS), rows, p=_shares([task.share for task in world.TASKS]))
    tenant = rng.choice(len(world.TENANTS), rows, p=_shares([share for _, share in world.TENANTS]))
    route = np.where(rng.random(rows) < 0.85, np.array(world.ROUTE_OF_TASK)[task], rng.integers(0, 4, rows))
    unassigned = rng.random(rows) < world.UNASSIGNED_SHARE
    request = uuid7(rng, at)
    attempt = uuid7(rng, at)
    return Traffic(
        at=at,
        tenant=np.where(unassigned, -1, tenant),
        task=task,
        route=np.where(unassigned, -1, route),
        environment=rng.choice(len(world.ENVIRONMENTS), rows, p=_shares([share for _, share in world.ENVIRONMENTS])),
        model=_models(rng, task),
        status=np.zeros(rows, np.int64),
        number=np.ones(rows, np.int64),
        attempt_hi=attempt[0],
        attempt_lo=attempt[1],
        request_hi=request[0],
        request_lo=request[1],
        undated=rng.random(rows) < world.UNDATED_SHARE,
    )


def _arrivals(rng: np.random.Generator, rows: int, start: date, days: int) -> Ints:
    hours = np.outer(day_weights(start, days), np.array(world.HOURS, float)).ravel()
    slot = rng.choice(len(hours), rows, p=hours / hours.sum())
    return (start - EPOCH).days * DAY_US + slot * HOUR_US + rng.integers(0, HOUR_US, rows)


def _models(rng: np.random.Generator, task: Ints) -> Ints:
    out = np.empty(len(task), np.int64)
    for index, kind in enumerate(world.TASKS):
        rows = task == index
        out[rows] = rng.choice(len(world.MODELS), int(rows.sum()), p=_shares(kind.models))
    return out


def _with_retries(rng: np.random.Generator, requests: Traffic, tries: Ints, start: date) -> Traffic:
    """The requests, and before some of them a first try that was rejected or failed."""
    again = rng.choice(requests.rows, int(tries.sum()), replace=False)
    first = requests.take(again)
    backoff = rng.integers(500_000, 20_000_000, first.rows)
    first.at = np.maximum(first.at - backoff, (start - EPOCH).days * DAY_US)
    first.attempt_hi, first.attempt_lo = uuid7(rng, first.at)
    first.status = np.repeat(np.array([REJECTED, FAILED]), tries)
    requests.number[again] = 2
    both = Traffic(
        *(np.concatenate([getattr(requests, item.name), getattr(first, item.name)]) for item in fields(Traffic))
    )
    return both.take(np.argsort(both.at, kind="stable"))


def uuid7(rng: np.random.Generator, at: Ints) -> tuple[Ints, Ints]:
    """UUIDv7 keys of these times (microseconds): 48 bits of milliseconds, version, 12 random; variant, 62 random."""
    hi = (at // 1000 << 16) | 0x7000 | rng.integers(0, 1 << 12, len(at))
    lo = rng.integers(0, 1 << 62, len(at)) + np.iinfo(np.int64).min
    return hi, lo


def _shares(weights: tuple[int, ...] | list[float]) -> world.Floats:
    array: world.Floats = np.asarray(weights, float)
    return array / float(array.sum())
