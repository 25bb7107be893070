"""Whether providers may be accused of reporting more than was served."""

from __future__ import annotations

from weighbridge.pipeline.report.query.audits import audits
from weighbridge.pipeline.report.sheet import Block, Section
from weighbridge.pipeline.report.view import View


def blocks(view: View) -> tuple[Block, ...]:
    """Every audited cell, the worst first."""
    return (view.get(audits),)


SECTION = Section(47, "Audits of providers", "audits", blocks)
