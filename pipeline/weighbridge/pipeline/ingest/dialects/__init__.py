"""The dialects: one file each, found by discovery; a new one is one file and its test."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from functools import cache, lru_cache

from weighbridge.pipeline.ingest.dialect import Dialect, Stream
from weighbridge.pipeline.ingest.fact import all_facts
from weighbridge.pipeline.ingest.speakers import Lookup, lookup
from weighbridge.schemas import discovery


@cache
def all_dialects() -> Mapping[str, Dialect]:
    """Every dialect by name, with the facts about who speaks it."""
    found = discovery.declared(sys.modules[__name__], "DIALECT", Dialect)
    facts = {name: tuple(fact for fact in all_facts() if fact.api == name) for name in found}
    return {name: replace(dialect, facts=facts[name]) for name, dialect in found.items()}


@cache
def _lookup() -> Lookup:
    return lookup(all_dialects().values())


def dialect_for(
    provider: str | None, api: str | None, model: str | None = None, day: date | None = None
) -> Dialect | None:
    """The dialect in which this provider speaks this API, or null: the reading is then UNKNOWN, the leaves are kept.

    Args:
        provider: who answers; one that is not known is read by the shape, where the dialect is open to everybody.
        api: the name of the API.
        model: what answered; decides only where a fact is about models.
        day: when, in UTC; decides only where a fact has a beginning or an end.
    """
    return _lookup()(provider, api, model, day)


@lru_cache(maxsize=4096)
def spoken(api: str, provider: str | None = None) -> Dialect | None:
    """The dialect of that API, as that provider speaks it or else anyone: it tells the parts of an answer apart."""
    own = dialect_for(provider, api) if provider else None
    speaking = [dialect for dialect in all_dialects().values() if api in dialect.apis]
    return own or next((dialect for dialect in speaking if dialect.open), next(iter(speaking), None))


def stream_of(api: str, provider: str | None = None) -> Stream:
    """How the events of that API's streams are told apart; running totals where the API is not known."""
    dialect = spoken(api, provider)
    return dialect.stream if dialect else Stream()
