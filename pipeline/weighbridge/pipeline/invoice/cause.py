"""What a cause of the second gap is: a way in which a provider may have billed otherwise than agreed, and all of them.

A cause offers variants: changes of a `Billing`. It explains a cell only where what the changed billing gives is exactly
what was charged, in tokens and in money, as far as both are known. Some causes close: they look at what is left of a
cell and say which calls, or which counts of the provider's own, make it up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

from weighbridge.pipeline.invoice import causes
from weighbridge.pipeline.invoice.billing import Billing, Figure
from weighbridge.pipeline.invoice.cells import Key
from weighbridge.pipeline.invoice.ledger import Ledger
from weighbridge.schemas.discovery import declared
from weighbridge.schemas.enumerations import LineKind, Severity

# What is left of cells -> a billing that makes it up; null where the cause has nothing to say of any of them.
Closing = Callable[[Ledger, Billing, Mapping[Key, Figure]], Billing | None]


@dataclass(frozen=True, slots=True)
class Variant:
    """One exact thing a cause may stand for.

    Attributes:
        why: a name for it, stored beside the amount.
        apply: the billing with it.
    """

    why: str
    apply: Callable[[Billing], Billing]


def no_variants(_: Ledger) -> tuple[Variant, ...]:
    """None: the cause is structural, or closes."""
    return ()


@dataclass(frozen=True, slots=True)
class Cause:
    """A named reason for part of what was charged.

    Attributes:
        code: stable, snake_case; also the code of its finding, and the name of its module.
        title: what happened, as a headline.
        order: its place in the documented order, in which changes of a billing follow one another.
        cure: what to do, in one sentence.
        cures: provider -> that sentence, where it is another one there.
        variants: the changes it offers for a month with a provider.
        closing: of a cause that looks at what is left.
        last: it is asked only where nothing else explains a cell.
        kinds: kinds of lines that it explains as a whole: the line says so itself, so it is CERTAIN; null stands for
            lines of which nobody knows what they charge.
        shifts: it moves calls from one period to another, so it explains a cell only if it breaks none beside it.
        whole_bill: of a cause that closes: what it changes holds for the whole bill, so it may go before another such.
        sure: whether a fit is exact; one that only lies within limits is ambiguous.
        severity: of its finding.
        at_stake: whether its finding puts money in question.
    """

    code: str
    title: str
    order: int
    cure: str
    cures: Mapping[str, str] = field(default_factory=dict)
    variants: Callable[[Ledger], tuple[Variant, ...]] = no_variants
    closing: Closing | None = None
    last: bool = False
    kinds: tuple[LineKind | None, ...] = ()
    shifts: bool = False
    whole_bill: bool = False
    sure: bool = True
    severity: Severity = Severity.WARNING
    at_stake: bool = True

    def cure_for(self, provider: str) -> str:
        """What to do with this provider."""
        return self.cures.get(provider, self.cure)


@cache
def all_causes() -> tuple[Cause, ...]:
    """Every cause of the folder, in the documented order."""
    return tuple(sorted(declared(causes, "CAUSE", Cause).values(), key=lambda cause: (cause.order, cause.code)))


def of_kind(kind: str | None) -> Cause | None:
    """The cause that explains lines of a kind by itself."""
    return next((cause for cause in all_causes() if kind in cause.kinds), None)
