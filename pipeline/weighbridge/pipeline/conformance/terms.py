"""The terms a case was served on: what its answer says, else what stands beside it in `context`.

response_service_tier        the tier the answer named
requested_service_tier       the one asked for, where the answer says nothing
batch, batch_multiplier      part of a batch job, and what every price is multiplied by then
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from weighbridge.pipeline.conformance.malformed import MalformedCaseError
from weighbridge.pipeline.ingest.terms import DEFAULT, TIERS, Told
from weighbridge.pipeline.price import keys

REQUESTED, RESPONDED = "requested_service_tier", "response_service_tier"
BATCH, MULTIPLIER = "batch", "batch_multiplier"
CONTEXT = frozenset({REQUESTED, RESPONDED, BATCH, MULTIPLIER})
PRICED_AT = ("service_tier", "tier")


def tier_of(context: Mapping[str, Any], told: Told | None) -> str:
    """The service tier, in the words of the table `reading`.

    Raises:
        MalformedCaseError: one of them is no text.
    """
    said = None if told is None else told.service_tier
    for name in (RESPONDED, REQUESTED):
        value = context.get(name)
        if value is not None and not isinstance(value, str):
            raise MalformedCaseError(f"input.context.{name} is no text")
        said = said or value
    return TIERS.get(said or DEFAULT, said or DEFAULT)


def factor_of(context: Mapping[str, Any]) -> Decimal:
    """What the prices are multiplied by: one, but in a batch job.

    Raises:
        MalformedCaseError: `batch` is no boolean, or the factor of a batch job is missing or no decimal in quotes.
    """
    batch = context.get(BATCH, False)
    if not isinstance(batch, bool):
        raise MalformedCaseError(f"input.context.{BATCH} is no boolean")
    if not batch:
        return Decimal(1)
    try:
        return keys.price(context.get(MULTIPLIER))
    except (TypeError, ValueError) as error:
        raise MalformedCaseError(f"input.context.{MULTIPLIER} {error}") from None
