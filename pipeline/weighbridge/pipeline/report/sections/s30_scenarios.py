"""Where the tokens and the money go."""

from __future__ import annotations

from weighbridge.pipeline.report.query.scenarios import by_model, by_route, by_task, by_tenant
from weighbridge.pipeline.report.sheet import Block, Section
from weighbridge.pipeline.report.view import View


def blocks(view: View) -> tuple[Block, ...]:
    """The same figures by task, route, model and tenant."""
    return (view.get(by_task), view.get(by_route), view.get(by_model), view.get(by_tenant))


SECTION = Section(30, "Where tokens and money go", "scenarios", blocks)
