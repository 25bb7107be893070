"""The conservation laws of single rows, as data: tokens are never lost, so a whole is the sum of its parts.

    whole = part + part + ...      every figure is known: they must be equal
                                   a part is unknown: those that are known must not exceed the whole

An unknown whole can be held against nothing. A part that may be negative (a correction, a difference) allows no
conclusion while another one is unknown.

Sums are taken in 128 bits: four parts of 2**62 are no zero. Only where the footer of a file shows that its figures are
small are they first looked at together in 64 bits, which is cheaper.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import polars as pl

from weighbridge.pipeline.lake.files import Part
from weighbridge.pipeline.lake.words import Bound
from weighbridge.pipeline.validate.rule import Footer, Gravity, Kind, Rule
from weighbridge.schemas.lattice import (
    CROSSED_CLASSES,
    INPUT_CLASSES,
    OUTPUT_CLASSES,
    REPORTED_CLASSES,
    SPLIT_MODALITIES,
)
from weighbridge.schemas.tables import TABLES


@dataclass(frozen=True, slots=True)
class Law:
    """One law of the rows of a table.

    Attributes:
        name: what it is about, unique in its table.
        whole: the columns whose sum is the whole; one as a rule.
        parts: the columns whose sum is held against it.
        exact: equal where all is known; else the parts only must not exceed the whole.
        signed: a part may be negative.
        money: the figures are amounts, which are decimals.
        gravity: what others told us is kept when it is inconsistent, and is a finding; our own sums must be right.
    """

    name: str
    whole: tuple[str, ...]
    parts: tuple[str, ...]
    exact: bool = True
    signed: bool = False
    money: bool = False
    gravity: Gravity = Gravity.WARNING

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns it is about."""
        return (*self.whole, *self.parts)

    def says(self) -> str:
        """The law as a formula."""
        return f"{' + '.join(self.whole)} {'=' if self.exact else '>='} {' + '.join(self.parts)}"

    def broken(self) -> pl.Expr:
        """True for a row that breaks it."""
        whole, parts = reduce(add, self._wide(self.whole)), reduce(add, self._wide(self.parts))
        if self.signed:
            return parts != whole
        known = parts if len(self.parts) == 1 else pl.sum_horizontal(self._wide(self.parts))
        over = (known > whole) & (known > 0)
        return (parts != whole).fill_null(over) if self.exact else over

    def _wide(self, names: Sequence[str]) -> list[pl.Expr]:
        return [pl.col(name) if self.money else pl.col(name).cast(pl.Int128) for name in names]

    def sieve(self) -> pl.Expr:
        """Of all rows at once: every known whole has all its parts, and is their sum."""
        if not self.exact:
            known = _sum(self.parts) if len(self.parts) == 1 else pl.sum_horizontal(self.parts)
            return ~((known > _sum(self.whole)) & (known > 0)).any()
        if self.signed:
            return (_sum(self.parts) == _sum(self.whole)).all()
        equal = _sum(self.parts) == _sum(self.whole)
        return equal.all() & (equal.count() == _sum(self.whole).count())

    def safe(self, footer: Footer) -> bool:
        """Whether the figures of a file are so small that no sum of them leaves 64 bits, as its footer shows."""
        return self.money or all(name in footer and _is_small(footer[name]) for name in self.columns)

    def asked(self) -> pl.Expr:
        """How many rows state all that is needed to hold them to it in full."""
        if self.exact or len(self.parts) == 1:
            return (_sum(self.parts) - _sum(self.whole)).count()
        return _sum(self.whole).count()

    def proof(self, footer: Footer, _: Part) -> int | None:
        """No row can break it, nor can it be asked of any, where no part or no whole has a value."""
        empty = {name for name in self.columns if name in footer and footer[name].least is None}
        return 0 if empty.issuperset(self.parts) or not empty.isdisjoint(self.whole) else None


def _sum(names: Sequence[str]) -> pl.Expr:
    return reduce(add, map(pl.col, names))


# As many figures of this size as a law has can be added in 64 bits.
_SMALL = 2**57


def _is_small(bound: Bound) -> bool:
    return all(end is None or (isinstance(end, int) and abs(end) <= _SMALL) for end in (bound.least, bound.most))


_WITHHELD = tuple(name for name in TABLES["attempt"].names if name.startswith("withheld_"))
_STEPS = tuple(name for name in TABLES["attempt"].names if name.startswith("accepted_steps_"))

LAWS: dict[str, tuple[Law, ...]] = {
    "attempt": (
        Law(
            "input",
            ("input_computed",),
            ("cached_local", "cached_external", "prefill_computed", "cache_correction"),
            signed=True,
        ),
        Law("output", ("output_computed",), ("output_delivered", *_WITHHELD)),
        Law("drafted", ("drafted",), ("accepted", "rejected")),
        Law("steps", ("output_computed",), ("accepted", "bonus", "undrafted")),
        Law("forward", ("forward",), ("prefill_computed", "recomputed", "verify_width", "padding")),
        Law("histogram", ("bonus",), _STEPS),
        Law("reasoning", ("output_computed",), ("reasoning_computed",), exact=False),
    ),
    "child": (
        Law("output", ("output_computed",), ("output_delivered", "output_withheld")),
        Law("accepted", ("drafted",), ("accepted",), exact=False),
    ),
    "reading": (
        Law("input", ("input_total",), tuple(INPUT_CLASSES), gravity=Gravity.CRITICAL),
        Law("output", ("output_total",), tuple(OUTPUT_CLASSES), gravity=Gravity.CRITICAL),
        Law("total", ("total",), ("input_total", "output_total"), gravity=Gravity.CRITICAL),
        *(
            Law(
                f"modalities_of_{name}",
                (name,),
                tuple(f"{name}_{modality}" for modality in SPLIT_MODALITIES),
                exact=False,
                gravity=Gravity.CRITICAL,
            )
            for name in CROSSED_CLASSES
        ),
    ),
    "state_event": (Law("members", ("n_universe",), ("n_members",), exact=False),),
    "segment": (
        Law(
            "account",
            ("rows_in",),
            ("rows_out", "rows_quarantined", "rows_duplicate"),
            gravity=Gravity.CRITICAL,
        ),
        Law("unplaced", ("rows_out",), ("rows_unplaced",), exact=False, gravity=Gravity.CRITICAL),
    ),
    "priced_amount": (
        Law(
            "amount",
            ("amount",),
            tuple(f"amount_{name}" for name in REPORTED_CLASSES),
            money=True,
            gravity=Gravity.CRITICAL,
        ),
    ),
    "reconciled": (
        Law("residual", ("gap",), ("explained", "residual"), signed=True, gravity=Gravity.CRITICAL),
        Law("gap", ("reported",), ("observed", "gap"), signed=True, gravity=Gravity.CRITICAL),
    ),
    "finding": (Law("difference", ("observed",), ("expected", "difference"), signed=True),),
}
LAWS["audit_cell"] = (Law("broken", ("rows",), ("broken",), exact=False),)
LAWS["comparison"] = tuple(Law(name, ("pairs",), (name,), exact=False) for name in ("unshown", "exact"))
LAWS["recount_constant"] = (Law("exact", ("attempts",), ("exact",), exact=False),)
# The sums of a period are classes like those of a call.
LAWS["usage_period"] = LAWS["reading"]

# First, then last: a range whose end lies before its start.
SPANS: dict[str, tuple[tuple[str, str], ...]] = {
    "gap": (("began_at", "ended_at"),),
    "state_event": (("layer_lo", "layer_hi"), ("head_lo", "head_hi")),
    "invoice_line": (("period_start", "period_end"),),
    "invoice_detail": (("billing_start", "billing_end"),),
    "invoice_gap": (("period_start", "period_end"),),
    "usage_period": (("period_start", "period_end"),),
    "recount_constant": (("first_day", "last_day"), ("lower", "upper")),
    "comparison": (("loss_low", "loss_high"),),
    "audit_cell": (("rate_lower", "rate_upper"), ("slope_lower", "slope_upper")),
    "audit_tolerance": (("first_day", "last_day"), ("flattest", "steepest")),
    "price": (("valid_from", "valid_to"),),
    "finding": (("first_day", "last_day"),),
    "receipt": (("first_day", "last_day"),),
    "segment": (("first_day", "last_day"),),
}


def laws_of(table: str) -> Iterator[Rule]:
    """The laws of a table as rules."""
    for law in LAWS.get(table, ()):
        kind = Kind.ACCOUNT if table == "segment" else Kind.IDENTITY if law.exact else Kind.ORDER
        yield Rule(
            f"identity.{law.name}", kind, law.gravity, table, None, law.says(),
            broken=law.broken(), sieve=law.sieve(), safe=law.safe, asked=law.asked(), proof=law.proof,
        )  # fmt: skip
    for first, last in SPANS.get(table, ()):
        yield Rule(
            f"order.{first}",
            Kind.ORDER,
            Gravity.WARNING,
            table,
            None,
            f"{first} <= {last}",
            broken=pl.col(first) > pl.col(last),
            asked=(pl.col(first) <= pl.col(last)).count(),
        )
