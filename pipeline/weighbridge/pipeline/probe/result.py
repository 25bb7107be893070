"""What a probe found, as plain values: counts, names of steps and causes; no text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weighbridge.pipeline.probe.estimate import Estimate
from weighbridge.pipeline.probe.explain import Parting
from weighbridge.pipeline.probe.judge import first, is_heavy
from weighbridge.pipeline.probe.observation import Observation
from weighbridge.pipeline.probe.prompts import prompts
from weighbridge.schemas.enumerations import Direction

CONSISTENT, PARTS = "consistent", "parts"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """The result.

    Attributes:
        endpoint, host: where it was sent.
        provider, api, model: whom it is about.
        tokenizer, template: fingerprints of what counted here; null where nothing did.
        engine: whose counters were read; null where none were.
        seen: every step.
        left_out: step -> why it was not taken.
        partings: in the order of the steps.
        sent: requests.
        estimate: what was said before.
    """

    endpoint: str
    host: str
    provider: str
    api: str
    model: str
    tokenizer: str | None
    template: str | None
    engine: str | None
    seen: Sequence[Observation]
    left_out: Mapping[str, str]
    partings: Sequence[Parting]
    sent: int
    estimate: Estimate

    @property
    def first(self) -> Parting | None:
        """The first step at which weights part; conventions only where nothing else does."""
        return first(self.partings)

    @property
    def verdict(self) -> str:
        """`parts` where a parting is at least a warning, else `consistent`: never more than that."""
        return PARTS if any(map(is_heavy, self.partings)) else CONSISTENT

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        cost = self.estimate
        return {
            "verdict": self.verdict,
            "first": None if self.first is None else _parting(self.first),
            "partings": [_parting(one) for one in self.partings],
            "steps": [_step(one) for one in self.seen],
            "left_out": dict(self.left_out),
            **{name: getattr(self, name) for name in ("endpoint", "provider", "api", "model")},
            "prompts": {"version": prompts().version, "digest": prompts().digest},
            "recount": {"tokenizer": self.tokenizer, "template": self.template},
            "engine": self.engine,
            "requests": self.sent,
            "estimate": {n: getattr(cost, n) for n in ("requests", "input", "output", "amount", "currency")},
        }


def _parting(one: Parting) -> dict[str, Any]:
    return {
        "step": one.step,
        "direction": str(one.direction),
        "cause": one.cause.code,
        "title": one.cause.title,
        "weights": [str(weight) for weight in one.weights],
        "against": None if one.against is None else str(one.against),
        **{name: getattr(one, name) for name in ("expected", "observed", "difference", "share")},
        "severity": str(one.severity),
        "confidence": str(one.confidence),
        "alternatives": list(one.alternatives),
        "cure": one.cause.cure,
    }


def _step(one: Observation) -> dict[str, Any]:
    return {
        "step": one.name,
        "adds": one.step.adds,
        **{
            str(direction): {
                "usage": one.told(direction),
                "recount": one.counted(direction),
                "engine": one.computed(direction),
            }
            for direction in Direction
        },
        "cached": one.usage.cached,
        "reasoning": one.usage.reasoning,
        "choices": one.answer.choices,
        "finish": None if one.answer.finish is None else str(one.answer.finish),
        "verdict": str(one.usage.verdict),
        "flags": list(one.usage.flags),
        "requests": None if one.engine is None else one.engine.requests,
        "disturbed": one.disturbed,
    }
