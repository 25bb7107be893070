"""One row of the price book: for which models and days it holds, and what a million tokens of each class cost."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from enum import StrEnum

from weighbridge.pipeline.price.keys import PriceKey, digits
from weighbridge.pipeline.price.terms import Terms
from weighbridge.pipeline.price.tier import Bracket, Tier, brackets
from weighbridge.schemas.enumerations import FeeKind, TierRule, TokenClass
from weighbridge.schemas.identity import framed


class Match(StrEnum):
    """How a row names its models, most specific first."""

    EQUALS = "equals"
    PREFIX = "prefix"
    PATTERN = "pattern"


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRow:
    """One row.

    Attributes:
        provider: who charges.
        match, model: which models it is for: exactly this name, names that start with it, or names that this regular
            expression matches whole.
        valid_from: the first UTC day, null where unknown.
        valid_to: the first UTC day on which it no longer holds, null while it does.
        currency: ISO 4217.
        origin: where the figures were read.
        checked_on: when they were last compared with their origin.
        up_to_input_tokens: the row knows no price for readings with more input tokens than this; null: no such limit.
        prices: (class, modality) -> price of a million tokens. A cell that is not in it has no known price.
        terms: the terms it is for.
        above: prices above lengths of input, lowest first.
        fees: what is charged by use -> price of a thousand uses.
        where: file and row, for messages.
        price_id: hash of the content, without `checked_on`: looking again changes no price.
    """

    provider: str
    match: Match
    model: str
    prices: Mapping[PriceKey, Decimal]
    currency: str
    origin: str
    valid_from: date | None = None
    valid_to: date | None = None
    checked_on: date | None = None
    up_to_input_tokens: int | None = None
    terms: Terms = field(default_factory=Terms)
    above: tuple[Tier, ...] = ()
    fees: Mapping[FeeKind, Decimal] = field(default_factory=dict)
    where: str = ""
    brackets: tuple[Bracket, ...] = field(init=False, compare=False, repr=False)
    price_id: str = field(init=False)

    def __post_init__(self) -> None:
        """Derive the brackets and the id."""
        object.__setattr__(self, "brackets", brackets(self.prices, self.above, self.up_to_input_tokens))
        object.__setattr__(self, "price_id", hashlib.sha256(framed(*self._content())).hexdigest()[:32])

    def __hash__(self) -> int:
        """As the id, which follows from the content."""
        return hash(self.price_id)

    def _content(self) -> list[str]:
        limits = (self.valid_from, self.valid_to, self.up_to_input_tokens)
        prices = sorted((*key, digits(value)) for key, value in self.prices.items())
        fees = sorted((kind, digits(value)) for kind, value in self.fees.items())
        return [
            self.provider,
            self.match,
            self.model,
            *("" if limit is None else str(limit) for limit in limits),
            self.currency,
            self.origin,
            *(part for item in prices for part in item),
            # A row without these has the id it had before there were any.
            *self.terms.content,
            *(part for tier in self.above for part in tier.content),
            *(["fees"] if fees else []),
            *(part for item in fees for part in item),
        ]

    def within(self, bracket: Bracket) -> PriceRow:
        """The row as it is for readings in one of its brackets: without tiers."""
        if len(self.brackets) == 1:
            return self
        return replace(self, prices=bracket.prices, above=(), up_to_input_tokens=None)

    @property
    def counted(self) -> tuple[TokenClass, ...]:
        """The classes whose tokens decide its bracket, in the order in which they count; empty: all of input."""
        return self.above[0].counted if self.above else ()

    @property
    def marginal(self) -> bool:
        """Whether only the tokens beyond a threshold pay the price above it."""
        return bool(self.above) and self.above[0].rule is TierRule.MARGINAL

    def bracket_of(self, counted: int | None) -> int:
        """The index of the bracket of a reading of which so many tokens count; null: without end."""
        if counted is None:
            return len(self.brackets) - 1
        return max(sum(bracket.beyond < counted for bracket in self.brackets) - 1, 0)

    def serves(self, model: str) -> bool:
        """Whether the row is for this model."""
        if self.match is Match.EQUALS:
            return model == self.model
        if self.match is Match.PREFIX:
            return model.startswith(self.model)
        return re.fullmatch(self.model, model) is not None

    def holds_on(self, day: date) -> bool:
        """Whether the row holds on this UTC day; an unknown start is before every day."""
        return (self.valid_from is None or self.valid_from <= day) and (self.valid_to is None or day < self.valid_to)

    @property
    def specificity(self) -> tuple[int, int]:
        """Larger is more specific: equals, then the longest prefix, then a pattern."""
        if self.match is Match.EQUALS:
            return 2, 0
        return (1, len(self.model)) if self.match is Match.PREFIX else (0, 0)
