"""Every figure of a month, from a lake or a close pack by the same arithmetic, and which tables each rests on."""

from __future__ import annotations

from collections.abc import Mapping

from weighbridge.pipeline.close import other_figures, usage_figures
from weighbridge.pipeline.close.figures import Figures, labels, relabelled
from weighbridge.pipeline.close.month_rows import EVERY_PERIOD, files_of
from weighbridge.pipeline.close.replay import Replay
from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.reconcile.money import Prices
from weighbridge.pipeline.reconcile.month import Month
from weighbridge.schemas.tables import UNASSIGNED

_USAGE = ("attempt", "reading", "priced_amount")


def figures(records: Records, period: str) -> Figures:
    """The figures of a month; tenants stand under their pseudonyms."""
    month = Month(Replay(records), period, Prices({}))
    found = {
        **usage_figures.sections(month),
        **other_figures.sections(month, files_of(month), (period, EVERY_PERIOD)),
    }
    return dict(sorted(found.items()))


def rests_on(section: str) -> tuple[str, ...]:
    """The tables whose rows a section of figures is made of."""
    return other_figures.SOURCES.get(section, _USAGE)


def numbers_of(found: Figures) -> dict[str, int]:
    """Tenant -> its number in the figures of a close, from 1 in the order of the pseudonyms."""
    tenants = sorted(labels(found, "tenant") - {UNASSIGNED})
    return {tenant: number for number, tenant in enumerate(tenants, 1)}


def numbered(found: Figures, numbers: Mapping[str, int]) -> Figures:
    """The figures with tenants by number: a tenant that is erased leaves its figures and takes its name along."""
    known = {tenant: f"#{number}" for tenant, number in numbers.items()}
    return relabelled(found, "tenant", lambda name: known.get(name or "", name))


def named(found: Figures, tenants: Mapping[int, str]) -> Figures:
    """The figures with the pseudonyms that are still known."""
    known = {f"#{number}": tenant for number, tenant in tenants.items()}
    return relabelled(found, "tenant", lambda name: known.get(name or "", name))
