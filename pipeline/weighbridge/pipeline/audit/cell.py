"""A cell of an audit: answers that may be held to one tolerance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from weighbridge.schemas.enumerations import AuditMeasure, Grade


class Cell(NamedTuple):
    """What tells cells apart; null where it is not known. In the order of the columns of `audit_cell`."""

    measure: str
    provider: str | None
    api: str | None
    model: str | None
    tokenizer: str | None
    template: str | None
    script: str | None
    grade: str

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Cell:
        """That of a row."""
        return cls(*(row[name] for name in cls._fields))

    @property
    def is_identity(self) -> bool:
        """Whether our own engine counted: then nothing is tolerated, and no statistics are asked."""
        return self.grade == Grade.G1

    @property
    def is_predicted(self) -> bool:
        """Whether what it is held against is a prediction."""
        return self.measure == AuditMeasure.HIDDEN_REASONING

    def subject(self) -> dict[str, str]:
        """As the subject of a finding."""
        return {name: str(value) for name, value in self._asdict().items() if value is not None}


CELL = Cell._fields
