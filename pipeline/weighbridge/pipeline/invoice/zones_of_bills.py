"""The zone of a provider's billing days where no contract names one: that in which its bills were read.

A mapping file says in which zone the times of a bill are (`[time] zone`), and its lines keep that in their notes. A
bill of days of Berlin has its April from 31 March 22:00 UTC on; compared by months of UTC, its first day would stand
in March. What a contract says goes before it; bills of several zones decide nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from weighbridge.pipeline.ingest.charges.days import ZONE
from weighbridge.pipeline.invoice.contract import Contract
from weighbridge.pipeline.lake.records import Records


def zoned(contracts: Mapping[str, Contract], lake: Records) -> dict[str, Contract]:
    """The contracts, and one for each provider that has none, with the zones of their bills."""
    told: dict[str, set[str]] = {}
    notes = lake.scan("invoice_line", columns=["provider", "notes"]).drop_nulls().explode("notes").unique()
    of_zone = notes.filter(pl.col("notes").str.starts_with(ZONE)).collect()
    for provider, note in of_zone.iter_rows():
        told.setdefault(provider, set()).add(note.removeprefix(ZONE))
    out = dict(contracts)
    for provider, zones in told.items():
        agreed = out.get(provider, Contract(provider))
        if len(zones) == 1 and not agreed.zone_agreed:
            out[provider] = replace(agreed, zone=zones.pop())
    return out
