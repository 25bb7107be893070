"""What an audit looks at: the answers of one cell in the order of their arrival, with the evidence beside each gap."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from weighbridge.pipeline.audit.scales import Ints, Mask
from weighbridge.schemas.enumerations import AuditMeasure

UNKNOWN = -1  # of counts that cannot be negative


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighings:
    """Answers of one cell; every array has one item per answer, `UNKNOWN` where a count is not known.

    Attributes:
        measure: what was weighed.
        gaps: reported - observed tokens.
        sizes: observed tokens (of hidden reasoning: as many as calibration predicts).
        reported: what was billed, tokens.
        messages: of the prompt.
        limit: of output tokens, as it was asked for.
        repeated: tokens that repeated reports add.
        missing: whether a report that was due never came.
        rejected: drafted tokens that were thrown away.
        unseen_reasoning: reported reasoning that was not computed; known where an engine counts reasoning.
    """

    measure: AuditMeasure
    gaps: Ints
    sizes: Ints
    reported: Ints
    messages: Ints
    limit: Ints
    repeated: Ints
    missing: Mask
    rejected: Ints
    unseen_reasoning: Ints

    @property
    def rows(self) -> int:
        """How many answers there are."""
        return len(self.gaps)

    @classmethod
    def of(cls, measure: AuditMeasure, gaps: Ints, sizes: Ints, **evidence: Ints) -> Weighings:
        """From gaps and sizes, with what evidence there is; the rest is unknown."""
        unknown = np.full(gaps.shape, UNKNOWN, np.int64)
        given: dict[str, Ints] = {"repeated": np.zeros_like(gaps), "reported": sizes + gaps, **evidence}
        missing = np.asarray(given.pop("missing", np.zeros_like(gaps)), bool)
        names = {item.name for item in fields(cls)} - {"measure", "gaps", "sizes", "missing"}
        columns = {name: given.get(name, unknown) for name in names}
        return cls(measure=measure, gaps=gaps, sizes=sizes, missing=missing, **columns)


def is_pinned(reported: Ints, limit: Ints) -> Mask:
    """Answers that were billed at exactly their limit: whatever was served, this is what honest bills say, too."""
    out: Mask = (limit != UNKNOWN) & (reported == limit)
    return out


def predicted(visible: Ints, ratio: float) -> Ints:
    """Reasoning tokens that calibration predicts beside visible ones, to whole tokens."""
    out: Ints = np.rint(ratio * visible).astype(np.int64)
    return out
