"""Behind findings of a probe: its prompts are its own and nothing of them is kept; what the cause means is told.

Attempts of the same provider and model on that day are shown, as the same may have become of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from weighbridge.pipeline.explain.about import attempts_between
from weighbridge.pipeline.explain.held import Row
from weighbridge.pipeline.explain.kind import Asked
from weighbridge.pipeline.explain.kinds.attempt import attempts_node
from weighbridge.pipeline.explain.source import Behind, group, subject_of
from weighbridge.pipeline.probe.cause import all_causes
from weighbridge.pipeline.reconcile.tree.node import Node
from weighbridge.schemas.enumerations import FindingOrigin


def of_finding(asked: Asked, finding: Row) -> tuple[Node, ...]:
    """The attempts of its provider and model on its days, the largest first."""
    about = {name: value for name, value in subject_of(finding).items() if name in {"provider", "model"}}
    if not about or finding["first_day"] is None:
        return ()
    ids, many = attempts_between(asked.lake, finding["first_day"], finding["last_day"], about)
    return group("attempts of the same model on that day", attempts_node(asked, ids), many)


def titles() -> Mapping[str, str]:
    """What its causes mean."""
    return {cause.code: cause.title for cause in all_causes()}


BEHIND = Behind(FindingOrigin.PROBE, of_finding, titles)
