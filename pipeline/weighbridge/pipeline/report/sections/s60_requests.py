"""The largest single calls."""

from __future__ import annotations

from weighbridge.pipeline.report.query.requests import top_requests
from weighbridge.pipeline.report.sheet import Block, Section
from weighbridge.pipeline.report.view import View


def blocks(view: View) -> tuple[Block, ...]:
    """The ten largest attempts in each currency, and the ten largest without a price."""
    return (view.get(top_requests),)


SECTION = Section(60, "Largest requests", "requests", blocks)
