"""Why a strategy is judged as it is, in a sentence: on how many pairs, of how many that are needed, and what to do."""

from __future__ import annotations

from dataclasses import replace

from weighbridge.pipeline.compare.comparison import Compared, Comparison
from weighbridge.pipeline.compare.effect import Evidence
from weighbridge.pipeline.compare.judging import Ruling
from weighbridge.pipeline.compare.power import POWER, Need
from weighbridge.schemas.enumerations import Judgement

NOT_SHOWN = "not shown"


def word(each: Compared) -> str:
    """The judgement in words; where too few pairs were touched to judge that, it is not shown."""
    ruling = each.ruling
    if each.judgement is Judgement.UNDECIDED and ruling is not None and not ruling.shown:
        return NOT_SHOWN
    return str(each.judgement)


def why(found: Comparison, each: Compared) -> str:
    """The sentence; it names counts and margins, never an answer."""
    held, ruling = each.held, each.ruling
    if held is None or ruling is None:
        return "it is not judged"
    acted = f"it acted on {held.acted} of {held.pairs} pairs (told by {held.evidence})"
    if held.evidence is Evidence.NOTHING:
        acted = "neither state events nor counts tell on which pairs it acted, so it is judged on all of them"
    said = {
        Judgement.NO_EFFECT: lambda: f"nothing shows that it acted on any of {held.pairs} pairs",
        Judgement.WORSE: lambda: f"its loss is beyond the margin; {acted}",
        Judgement.NOT_WORSE: lambda: f"its loss is inside of the margin; {acted}{_enough(ruling)}",
        Judgement.UNDECIDED: lambda: _open(found, ruling, acted),
    }[each.judgement]()
    return f"{said}{_floor(found)}"


def _enough(ruling: Ruling) -> str:
    held = ruling.touched or ruling.whole
    return "" if held is None else f", and {held.least} such pairs are the least that show it"


def _open(found: Comparison, ruling: Ruling, acted: str) -> str:
    both = [held for held in (ruling.touched, ruling.whole) if held is not None]
    short = next((held for held in both if held.have < held.pairs), None)
    if short is None:
        return f"its loss is too near to the margin to be told from it; {acted}"
    such = "such pairs" if short is ruling.touched else "pairs"
    carried = None if short.have < found.gate.pairs else short.margin
    return f"{acted}; {needed(replace(short, margin=carried), found.margins[short.measure], such)}"


def needed(held: Need, margin: float, such: str = "pairs") -> str:
    """How many pairs a margin takes, and what else can be done."""
    wider = "" if held.margin is None or held.margin <= margin else f", or tolerate {_up(held.margin):g}"
    spread = (
        f", and about {held.pairs} at this spread for an equal strategy to be told in {POWER:.0%} of comparisons"
        if held.pairs > held.least
        else ""
    )
    return (
        f"a margin of {margin:g} ({held.measure}) takes at least {held.least} {such}{spread}: give more prompts{wider}"
    )


def _up(margin: float) -> float:
    """Two places, never less than what is needed."""
    return round(margin + 0.005, 2)


def _floor(found: Comparison) -> str:
    if not found.floor_measured:
        return "; the baseline was run once, and is taken to repeat itself"
    if found.unrepeated:
        again = len(found.baseline.again.keys() | found.baseline.unlike)
        return (
            f"; the baseline differed from itself in {found.unrepeated} of {again} pairs, and losses are those beyond "
            "what it loses against itself"
        )
    return ""
