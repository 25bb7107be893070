"""Prices, terms, tiers and fees as a row of a price file has them; docs/price-book.md describes the format."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any

from weighbridge.pipeline.price import keys
from weighbridge.pipeline.price.place import Place
from weighbridge.pipeline.price.terms import AUTO, DEFAULT, EVERYWHERE, Hours, Terms
from weighbridge.pipeline.price.tier import ALL_INPUT, Tier
from weighbridge.schemas.enumerations import FeeKind, Modality, TierRule, TokenClass
from weighbridge.schemas.lattice import INPUT_CLASSES
from weighbridge.schemas.tables import NAME

WHEN_KEYS = ("service_tier", "batch", "region", "hours")
TIER_KEYS = ("input_tokens", "rule", "counts", "prices")
FEES = tuple(str(kind) for kind in FeeKind)
_FACTOR = re.compile(r"[0-9]{1,3}(\.[0-9]{1,6})?")


def prices_of(place: Place, table: Mapping[str, Any]) -> dict[str, Decimal]:
    """The key `prices`: price key -> price per million."""
    found = _decimals(place, table, "prices", keys.KEYS)
    if not found:
        place.wrong("'prices' has no price; leave the row out where none is known")
    return found


def fees_of(place: Place, table: Mapping[str, Any]) -> dict[FeeKind, Decimal]:
    """The key `fees`: what is charged by use -> price of a thousand uses."""
    return {FeeKind(kind): each for kind, each in _decimals(place, table, "fees", FEES, {}).items()}


def factor(place: Place, table: Mapping[str, Any]) -> Decimal | None:
    """The key `times`: what the prices of the row are multiplied by; null where they are not."""
    text = place.get(table, "times", str, None)
    if text is None:
        return None
    if not _FACTOR.fullmatch(text) or not Decimal(text):
        place.wrong(f'\'times\' is {text!r}; a decimal above zero such as "0.5" or "1.1" is expected')
    return Decimal(text)


def multiplied(
    place: Place, prices: Mapping[keys.PriceKey, Decimal], times: Decimal | None
) -> dict[keys.PriceKey, Decimal]:
    """The prices times a factor, exactly."""
    if times is None:
        return dict(prices)
    out = {cell: keys.plain(price * times) for cell, price in prices.items()}
    for price in out.values():
        if price >= keys.HIGHEST or -int(price.as_tuple().exponent) > keys.PLACES:
            place.wrong(
                f"'times' makes a price that is not below {keys.HIGHEST} or has more than {keys.PLACES} places; "
                "write the prices themselves"
            )
    return out


def terms_of(place: Place, table: Mapping[str, Any]) -> Terms:
    """The key `when`: the terms the row is for."""
    when = place.get(table, "when", dict, {})
    place.keys(when, WHEN_KEYS)
    if "when" in table and not when:
        place.wrong(f"'when' is empty; it has some of {', '.join(WHEN_KEYS)}, or is left out for standard terms")
    tier, region = (_name(place, when, name) for name in ("service_tier", "region"))
    if tier in {DEFAULT, AUTO}:
        place.wrong(f"'service_tier' is {tier!r}; a row without it is the price on the default tier")
    if tier == "batch":
        place.wrong("'service_tier' is 'batch'; write batch = true")
    if region == EVERYWHERE:
        place.wrong(f"'region' is {EVERYWHERE!r}; a row without it is the price wherever no other holds")
    hours = place.get(when, "hours", str, None)
    try:
        spent = None if hours is None else Hours.of(hours)
    except ValueError as error:
        place.wrong(f"'hours' {hours!r} {error}")
    return Terms(tier, place.get(when, "batch", bool, False), region, spent)


def tiers_of(
    place: Place,
    table: Mapping[str, Any],
    modalities: Collection[Modality],
    base: Mapping[keys.PriceKey, Decimal],
    times: Decimal | None,
    limit: int | None,
) -> tuple[Tier, ...]:
    """The key `above`: prices above lengths of input, lowest first.

    Args:
        place: of the row, for messages.
        table: the row.
        modalities: charged like text.
        base: the row's own prices.
        times: what the prices are multiplied by; null: as they stand.
        limit: `up_to_input_tokens` of the row.
    """
    found = [_tier(place, told, modalities, base, times) for told in place.get(table, "above", list, [])]
    if len({tier.above for tier in found}) < len(found):
        place.wrong("'above' names one threshold twice")
    if len({(tier.rule, tier.counted) for tier in found}) > 1:
        place.wrong("'above' has several rules, or counts several things; a row has one 'rule' and one 'counts'")
    if found and limit is not None and (found[0].counted or found[0].rule is TierRule.MARGINAL):
        place.wrong(
            f"'up_to_input_tokens' is about all of input and every token of it; beside it 'above' counts {ALL_INPUT} "
            f"by the rule {TierRule.CLIFF}"
        )
    return tuple(sorted(found, key=lambda tier: tier.above))


def _tier(
    place: Place,
    told: object,
    modalities: Collection[Modality],
    base: Mapping[keys.PriceKey, Decimal],
    times: Decimal | None,
) -> Tier:
    if not isinstance(told, dict):
        place.wrong(
            '\'above\' lists tables such as { input_tokens = 200000, rule = "cliff", prices = { input = "5" } }'
        )
    place.keys(told, TIER_KEYS)
    above = place.get(told, "input_tokens", int)
    if above < 1:
        place.wrong("'input_tokens' of 'above' is below one; the prices of the row hold there")
    word = place.get(told, "rule", str)
    if word not in set(TierRule):
        place.wrong(f"'rule' is {word!r}; it is one of {', '.join(TierRule)}")
    counted = _counted(place, told)
    own = multiplied(place, keys.expand_above(prices_of(place, told), modalities, base), times)
    if word == TierRule.MARGINAL:
        beside = sorted({str(token_class) for token_class, _ in own if token_class not in counted})
        if not counted or beside:
            place.wrong(
                "the rule 'marginal' needs 'counts', a list of the classes that count in the order in which they fill "
                f"up to the threshold, and prices of these only; not of {', '.join(beside) or 'all of input'}"
            )
    return Tier(above, TierRule(word), counted, own)


def _counted(place: Place, told: Mapping[str, Any]) -> tuple[TokenClass, ...]:
    words = told.get("counts", ALL_INPUT)
    if words == ALL_INPUT:
        return ()
    known = [str(name) for name in INPUT_CLASSES]
    if not isinstance(words, list) or not words or len(set(map(str, words))) < len(words):
        place.wrong(f"'counts' is \"{ALL_INPUT}\" or a list of some of {', '.join(known)}, each once")
    for word in words:
        if word not in known:
            place.wrong(f"'counts' has {word!r}; it lists some of {', '.join(known)}")
    return tuple(TokenClass(word) for word in words)


def _name(place: Place, table: Mapping[str, Any], key: str) -> str | None:
    value = place.get(table, key, str, None)
    if value is not None and not re.fullmatch(NAME, value):
        place.wrong(f"{key!r} is {value!r}; it must match {NAME}")
    return None if value is None else str(value)


def _decimals(
    place: Place, table: Mapping[str, Any], name: str, allowed: Collection[str], *default: Any
) -> dict[str, Decimal]:
    written = place.get(table, name, dict, *default)
    place.keys(written, allowed)
    found: dict[str, Decimal] = {}
    for key, text in written.items():
        try:
            found[key] = keys.price(text)
        except (TypeError, ValueError) as error:
            place.wrong(f"{'price' if name == 'prices' else 'fee'} {key!r} {error}")
    return found
