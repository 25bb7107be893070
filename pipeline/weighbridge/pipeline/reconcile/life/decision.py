"""What somebody decides about a finding, and what such a decision needs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any

from weighbridge.schemas.enumerations import FindingState
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import NAME
from weighbridge.schemas.tables import CURRENCY

_MONEY = (FindingState.DISPUTED, FindingState.CREDITED)
_PLACES = 18
_DIGITS = 38


@dataclass(frozen=True, slots=True)
class Decision:
    """One change of a finding.

    Attributes:
        state: what it becomes.
        by: who says so.
        reason: why.
        expires: last UTC day of a waiver.
        amount, currency: money of a dispute or a credit; of a closed finding what it was about.
        reference: what the provider calls it, or where it was seen.
    """

    state: FindingState
    by: str
    reason: str | None = None
    expires: date | None = None
    amount: Decimal | None = None
    currency: str | None = None
    reference: str | None = None

    def check(self, today: date) -> None:
        """See that it says what its state needs.

        Raises:
            ConfigError: it does not.
        """
        if not NAME.fullmatch(self.by):
            raise ConfigError(
                f"{self.by!r} cannot be used as a name; letters, digits and . _ : / @ - are allowed, no blanks"
            )
        if self.state is not FindingState.WAIVED and self.expires is not None:
            raise ConfigError(
                f"only a waiver has a last day; leave it out, or waive the finding instead of {self.state}"
            )
        given = (self.reason or "").strip()
        if self.state is FindingState.WAIVED and not given:
            raise ConfigError("a waiver needs a reason; say in a few words why the finding may rest")
        if self.state is FindingState.WAIVED and (self.expires is None or self.expires < today):
            raise ConfigError(
                f"a waiver needs a last day that is not over; {self.expires} is no such day, today is {today}"
            )
        if self.state is FindingState.OPEN and not given:
            raise ConfigError("opening a finding again needs a reason; say in a few words what came up")
        self._check_money()

    def _check_money(self) -> None:
        if self.state not in _MONEY and (self.amount, self.currency, self.reference) != (None, None, None):
            raise ConfigError(
                f"only disputes and credits have an amount and a reference, not {self.state}; leave them out"
            )
        if self.amount is not None and not (self.amount.is_finite() and self.amount > 0):
            raise ConfigError("the amount of a dispute or a credit is above zero; give it as 12.50")
        if self.amount is not None and not _fits(self.amount):
            raise ConfigError(
                f"the amount has more than {_PLACES} places or {_DIGITS - _PLACES} digits before them; round it"
            )
        if self.currency is not None and not re.fullmatch(CURRENCY, self.currency):
            raise ConfigError("the currency is no code of three capital letters; give it as USD")
        if self.reference is not None and not NAME.fullmatch(self.reference):
            raise ConfigError("the reference has signs it cannot have; letters, digits and . _ : / @ - are allowed")

    def with_money_of(self, finding: Mapping[str, Any], last: Mapping[str, Any]) -> Decision:
        """It with what it leaves out: of a dispute the amount of the finding, of a credit the currency of the dispute.

        Args:
            finding: amount and currency of the finding as it is now.
            last: its state.

        Raises:
            ConfigError: an amount without a currency, or in another one than the dispute has.
        """
        if self.state is FindingState.CLOSED:
            return replace(self, amount=finding["amount"], currency=finding["currency"])
        if self.state not in _MONEY:
            return self
        own = self
        if self.state is FindingState.DISPUTED and self.amount is None:
            known = finding["amount"]
            # What was charged too little is nothing that can be asked for.
            own = replace(self, amount=known if known is not None and known > 0 else None)
        of_dispute = last.get("disputed_in") if self.state is FindingState.CREDITED else None
        currency = own.currency or of_dispute or (finding["currency"] if own.amount is not None else None)
        if own.amount is not None and currency is None:
            raise ConfigError("the finding has no currency; name the one of the amount with --currency")
        if of_dispute is not None and currency != of_dispute:
            raise ConfigError(
                f"the dispute is in {of_dispute} and the credit in {currency}; enter it in {of_dispute}, as the "
                "provider's statement has it, or dispute the finding again in the other currency"
            )
        return replace(own, currency=currency)

    def of_row(self, row: Mapping[str, Any]) -> bool:
        """Whether a change that is written says the same."""
        return bool(row) and all(row.get(name) == value for name, value in self.row().items())

    def row(self) -> dict[str, Any]:
        """It as columns of `finding_status`."""
        return {
            "state": str(self.state),
            "changed_by": self.by,
            "reason": self.reason,
            "expires_on": self.expires,
            "amount": self.amount,
            "currency": self.currency,
            "reference": self.reference,
        }


def _fits(amount: Decimal) -> bool:
    exponent = amount.as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -_PLACES and amount.adjusted() < _DIGITS - _PLACES
