"""The first thing a reader sees: is the bill right, what does that rest on, and the key figures."""

from __future__ import annotations

from datetime import date

import polars as pl

from weighbridge.pipeline.report.query.findings import at_stake, open_findings
from weighbridge.pipeline.report.query.gaps import REPORTED, RESIDUAL, outcomes, waterfall
from weighbridge.pipeline.report.query.quality import coverage
from weighbridge.pipeline.report.query.totals import amounts, totals
from weighbridge.pipeline.report.sheet import Answer, Figure, Prose, Tile, Tiles, say
from weighbridge.pipeline.report.view import View, collect
from weighbridge.schemas.enumerations import Direction, Severity, Status

QUESTION = "Is the bill right?"
# More currencies than this stand in their table only.
TILES_OF_MONEY = 3
# Findings of these severities ask for a correction.
FAULTS = (Severity.ERROR, Severity.WARNING)


def answer(view: View) -> Answer:
    """The verdict on the period, worst news first."""
    headline, tone = _headline(view)
    return Answer(QUESTION, headline, tone, (*_evidence(view), *_gaps(view), *_stake(view), _basis(view)))


def _headline(view: View) -> tuple[Prose, str]:
    result = view.get(outcomes)
    cover = view.get(coverage)
    if not cover.figure("of", measure="compared").value:
        return say("Nothing was observed or reported in this period."), "open"
    compared = cover.figure("attempts", measure="compared")
    if not result.rows:
        return say("Not known yet: this period has not been reconciled."), "open"
    if not compared.value:
        return say("Not known: no attempt has both an observed and a reported count."), "open"
    count = {status: result.figure("attempts", status=str(status)) for status in Status}
    if count[Status.UNEXPLAINED].value:
        return say(
            "Not yet. ", *_counted(count[Status.UNEXPLAINED], "differs", "differ"), " for no known reason."
        ), "bad"
    if count[Status.EXPLAINED].value:
        return _explained(view, count[Status.EXPLAINED])
    if count[Status.PROVISIONAL].value:
        return say("So far, yes. The period is still open, and data may still come."), "open"
    yes, tone = _yes(view)
    return say(yes, *_counted(compared, "agrees", "agree"), " to the token; none differs."), tone


def _yes(view: View) -> tuple[str, str]:
    """A yes speaks for the directions that were compared; what was reported in the other one is left open."""
    left = _not_compared(view)
    if not left:
        return "Yes. ", "good"
    seen = " and ".join(str(each) for each in Direction if each not in left)
    return f"Yes for the {seen}; the {' and '.join(left)} was not compared. ", "open"


def _not_compared(view: View) -> list[Direction]:
    """Directions with reported tokens and not one comparison."""
    flow, sums = view.get(waterfall), view.get(totals)
    return [
        each
        for each in Direction
        if flow.row(direction=str(each), step=REPORTED) is None and sums.figure(str(each), measure=REPORTED).value
    ]


def _explained(view: View, differing: Figure) -> tuple[Prose, str]:
    """Every gap has a cause. Whether that is a fault, the findings say: a convention that differs is none."""
    sheet = view.get(open_findings)
    faults = [(sheet.figure("open_findings", severity=str(fault)), str(fault)) for fault in FAULTS]
    found = [part for count, word in faults if count.value for part in (count, _number(count, f" {word}"), " and ")]
    if found:
        states = "is open" if [count.value for count, _ in faults if count.value] == [1] else "are open"
        return say("Not as it stands. Every difference has a known reason; ", *found[:-1], f" {states}."), "warn"
    differ = _counted(differing, "differs", "differ")
    yes, tone = _yes(view)
    return say(yes, *differ, " for a known reason, and no open finding calls that a fault."), tone


def _number(count: Figure, word: str) -> str:
    return word if count.value == 1 else f"{word}s"


def _counted(attempts: Figure, one: str, more: str) -> tuple[Figure, str]:
    """How many attempts, and what they do, in the right number."""
    return (attempts, f" attempt {one}") if attempts.value == 1 else (attempts, f" attempts {more}")


def _evidence(view: View) -> tuple[Prose, ...]:
    """How much of the period the answer speaks about."""
    cover = view.get(coverage)
    compared = cover.figure("attempts", measure="compared")
    of = cover.figure("of", measure="compared")
    if not of.value:
        return ()
    part = cover.figure("share", measure="compared")
    said = [say("The answer covers ", compared, " of ", of, " attempts (", part, "), those that could be compared.")]
    result = view.get(outcomes)
    for status, why in ((Status.EXPLAINED, "a known reason"), (Status.UNEXPLAINED, "no known reason")):
        if result.row(status=str(status)) and result.figure("attempts", status=str(status)).value:
            differing = _counted(result.figure("attempts", status=str(status)), "differs", "differ")
            said.append(say(*differing, f" from what was observed, for {why}."))
    missing = cover.figure("attempts", measure="usage_missing")
    if missing.value:
        said.append(say(*_counted(missing, "has", "have"), " no usage report although one was expected."))
    return tuple(said)


def _gaps(view: View) -> tuple[Prose, ...]:
    """Per direction: observed, reported, and what no cause explains."""
    flow, left_out = view.get(waterfall), _not_compared(view)
    said = []
    for direction in Direction:
        if direction in left_out:
            told = view.get(totals).figure(direction, measure=REPORTED)
            said.append(say(f"{direction.capitalize()}: ", told, " tokens reported; none was compared."))
        if flow.row(direction=direction, step=REPORTED) is None:
            continue
        seen = flow.figure("tokens", direction=direction, step="observed")
        told = flow.figure("tokens", direction=direction, step=REPORTED)
        left = flow.figure("change", direction=direction, step=RESIDUAL)
        word = direction.capitalize()
        said.append(say(f"{word}: ", told, " tokens reported, ", seen, " observed; ", left, " remain unexplained."))
    return tuple(said)


def _stake(view: View) -> tuple[Prose, ...]:
    """Money in open findings, by currency; what is nothing is not mentioned."""
    sheet = view.get(at_stake)
    said = []
    for name in sheet.cells("currency"):
        sides = [(sheet.figure(f"charged_{side}", currency=name), side.replace("_", " ")) for side in _SIDES]
        named = [(*_pair(money), f" charged {side}", " and ") for money, side in sides if money.value]
        parts = [part for each in named for part in each]
        if parts:
            said.append(say("Open findings name ", *parts[:-1], "."))
    return tuple(said)


_SIDES = ("too_much", "too_little")


def _pair(money: Figure) -> tuple[str, Figure]:
    return f"{money.currency}\u00a0", money


def _basis(view: View) -> Prose:
    """What `the bill` stands for here."""
    begin = pl.datetime(*_date(view.period.first), time_zone="UTC")
    lines = view.whole("invoice_line", ["period_start", "period_end"])
    held = lines.filter((pl.col("period_start").dt.date() <= view.period.last) & (pl.col("period_end") > begin))
    if collect(held.select(pl.len())).item():
        return say("Invoice lines are held: the section on invoices compares them with priced usage.")
    return say("No invoice is imported: the bill stands for reported usage at the prices of its days.")


def _date(day: date) -> tuple[int, int, int]:
    return day.year, day.month, day.day


def key_figures(view: View) -> Tiles:
    """Attempts, tokens, money and open findings, each with how far it is known."""
    return Tiles((*_size(view), *_money(view), _open(view)))


def _size(view: View) -> tuple[Tile, ...]:
    sums, cover = view.get(totals), view.get(coverage)
    used = cover.figure("attempts", measure="with_usage")
    alone = cover.figure("attempts", measure="report_only")
    more = ("; ", alone, " told by a report alone") if alone.value else ()
    tiles = [Tile("Attempts", cover.figure("of", measure="with_usage"), "", say(used, " with a usage report", *more))]
    for measure in (REPORTED, "observed"):
        known = sums.figure("attempts_known", measure=measure)
        of = sums.figure("attempts", measure=measure)
        figure = sums.figure("total", measure=measure)
        tiles.append(Tile(measure.capitalize(), figure, "tokens", say("known for ", known, " of ", of, " attempts")))
    return tuple(tiles)


def _money(view: View) -> tuple[Tile, ...]:
    sheet, cover = view.get(amounts), view.get(coverage)
    missing = cover.figure("attempts", measure="without_price")
    if not sheet.rows:
        figure = Figure(None, missing.kind, cover.name)
        return (Tile("Priced", figure, "", say(missing, " attempts have usage without a price")),)
    return tuple(
        Tile("Priced", sheet.figure("amount", currency=name), str(name), say(missing, " attempts without a price"))
        for name in sheet.cells("currency")[:TILES_OF_MONEY]
    )


def _open(view: View) -> Tile:
    sheet = view.get(open_findings)
    errors = sheet.figure("open_findings", severity=str(Severity.ERROR))
    warnings = sheet.figure("open_findings", severity=str(Severity.WARNING))
    remark = say("errors: ", errors, ", warnings: ", warnings)
    return Tile("Open findings", sheet.foot("open_findings"), "", remark)
