"""How long each class is kept, by whom and for what task: the table `[retention]` of the settings, as rules.

Most specific wins: a line for the tenant goes before one for the task, and that before the line of the class. So each
row has one rule. Two things are shared by rows of several rules, and they follow the strictest and the mildest:

    a block of token ids    cannot be taken apart, so it goes when the first of its rows is due
    a key                   is destroyed when nothing it covers is kept any more

A row of UTC day d that is kept for n days is kept for n whole days after d, and is due on d + n + 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from weighbridge.pipeline.retention.facts import Kept
from weighbridge.schemas.identity import erased


@dataclass(frozen=True, slots=True)
class Rule:
    """How long one class is kept: for everybody, for one tenant, or for one task.

    Attributes:
        kept: the class.
        days: whole days after the day of the row.
        tenant: the pseudonym of the tenant it is about.
        task: the task it is about.
        but: tenants it is not about, as they have one of their own.
        but_tasks: tasks, likewise.
    """

    kept: Kept
    days: int
    tenant: str | None = None
    task: str | None = None
    but: tuple[str, ...] = field(default=(), compare=False)
    but_tasks: tuple[str, ...] = field(default=(), compare=False)

    @property
    def name(self) -> str:
        """How receipts call it."""
        about = ".tenants" if self.tenant else ".tasks" if self.task else ""
        return f"retention{about}.{self.kept}"

    def last_due(self, today: date) -> date:
        """The last day whose rows are due."""
        return today - timedelta(days=self.days + 1)

    def scope(self, today: date) -> dict[str, str]:
        """What it is about, for a receipt: tenants are hashes."""
        about = {"tenant": erased(self.tenant)} if self.tenant else {}
        if self.task:
            about["task"] = self.task
        if self.but:
            about["but"] = ",".join(map(erased, self.but))
        if self.but_tasks:
            about["but_tasks"] = ",".join(self.but_tasks)
        return {**about, "days": str(self.days), "due_to": str(self.last_due(today))}


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """Every rule.

    Attributes:
        days: class -> days.
        tenants: pseudonym -> class -> days.
        tasks: task -> class -> days.
    """

    days: Mapping[Kept, int]
    tenants: Mapping[str, Mapping[Kept, int]]
    tasks: Mapping[str, Mapping[Kept, int]]

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> RetentionPolicy:
        """The policy of a checked settings table (`Settings.retention`)."""
        return cls(
            {kept: table[kept] for kept in Kept},
            {name: {Kept(key): days for key, days in lines.items()} for name, lines in table["tenants"].items()},
            {name: {Kept(key): days for key, days in lines.items()} for name, lines in table["tasks"].items()},
        )

    def rules(self, kept: Kept) -> list[Rule]:
        """The rules of a class, most specific first; the last one is for everything that no other is about."""
        tenants = [Rule(kept, of[kept], tenant=name) for name, of in sorted(self.tenants.items()) if kept in of]
        but = tuple(str(rule.tenant) for rule in tenants)
        tasks = [Rule(kept, of[kept], task=name, but=but) for name, of in sorted(self.tasks.items()) if kept in of]
        but_tasks = tuple(str(rule.task) for rule in tasks)
        return [*tenants, *tasks, Rule(kept, self.days[kept], but=but, but_tasks=but_tasks)]

    def rule(self, kept: Kept, tenant: str | None = None, task: str | None = None) -> Rule:
        """The rule a row of this tenant and task stands under."""
        return next(
            rule
            for rule in self.rules(kept)
            if (rule.tenant, rule.task) in {(tenant, None), (None, task), (None, None)}
        )

    def mildest(self, kept: Kept, tenant: str) -> Rule:
        """Of all rules a row of this tenant may stand under, the one that keeps longest."""
        own = [rule for rule in self.rules(kept) if rule.tenant == tenant]
        return max(own or [rule for rule in self.rules(kept) if rule.tenant is None], key=lambda rule: rule.days)
