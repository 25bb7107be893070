"""The version of the vocabulary, and the rule by which it grows.

Rule of evolution: a published column, class or code never changes its meaning. A release may *add* a nullable
column, an enumeration member or a table, and raises `SCHEMA_VERSION` when it does. Nothing is renamed or removed:
a column that turned out wrong stays, is documented as superseded, and a new one is added beside it. A reader accepts
every version up to its own and refuses a later one with the advice to upgrade.
"""

from __future__ import annotations

from weighbridge.schemas.errors import ContractError

# 2: the table `usage_period`. 3: the tables `engine_counter` and `recount_constant`, the days of `segment`.
# 4: terms and tiers of prices, invoices and what they are held against, audits, the log of changes.
# 5: comparisons of strategies and what became of what they recommend.
SCHEMA_VERSION = 5


def check_version(found: object, where: str) -> int:
    """The schema version `found` in the file `where`, or a `ContractError` that says what to do about it."""
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        raise ContractError(
            f"{where}: schema_version is {_shown(found)}; a whole number from 1 to {SCHEMA_VERSION} is allowed. "
            "Write the file again with a current agent, or import it with a mapping file."
        )
    if found > SCHEMA_VERSION:
        raise ContractError(
            f"{where}: schema_version is {found}, this installation reads up to {SCHEMA_VERSION}. "
            "Upgrade weighbridge on this host, then ingest the file again; it was not changed."
        )
    return found


def _shown(found: object) -> str:
    """A number as it stands; of anything else only that it is none, for it may be text of somebody."""
    return str(found) if isinstance(found, int) and not isinstance(found, bool) else "no whole number"
