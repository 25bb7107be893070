"""The search for why a cell was charged what it was: the fewest changes of the agreed billing that give it exactly.

First no change at all, then one, then two, each in the documented order; then changes with one cause that closes on
what is left; last those that explain anything a provider counts. The first that fits is taken; others of its size are
kept by name. What nothing gives to the last digit stays a residual as a whole: there is no partial guess.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import combinations
from typing import NamedTuple

from weighbridge.pipeline.invoice.billing import Billing, Figure
from weighbridge.pipeline.invoice.cause import Cause, Variant, all_causes
from weighbridge.pipeline.invoice.cells import Key
from weighbridge.pipeline.invoice.ledger import Ledger
from weighbridge.pipeline.invoice.ours.bundle import Bundle
from weighbridge.schemas.enumerations import Confidence

# An explanation of more changes than this is a coincidence: with some at hand, some always fit.
LARGEST_SET = 2
RIVALS = 8
Steps = tuple[tuple[Cause, Variant], ...]
Closers = tuple[Cause, ...]


class Share(NamedTuple):
    """The part of a gap one cause stands for."""

    cause: str
    why: str
    tokens: int
    money: Decimal


@dataclass(frozen=True, slots=True)
class Explained:
    """Why a cell was charged what it was.

    Attributes:
        shares: its causes in order; what they add up to is the gap.
        confidence: certain where a line says so, probable where one set fits, ambiguous where several do.
        alternatives: the other sets of the same size, as `cause+cause`.
    """

    shares: tuple[Share, ...]
    confidence: Confidence
    alternatives: tuple[str, ...] = ()


@dataclass(slots=True)
class Search:
    """One search through a ledger.

    Attributes:
        ledger: lines and calls.
        targets: cell -> what was charged; only what is known of it has to fit.
        agreed: cell -> what the agreed billing gives.
        sides: cell -> what was charged, of every cell.
    """

    ledger: Ledger
    targets: Mapping[Key, Figure]
    agreed: Mapping[Key, Figure]
    sides: Mapping[Key, Figure] = field(default_factory=dict)
    found: dict[Key, Explained] = field(default_factory=dict)
    _known: dict[tuple[tuple[str, str], ...], tuple[Billing, Mapping[Key, Figure]]] = field(default_factory=dict)
    _calls: tuple[Bundle, ...] = ()

    def run(self) -> dict[Key, Explained]:
        """Cell -> its explanation, of those that have one."""
        offers = [(cause, variant) for cause in all_causes() for variant in cause.variants(self.ledger)]
        closers = [cause for cause in all_causes() if cause.closing is not None]
        usual, last = ([cause for cause in closers if cause.last is asked] for asked in (False, True))
        for size in range(1, LARGEST_SET + 1):
            self._narrow()
            tried: list[tuple[Steps, Closers]] = [(steps, ()) for steps in self._sets(offers, size)]
            self._try([*tried, *self._closed(offers, size - 1, usual, closers)])
        for size in range(LARGEST_SET):
            self._narrow()
            self._try(self._closed(offers, size, last, closers))
        return self.found

    def _narrow(self) -> None:
        """From here on only calls of models that have a cell still looked for are billed anew."""
        models = {key.model for key in self.targets if key not in self.found}
        calls = self.ledger.calls.all
        if "model" in self.ledger.grouping.named:
            calls = tuple(bundle for bundle in calls if bundle.named in models)
        if calls != self._calls:
            self._calls = calls
            self._known.clear()

    def _closed(
        self, offers: Sequence[tuple[Cause, Variant]], size: int, asked: Sequence[Cause], closers: Sequence[Cause]
    ) -> list[tuple[Steps, Closers]]:
        """Sets of changes and one cause that closes; or, as one change, a cause for the whole bill and one more."""
        made: list[tuple[Steps, Closers]] = [
            (steps, (closer,))
            for steps in self._sets(offers, size, alone=False)
            for closer in asked
            # What only lies within limits fits beside any other change: it is asked about alone.
            if closer.sure or not steps
        ]
        wholes = [cause for cause in closers if cause.whole_bill] if size == 1 else []
        return [
            *made,
            *(((), (whole, closer)) for whole in wholes for closer in asked if closer is not whole and closer.sure),
        ]

    def _sets(self, offers: Sequence[tuple[Cause, Variant]], size: int, *, alone: bool = True) -> list[Steps]:
        """Sets of changes, of each cause at most one, in order.

        Of several only those that change any cell still looked for by themselves: others could make no difference but
        to calls that a third one brings in, and to try them all would cost a hundred times as much.
        """
        if size > 1 or not alone:
            offers = [offer for offer in offers if self._matters(offer)]
        return [each for each in combinations(offers, size) if len({cause.code for cause, _ in each}) == size]

    def _matters(self, offer: tuple[Cause, Variant]) -> bool:
        given = self._billed((offer,))[1]
        return any(given.get(key) != self.agreed.get(key) for key in self.targets if key not in self.found)

    def _try(self, sets: Sequence[tuple[Steps, Closers]]) -> None:
        """Try sets of one size; the first in the order of their causes that fits a cell explains it."""
        fitting: dict[Key, list[tuple[str, Explained]]] = {}
        for steps, closers in sets:
            left = {key: target for key, target in self.targets.items() if key not in self.found}
            if not left:
                return
            for key, name, explained in self._fits(steps, closers, left):
                fitting.setdefault(key, []).append((name, explained))
        for key, several in fitting.items():
            first, best = several[0]
            others = tuple(dict.fromkeys(name for name, _ in several if name != first))[:RIVALS]
            sure = Confidence.AMBIGUOUS if others else best.confidence
            self.found[key] = Explained(best.shares, sure, others)

    def _fits(self, steps: Steps, closers: Closers, left: Mapping[Key, Figure]) -> Iterator[tuple[Key, str, Explained]]:
        """The cells a set explains, with its name and shares."""
        billings = [self._billed(steps[: place + 1]) for place in range(len(steps))]
        stages = [self.agreed, *(given for _, given in billings)]
        names = [(cause.code, variant.why) for cause, variant in steps]
        if closers and steps:
            # What the changes leave as it is, the cause that closes was asked about without them.
            left = {key: target for key, target in left.items() if stages[-1].get(key) != self.agreed.get(key)}
        billing = billings[-1][0] if billings else replace(self.ledger.agreed, calls=self._calls)
        for closer in closers:
            # What holds for the whole bill is seen on all of it, before another cause looks at what is left.
            whole = closer.whole_bill and closer is not closers[-1]
            before, asked = (self.ledger.agreed, self.targets) if whole else (billing, left)
            closed = closer.closing(self.ledger, before, asked) if closer.closing is not None and asked else None
            if closed is None:
                return
            billing = replace(closed, calls=self._calls) if whole else closed
            names.append((closer.code, "left"))
            stages.append(self.ledger.predicted(billing))
        shifts = any(cause.shifts for cause, _ in steps)
        for key, target in left.items():
            last = stages[-1].get(key, Figure(0, Decimal(0)))
            if not fits(last, target) or (shifts and self._breaks_beside(key, stages[-1])):
                continue
            shares = tuple(_shares(key, names, stages))
            effective = tuple(share for share in shares if share.tokens or share.money)
            # A set with a change that does nothing here is a smaller one, and was tried. Only where calls move to
            # another period the change may be needed in the cell beside.
            if effective and (shifts or effective == shares):
                shares = effective
                sure = Confidence.PROBABLE if all(each.sure for each in closers) else Confidence.AMBIGUOUS
                yield key, "+".join(share.cause for share in shares), Explained(shares, sure)

    def _breaks_beside(self, key: Key, given: Mapping[Key, Figure]) -> bool:
        """Whether a billing changes the cell before or after this one, and not to what was charged there."""
        nothing = Figure(0, Decimal(0))
        place = next((n for n, (start, _) in enumerate(self.ledger.spans) if start == key.start), None)
        beside = [] if place is None else [n for n in (place - 1, place + 1) if 0 <= n < len(self.ledger.spans)]
        for number in beside:
            start, end = self.ledger.spans[number]
            other = key._replace(start=start, end=end)
            ours = given.get(other, nothing)
            if ours != self.agreed.get(other, nothing) and not fits(ours, self.sides.get(other, nothing)):
                return True
        return False

    def _billed(self, steps: Steps) -> tuple[Billing, Mapping[Key, Figure]]:
        """The billing after some changes, and what it gives."""
        names = tuple((cause.code, variant.why) for cause, variant in steps)
        found = self._known.get(names)
        if found is None:
            agreed = replace(self.ledger.agreed, calls=self._calls)
            before = self._billed(steps[:-1])[0] if len(steps) > 1 else agreed
            billing = steps[-1][1].apply(before)
            found = billing, self.ledger.predicted(billing)
            # A largest set is asked for once, and what it bills is as large as the month.
            if len(steps) < LARGEST_SET:
                self._known[names] = found
        return found


def fits(found: Figure, target: Figure) -> bool:
    """Whether a figure is what was charged, in whatever of it is known; nothing known fits nothing."""
    sides = [(found.tokens, target.tokens), (found.money, target.money)]
    told = [(ours, theirs) for ours, theirs in sides if theirs is not None]
    return bool(told) and all(ours == theirs for ours, theirs in told)


def _shares(key: Key, names: Sequence[tuple[str, str]], stages: Sequence[Mapping[Key, Figure]]) -> Iterator[Share]:
    """What each change adds to the cell, one after the other."""
    nothing = Figure(0, Decimal(0))
    for place, (code, why) in enumerate(names):
        before, after = stages[place].get(key, nothing), stages[place + 1].get(key, nothing)
        tokens = 0 if after.tokens is None or before.tokens is None else after.tokens - before.tokens
        money = Decimal(0) if after.money is None or before.money is None else after.money - before.money
        yield Share(code, why, tokens, money)
