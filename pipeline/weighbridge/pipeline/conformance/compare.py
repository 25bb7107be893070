"""What a case asserts, item by item, against what was read and priced.

A case names token cells as the tables do, or by the price key of a modality: `audio_out` is `output_visible_audio`.
A class stands for its text: what is left of it when the modalities that are known are taken away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from weighbridge.pipeline.conformance import terms
from weighbridge.pipeline.conformance.case import (
    TOTALS,
    Case,
    count,
    mapping,
    money,
    names,
    verdict,
)
from weighbridge.pipeline.conformance.malformed import MalformedCaseError
from weighbridge.pipeline.ingest.breakdown import adding_up
from weighbridge.pipeline.ingest.reading import UsageReading
from weighbridge.pipeline.ingest.terms import Told
from weighbridge.pipeline.price.amount import Priced, price_reading
from weighbridge.pipeline.price.keys import KEYS, cell_name
from weighbridge.pipeline.price.row import PriceRow
from weighbridge.schemas.enumerations import Direction, TokenClass
from weighbridge.schemas.lattice import CELLS, CROSSED_CELLS, INPUT_CLASSES, direction_of

PricesOf = Callable[[str | None, Told], PriceRow | None]
_CELLS: dict[str, str] = {
    **{cell.name: str(cell.name) for cell in CELLS},
    **{key: str(cell_name(cells[0])) for key, cells in KEYS.items() if key not in {"input", "output"}},
}
# Where a total is unknown, a local count of that direction is priced as this class.
_STAND_INS = {
    "input_total": (Direction.INPUT, TokenClass.INPUT_UNCACHED),
    "output_total": (Direction.OUTPUT, TokenClass.OUTPUT_VISIBLE),
}


def compared(case: Case, reading: UsageReading, prices: PricesOf) -> Iterator[str | None]:
    """One item for each thing the case asserts: the difference in words, or null where there is none.

    Counts, totals and verdict are those of the answer itself; what it costs is the sum of all its model calls.

    Args:
        case: what is asserted.
        reading: what was read.
        prices: gives the prices of a model, or null.

    Raises:
        MalformedCaseError: an expectation is of another type than the figure it is about.
    """
    expect = case.expect
    tokens = _tokens(reading)
    for name, value in _of_cells(expect, "counts"):
        if _all_output(expect, "counts", name, value) and reading.counts["reasoning"] is None:
            yield differs(f"counts.{name}", count(value, f"expect.counts.{name}"), reading.output_total)
            continue
        yield differs(f"counts.{name}", count(value, f"expect.counts.{name}"), tokens[_CELLS[name]])
    for name in TOTALS:
        if name in expect:
            yield differs(name, count(expect[name], f"expect.{name}"), getattr(reading, name))
    if "verdict" in expect:
        yield differs("verdict", verdict(expect["verdict"]), reading.verdict)
    yield from _flags(expect, reading)
    priced = [_priced(one, prices) for one in adding_up(reading)]
    if "cost" in expect:
        yield differs("cost", money(expect["cost"], "expect.cost"), _sum(each.amount for each in priced))
    for name, value in _of_cells(expect, "cost_by_class"):
        where = f"cost_by_class.{name}"
        found = _sum(each.by_cell[_CELLS[name]] for each in priced)
        if _all_output(expect, "cost_by_class", name, value) and reading.counts["reasoning"] is None:
            found = _sum(_output_cost(each) for each in priced)
        yield differs(where, money(value, f"expect.{where}"), found)
    yield from _priced_at(case, reading, priced[0])
    if "children" in expect:
        yield from _children(expect["children"], reading, prices)
    if "estimated" in expect:
        yield from _estimates(expect["estimated"], reading, prices(reading.model, reading.told))


def _all_output(expect: Mapping[str, Any], table: str, name: str, value: object) -> bool:
    """Whether a case speaks of all output as one class: it names no reasoning, and the answer does not either."""
    return name == TokenClass.OUTPUT_VISIBLE and value is not None and TokenClass.REASONING not in expect[table]


def _output_cost(priced: Priced) -> Decimal | None:
    """What all output costs: the whole but for input and fees."""
    others = [priced.by_class[name] for name in INPUT_CLASSES]
    if priced.amount is None or priced.fees is None or None in others:
        return None
    return priced.amount - priced.fees - sum((cost for cost in others if cost is not None), Decimal(0))


def _priced_at(case: Case, reading: UsageReading, priced: Priced) -> Iterator[str | None]:
    """On which terms: the service tier, and whether the answer itself lies above a threshold."""
    told = mapping(case.expect.get("priced_at", {}), "expect.priced_at")
    if "service_tier" in told:
        yield differs("priced_at.service_tier", told["service_tier"], terms.tier_of(case.context, reading.told))
    if "tier" in told:
        found = None if priced.tier is None else "above" if priced.tier else "below"
        yield differs("priced_at.tier", told["tier"], found)


def _priced(reading: UsageReading, prices: PricesOf) -> Priced:
    totals = (reading.input_total, reading.output_total)
    row = prices(reading.model, reading.told)
    return price_reading(reading.counts, reading.cells, *totals, reading.verdict, row, _uses(reading))


def _uses(reading: UsageReading) -> dict[str, int]:
    return {str(kind): times for kind, times in (reading.told.fees or {}).items()}


def _sum(parts: Iterable[Decimal | None]) -> Decimal | None:
    """The sum, unknown where a part is."""
    amounts = list(parts)
    known = [amount for amount in amounts if amount is not None]
    return sum(known, Decimal(0)) if len(known) == len(amounts) else None


def _children(expected: object, reading: UsageReading, prices: PricesOf) -> Iterator[str | None]:
    if not isinstance(expected, list):
        raise MalformedCaseError("expect.children is no list; a list of objects is expected")
    yield differs("children", len(expected), len(reading.children))
    for number, (item, child) in enumerate(zip(expected, reading.children, strict=False), 1):
        for name, value in mapping(item, "expect.children").items():
            where = f"children.{number}.{name}"
            if name == "model":  # a name of the case is not repeated
                yield None if value == child.model else f"{where}: is another one"
            elif name in TOTALS:
                yield differs(where, count(value, f"expect.{where}"), getattr(child, name))
            elif name == "cost":
                yield differs(where, money(value, f"expect.{where}"), _priced(child, prices).amount)
            else:
                raise MalformedCaseError(f"expect.children has a key that is none of model, cost, {', '.join(TOTALS)}")


def _of_cells(expect: Mapping[str, Any], table: str) -> Iterator[tuple[str, Any]]:
    for name, value in mapping(expect.get(table, {}), f"expect.{table}").items():
        if name not in _CELLS:
            raise MalformedCaseError(f"expect.{table} has a key that is none of {', '.join(sorted(_CELLS))}")
        yield name, value


def _tokens(reading: UsageReading) -> dict[str, int | None]:
    tokens: dict[str, int | None] = {**reading.counts, **reading.cells}
    for cell in CROSSED_CELLS:
        whole = tokens[cell.token_class]
        if whole is not None:
            tokens[cell.token_class] = whole - (reading.cells[cell.name] or 0)
    return tokens


def differs(name: str, expected: object, found: object) -> str | None:
    """The difference in words; null where there is none."""
    return None if expected == found else f"{name}: expected {_shown(expected)}, found {_shown(found)}"


def _shown(value: object) -> str:
    if value is None:
        return "null"
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _flags(expect: Mapping[str, Any], reading: UsageReading) -> Iterator[str | None]:
    for flag in names(expect.get("flags", []), "expect.flags"):
        yield None if flag in reading.flags else f"flags: {flag} is not raised"
    for flag in names(expect.get("not_flags", []), "expect.not_flags"):
        yield f"not_flags: {flag} is raised" if flag in reading.flags else None


def _estimates(expected: object, reading: UsageReading, row: PriceRow | None) -> Iterator[str | None]:
    found = reading.estimated or {}
    if expected is None:
        yield "estimated: expected null, found an estimate" if found else None
        return
    for name, value in mapping(expected, "expect.estimated").items():
        where = f"estimated.{name}"
        if name == "cost":
            yield differs(where, money(value, f"expect.{where}"), _estimated_cost(reading, row))
        else:
            yield differs(where, count(value, f"expect.{where}"), found.get(name))


def _estimated_cost(reading: UsageReading, row: PriceRow | None) -> Decimal | None:
    """The cost with local counts in place of the totals that are unknown; what was reported stays as reported."""
    counts, cells = dict(reading.counts), dict(reading.cells)
    totals = {"input_total": reading.input_total, "output_total": reading.output_total}
    for total, (direction, stand_in) in _STAND_INS.items():
        local = (reading.estimated or {}).get(total)
        if local is not None:
            of_direction = [cell for cell in CELLS if direction_of(cell.token_class) is direction]
            counts.update((str(cell.token_class), 0) for cell in of_direction)
            cells.update((cell.name, 0) for cell in of_direction if cell.name in cells)
            counts[stand_in] = totals[total] = local
    return price_reading(counts, cells, totals["input_total"], totals["output_total"], reading.verdict, row).amount
