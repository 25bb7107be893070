"""The calls of one log file on their way to the lake: what the file says twice is one call."""

from __future__ import annotations

import marshal
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

from weighbridge.pipeline.ingest.staging import Call, Stage
from weighbridge.schemas.enumerations import ForeignIdKind


@dataclass(slots=True)
class LogCalls:
    """The calls of one file.

    A log lists calls, so a record that stands there twice, letter for letter in all that is looked at, is an export
    that overlaps itself and no second report. The same name with other content is a later state of the call.

    Attributes:
        stage: where they go.
    """

    stage: Stage
    _seen: dict[str, bytes] = field(default_factory=dict)

    def add(self, number: int, call: Call, record: Mapping[str, object]) -> None:
        """Add the call of a record, or count the record as a repetition.

        Args:
            number: the 0-based place of the record in its file.
            call: what it tells.
            record: the record, which identifies a call that nothing else does.
        """
        name = call.ids.get(ForeignIdKind.RECORD_ID)
        if name is not None and not call.unreadable:
            told = _told(call)
            if self._seen.get(name) == told:
                self.stage.repeat()
                return
            self._seen[name] = told
        self.stage.add(number, [call], record)


def _told(call: Call) -> bytes:
    """The hash of all that a call tells: a file may hold millions, and each would be kept to be compared."""
    parts = [(part.ended.value, list(map(tuple, part.flattened.leaves))) for part in call.parts]
    told = (call.attempt, call.tenant, parts)
    try:
        # Of this version, because from the next one on equal values may be written in two ways.
        shown = marshal.dumps(told, 2)
    except ValueError:  # a value that is no plain one
        shown = repr(told).encode()
    return blake2b(shown, digest_size=16).digest()
