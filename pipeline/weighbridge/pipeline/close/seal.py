"""The seal of a close: when, who, and why before its time. It is no part of the root: the same month closed by somebody
else a year later has the same one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from weighbridge.pipeline.close.layout import SEAL
from weighbridge.pipeline.close.plain import DamagedError, document, parsed, sha256

FORMAT = "weighbridge seal"


@dataclass(frozen=True, slots=True)
class Seal:
    """When and by whom a month was closed.

    Attributes:
        root: the root that was sealed.
        closed_at: UTC.
        closed_by: who, a name.
        early: whether it was closed before its time; the reason stands in the lake.
    """

    root: str
    closed_at: datetime
    closed_by: str
    early: bool

    def _core(self) -> dict[str, Any]:
        moment = self.closed_at.astimezone(UTC).isoformat(timespec="microseconds")
        return {
            "format": FORMAT,
            "root": self.root,
            "closed_at": moment,
            "closed_by": self.closed_by,
            "early": self.early,
        }

    def to_json(self) -> bytes:
        """The bytes of its file."""
        return document({**self._core(), "digest": sha256(document(self._core()))})


def seal_of(raw: bytes) -> Seal:
    """The seal whose bytes are `raw`.

    Raises:
        DamagedError: it is none, or was edited.
    """
    content: Mapping[str, Any] = parsed(raw, SEAL)
    try:
        moment = datetime.fromisoformat(str(content["closed_at"]))
        seal = Seal(str(content["root"]), moment, str(content["closed_by"]), bool(content["early"]))
        sound = seal.to_json() == raw
    except (KeyError, ValueError):
        sound = False
    if not sound:
        raise DamagedError(f"{SEAL} does not say when and by whom the month was closed: it was edited, or damaged")
    return seal
