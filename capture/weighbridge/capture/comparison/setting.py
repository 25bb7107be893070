"""A strategy as the runner carries it out: checked parameters, what implements it, and its name in traces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from weighbridge.capture.comparison.press import PRESS, Value, checked
from weighbridge.capture.comparison.press import strategy as press_strategy
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.strategy import Strategy

DENSE: Final = "dense"
SINKS: Final = 4  # of a limit that names none
_MOST: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class Setting:
    """One strategy. A parameter that is null is off.

    Attributes:
        name: of the strategy.
        window, sinks: each query reads itself, the window - 1 keys before it and the first `sinks` ones; others go.
        kv_cache_limit: entries per layer and head that are kept after each step: the first `sinks`, the latest others.
        compression_ratio: share of a prompt's entries that goes after prefill, by the norm of their keys.
        attention_topk: keys each query reads in each head, those with the highest scores.
        token_pruning_ratio: share of a prompt's tokens that never reaches the model, the least surprising ones.
        draft_length: tokens that are drafted by looking them up in the text so far.
        press, press_parameters: a press of kvpress, and what it is set to.
    """

    name: str
    window: int | None = None
    sinks: int | None = None
    kv_cache_limit: int | None = None
    compression_ratio: float | None = None
    attention_topk: int | None = None
    token_pruning_ratio: float | None = None
    draft_length: int | None = None
    press: str | None = None
    press_parameters: Mapping[str, Value] = field(default_factory=dict)

    @property
    def evicts(self) -> bool:
        """Whether entries leave the cache."""
        given = (self.window, self.kv_cache_limit, self.compression_ratio, self.press)
        return any(value is not None for value in given)

    @property
    def parameters(self) -> dict[str, int | float | str]:
        """What is on."""
        if self.press is not None:
            return {PRESS: self.press, **self.press_parameters}
        return {name: value for name in PARAMETERS if (value := getattr(self, name)) is not None}

    @property
    def budget(self) -> tuple[int, int] | None:
        """The first and the last entries that stay after a step: (sinks, latest); null where no rule says."""
        sinks = SINKS if self.sinks is None else self.sinks
        latest = []
        if self.window is not None:
            latest.append(self.window - 1)
        if self.kv_cache_limit is not None:
            latest.append(self.kv_cache_limit - sinks)
        return (sinks, min(latest)) if latest else None

    @property
    def implementation(self) -> str:
        """What carries it out, by its parts."""
        if self.press is not None:
            return f"kvpress.{self.press}"
        parts = [PARTS[name] for name in PARAMETERS if name in PARTS and getattr(self, name) is not None]
        return "+".join(parts) or DENSE

    def strategy(self, revision: str | None, layers: int, query_heads: int, kv_heads: int) -> Strategy:
        """Its row of the table `strategy`."""
        if self.press is not None:
            return press_strategy(self, revision, layers, query_heads, kv_heads)
        on = self.parameters
        family = next((FAMILIES[name] for name in FAMILIES if name in on), DENSE)
        return Strategy(
            self.name, family, {**on, "implementation": self.implementation}, library="weighbridge",
            model_revision=revision, layers=layers, query_heads=query_heads, kv_heads=kv_heads,
        )  # fmt: skip


PARAMETERS: Final = (
    "window", "sinks", "kv_cache_limit", "compression_ratio", "attention_topk", "token_pruning_ratio", "draft_length",
)  # fmt: skip
PARTS: Final[Mapping[str, str]] = {
    "window": "sliding_window",
    "kv_cache_limit": "recent_entries",
    "compression_ratio": "key_norm",
    "attention_topk": "score_topk",
    "token_pruning_ratio": "least_surprising",
    "draft_length": "prompt_lookup",
}
FAMILIES: Final[Mapping[str, str]] = {
    "compression_ratio": "score",
    "window": "window",
    "kv_cache_limit": "position",
    "attention_topk": "mask",
    "token_pruning_ratio": "pruning",
    "draft_length": "speculation",
}
_SHARES: Final = frozenset({"compression_ratio", "token_pruning_ratio"})
_LEAST: Final[Mapping[str, int]] = {
    "window": 1,
    "sinks": 0,
    "kv_cache_limit": 1,
    "attention_topk": 1,
    "draft_length": 1,
}


def setting(name: str, given: Mapping[str, Any]) -> Setting:
    """A strategy of a run.

    Args:
        name: its name.
        given: its parameters.

    Raises:
        ConfigError: a parameter that is unknown, out of range, or does not go with another.
    """
    where = f"strategy {name}"
    if PRESS in given:
        press, parameters = checked(where, given)
        return Setting(name, press=press, press_parameters=parameters)
    unknown = sorted(set(given) - set(PARAMETERS))
    if unknown:
        raise ConfigError(
            f"{where}: there is no parameter {unknown[0]!r}; allowed are {', '.join(PARAMETERS)}, or {PRESS}"
        )
    for key, value in given.items():
        if isinstance(value, bool) or not isinstance(value, float if key in _SHARES else int):
            kind = "a share between 0 and 1" if key in _SHARES else "a whole number"
            raise ConfigError(f"{where}: {key} must be {kind}; leave it out to switch it off")
        if key in _SHARES and not 0 < value < 1:
            raise ConfigError(f"{where}: {key} is {value}; give a share between 0 and 1, or leave it out")
        if key in _LEAST and not _LEAST[key] <= value < _MOST:
            raise ConfigError(f"{where}: {key} is {value}; at least {_LEAST[key]} is allowed")
    made = Setting(name, **given)
    _check_together(made, where)
    return made


def settings(given: Mapping[str, Mapping[str, Any]]) -> tuple[Setting, ...]:
    """The strategies of a run, the baseline first.

    Raises:
        ConfigError: see `setting`.
    """
    return Setting(DENSE), *(setting(name, parameters) for name, parameters in given.items())


def _check_together(made: Setting, where: str) -> None:
    if made.sinks is not None and made.window is None and made.kv_cache_limit is None:
        raise ConfigError(f"{where}: sinks stay beside a window or a limit; give window or kv_cache_limit as well")
    if made.kv_cache_limit is not None and made.budget is not None and made.budget[1] < 1:
        raise ConfigError(
            f"{where}: kv_cache_limit {made.kv_cache_limit} has no room beside {made.budget[0]} sinks; raise it, or "
            "lower sinks"
        )
    if made.draft_length is not None and made.evicts:
        raise ConfigError(
            f"{where}: drafts that are rejected have to leave the cache again, which one that evicts cannot do; give "
            "draft_length a strategy of its own"
        )
    if made.compression_ratio is not None and made.budget is not None:
        raise ConfigError(f"{where}: compression_ratio and a window or limit evict by different rules; use one of them")
