"""The answer first."""

from __future__ import annotations

from weighbridge.pipeline.report.answer import answer, key_figures
from weighbridge.pipeline.report.query.earlier import sentences
from weighbridge.pipeline.report.query.findings import at_stake, open_findings, priorities
from weighbridge.pipeline.report.sheet import Block, Section, Steps, say
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
    """The first three priorities; all of them stand in their own section."""
    cures = view.get(priorities).cells("cure")[:3]
    return (Steps("What to do first", tuple(say(str(cure)) for cure in cures)),) if cures else ()


SECTION = Section(10, "Summary", "summary", blocks)
