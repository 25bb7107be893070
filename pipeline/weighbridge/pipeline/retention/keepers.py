"""Which of the holds that stand keep something of an erasure, for whoever has to release them."""

from __future__ import annotations

from weighbridge.pipeline.retention.beside import keeps_packs
from weighbridge.pipeline.retention.erasure import Erasing
from weighbridge.pipeline.retention.facts import FACTS
from weighbridge.pipeline.retention.folders import holds_page, holds_segment
from weighbridge.pipeline.retention.holds import Hold
from weighbridge.pipeline.retention.keys import holds_key
from weighbridge.schemas.keys import KeyScope


def keepers(erasing: Erasing) -> tuple[Hold, ...]:
    """The holds that keep rows, keys, segments, pages or packs of an erasure; two may keep the same.

    Args:
        erasing: the erasure, before anything of it goes, with the segments, pages and packs that are held.

    Raises:
        KeyUnavailableError: keys cannot be listed.
    """
    return tuple(hold for hold, _ in erasing.holds if _keeps(hold, erasing))


def _keeps(hold: Hold, erasing: Erasing) -> bool:
    if any(holds_page(hold, page) for page in erasing.held_pages):
        return True
    if any(holds_segment([hold], path) for path in erasing.held_segments):
        return True
    if any(holds_key(hold, KeyScope.of(name), table) for table, name in erasing.covered()):
        return True
    alone = Erasing(erasing.places, erasing.request, erasing.reach.subject, [hold], erasing.reach.attempts)
    if erasing.held_closes and keeps_packs(alone):
        return True
    return any(alone.counts(fact)[1] for fact in FACTS.values() if erasing.erases(fact) and hold.covers(fact.table))
