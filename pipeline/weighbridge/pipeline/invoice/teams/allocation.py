"""Who bears what of a month: rules that give usage to teams, shared costs that are split, and own machines.

usage = "reported"                # at list prices; or "invoiced": what bills come to, where a provider has one
[[rules]]                         # the first rule that fits a call gives it to its team
team = "search"
tenant = ["acme"]                 # names or pseudonyms; likewise provider, model, task, route; all given ones must fit
[[shared]]                        # an amount of each month that all bear
name = "platform"
amount = "1200.00"
currency = "USD"
by = "fixed"                      # fixed, tokens or cost
shares = { search = "0.6", ads = "0.4" }     # of fixed; with tokens and cost those of the teams' own usage
[[machines]]                      # machines of one's own: money per GPU-hour over computed tokens
name = "cluster-a"
framework = "vllm"                # attempts of this framework; source = "..." instead names one agent's
currency = "USD"
gpus = 8
gpu_hour = "2.10"
prefill_weight = "1"              # of a computed prompt token beside
decode_weight = "4"               # a computed output token
tokens_per_gpu_hour = "9000000"   # weighted tokens a GPU computes in an hour; without it idle time is not known

What no rule fits is `unassigned` and shown so. What is divided adds up to the cent.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from weighbridge.pipeline.settings.shape import nearest
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import NAME

USAGES = ("reported", "invoiced")
BY = ("fixed", "tokens", "cost")
ABOUT = ("tenant", "provider", "model", "task", "route")


@dataclass(frozen=True, slots=True)
class Rule:
    """Calls for which every given list holds their value are those of a team."""

    team: str
    about: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Shared:
    """An amount of each month that all bear."""

    name: str
    amount: Decimal
    currency: str
    by: str
    shares: Mapping[str, Decimal] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Machines:
    """Machines of one's own, paid by the hour."""

    name: str
    currency: str
    gpus: int
    gpu_hour: Decimal
    framework: str | None = None
    source: str | None = None
    prefill_weight: Decimal = Decimal(1)
    decode_weight: Decimal = Decimal(1)
    capacity: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Allocation:
    """Rules, shared costs and machines, in the order of the file; `invoiced`: bills are divided instead of usage."""

    rules: tuple[Rule, ...] = ()
    shared: tuple[Shared, ...] = ()
    machines: tuple[Machines, ...] = ()
    invoiced: bool = False


def load_allocation(path: Path) -> Allocation:
    """The allocation of a file.

    Raises:
        ConfigError: it is no TOML, has an unknown key (the nearest one is named) or a value that cannot be used.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"the allocation {path} cannot be read: {error}. Correct it, or name another.") from error
    return _Reader(path).allocation(content)


@dataclass(frozen=True, slots=True)
class _Reader:
    path: Path

    def allocation(self, content: Mapping[str, Any]) -> Allocation:
        self._known("", content, ("usage", "rules", "shared", "machines"))
        usage = content.get("usage", USAGES[0])
        if usage not in USAGES:
            self._wrong(f"usage is {usage!r}; allowed are {', '.join(USAGES)}")
        made = Allocation(
            tuple(self._rule(each) for each in self._list(content, "rules")),
            tuple(self._shared(each) for each in self._list(content, "shared")),
            tuple(self._machines(each) for each in self._list(content, "machines")),
            invoiced=usage == USAGES[1],
        )
        names = [*(each.name for each in made.shared), *(each.name for each in made.machines)]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            self._wrong(f"{twice[0]!r} is the name of two shared costs or machines; give each its own")
        return made

    def _rule(self, told: Mapping[str, Any]) -> Rule:
        self._known("rules.", told, ("team", *ABOUT))
        about = {name: self._texts(f"rules.{name}", told[name]) for name in ABOUT if name in told}
        if not about:
            self._wrong(f"a rule of a team names none of {', '.join(ABOUT)}; it would take everything")
        return Rule(self._name("rules.team", told.get("team")), about)

    def _shared(self, told: Mapping[str, Any]) -> Shared:
        self._known("shared.", told, ("name", "amount", "currency", "by", "shares"))
        by, shares = told.get("by", BY[0]), told.get("shares", {})
        if by not in BY:
            self._wrong(f"shared.by is {by!r}; allowed are {', '.join(BY)}")
        if (by == "fixed") is not bool(shares) or not isinstance(shares, dict):
            self._wrong('shared.shares = { team = "0.6", ... } goes with by = "fixed", and with nothing else')
        weights = {
            self._name("shared.shares", team): self._money("shared.shares", share) for team, share in shares.items()
        }
        amount, currency = self._money("shared.amount", told.get("amount")), self._currency(told.get("currency"))
        return Shared(self._name("shared.name", told.get("name")), amount, currency, str(by), weights)

    def _machines(self, told: Mapping[str, Any]) -> Machines:
        known = ("name", "framework", "source", "currency", "gpus", "gpu_hour", "prefill_weight", "decode_weight",
                 "tokens_per_gpu_hour")  # fmt: skip
        self._known("machines.", told, known)
        gpus = told.get("gpus")
        if not isinstance(gpus, int) or isinstance(gpus, bool) or not 1 <= gpus <= 10**6:
            self._wrong("machines.gpus must be a whole number from 1 up")
        if ("framework" in told) == ("source" in told):
            self._wrong("machines need either framework or source: whose attempts they computed")
        capacity = told.get("tokens_per_gpu_hour")
        return Machines(
            name=self._name("machines.name", told.get("name")),
            currency=self._currency(told.get("currency")),
            gpus=int(str(gpus)),
            gpu_hour=self._money("machines.gpu_hour", told.get("gpu_hour")),
            framework=self._name("machines.framework", told["framework"]) if "framework" in told else None,
            source=self._name("machines.source", told["source"]) if "source" in told else None,
            prefill_weight=self._money("machines.prefill_weight", told.get("prefill_weight", "1")),
            decode_weight=self._money("machines.decode_weight", told.get("decode_weight", "1")),
            capacity=None if capacity is None else self._money("machines.tokens_per_gpu_hour", capacity),
        )

    def _known(self, where: str, found: Collection[str], allowed: Collection[str]) -> None:
        for name in found:
            if name not in allowed:
                self._wrong(f"{where}{name} is unknown; {nearest(name, allowed)}")

    def _list(self, content: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
        told = content.get(name, [])
        if not isinstance(told, list) or not all(isinstance(each, dict) for each in told):
            self._wrong(f"{name} must be tables, [[{name}]] before each")
        return list(told)

    def _texts(self, where: str, told: object) -> tuple[str, ...]:
        held = [told] if isinstance(told, str) else told
        if not isinstance(held, list) or not held or not all(isinstance(each, str) for each in held):
            self._wrong(f"{where} must be a text or a list of texts")
        return tuple(map(str, held)) if isinstance(held, list) else ()

    def _name(self, where: str, told: object) -> str:
        if not isinstance(told, str) or not NAME.fullmatch(told):
            self._wrong(f"{where} must be a name without blanks")
        return str(told)

    def _money(self, where: str, told: object) -> Decimal:
        try:
            value = Decimal(told) if isinstance(told, str) else Decimal("NaN")
        except InvalidOperation:
            value = Decimal("NaN")
        if not value.is_finite() or not 0 <= value < Decimal(10) ** 18:
            self._wrong(f'{where} must be a number in quotes that is not negative, such as "12.50"')
        return value

    def _currency(self, told: object) -> str:
        if not (isinstance(told, str) and len(told) == len("USD") and told.isalpha() and told.isupper()):
            self._wrong('currency must be a code of ISO 4217 such as "USD"')
        return str(told)

    def _wrong(self, what: str) -> None:
        raise ConfigError(f"{self.path}: {what}. Correct the allocation.")
