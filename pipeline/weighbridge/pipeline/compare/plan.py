"""The file that says what to run: one model, prompts, strategies that are off or on, and what decides.

model = "models/small"          # a local folder, or "demo": a tiny random model
name = "small"                  # how the model is called
max_new_tokens = 64
prompts = "prompts.jsonl"       # or [[prompt]] tables in this file

[gate]
pairs = 30
margins = { agreement = 0.02 }

[strategies.window_256]
window = 256
sinks = 4

[strategies.drafts]
on = false
draft_length = 4
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final

from weighbridge.pipeline.compare.gate import Gate
from weighbridge.pipeline.compare.plan_prompts import beside, check_names, prompts_of
from weighbridge.pipeline.compare.saving import MONEY, RESOURCES
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import NAME
from weighbridge.schemas.tables import CURRENCY

DEMO: Final = "demo"
PRESS: Final = "press"
MOST_HOUR: Final = 10**9
_MOST_TOKENS: Final = 1 << 20
_GATE: Final = ("margins", "level", "pairs", "resamples")


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be run.

    Attributes:
        model: a folder, or `DEMO`.
        name: how the model is called.
        tokenizer: a folder; null: that of the model.
        prompts: as the runner takes them.
        strategies: name -> parameters, those that are on.
        max_new_tokens, seed, forced: see the runner.
        meaning: folder of an encoder that tells likeness of meaning; null: nothing does.
        gate: what decides.
        by: by what to rank, null: whatever is known.
        hour, currency: what an hour of the machine costs.
        python: the interpreter of the runner; null: this one.
        packages: a folder of packages that come before those of the interpreter, null: none.
    """

    model: str
    name: str
    prompts: Sequence[Mapping[str, Any]] = field(repr=False)
    strategies: Mapping[str, Mapping[str, Any]]
    tokenizer: str | None = None
    max_new_tokens: int = 64
    seed: int = 0
    forced: bool = True
    meaning: str | None = None
    gate: Gate = field(default_factory=Gate)
    by: str | None = None
    hour: Decimal | None = None
    currency: str = "USD"
    python: str | None = None
    packages: str | None = None

    def told(self, keys: Mapping[str, Any]) -> dict[str, Any]:
        """What the runner is told, on its standard input."""
        return {
            "model": self.model,
            "model_name": self.name,
            "tokenizer": self.tokenizer,
            "prompts": [dict(prompt) for prompt in self.prompts],
            "strategies": {name: dict(parameters) for name, parameters in self.strategies.items()},
            "max_new_tokens": self.max_new_tokens,
            "seed": self.seed,
            "forced": self.forced,
            "meaning": self.meaning,
            "keys": dict(keys),
        }


def read_plan(path: Path) -> Plan:
    """Read a plan.

    Raises:
        ConfigError: names what is wrong, what is allowed and where; never a word of a prompt.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"there is no file {path}; docs/comparing.md shows one") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML ({type(error).__name__}); docs/comparing.md shows one") from None
    return plan_of(content, path)


def plan_of(content: Mapping[str, Any], path: Path) -> Plan:
    """The plan that was written in a file.

    Raises:
        ConfigError: as `read_plan`.
    """
    allowed = (
        "model", "name", "tokenizer", "prompts", "prompt", "max_new_tokens", "seed", "forced", "meaning",
        "strategies", "gate", "by", "hour", "currency", "python", "packages",
    )  # fmt: skip
    check_names(content, allowed, str(path))
    model = content.get("model")
    if not isinstance(model, str) or not model:
        raise ConfigError(f"{path} names no model; give a local folder, or {DEMO!r}")
    name = content.get("name", Path(model).name)
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ConfigError(f"{path}: the name of the model must match {NAME.pattern}; give one as name")
    by = content.get("by")
    if by is not None and by not in (*RESOURCES, MONEY):
        raise ConfigError(f"{path}: by is {by!r}; allowed are {', '.join((*RESOURCES, MONEY))}")
    return Plan(
        model=model if model == DEMO else str(beside(path, model)),
        name=name,
        prompts=prompts_of(content, path),
        strategies=_strategies(content, path),
        tokenizer=_folder(content, "tokenizer", path),
        max_new_tokens=_whole(content, "max_new_tokens", 64, 1, path),
        seed=_whole(content, "seed", 0, 0, path),
        forced=_switch(content, "forced", path),
        meaning=_folder(content, "meaning", path),
        gate=_gate(content.get("gate", {}), path),
        by=by,
        hour=_hour(content.get("hour"), path),
        currency=_currency(content.get("currency", "USD"), path),
        python=_there(content, "python", path),
        packages=_there(content, "packages", path),
    )


def _folder(content: Mapping[str, Any], name: str, path: Path) -> str | None:
    value = content.get(name)
    if value is not None and (not isinstance(value, str) or not value):
        raise ConfigError(f"{path}: {name} is no text; name a local folder, or leave it out")
    return None if value is None else str(beside(path, value))


def _there(content: Mapping[str, Any], name: str, path: Path) -> str | None:
    """A place that has to be there before anything is started: a program, or a folder of packages."""
    place = _folder(content, name, path)
    if place is None:
        return None
    found = Path(place).is_file() if name == "python" else Path(place).is_dir()
    if not found:
        what = "an interpreter" if name == "python" else "a folder of packages, such as .venv/kvpress"
        raise ConfigError(f"{path}: {name} is {place}, which is not there; name {what}, or leave it out")
    return place


def _switch(content: Mapping[str, Any], name: str, path: Path) -> bool:
    value = content.get(name, True)
    if not isinstance(value, bool):
        raise ConfigError(f"{path}: {name} must be true or false")
    return value


def _whole(content: Mapping[str, Any], name: str, default: int, least: int, path: Path) -> int:
    value = content.get(name, default)
    if type(value) is not int or not least <= value <= _MOST_TOKENS:
        raise ConfigError(f"{path}: {name} is {value!r}; a whole number from {least} to {_MOST_TOKENS} is allowed")
    return value


def _hour(value: object, path: Path) -> Decimal | None:
    if value is None:
        return None
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        amount = Decimal(-1)
    if not amount.is_finite() or not 0 <= amount <= MOST_HOUR:
        raise ConfigError(f'{path}: hour is no amount from 0 to {MOST_HOUR}; write it as text, such as "2.50"')
    return amount


def _currency(value: object, path: Path) -> str:
    if not isinstance(value, str) or not re.fullmatch(CURRENCY, value):
        raise ConfigError(f"{path}: currency is no ISO 4217 code; write three capital letters, such as USD")
    return value


def _gate(given: object, path: Path) -> Gate:
    if not isinstance(given, Mapping):
        raise ConfigError(f"{path}: gate must be a table; allowed in it are {', '.join(_GATE)}")
    check_names(given, _GATE, f"{path}: gate")
    try:
        margins = {str(name): float(loss) for name, loss in dict(given.get("margins", {})).items()}
        return Gate(**{**given, "margins": margins})
    except (TypeError, ValueError):
        raise ConfigError(f"{path}: gate holds what is no number; margins are measure = loss") from None


def _strategies(content: Mapping[str, Any], path: Path) -> dict[str, Mapping[str, Any]]:
    given = content.get("strategies")
    if not isinstance(given, Mapping) or not given:
        raise ConfigError(f"{path} has no strategies; write one as [strategies.NAME] with its parameters")
    out: dict[str, Mapping[str, Any]] = {}
    for name, parameters in given.items():
        if not NAME.fullmatch(name) or name == "dense":
            raise ConfigError(
                f"{path}: a strategy cannot be called {name!r}; dense is the baseline, names match {NAME.pattern}"
            )
        if not isinstance(parameters, Mapping) or not isinstance(parameters.get("on", True), bool):
            raise ConfigError(f"{path}: strategy {name} must be a table; `on = false` switches it off")
        odd = sorted(
            key for key, value in parameters.items() if not isinstance(value, str if key == PRESS else int | float)
        )
        if odd:
            what = f"no name; {PRESS} is that of a class" if odd[0] == PRESS else "no number; parameters are numbers"
            raise ConfigError(f"{path}: strategy {name}: {odd[0]!r} is {what}")
        if parameters.get("on", True):
            out[name] = {key: value for key, value in parameters.items() if key != "on"}
    if not out:
        raise ConfigError(f"{path}: every strategy is off; switch one on")
    return out
