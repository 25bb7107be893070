"""How much there was."""

from __future__ import annotations

from weighbridge.pipeline.report.query import shared
from weighbridge.pipeline.report.sheet import Block, Prose, Section, Sheet, Tile, Tiles, say
from weighbridge.pipeline.report.view import View
from weighbridge.schemas.enumerations import SharedMeasure

_TILES = (
    ("Input tokens, reported", SharedMeasure.INPUT_REPORTED),
    ("Output tokens, reported", SharedMeasure.OUTPUT_REPORTED),
)


def blocks(view: View) -> tuple[Block, ...]:
    """The key figures, each with what it rests on."""
    totals = view.get(shared.totals)
    if not totals.rows:
        return (say("Nothing is released for this period."), view.get(shared.daily))
    tiles = [
        Tile(label, totals.figure("about", measure=str(measure)), "about", _remark(totals, measure))
        for label, measure in _TILES
        if totals.row(measure=str(measure))
    ]
    return (
        say("Figures for everybody: about what was used, from histograms without a row of fewer than eleven attempts."),
        Tiles(tuple(tiles)),
        view.get(shared.daily),
    )


def _remark(totals: Sheet, measure: SharedMeasure) -> Prose:
    return say("of ", totals.figure("attempts_known", measure=str(measure)), " attempts that tell")


SECTION = Section(10, "Summary", "summary", blocks)
