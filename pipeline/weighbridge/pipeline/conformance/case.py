"""A conformance case: what an API answered, and what that must be read as. docs/conformance.md gives the format.

Messages about a case name its fields, never what stands in them: a case may be made from a real answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from weighbridge.pipeline.conformance import terms
from weighbridge.pipeline.conformance.malformed import MalformedCaseError
from weighbridge.pipeline.ingest.terms import Told
from weighbridge.pipeline.price import keys
from weighbridge.pipeline.price.row import Match, PriceRow
from weighbridge.pipeline.price.tier import ALL_INPUT, Tier
from weighbridge.schemas.enumerations import FeeKind, TierRule, TokenClass, Verdict
from weighbridge.schemas.lattice import INPUT_CLASSES
from weighbridge.schemas.tables import NAME

KINDS = ("usage", "stream", "price", "dedup", "period", "engine", "numeric", "other")
RECORDS = "records"
BODIES = ("usage", "response", "events")
TOTALS = ("input_total", "output_total", "total")
ESTIMATES = (*TOTALS, "cost")
BY_MODEL, BY_TIER, ABOVE = "prices_by_model", "prices_by_service_tier", "prices_above"
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
WORD = re.compile(r"[a-z][a-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class Case:
    """A case whose outer shape is sound.

    Attributes:
        id, kind: its name, and what it is about.
        provider, api: who answered, through which API.
        given: the whole input.
        expect: the whole expectation.
    """

    id: str
    kind: str
    provider: str
    api: str
    given: Mapping[str, Any]
    expect: Mapping[str, Any]

    @classmethod
    def of(cls, case: Mapping[str, Any]) -> Case:
        """Check the outer shape.

        Raises:
            MalformedCaseError: a field is missing or of another type.
        """
        given, expect = (mapping(case.get(name), name) for name in ("input", "expect"))
        kind = case.get("kind")
        if kind not in KINDS:
            raise MalformedCaseError(f"kind is none of {', '.join(KINDS)}")
        provider, api = (_named(given.get(name), f"input.{name}") for name in ("provider", "api"))
        return cls(case_id(case), str(kind), provider, api, given, expect)

    @property
    def body(self) -> str | None:
        """Where the answer stands: `usage`, `response` or `events`; null where the case has none of them.

        Raises:
            MalformedCaseError: it has more than one.
        """
        found = [name for name in BODIES if name in self.given]
        if len(found) > 1:
            raise MalformedCaseError(f"input has {' and '.join(found)}; one of {', '.join(BODIES)} is expected")
        return found[0] if found else None

    @property
    def context(self) -> Mapping[str, Any]:
        """What is known beside the answer."""
        return mapping(self.given.get("context", {}), "input.context")

    def record(self) -> dict[str, object]:
        """The part of the input that `read_usage` reads."""
        names = ("provider", "api", "model", "context", *BODIES)
        return {name: self.given[name] for name in names if name in self.given}

    def price_tables(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Every table of prices of the case, with its place. Of a model only its number is told, not its name.

        Raises:
            MalformedCaseError: one of them is no object.
        """
        if self.given.get("prices") is not None:
            yield "input.prices", mapping(self.given["prices"], "input.prices")
        for name in (BY_MODEL, BY_TIER):
            tables = mapping(self.given.get(name, {}), f"input.{name}")
            for number, prices in enumerate(tables.values(), 1):
                where = f"input.{name}.{number}"
                if prices is not None:
                    yield where, mapping(prices, where)
        for number, above in enumerate(self.above, 1):
            where = f"input.{ABOVE}.{number}.prices"
            yield where, mapping(above.get("prices"), where)

    @property
    def above(self) -> list[Mapping[str, Any]]:
        """The prices above lengths of input: one object, or a list of them.

        Raises:
            MalformedCaseError: it is neither.
        """
        found = self.given.get(ABOVE, [])
        return [mapping(each, f"input.{ABOVE}") for each in (found if isinstance(found, list) else [found])]

    def prices_of(self, model: str | None, told: Told | None = None) -> PriceRow | None:
        """The prices of a model as a row of a book: its own, else those of the case if it is the model of the case.

        Args:
            model: the model.
            told: what the answer itself says of its terms.

        Raises:
            MalformedCaseError: a price is no decimal string of at most 12 places, or the model of the case is no text.
        """
        own = self.given.get("model")
        if own is not None and not isinstance(own, str):
            raise MalformedCaseError(f"input.model is {_kind(own)}; a text or null is expected")
        by_model = mapping(self.given.get(BY_MODEL, {}), f"input.{BY_MODEL}")
        where, written = f"input.{BY_MODEL}", by_model.get(model or "")
        if (model or "") not in by_model and model in {None, own}:
            tier = terms.tier_of(self.context, told)
            where, written = "input.prices", self.given.get("prices")
            if BY_TIER in self.given:
                where, written = f"input.{BY_TIER}", mapping(self.given[BY_TIER], f"input.{BY_TIER}").get(tier)
        return None if written is None else self._row(written, where)

    def _row(self, written: object, where: str) -> PriceRow:
        times = terms.factor_of(self.context)
        prices = {cell: each * times for cell, each in keys.expand(self._decimals(written, where, keys.KEYS)).items()}
        above = [self._tier(tier, times, prices) for tier in self.above]
        fees = self._decimals(self.given.get("fees", {}), "input.fees", [str(kind) for kind in FeeKind])
        return PriceRow(
            provider=self.provider,
            match=Match.PREFIX,
            model="",
            prices=prices,
            currency="USD",
            origin="case",
            above=tuple(sorted(above, key=lambda tier: tier.above)),
            fees={FeeKind(kind): each for kind, each in fees.items()},
        )

    def _tier(self, told: Mapping[str, Any], times: Decimal, base: Mapping[keys.PriceKey, Decimal]) -> Tier:
        where = f"input.{ABOVE}"
        threshold, rule, counts = (told.get(name) for name in ("threshold_tokens", "rule", "compares"))
        if not isinstance(threshold, int) or isinstance(threshold, bool) or threshold < 1:
            raise MalformedCaseError(f"{where}.threshold_tokens is no whole number above 0")
        if rule not in set(TierRule):
            raise MalformedCaseError(f"{where}.rule is none of {', '.join(TierRule)}")
        named = [] if counts == ALL_INPUT else counts
        classes = [str(name) for name in INPUT_CLASSES]
        if not isinstance(named, list) or not all(name in classes for name in named):
            raise MalformedCaseError(
                f"{where}.compares is neither {ALL_INPUT} nor a list of some of {', '.join(classes)}"
            )
        written = self._decimals(told.get("prices"), f"{where}.prices", keys.KEYS)
        prices = {cell: each * times for cell, each in keys.expand_above(written, (), base).items()}
        return Tier(threshold, TierRule(str(rule)), tuple(TokenClass(name) for name in named), prices)

    def _decimals(self, written: object, where: str, known: Collection[str]) -> dict[str, Decimal]:
        found: dict[str, Decimal] = {}
        for key, text in mapping(written, where).items():
            if key not in known:
                raise MalformedCaseError(f"{where} has a key that is none of {', '.join(known)}")
            try:
                found[key] = keys.price(text)
            except (TypeError, ValueError) as error:
                raise MalformedCaseError(f"{where}.{key} {error}") from None
        return found


def parsed(line: bytes) -> Mapping[str, Any]:
    """The case on one line.

    Raises:
        MalformedCaseError: the line is not one JSON object, or names a key twice.
    """
    try:
        case = json.loads(
            line, parse_float=Decimal, parse_constant=_no_constant, object_pairs_hook=_without_repeated_keys
        )
    except RecursionError:
        raise MalformedCaseError("is nested too deeply") from None
    except MalformedCaseError:
        raise
    except ValueError:
        # The parser's own message can quote what it read.
        raise MalformedCaseError("is not JSON; one object a line is expected") from None
    return mapping(case, "the line")


def case_id(case: Mapping[str, Any]) -> str:
    """The id of a case.

    Raises:
        MalformedCaseError: it has none, or one that is no plain name.
    """
    found = case.get("id")
    if not isinstance(found, str) or not ID.fullmatch(found):
        raise MalformedCaseError(f"id is missing or does not match {ID.pattern}")
    return found


def mapping(value: object, where: str) -> Mapping[str, Any]:
    """`value`, if it is an object whose keys are plain words.

    Raises:
        MalformedCaseError: it is not.
    """
    if not isinstance(value, Mapping):
        raise MalformedCaseError(f"{where} is {_kind(value)}; an object is expected")
    return value


def word(value: object, where: str) -> str:
    """A name of our own, as a flag or a key is, with '_' for '-'.

    Raises:
        MalformedCaseError: it is none.
    """
    if not isinstance(value, str) or not WORD.fullmatch(value):
        raise MalformedCaseError(f"{where} has a name that does not match {WORD.pattern}")
    return value.replace("-", "_")


def count(value: object, where: str) -> int | None:
    """An expected number of tokens, or null for unknown.

    Raises:
        MalformedCaseError: it is neither.
    """
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise MalformedCaseError(f"{where} is {_kind(value)}; a whole number or null is expected")


def money(value: object, where: str) -> Decimal | None:
    """An expected amount, or null for unknown.

    Raises:
        MalformedCaseError: it is neither.
    """
    if value is None:
        return None
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,30}(\.\d{1,30})?", value):
        return Decimal(value)
    raise MalformedCaseError(f"{where} is {_kind(value)}; a plain decimal in quotes or null is expected")


def verdict(value: object) -> Verdict:
    """An expected verdict, in any case of letters.

    Raises:
        MalformedCaseError: it is none.
    """
    if isinstance(value, str) and value.upper() in set(Verdict):
        return Verdict(value.upper())
    raise MalformedCaseError(f"expect.verdict is none of {', '.join(each.lower() for each in Verdict)}")


def names(value: object, where: str) -> list[str]:
    """A list of flags.

    Raises:
        MalformedCaseError: it is no list of names.
    """
    if not isinstance(value, list):
        raise MalformedCaseError(f"{where} is {_kind(value)}; a list of names is expected")
    return [word(each, where) for each in value]


def _named(value: object, where: str) -> str:
    if not isinstance(value, str) or not re.fullmatch(NAME, value):
        raise MalformedCaseError(f"{where} is missing or does not match {NAME}")
    return value


def _kind(value: object) -> str:
    return "missing" if value is None else f"a {type(value).__name__}"


def _no_constant(_: str) -> object:
    raise MalformedCaseError("holds NaN or an infinity, which is not JSON")


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) < len(pairs):
        raise MalformedCaseError("names a key twice in one object")
    return out
