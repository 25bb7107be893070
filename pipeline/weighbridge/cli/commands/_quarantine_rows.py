"""Entries of the quarantine as the verbs about them choose and show them."""

from __future__ import annotations

import difflib
from datetime import date
from typing import TYPE_CHECKING

from weighbridge.schemas.errors import ConfigError

if TYPE_CHECKING:
    from weighbridge.pipeline.lake import Lake
    from weighbridge.pipeline.validate.quarantine import Entry

NAMES = ("day", "source", "importer", "table", "rule")


def decision_on(lake: Lake, held: list[Entry], text: str) -> dict[str, object] | None:
    """The last decision about an entry that left the quarantine, where the id is that of one such and no other."""
    from weighbridge.pipeline.reconcile.tree.prefix import digits_of
    from weighbridge.pipeline.validate.quarantine import last_decisions

    digits = digits_of(text)
    decided = last_decisions(lake, digits)
    if len(decided) != 1 or any(entry.entry_id.startswith(digits) for entry in held):
        return None
    return decided[0]


def entries_of(
    lake: Lake,
    month: str | None,
    since: date | None,
    until: date | None,
    *,
    table: str | None = None,
    rule: str | None = None,
    reason: str | None = None,
    file: str | None = None,
) -> list[Entry]:
    """The entries of these days that all that is named holds for."""
    from weighbridge.pipeline.validate.quarantine import entries

    _check_names(lake, table, rule)
    return [
        entry
        for entry in entries(lake, first=since, last=until)
        if month in {None, f"{entry.day:%Y-%m}"}
        and table in {None, entry.table}
        and rule in {None, entry.rule}
        and (reason is None or reason in entry.reasons)
        and entry.segment.startswith((file or "").lower())
    ]


def _check_names(lake: Lake, table: str | None, rule: str | None) -> None:
    """Refuse a table or rule that there is not: nothing is held for it, which would look like good news."""
    from weighbridge.pipeline.validate.contract import contract
    from weighbridge.schemas.tables import TABLES

    if table is not None and table not in TABLES:
        raise ConfigError(f"there is no table {table!r}; known are {', '.join(TABLES)}")
    if rule is None:
        return
    known = {each.name for name in ([table] if table else TABLES) for each in contract(name, ())}
    held = lake.scan("quarantine", columns=["table_name", "rule"]).unique().collect()
    known |= {name for of, name in held.iter_rows() if name is not None and table in {None, of}}
    if rule not in known:
        near = difflib.get_close_matches(rule, known, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise ConfigError(
            f"no rule{f' of {table}' if table else ''} is called {rule!r}; {hint}"
            "`weighbridge quarantine ls` and the page of data quality name them"
        )


def of_ids(lake: Lake, held: list[Entry], ids: list[str]) -> list[Entry]:
    """The entries whose ids begin so; one that left the quarantine is told as such."""
    from weighbridge.pipeline.reconcile.tree.prefix import one_of

    by_id = {entry.entry_id: entry for entry in held}
    for text in ids:
        gone = decision_on(lake, held, text)
        if gone is not None:
            raise ConfigError(
                f"{text} is not in quarantine any more: {gone['changed_by']} had it {gone['state']} on "
                f"{gone['changed_at']:%Y-%m-%d}; `weighbridge quarantine show {text}` tells why"
            )
    return [by_id[one_of(by_id, text, "record in quarantine")] for text in ids]


def key_of(entry: Entry) -> tuple[str | None, str | None, str, str]:
    """What entries are counted by."""
    return entry.table, entry.rule, ", ".join(entry.reasons), entry.importer


def file_names(lake: Lake) -> dict[str, str]:
    """Digest -> name of every file, as it may be shown."""
    from weighbridge.pipeline.validate.violation import named

    accounts = lake.scan("segment", columns=["segment", "name"]).collect()
    return {segment: named(name) for segment, name in accounts.iter_rows()}


def told_of(entry: Entry, names: dict[str, str]) -> dict[str, object]:
    """An entry as it is shown."""
    return {
        "id": entry.entry_id,
        **{name: getattr(entry, name) for name in NAMES},
        "reasons": list(entry.reasons),
        "values": list(entry.paths),
        "segment": entry.segment,
        "name": names.get(entry.segment),
        "line": entry.line + 1,
    }
