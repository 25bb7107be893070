"""Where the data of one installation lies."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

import polars as pl

from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.retention.ledger import Ledger
from weighbridge.schemas.keys import KeyProvider


class ForgetClosed(Protocol):
    """How attempts, or a tenant, leave the packs of closed months (`close.forget.forget`): rows go, figures stay."""

    def __call__(
        self, packs: Path, lake: Lake, *, attempts: pl.DataFrame, tenant: str | None, counts: bool, through: str | None,
        rule: str, by: str, now: datetime,
    ) -> object:  # fmt: skip
        """See `close.forget.forget`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The places that retention empties, and those it only searches.

    Attributes:
        lake: the lake.
        ledger: what retention writes down outside of it.
        spools: folders of segments on this host.
        acks: folder of acknowledgements; null means beside each segment.
        reports: folders of reports and other pages.
        closes: folder of close packs.
        forget_closed: how rows leave them; null: they are only searched.
        keys: who holds the keys of token ids, null where the settings name nobody.
        searched: folders that are searched after an erasure and never changed: caches, a scheduler's home.
    """

    lake: Lake
    ledger: Ledger
    spools: tuple[Path, ...] = ()
    acks: Path | None = None
    reports: tuple[Path, ...] = ()
    closes: Path | None = None
    forget_closed: ForgetClosed | None = None
    keys: KeyProvider | None = None
    searched: tuple[Path, ...] = ()
