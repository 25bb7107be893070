"""The answer first."""

from __future__ import annotations

from weighbridge.pipeline.report.answer import answer, key_figures
from weighbridge.pipeline.report.query.earlier import sentences
from weighbridge.pipeline.report.query.findings import at_stake, open_findings, priorities
from weighbridge.pipeline.report.sheet import Block, Prose, Section, Sheet, Steps, Value, say
from weighbridge.pipeline.report.view import View


def blocks(view: View) -> tuple[Block, ...]:
    """Whether the bill is right, the key figures and how they moved, what is open, and what to do first."""
    return (
        answer(view),
        key_figures(view),
        *sentences(view),
        *_first_steps(view),
        view.get(open_findings),
        view.get(at_stake),
    )


def _first_steps(view: View) -> tuple[Steps, ...]:
    """The first three priorities, each with what it is about; all of them stand in their own section."""
    sheet = view.get(priorities)
    steps = tuple(_step(sheet, rank) for rank in sheet.cells("rank")[:3])
    return (Steps("What to do first", steps),) if steps else ()


def _step(sheet: Sheet, rank: Value) -> Prose:
    """A cure, the findings it is for, and the command that shows the first of them down to its rows."""
    many = sheet.figure("findings", rank=rank)
    return say(
        f"{sheet.figure('cure', rank=rank).value} ",
        many,
        " finding: " if many.value == 1 else " findings, worst first: ",
        sheet.figure("about", rank=rank),
        "; `weighbridge explain` ",
        sheet.figure("first_id", rank=rank),
    )


SECTION = Section(10, "Summary", "summary", blocks)
