"""From a gap to its causes: first what evidence states exactly, then what holds the rest within its bounds.

What is left after the exact causes goes as a whole to the first cause, in the documented order, whose bounds hold it;
the others that hold it as well are kept by name, and it is ambiguous. What none holds is the residual. So causes and
residual always add up to the gap, and nothing is explained twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from weighbridge.pipeline.engine.cause import Bounds, Cause, all_causes
from weighbridge.pipeline.engine.facts import Facts
from weighbridge.schemas.enumerations import Confidence, Status


@dataclass(frozen=True, slots=True)
class Explained:
    """A cause and its part of a gap.

    Attributes:
        cause: the cause.
        amount: its part, signed.
        bounds: what it could have been, null where the amount is exact.
        confidence: CERTAIN, PROBABLE or AMBIGUOUS.
        alternatives: the codes of other causes that hold the same amount.
    """

    cause: Cause
    amount: int
    confidence: Confidence
    bounds: Bounds | None = None
    alternatives: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Gap:
    """What an engine counted beside its attempts, explained.

    Attributes:
        facts: the window and its counter.
        attempted: what attempts that came to their end add up to, those made to look after a server apart.
        causes: in the documented order.
    """

    facts: Facts
    attempted: int
    causes: tuple[Explained, ...]

    @property
    def size(self) -> int:
        """counted - attempted."""
        return self.facts.counted - self.attempted

    @property
    def explained(self) -> int:
        """The sum of the causes."""
        return sum(part.amount for part in self.causes)

    @property
    def residual(self) -> int:
        """What no cause explains."""
        return self.size - self.explained

    @property
    def status(self) -> Status:
        """The outcome."""
        if self.residual:
            return Status.UNEXPLAINED
        if any(part.cause.provisional for part in self.causes):
            return Status.PROVISIONAL
        return Status.EXPLAINED if self.causes else Status.MATCHED

    @property
    def confidence(self) -> Confidence | None:
        """That of the weakest cause; null where there is nothing to explain."""
        if self.residual:
            return Confidence.NONE
        ranks = list(Confidence)
        return max((part.confidence for part in self.causes), key=ranks.index, default=None)


def explained(facts: Facts) -> Gap:
    """The gap of a window beside one counter."""
    attempted = facts.done.known
    exact = tuple(_exact(facts))
    left = facts.counted - attempted - sum(part.amount for part in exact)
    rest = _held(facts, left)
    return Gap(facts, attempted, tuple(_together(exact, rest)))


def _together(exact: Sequence[Explained], rest: Explained | None) -> Iterator[Explained]:
    """One part per cause: of one that has an exact amount and holds the rest as well, the bounds are those of both."""
    taken = False
    for part in exact:
        if rest is not None and part.cause is rest.cause and rest.bounds is not None:
            taken = True
            low, high = rest.bounds.low, rest.bounds.high
            shifted = Bounds(None if low is None else low + part.amount, None if high is None else high + part.amount)
            yield replace(rest, amount=part.amount + rest.amount, bounds=shifted)
        else:
            yield part
    if rest is not None and not taken:
        yield rest


def _exact(facts: Facts) -> Iterator[Explained]:
    for cause in all_causes():
        amount = cause.exact(facts)
        if amount and cause.doubt(facts):
            # Those that are told under another name may be these, and those that are taken for its own may not be.
            yield Explained(cause, amount, Confidence.PROBABLE, Bounds(0, None))
        elif amount:
            yield Explained(cause, amount, Confidence.CERTAIN)


def _held(facts: Facts, left: int) -> Explained | None:
    if not left:
        return None
    bounded = [(cause, bounds) for cause in all_causes() if (bounds := cause.bounds(facts)) is not None]
    fitting = [(cause, bounds) for cause, bounds in bounded if bounds.holds(left)]
    if not fitting:
        return None
    (cause, bounds), *others = fitting
    # Where several causes are at work, each may have a part of it, however well one alone would do.
    confidence = Confidence.PROBABLE if len(bounded) == 1 else Confidence.AMBIGUOUS
    names = tuple(other.code for other, _ in others)
    return Explained(cause, left, confidence, bounds, names)
