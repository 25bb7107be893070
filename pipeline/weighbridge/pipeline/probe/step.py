"""What a step of a probe is, and all of them in their order."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from weighbridge.pipeline.probe import steps
from weighbridge.pipeline.probe.api import Api
from weighbridge.pipeline.probe.ask import Ask, Feature
from weighbridge.pipeline.probe.prompts import Prompts
from weighbridge.schemas.discovery import declared
from weighbridge.schemas.errors import ConfigError

FIRST = "plain"


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Attributes:
        name: stable, snake_case.
        adds: what it adds, for people.
        order: its place.
        ask: the request, given the texts.
        needs: what the API must have.
        same_prompt: its prompt is that of the first step, so the same input must be counted.
        text_only: one message of a user and nothing else, so that only its text tells it from the first step.
        grows_by: steps (from, to, as_from, as_to): `to` must exceed `from` by as much as `as_to` exceeds `as_from`,
            whoever counts. Words weigh the same in every place, and what is added twice is added twice.
        repeats: it is sent as often as the probe repeats.
        unasked: usage is not asked for.
    """

    name: str
    adds: str
    order: int
    ask: Callable[[Prompts], Ask]
    needs: frozenset[Feature] = frozenset()
    same_prompt: bool = False
    text_only: bool = False
    grows_by: tuple[str, str, str, str] | None = None
    repeats: bool = False
    unasked: bool = False


@cache
def all_steps() -> Mapping[str, Step]:
    """Every step of the folder, in order."""
    found = declared(steps, "STEP", Step).values()
    return {step.name: step for step in sorted(found, key=lambda step: (step.order, step.name))}


def chosen(api: Api, names: Sequence[str] = ()) -> list[Step]:
    """The steps an API can take, the first always among them.

    Args:
        api: which.
        names: only these.

    Raises:
        ConfigError: there is no such step.
    """
    known = all_steps()
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
            raise ConfigError(f"there is no step {name!r}; did you mean {near[0]}? Known are {', '.join(known)}")
    wanted = {FIRST, *names} if names else set(known)
    return [step for step in known.values() if step.name in wanted and step.needs <= api.features]
