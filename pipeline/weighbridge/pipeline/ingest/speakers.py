"""Who speaks which dialect: the shape of an API, specialised by what is known about the provider, model and day."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from functools import lru_cache
from typing import Any, Protocol

from weighbridge.pipeline.ingest.dialect import HIDDEN, Dialect
from weighbridge.pipeline.ingest.fact import Axis, Fact


class Lookup(Protocol):
    """Gives the dialect in which a provider speaks an API, or null where there is none."""

    def __call__(
        self, provider: str | None, api: str | None, model: str | None = None, day: date | None = None
    ) -> Dialect | None: ...


def lookup(dialects: Iterable[Dialect]) -> Lookup:
    """A lookup over these dialects and the facts they carry.

    A dialect of the provider's own comes before one that facts say he speaks too, and that before one that is open to
    everybody. Equal facts give the same object, so what is learnt about it (plans, words) is kept.
    """
    known = tuple(dialects)

    @lru_cache(maxsize=65_536)
    def found(
        provider: str | None, api: str | None, model: str | None = None, day: date | None = None
    ) -> Dialect | None:
        speaking = [dialect for dialect in known if api in dialect.apis]
        speaking.sort(key=lambda dialect: provider not in dialect.providers)
        named = next((dialect for dialect in speaking if dialect.names(provider)), None)
        dialect = named or next((dialect for dialect in speaking if dialect.open), None)
        if dialect is None:
            return None
        own = tuple(fact for fact in dialect.facts if fact.provider == provider)
        holding = tuple(fact for fact in own if fact.holds(model, day))
        return specialised(dialect, own, holding, known=named is not None)

    return found


@lru_cache(maxsize=4096)
def specialised(dialect: Dialect, own: tuple[Fact, ...], holding: tuple[Fact, ...], *, known: bool) -> Dialect:
    """The dialect as one provider speaks it.

    Args:
        dialect: the shape.
        own: every fact about the provider, kept so that one sees whether model or day matter.
        holding: those that hold, the most general first.
        known: whether the provider is named; one who is not is read by the shape, and hides what he does not show.
    """
    if known and not own:
        return replace(dialect, facts=()) if dialect.facts else dialect
    told: dict[str, Any] = {}
    axes: dict[Axis, tuple[bool, ...]] = dict(dialect.axes)
    repairs = set(dialect.repairs)
    for fact in holding:
        told |= {"source": fact.source}
        told |= {name: value for name in _GRAINS if (value := getattr(fact, name)) is not None}
        if fact.absent is not None:
            told["absent"] = {"any": dialect.absent[fact.absent]}
        axes |= {axis: _first(value, dialect, axis) for axis, value in fact.declared}
        repairs |= {fact.repair} if fact.repair else set()
    if not known:
        told["absent"] = {"any": dialect.absent.get(HIDDEN) or dialect.absent["any"]}
    return replace(dialect, **told, axes=axes, repairs=frozenset(repairs), facts=own, known=known)


_GRAINS = ("cached_grain", "reasoning_grain")


def _first(value: bool, dialect: Dialect, axis: Axis) -> tuple[bool, ...]:
    """The conceivable answers, the declared one first.

    Raises:
        ValueError: the dialect does not conceive of it.
    """
    values: Mapping[Axis, tuple[bool, ...]] = {**dialect.rare, **dialect.axes}
    if value not in values.get(axis, ()):
        raise ValueError(f"{axis}={value} is not conceivable in {dialect.name}")
    return (value, *(other for other in values[axis] if other is not value))
