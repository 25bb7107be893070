"""A month beside the month before and the same month a year before. Earlier figures come from closes, never from rows.

What the lake holds of an earlier month may have changed since; its close has not. A month that is not closed has
nothing to stand here, and that is said.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal

from weighbridge.pipeline.report.earlier import Place, State
from weighbridge.pipeline.report.exact import CONTEXT, ratio
from weighbridge.pipeline.report.month_figures import Number, months
from weighbridge.pipeline.report.sheet import BLANK, Column, Kind, Part, Prose, Row, Sheet, Value, say
from weighbridge.pipeline.report.view import View

WORDS = {Place.MONTH: "The month before", Place.YEAR: "The same month a year before"}
_CURES = {
    State.CLOSED: "",
    State.OPEN: "Close it: `weighbridge close {month}`.",
    State.NONE: "Nothing to do: the lake has no rows of it.",
    State.GONE: "Its pack was kept no longer, or lies elsewhere: put it back among the closes.",
    State.DAMAGED: "Run `weighbridge verify {month}`, and restore the pack from a backup.",
}
_SAID = {
    State.OPEN: "is not closed",
    State.NONE: "has nothing recorded",
    State.GONE: "is closed, and its pack is not there",
    State.DAMAGED: "is closed, and its pack cannot be trusted",
}
_USAGE = {
    "days": "Days with attempts",
    "attempts": "Attempts recorded",
    "reports": "Usage reports",
    "unpriced": "Usage reports without a price",
    "input_tokens": "Input tokens, reported",
    "output_tokens": "Output tokens, reported",
    "tokens": "All tokens, reported",
    "cache_read": "of input: read from cache",
    "reasoning": "of output: reasoning",
}
_TOKENS, _DAYS = _USAGE["tokens"], _USAGE["days"]
_SOURCES = ("close", "attempt", "reading", "priced_amount")
COMPARED = (
    Column("comparison", "Beside"),
    Column("month", "Month"),
    Column("state", "Close", Kind.CODE),
    Column("root", "Root of the close", Kind.CODE, short=16),
    Column("cure", "What to do", Kind.PROSE),
)


def _columns(
    closed: Collection[Place], lead: Sequence[Column], kind: Kind, change: Kind, currency_in: str | None = None
) -> tuple[Column, ...]:
    """The page leaves off months that are not closed; the files carry them, empty."""
    sides = [
        column
        for place, word in ((Place.MONTH, "Month before"), (Place.YEAR, "A year before"))
        for column in (
            Column(str(place), word, kind, currency_in=currency_in, page=place in closed),
            Column(f"{place}_change", "Change", change, currency_in=currency_in, page=place in closed),
            Column(f"{place}_change_share", "in per cent", Kind.CHANGE, page=place in closed),
        )
    ]
    return (*lead, Column(str(Place.THIS), "This month", kind, currency_in=currency_in), *sides)


_CURRENCY = Column("currency", "Currency")
_MODEL = (Column("model", "Model"), Column("provider", "Provider"), _CURRENCY)


def compared(view: View) -> Sheet:
    """Which months stand beside this one, and why one of them does not."""
    found = [(words, view.closes[place]) for place, words in WORDS.items() if place in view.closes]
    return Sheet(
        name="compared_months",
        title="Months this one is compared with",
        columns=COMPARED,
        rows=tuple(
            (words, each.period, str(each.state), each.root or "", _CURES[each.state].format(month=each.period))
            for words, each in found
        ),
        sources=("close",),
        empty="No month was asked about.",
        note="Figures of earlier months are those they were closed with, whatever came later. Months are UTC months. "
        "`weighbridge diff` with two months says why they differ.",
        dated=False,
    )


def usage(view: View) -> Sheet:
    """Attempts, reports and tokens."""
    found = view.get(months)
    columns = _columns(found, [Column("measure", "Measure")], Kind.COUNT, Kind.SIGNED)
    rows = [
        _row((words,), {place: each.usage[name] for place, each in found.items()}) for name, words in _USAGE.items()
    ]
    note = (
        "Attempts recorded have a record of their own; those that a usage report alone tells of are in Coverage, and "
        "in the attempts of the summary."
    )
    return _sheet("usage_compared", "Usage beside earlier months", columns, rows, note)


def money(view: View) -> Sheet:
    """What usage cost, by currency; currencies are never added together."""
    found = view.get(months)
    columns = _columns(found, [_CURRENCY], Kind.MONEY, Kind.MONEY, "currency")
    names = sorted({name for each in found.values() for name in each.currencies})
    rows = [_row((name,), {place: each.amount(name) for place, each in found.items()}) for name in names]
    note = "An amount is that of reports with a price; how many have none stands above."
    return _sheet("amounts_compared", "Money beside earlier months", columns, rows, note)


def models(view: View) -> Sheet:
    """What each model cost; the largest change from the month before first."""
    found = view.get(months)
    columns = _columns(found, _MODEL, Kind.MONEY, Kind.MONEY, "currency")
    lines = sorted({line for each in found.values() for line in each.models})
    rows = [_row(line, {place: each.of_model(line) for place, each in found.items()}) for line in lines]
    place = [column.name for column in columns].index(f"{Place.MONTH}_change")
    ranked = sorted(rows, key=lambda row: -_moved(row[place]))
    return _sheet("models_compared", "Money by model beside earlier months", columns, ranked)


def _moved(change: Value) -> Decimal:
    return abs(change) if isinstance(change, Decimal) else Decimal(0)


def sentences(view: View) -> tuple[Prose, ...]:
    """How tokens and money moved beside each earlier month, or that it is not closed."""
    return tuple(_sentence(view, place) for place in WORDS if place in view.closes)


def _sentence(view: View, place: Place) -> Prose:
    name, state = WORDS[place], view.closes[place].state
    if state is not State.CLOSED:
        return say(f"{name} {_SAID[state]}: nothing stands beside this one.")
    share = f"{place}_change_share"
    spent = view.get(money)
    parts: list[Part] = [f"Beside {name[0].lower()}{name[1:]}: tokens ", view.get(usage).figure(share, measure=_TOKENS)]
    for currency in spent.cells("currency"):
        parts += [f", {currency} ", spent.figure(share, currency=currency)]
    days = [view.get(usage).figure(column, measure=_DAYS) for column in (Place.THIS, place)]
    return say(*parts, "; ", days[0], " days with attempts against ", days[1], ".")


def _sheet(name: str, title: str, columns: tuple[Column, ...], rows: Iterable[Row], note: str = "") -> Sheet:
    return Sheet(
        name=name,
        title=title,
        columns=columns,
        rows=tuple(rows),
        sources=_SOURCES,
        empty="Nothing of these months is priced.",
        note=note,
        shown=12,
    )


def _row(lead: tuple[str, ...], values: Mapping[Place, Number]) -> Row:
    now = values[Place.THIS]
    out: list[Value] = [*lead, now]
    for place in WORDS:
        then = values.get(place)
        changed = _less(now, then)
        # Nothing is no base for a share.
        out += [then, changed, BLANK if then == 0 else ratio(changed, then)]
    return tuple(out)


def _less(now: Number, then: Number) -> Number:
    if now is None or then is None:
        return None
    if isinstance(now, int) and isinstance(then, int):
        return now - then
    return CONTEXT.subtract(Decimal(now), Decimal(then))
