"""Keys of token ids and traces: which there are, which are due, and their end."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterable
from datetime import date

from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.retention.facts import CONTENT, class_of_key
from weighbridge.pipeline.retention.holds import Hold
from weighbridge.pipeline.retention.policy import RetentionPolicy, Rule
from weighbridge.schemas.keys import KEY_NAME, KeyProvider, KeyScope


def key_names(lake: Lake, keys: KeyProvider) -> list[str]:
    """The names of all keys that can be known: those the provider lists, and those that rows name.

    Raises:
        KeyUnavailableError: the provider cannot be reached.
    """
    named = [lake.scan(table, columns=["key_id"]).unique().collect()["key_id"] for table, _ in CONTENT.values()]
    told = {name for names in named for name in names.drop_nulls() if KEY_NAME.fullmatch(name)}
    return sorted({*told, *(keys.names() or ())})


def due_keys(
    names: Iterable[str], policy: RetentionPolicy, today: date, holds: Iterable[Hold]
) -> tuple[dict[Rule, list[str]], list[str]]:
    """The keys of which everything they cover is due, by the rule that kept them longest; and those that are held."""
    due: dict[Rule, list[str]] = {}
    held = []
    standing = list(holds)
    for name in names:
        kept, scope = class_of_key(name), KeyScope.of(name)
        if kept is None:
            continue
        rule = policy.mildest(kept, scope.tenant)
        if last_day(scope.month) > rule.last_due(today):
            continue
        if any(holds_key(hold, scope, CONTENT[kept][0]) for hold in standing):
            held.append(name)
        else:
            due.setdefault(rule, []).append(name)
    return due, held


def holds_key(hold: Hold, scope: KeyScope, table: str) -> bool:
    """Whether a hold is about something a key covers."""
    return (
        hold.covers(table)
        and hold.tenant in {None, scope.tenant}
        and hold.bucket in {None, scope.bucket}
        and hold.overlaps(date.fromisoformat(f"{scope.month}-01"), last_day(scope.month))
    )


def last_day(month: str) -> date:
    """The last day of a month written `YYYY-MM`."""
    year, number = int(month[:4]), int(month[5:])
    return date(year, number, monthrange(year, number)[1])


def months(names: Iterable[str]) -> tuple[date | None, date | None]:
    """The first and last day of the months that keys are for."""
    told = sorted({KeyScope.of(name).month for name in names})
    return (date.fromisoformat(f"{told[0]}-01"), last_day(told[-1])) if told else (None, None)


def destroy(keys: KeyProvider, names: Iterable[str]) -> None:
    """Destroy keys for good; those that are gone already count as destroyed.

    Raises:
        KeyUnavailableError: one could not be destroyed; the others before it are.
    """
    for name in names:
        keys.destroy(name)
