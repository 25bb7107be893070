"""Whether the figures of a close follow from its rows: read again, priced again, compared again, added up again.

Readings are made from the usage reports by the pinned dialects, amounts from the readings by the pinned prices,
comparisons from attempts and readings, and every figure from all of these. Where this version's code of a step is not
the one that closed the month, a difference in that step is a note: the pinned rows stand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from weighbridge.pipeline.close import pins
from weighbridge.pipeline.close.apart import apart
from weighbridge.pipeline.close.figures import Figures, Value, figures_of, flat
from weighbridge.pipeline.close.layout import FIGURES, NEIGHBOURS
from weighbridge.pipeline.close.margins import apart as apart_margins
from weighbridge.pipeline.close.month_figures import figures, numbered, rests_on
from weighbridge.pipeline.close.pack import Pack
from weighbridge.pipeline.close.plain import DamagedError
from weighbridge.pipeline.close.replay import Replay
from weighbridge.pipeline.close.row_names import row_name
from weighbridge.pipeline.close.verification import Difference, Kind, Proof
from weighbridge.pipeline.ingest.readings import REPORT_READ, last_revisions, read_reports
from weighbridge.pipeline.price.arrival import arrivals_of
from weighbridge.pipeline.price.frame import price_readings
from weighbridge.pipeline.price.table import price_rows
from weighbridge.pipeline.reconcile.batch import reconcile_month
from weighbridge.pipeline.reconcile.money import Prices
from weighbridge.pipeline.reconcile.month import Month
from weighbridge.schemas import canonical
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.tables import TABLES

_NAMED = 5
# Figures that only grow with rows: what is left of them after an erasure cannot be more than there was.
_GROWING = ("usage", "attempts", "money", "verdicts", "losses")
_EVIDENCE = ("attempt", "reading", "usage_report", "child", "priced_amount", "gap")


@dataclass(slots=True)
class Recomputed:
    """What came of it.

    Attributes:
        differences: what does not follow from the rows.
        proofs: figure -> how it was proved.
        notes: steps that could not be held to the letter.
    """

    differences: list[Difference] = field(default_factory=list)
    proofs: dict[str, Proof] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def recompute(pack: Pack) -> Recomputed:
    """Make the figures of a pack anew and hold them against those it was closed with.

    Raises:
        DamagedError: something pinned cannot be used.
    """
    out = Recomputed()
    rules = pack.pinned("rules")
    same = {room: rules.get("rooms", {}).get(room) == pins.room_digest(room) for room in pins.ROOMS}
    prices = price_rows(pack)
    _prices(pack, prices, out)
    for step, room, found in (
        ("readings", "ingest", _readings(pack, rules)),
        ("amounts", "price", _amounts(pack, prices)),
        ("comparisons", "reconcile", _comparisons(pack, prices)),
    ):
        differing = list(found)
        if same[room]:
            out.differences += differing
        elif differing:
            out.notes.append(
                f"{step} come out differently in {len(differing)} places under this version's rules; the month was "
                f"closed by {pack.manifest.code_version}, with which they can be made again"
            )
    if pack.erased and any(pack.erased_rows(table) for table in _EVIDENCE):
        out.notes.append("comparisons were not made again: rows of the month were erased, and they rest on all of them")
    _figures(pack, out)
    return out


def _prices(pack: Pack, prices: dict[str, Any], out: Recomputed) -> None:
    """The price rows are those their ids were made of, and their digest is the pinned one."""
    for price_id, row in prices.items():
        if row.price_id != price_id:
            out.differences.append(
                Difference(Kind.PIN, f"price row {price_id[:8]}", "holds other prices than its id says")
            )
    if not pack.erased_rows("price"):
        digest = canonical.digest(canonical.rows(TABLES["price"], pack.scan("price").collect().to_arrow()))
        if digest != pack.manifest.digests["prices"]:
            out.differences.append(Difference(Kind.PIN, "rows/price", "the digest of the prices is not the pinned one"))


def _readings(pack: Pack, rules: dict[str, Any]) -> Iterator[Difference]:
    dialects = pins.dialects_of(rules)
    for part in _parts(pack, "usage_report"):
        reports = last_revisions(part.select(REPORT_READ))
        made = read_reports(reports, dialects)
        days = made["day"].unique().implode()
        yield from _compared(pack, "reading", made, pack.own("reading").filter(pl.col("day").is_in(days)).collect())
    told = pack.own("usage_report").select("day").unique()
    untold = pack.own("reading").join(told, on="day", how="anti").collect()
    yield from _compared(pack, "reading", untold.clear(), untold)


def _amounts(pack: Pack, prices: dict[str, Any]) -> Iterator[Difference]:
    try:
        book = pins.book_of(pack.pinned("prices"), prices)
        for part in _parts(pack, "reading"):
            made = price_readings(part, book, arrivals_of(pack, book))
            days = part["day"].unique().implode()
            held = pack.own("priced_amount").filter(pl.col("day").is_in(days)).collect()
            yield from _compared(pack, "priced_amount", made, held)
    except ConfigError as error:
        raise DamagedError(f"pins/prices.json does not make a price book: {error}") from None


def _comparisons(pack: Pack, prices: dict[str, Any]) -> Iterator[Difference]:
    if any(pack.erased_rows(table) for table in _EVIDENCE):
        return
    found: list[Difference] = []

    def compare(table: str, made: pl.DataFrame, held: pl.DataFrame) -> None:
        found.extend(_compared(pack, table, made, held))

    reconcile_month(Month(Replay(pack, compare), pack.manifest.period, Prices(prices)))
    yield from found


def _parts(pack: Pack, table: str) -> Iterator[pl.DataFrame]:
    """The rows of the month, some days at a time; a part never shares a day with another."""
    entry = pack.manifest.tables.get(table)
    for part in () if entry is None else entry.parts:
        if part.name.part != NEIGHBOURS:
            file = pack.folder / pack.present[table, part.name.part].rows
            yield pl.read_parquet(file)


def _compared(pack: Pack, name: str, made: pl.DataFrame, held: pl.DataFrame) -> Iterator[Difference]:
    """Rows that are there and would not be made, or the other way round; erased ones may be missing on either side."""
    entry = pack.manifest.tables.get(name)
    table = entry.declared() if entry else TABLES[name]
    found = apart(table, made, held)
    told = [
        (found.changed, "does not follow from what it was made of"),
        (found.missing, "is missing, although it follows from the rows"),
        (found.extra, "follows from no row"),
    ]
    erased = any(pack.erased_rows(each) for each in ("usage_report", "reading", name))
    for rows, what in told[:1] if erased else told:
        for row in rows.head(_NAMED).iter_rows(named=True):
            yield Difference(Kind.ROW, f"{name}, {row_name(table, row)}", what)
        if rows.height > _NAMED:
            yield Difference(Kind.PARTITION, name, f"{rows.height - _NAMED} more rows: each {what}")


def _figures(pack: Pack, out: Recomputed) -> None:
    try:
        closed = figures_of(pack.figures)
    except (KeyError, TypeError, ValueError):
        raise DamagedError(f"{FIGURES} does not hold figures of this format") from None
    out.differences += apart_margins(closed)
    names = {tenant: number for number, tenant in pack.tenants().items()}
    found = numbered(figures(pack, pack.manifest.period), names)
    erased = {section for section in closed if any(pack.erased_rows(table) for table in rests_on(section))}
    for section in sorted(closed.keys() | found.keys()):
        _section(section, closed, found, out, erased=section in erased)


def _section(section: str, closed: Figures, found: Figures, out: Recomputed, *, erased: bool) -> None:
    one, other = flat({section: closed.get(section, ())}), flat({section: found.get(section, ())})
    for name in sorted(one.keys() | other.keys()):
        if name in one and name in other and one[name] == other[name]:
            out.proofs[name] = Proof.RECOMPUTED
        elif erased and name in one and not _outgrown(section, one[name], other.get(name)):
            out.proofs[name] = Proof.COMMITTED
        else:
            what = f"closed as {_said(one, name)}, the rows give {_said(other, name)}"
            out.differences.append(Difference(Kind.FIGURE, name, what))


def _outgrown(section: str, closed: Value, left: Value) -> bool:
    """Whether more is left of a figure than there ever was."""
    grows = section.startswith(_GROWING)
    return grows and closed is not None and left is not None and left > closed


def _said(found: dict[str, Value], name: str) -> str:
    if name not in found:
        return "no such figure"
    return "unknown" if found[name] is None else f"{found[name]}"
