"""What a close pack holds and where.

    <month>/
        manifest.json                    every table, part, file and digest, and the root they lead to
        seal.json                        when it was closed, by whom, and why early; no part of what is digested
        figures.json                     every figure of the month
        pins/                            rules, prices, code, lock and settings that the figures rest on
        rows/<table>/<part>.parquet      the rows, sorted by key, with page checksums
        proof/<table>/<part>.leaves      the leaf of each row; they stay when rows are erased
        proof/<table>/<part>.salts       the salt of each block
        erasures/<number>.json           what was lawfully erased since, with its receipts

A part is some days of a table, named by the first of them; `all` for tables that are not kept by day, and `neighbours`
for rows of other days without which the month cannot be reconciled again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from weighbridge.schemas.enumerations import Domain
from weighbridge.schemas.table import Table, small, text
from weighbridge.schemas.tables import PSEUDONYM, TABLES, UNASSIGNED

MANIFEST = "manifest.json"
SEAL = "seal.json"
FIGURES = "figures.json"
PINS = ("code", "lock", "prices", "rules", "settings")
ERASURES = "erasures"
ALL, NEIGHBOURS = "all", "neighbours"
# Days of a table are put into one part up to about so many rows, which bounds memory.
PART_ROWS = 1 << 18

TENANT = Table(
    "tenant",
    Domain.BILLING,
    "Which number stands for which tenant in the figures; erased with the tenant, while the figures stay.",
    (
        small("number", "the number in the figures", required=True, minimum=1),
        text("tenant", "pseudonym of the tenant", required=True, pattern=f"{PSEUDONYM}|{UNASSIGNED}", personal=True),
    ),
    key=("number",),
    daily=False,
)
# Of the billing domain everything but what a close itself writes afterwards. The operations domain is kept for a
# shorter time and content shorter still: a copy here would outlive them.
_LATER = frozenset({"close"})
CLOSED: dict[str, Table] = {
    **{name: table for name, table in TABLES.items() if table.domain is Domain.BILLING and name not in _LATER},
    TENANT.name: TENANT,
}
# Columns whose values stay where they are: a user's own words are kept in their table and nowhere else.
BLANKED: dict[str, tuple[str, ...]] = {
    "finding_status": ("reason",),
    "quarantine_status": ("reason",),
    "recommendation": ("reason",),
}
_PART = re.compile(rf"\d{{4}}-\d{{2}}-\d{{2}}|{ALL}|{NEIGHBOURS}")


@dataclass(frozen=True, slots=True, order=True)
class PartName:
    """One part of a table; `erasure` is the number of the erasure that wrote its present files, 0 for none."""

    table: str
    part: str
    erasure: int = 0

    @property
    def rows(self) -> str:
        """The file with its rows."""
        return f"rows/{self.table}/{self.part}{self._since}.parquet"

    @property
    def salts(self) -> str:
        """The file with its salts: of each block, and after an erasure of each row."""
        return f"proof/{self.table}/{self.part}{self._since}.salts"

    @property
    def leaves(self) -> str:
        """The file with its leaves, which no erasure changes."""
        return f"proof/{self.table}/{self.part}.leaves"

    @property
    def _since(self) -> str:
        return f".e{self.erasure}" if self.erasure else ""

    def __str__(self) -> str:
        return f"{self.table}/{self.part}"


def is_part(name: object) -> bool:
    """Whether this can be the name of a part."""
    return isinstance(name, str) and _PART.fullmatch(name) is not None


def pin(name: str) -> str:
    """The file of a pinned document."""
    return f"pins/{name}.json"


def erasure_file(number: int) -> str:
    """The file of an erasure."""
    return f"{ERASURES}/{number:04d}.json"
