"""What is wrong, one by one."""

from __future__ import annotations

from weighbridge.pipeline.report.query.findings import findings
from weighbridge.pipeline.report.query.life import carried_over, disputed
from weighbridge.pipeline.report.sheet import Block, Section, say
from weighbridge.pipeline.report.view import View


def blocks(view: View) -> tuple[Block, ...]:
    """Every finding, open ones first, worst first; what is taken over from earlier months; disputes and credits."""
    sheet = view.get(findings)
    rest = (view.get(carried_over), view.get(disputed))
    if not sheet.rows:
        return (sheet, *rest)
    return (
        say(
            "Difference is observed minus expected. A positive amount was charged too much. To see the rows behind a "
            "finding: weighbridge explain, and its id."
        ),
        sheet,
        *rest,
    )


SECTION = Section(50, "Findings", "findings", blocks, template="findings.html")
