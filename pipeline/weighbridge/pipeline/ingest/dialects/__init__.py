"""The dialects: one file each, found by discovery; a new one is one file and its test."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache

from weighbridge.pipeline.ingest.dialect import Dialect, Stream
from weighbridge.schemas.discovery import declared


@cache
def all_dialects() -> Mapping[str, Dialect]:
    """Every dialect by name."""
    return declared(sys.modules[__name__], "DIALECT", Dialect)


@cache
def dialect_for(provider: str | None, api: str | None) -> Dialect | None:
    """The dialect in which this provider speaks this API, or null: the reading is then UNKNOWN, the leaves are kept."""
    for dialect in all_dialects().values():
        if api in dialect.apis and ("any" in dialect.providers or provider in dialect.providers):
            return dialect
    return None


@cache
def spoken(api: str) -> Dialect | None:
    """The dialect of that API, whoever speaks it: it tells stream events apart, which providers do not change."""
    return next((dialect for dialect in all_dialects().values() if api in dialect.apis), None)


def stream_of(api: str) -> Stream:
    """How the events of that API's streams are told apart; running totals where the API is not known."""
    dialect = spoken(api)
    return dialect.stream if dialect else Stream()
