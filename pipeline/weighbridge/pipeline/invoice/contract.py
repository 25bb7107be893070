"""A contract: what was agreed with one provider beside its list prices. One TOML file each.

provider = "openai"
zone = "UTC"                       # zone its billing months and days are in
lateness_hours = 48                # how long after its end a period may still get charges
currency = "USD"                   # what it bills in, where lines of several currencies come

[models]                           # its name of a model = ours
"Claude3.5Sonnet" = "claude-3-5-sonnet-20241022"
[projects]                         # its project or workspace (name or pseudonym) = tenant (name or pseudonym)
"proj_abc" = "acme"
[keys]                             # its key (name or pseudonym) = tenant; goes before that of its project
"key_1" = "acme"
[skus."B-2"]                       # what a SKU charges, where its words do not say so
kind = "tokens"
token_class = "cache_read"

[rates]                            # of currencies
on = "charge_day"                  # charge_day, period_end or issue_day
missing = "refuse"                 # a day without a rate: refuse, or nearest_before (at most 7 days)
[rounding]                         # how it rounds what it charges
places = 2
mode = "half_even"                 # half_even, half_up, up or down
per = "line"                       # line or day

[[discounts]]                      # applied in this order: discounts, volume, commitment, minimum, credits
percent = "10"
models = ["gpt-4o"]                # all where left out; likewise classes, from, to (exclusive)
[[volume]]                         # of what a month costs after discounts, the part above `above` gets `percent`
above = "1000"
percent = "5"
[commitment]                       # paid whether used or not; usage draws it down, what is left is its shortfall
amount = "5000"                    # of a month
percent = "3"                      # discount on what draws on it
[minimum]
amount = "100"                     # of a month
[[credits]]                        # used up in order of expiry
name = "welcome"
amount = "500"
from = 2026-04-01
to = 2026-10-01                    # exclusive
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from weighbridge.pipeline.ingest.charges.mapping import sku_table
from weighbridge.pipeline.settings.shape import nearest
from weighbridge.schemas.enumerations import TokenClass
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import NAME

ON = ("charge_day", "period_end", "issue_day")
MISSING = ("refuse", "nearest_before")
MODES = ("half_even", "half_up", "up", "down")
PER = ("line", "day")
_MOST_HOURS, _MOST_PLACES = 24 * 62, 18
_HUNDRED = Decimal(100)


@dataclass(frozen=True, slots=True)
class Rounding:
    """How a provider rounds: to how many places, which way, and what."""

    places: int
    mode: str = "half_even"
    per: str = "line"


@dataclass(frozen=True, slots=True)
class Discount:
    """A part off list prices, as a fraction; for some models, classes and days only, where they are named."""

    fraction: Decimal
    models: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    first: date | None = None
    end: date | None = None


@dataclass(frozen=True, slots=True)
class Credit:
    """A balance that pays for usage from a day on, up to another one."""

    name: str
    amount: Decimal
    first: date
    end: date | None = None


@dataclass(frozen=True, slots=True)
class Contract:
    """What was agreed with one provider. Without a file everything is at its default: list prices, UTC, no rounding.

    Attributes:
        zone_agreed: whether the file names the zone; else the bills may (`zones_of_bills.zoned`).
        volume: (above, fraction) in rising order: the part of a month's cost above `above` gets the fraction off.
        commitment: (amount of a month, fraction off what draws on it); null for none.
    """

    provider: str
    zone: str = "UTC"
    zone_agreed: bool = False
    lateness_hours: int = 48
    currency: str | None = None
    models: Mapping[str, str] = field(default_factory=dict)
    projects: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    skus: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    rates_on: str = "charge_day"
    rates_missing: str = "refuse"
    rounding: Rounding | None = None
    discounts: tuple[Discount, ...] = ()
    volume: tuple[tuple[Decimal, Decimal], ...] = ()
    commitment: tuple[Decimal, Decimal] | None = None
    minimum: Decimal | None = None
    credits: tuple[Credit, ...] = ()


def load_contracts(paths: Iterable[Path]) -> dict[str, Contract]:
    """Provider -> its contract, from files or folders of them.

    Raises:
        ConfigError: a file cannot be used as written, or two are about one provider.
    """
    found: dict[str, Contract] = {}
    for path in paths:
        for file in sorted(path.glob("*.toml")) if path.is_dir() else [path]:
            contract = load_contract(file)
            if contract.provider in found:
                raise ConfigError(f"{file}: there is another contract with {contract.provider}; put them into one file")
            found[contract.provider] = contract
    return found


def load_contract(path: Path) -> Contract:
    """The contract of a file.

    Raises:
        ConfigError: it is no TOML, has an unknown key (the nearest one is named) or a value that cannot be used.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"the contract {path} cannot be read: {error}. Correct it, or name another.") from error
    return _Reader(path).contract(content)


@dataclass(frozen=True, slots=True)
class _Reader:
    """A contract while it is read."""

    path: Path

    def contract(self, content: Mapping[str, Any]) -> Contract:
        known = (
            *("provider", "zone", "lateness_hours", "currency", "models", "projects", "keys", "skus", "rates"),
            *("rounding", "discounts", "volume", "commitment", "minimum", "credits"),
        )
        self._known("", content, known)
        provider = content.get("provider")
        if not isinstance(provider, str) or not NAME.fullmatch(provider):
            self._wrong('it needs provider = "...", the name of the provider as `findings ls` shows it')
        rates, commitment = self._table(content, "rates", ("on", "missing")), content.get("commitment")
        return Contract(
            provider=str(provider),
            zone=self._zone(content.get("zone", "UTC")),
            zone_agreed="zone" in content,
            lateness_hours=self._whole("lateness_hours", content.get("lateness_hours", 48), _MOST_HOURS),
            currency=self._currency(content.get("currency")),
            models=self._names(content, "models"),
            projects=self._names(content, "projects"),
            keys=self._names(content, "keys"),
            skus={sku: sku_table(f"{self.path}: skus.{sku!r}", told) for sku, told in content.get("skus", {}).items()},
            rates_on=self._one_of("rates.on", rates.get("on", ON[0]), ON),
            rates_missing=self._one_of("rates.missing", rates.get("missing", MISSING[0]), MISSING),
            rounding=self._rounding(content),
            discounts=tuple(self._discount(each) for each in self._list(content, "discounts")),
            volume=tuple(sorted(self._band(each) for each in self._list(content, "volume"))),
            commitment=None if commitment is None else self._commitment(content),
            minimum=self._minimum(content),
            credits=tuple(sorted(map(self._credit, self._list(content, "credits")), key=_expiry)),
        )

    def _rounding(self, content: Mapping[str, Any]) -> Rounding | None:
        if "rounding" not in content:
            return None
        told = self._table(content, "rounding", ("places", "mode", "per"))
        return Rounding(
            self._whole("rounding.places", told.get("places"), _MOST_PLACES),
            self._one_of("rounding.mode", told.get("mode", MODES[0]), MODES),
            self._one_of("rounding.per", told.get("per", PER[0]), PER),
        )

    def _discount(self, told: Mapping[str, Any]) -> Discount:
        self._known("discounts.", told, ("percent", "models", "classes", "from", "to"))
        classes = self._texts("discounts.classes", told.get("classes", []))
        if unknown := [name for name in classes if name not in set(TokenClass)]:
            self._wrong(f"discounts.classes has {unknown[0]!r}; allowed are {', '.join(TokenClass)}")
        models = self._texts("discounts.models", told.get("models", []))
        first, end = (self._day(f"discounts.{key}", told.get(key)) for key in ("from", "to"))
        return Discount(self._percent("discounts.percent", told.get("percent")), models, classes, first, end)

    def _band(self, told: Mapping[str, Any]) -> tuple[Decimal, Decimal]:
        self._known("volume.", told, ("above", "percent"))
        return self._money("volume.above", told.get("above")), self._percent("volume.percent", told.get("percent"))

    def _commitment(self, content: Mapping[str, Any]) -> tuple[Decimal, Decimal]:
        told = self._table(content, "commitment", ("amount", "percent"))
        fraction = self._percent("commitment.percent", told.get("percent", "0"))
        return self._money("commitment.amount", told.get("amount")), fraction

    def _minimum(self, content: Mapping[str, Any]) -> Decimal | None:
        if "minimum" not in content:
            return None
        return self._money("minimum.amount", self._table(content, "minimum", ("amount",)).get("amount"))

    def _credit(self, told: Mapping[str, Any]) -> Credit:
        self._known("credits.", told, ("name", "amount", "from", "to"))
        name, first = told.get("name"), self._day("credits.from", told.get("from"))
        if not isinstance(name, str) or not NAME.fullmatch(name) or first is None:
            self._wrong("each of [[credits]] needs a name without blanks and a day from = 2026-04-01")
        end = self._day("credits.to", told.get("to"))
        return Credit(str(name), self._money("credits.amount", told.get("amount")), first or date.min, end)

    def _known(self, where: str, found: Collection[str], allowed: Collection[str]) -> None:
        for name in found:
            if name not in allowed:
                self._wrong(f"{where}{name} is unknown; {nearest(name, allowed)}")

    def _table(self, content: Mapping[str, Any], name: str, allowed: Collection[str]) -> Mapping[str, Any]:
        told = content.get(name, {})
        if not isinstance(told, dict):
            self._wrong(f"{name} must be a table, [{name}] on a line of its own")
        self._known(f"{name}.", told, allowed)
        return dict(told)

    def _list(self, content: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
        told = content.get(name, [])
        if not isinstance(told, list) or not all(isinstance(each, dict) for each in told):
            self._wrong(f"{name} must be tables, [[{name}]] before each")
        return list(told)

    def _names(self, content: Mapping[str, Any], name: str) -> dict[str, str]:
        told = content.get(name, {})
        if not isinstance(told, dict) or not all(isinstance(value, str) and value for value in told.values()):
            self._wrong(f'{name} must be lines such as "theirs" = "ours"')
        return dict(told)

    def _texts(self, where: str, told: object) -> tuple[str, ...]:
        if not isinstance(told, list) or not all(isinstance(each, str) for each in told):
            self._wrong(f"{where} must be a list of texts")
        return tuple(told) if isinstance(told, list) else ()

    def _money(self, where: str, told: object) -> Decimal:
        return self._decimal(where, told, lambda value: 0 <= value < Decimal(10) ** 20)

    def _percent(self, where: str, told: object) -> Decimal:
        return self._decimal(where, told, lambda value: 0 <= value <= _HUNDRED) / _HUNDRED

    def _decimal(self, where: str, told: object, fits: Callable[[Decimal], bool]) -> Decimal:
        try:
            value = Decimal(told) if isinstance(told, str) else Decimal("NaN")
        except InvalidOperation:
            value = Decimal("NaN")
        if not value.is_finite() or not fits(value):
            self._wrong(
                f'{where} must be a number in quotes that is not negative, such as "12.50"; a percentage is at most 100'
            )
        return value

    def _whole(self, where: str, told: object, most: int) -> int:
        if not isinstance(told, int) or isinstance(told, bool) or not 0 <= told <= most:
            self._wrong(f"{where} must be a whole number from 0 to {most}")
        return int(str(told))

    def _one_of(self, where: str, told: object, allowed: Collection[str]) -> str:
        if told not in allowed:
            self._wrong(f"{where} is {told!r}; allowed are {', '.join(allowed)}")
        return str(told)

    def _day(self, where: str, told: object) -> date | None:
        if told is not None and (not isinstance(told, date) or isinstance(told, datetime)):
            self._wrong(f"{where} must be a day such as 2026-04-01, without quotes")
        return told if isinstance(told, date) else None

    def _currency(self, told: object) -> str | None:
        if told is not None and not (isinstance(told, str) and len(told) == 3 and told.isalpha() and told.isupper()):
            self._wrong('currency must be a code of ISO 4217 such as "USD"')
        return None if told is None else str(told)

    def _zone(self, told: object) -> str:
        try:
            ZoneInfo(str(told))
        except (ZoneInfoNotFoundError, ValueError, OSError):
            self._wrong(f"zone {told!r} is no IANA time zone, such as UTC or America/Los_Angeles")
        return str(told)

    def _wrong(self, what: str) -> None:
        raise ConfigError(f"{self.path}: {what}. Correct the contract.")


def _expiry(credit: Credit) -> tuple[date, date, str]:
    return credit.end or date.max, credit.first, credit.name
