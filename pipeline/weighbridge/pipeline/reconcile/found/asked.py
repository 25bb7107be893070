"""What findings about records are made from."""

from __future__ import annotations

from dataclasses import dataclass

from weighbridge.pipeline.reconcile.found.announced import GRACE_DAYS
from weighbridge.pipeline.reconcile.month import Month


@dataclass(frozen=True, slots=True)
class Asked:
    """What findings about records are made from.

    Attributes:
        month: its rows.
        key_id: id of the installation's pseudonym key, null where it is not known here.
        ids_grace_days: how many of the newest days of the lake may still get token ids.
    """

    month: Month
    key_id: str | None = None
    ids_grace_days: int = GRACE_DAYS
