"""Where tokens go."""

from __future__ import annotations

from weighbridge.pipeline.report.query import shared
from weighbridge.pipeline.report.sheet import Block, Section
from weighbridge.pipeline.report.view import View


def blocks(view: View) -> tuple[Block, ...]:
    """By provider, model and task."""
    return (view.get(shared.cells),)


SECTION = Section(30, "Where tokens go", "cells", blocks)
