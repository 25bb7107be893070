"""Tenants of imported records as pseudonyms, before anything is stored."""

from __future__ import annotations

import re

import polars as pl

from weighbridge.schemas.identity import pseudonym
from weighbridge.schemas.tables import PSEUDONYM, UNASSIGNED

_PSEUDONYM = re.compile(PSEUDONYM)


def tenant(key: bytes, name: str | None) -> str:
    """The pseudonym of a tenant's name; one that is a pseudonym already stays as it is."""
    if name is None or name == UNASSIGNED:
        return UNASSIGNED
    return name if _PSEUDONYM.fullmatch(name) else pseudonym(key, "tenant", name)


def tenants(key: bytes, names: pl.Series) -> pl.Series:
    """The pseudonyms of a column of names; `unassigned` where there is none."""
    known = {name: tenant(key, name) for name in names.drop_nulls().unique()}
    if not known:
        return names.cast(pl.String).fill_null(UNASSIGNED)
    return names.replace_strict(known, default=UNASSIGNED, return_dtype=pl.String)
