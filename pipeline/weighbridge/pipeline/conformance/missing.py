"""What a case needs that the product does not have yet, in words; such a case is UNSUPPORTED as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from weighbridge.pipeline.conformance import (
    charged,
    counters,
    dedup,
    engine,
    limited,
    overhead,
    period,
    repriced,
    stored,
    terms,
)
from weighbridge.pipeline.conformance.case import (
    ABOVE,
    BODIES,
    BY_MODEL,
    BY_TIER,
    ESTIMATES,
    RECORDS,
    TOTALS,
    Case,
    mapping,
    word,
)
from weighbridge.pipeline.ingest.dialects import dialect_for
from weighbridge.pipeline.ingest.router_estimate import BLOCK, ROUTER
from weighbridge.pipeline.price.keys import KEYS

DEDUP, ENGINE, NUMERIC, OTHER, PERIOD = "dedup", "engine", "numeric", "other", "period"
_KINDS = {
    "other": "needs more than reading and pricing (kind other)",
}
_PRICES = frozenset({"prices", BY_MODEL, BY_TIER, ABOVE, "fees"})
_INPUT = frozenset({"provider", "api", "model", "context", *_PRICES, *BODIES})
_NEEDS_INPUT = {
    "records": "needs matching (records)",
    "price_book": "needs a price book inside the case (price_book)",
}
# What else a case may tell about an answer without changing what its counts mean or cost.
_CONTEXT = terms.CONTEXT | frozenset(
    "ended local_counts log_fields server_flags requested_model response_model price_book_model".split()
)
_TIER = frozenset({"threshold_tokens", "rule", "compares", "prices"})
_EXPECT = frozenset(
    {
        "counts",
        "verdict",
        "cost",
        "cost_by_class",
        "flags",
        "not_flags",
        "children",
        "estimated",
        "note",
        "priced_at",
        *TOTALS,
    }
)


# Kinds of which a case is a list of records, and who reads those.
_BY_KIND = {DEDUP: dedup, NUMERIC: charged, PERIOD: period}


def missing(case: Case) -> str | None:
    """Everything the case needs, in one line; null where it can be run.

    Raises:
        MalformedCaseError: a part of the case that has to be looked at is not an object.
    """
    found = list(dict.fromkeys(_needs(case)))
    return "; ".join(found) if found else None


def _of_records(case: Case) -> Iterator[str] | None:
    """What a case that is a list of records needs; null where it is none."""
    told: Iterator[str]
    if case.kind == OTHER and overhead.is_one(case):
        known, told = (overhead.INPUT, overhead.CONTEXT, overhead.EXPECT), overhead.needs(case)
    elif case.kind == OTHER and stored.is_one(case):
        known, told = (stored.INPUT, stored.CONTEXT, stored.EXPECT), _named(dedup.unknown_fields(case))
    elif case.kind == OTHER and repriced.is_one(case):
        known, told = (repriced.INPUT, frozenset[str](), repriced.EXPECT), _named(repriced.unknown_fields(case))
    elif case.kind == ENGINE and counters.is_one(case):
        known, told = (counters.INPUT, counters.CONTEXT, counters.EXPECT), _named(counters.unknown_fields(case))
    elif case.kind in _BY_KIND and (case.kind != NUMERIC or RECORDS in case.given):
        room = _BY_KIND[case.kind]
        known, told = (room.INPUT, room.CONTEXT, room.EXPECT), _named(room.unknown_fields(case))
    else:
        return None
    return chain(
        _unknown(case.given, "input", known[0], {}),
        _unknown(case.context, "input.context", known[1], {}),
        _unknown(case.expect, "expect", known[2], {}),
        told,
    )


def _named(paths: Iterator[str]) -> Iterator[str]:
    return (f"needs {path}" for path in paths)


def _needs(case: Case) -> Iterator[str]:
    of_records = _of_records(case)
    if of_records is not None:
        yield from of_records
        return
    if case.kind in _KINDS and not limited.is_one(case):
        # What such a case holds beside is of its kind, so it is not listed.
        yield _KINDS[case.kind]
        return
    known_input, known_context, known_expect = _INPUT, _CONTEXT, _EXPECT
    if case.kind == ENGINE:
        known_input, known_context = _INPUT | {engine.TIMINGS}, _CONTEXT | {ROUTER, BLOCK}
        known_expect = _EXPECT | set(engine.EXPECT)
    elif limited.is_one(case):
        known_context = _CONTEXT | {limited.LIMIT}
    if dialect_for(case.provider, case.api) is None:
        yield f"needs a dialect for ({case.provider}, {case.api})"
    yield from _unknown(case.given, "input", known_input, _NEEDS_INPUT)
    yield from _unknown(case.context, "input.context", known_context, {})
    for where, prices in case.price_tables():
        yield from _unknown(prices, where, frozenset(KEYS), {"character": "needs a price per character"})
    yield from _unknown(case.expect, "expect", known_expect, {})
    yield from _of_terms(case)


def _of_terms(case: Case) -> Iterator[str]:
    for above in case.above:
        yield from _unknown(above, f"input.{ABOVE}", _TIER, {})
    if "priced_at" in case.expect:
        told = mapping(case.expect["priced_at"], "expect.priced_at")
        yield from _unknown(told, "expect.priced_at", terms.PRICED_AT, {})
    if case.expect.get("estimated") is not None:
        yield from _unknown(mapping(case.expect["estimated"], "expect.estimated"), "expect.estimated", ESTIMATES, {})


def _unknown(
    table: Mapping[str, object], where: str, known: frozenset[str] | tuple[str, ...], needs: Mapping[str, str]
) -> Iterator[str]:
    for key in table:
        if key not in known:
            yield needs.get(key, f"needs {where}.{word(key, where)}")
