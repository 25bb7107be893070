"""What a rule is: one thing that must hold for the rows of a table on a day, or for the table as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from weighbridge.pipeline.lake.files import Part
from weighbridge.pipeline.lake.words import Bound
from weighbridge.schemas.table import Table

Footer = Mapping[str, Bound]


class Gravity(StrEnum):
    """What follows when a rule does not hold, gravest first."""

    CRITICAL = "critical"  # the gate shuts: nothing is computed from these days
    WARNING = "warning"  # a finding
    INFO = "info"  # it is shown on the page, nothing else


class Kind(StrEnum):
    """What is looked at. The value is the code of the finding."""

    NULL = "required_value_missing"
    MINIMUM = "value_below_minimum"
    FINITE = "value_not_finite"
    WORD = "word_not_in_list"
    PATTERN = "text_outside_pattern"
    LEAVES = "leaves_misaligned"
    IDENTITY = "identity_broken"
    ORDER = "value_beyond_its_whole"
    DAY = "day_mismatch"
    KEY = "key_repeated"
    FILE = "rows_without_account"
    ACCOUNT = "account_unbalanced"
    MISSING = "rows_missing"
    SURPLUS = "rows_surplus"
    LOW = "volume_low"
    HIGH = "volume_high"
    FRESH = "source_silent"
    AHEAD = "day_still_to_come"
    NOTE = "note"  # never a finding


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of one table.

    Attributes:
        name: unique in its table: what is looked at, a dot, and the column or the name of the equation.
        kind: what is looked at.
        gravity: what follows when it does not hold.
        table: the table.
        column: the column it is about, null where it is about more than one.
        says: what must hold, as a clause.
        broken: true for a row that breaks it, null or false for any other; null for rules that no single row breaks.
        holds: of texts: which of these texts are allowed.
        sieve: of all rows at once, and cheaper: true where surely none breaks it; null: each row is looked at.
        safe: from the footer of a file: whether the sieve may be asked of its rows; null: of any.
        asked: of all rows at once: how many of them it could be asked of; null: of every row.
        proof: from the footer of a file: of how many of its rows the rule could be asked, where it shows that none
            breaks it; null where it does not show that, and the rows have to be read.
    """

    name: str
    kind: Kind
    gravity: Gravity
    table: str
    column: str | None
    says: str
    broken: pl.Expr | None = None
    holds: Callable[[pl.Series], pl.Series] | None = None
    sieve: pl.Expr | None = None
    safe: Callable[[Footer], bool] | None = None
    asked: pl.Expr | None = None
    proof: Callable[[Footer, Part], int | None] | None = None

    @property
    def path(self) -> str:
        """Where a row breaks it: the table and what is looked at, as quarantine names it."""
        return f"{self.table}.{self.name.partition('.')[2]}"


def placed(table: Table) -> bool:
    """Whether each row of a table knows the file and the line it came from, so that it can be held in quarantine."""
    return {"segment", "segment_row"} <= set(table.names)
