"""What each step of a night has seen: step and unit -> the mark of the rows it was done for.

A unit is a day or a month. It is due while the mark of its rows is another than the one the step was last done for: so
what a run that was cut off has not come to is done by the next one, whatever that is given to take in, and what has not
changed rests. The file is an aid and no record: where it is lost or cannot be read, everything is done again and comes
out the same.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_log = logging.getLogger("weighbridge.run")
_FORMAT = "weighbridge stamps 1"
Marks = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Stamps:
    """The stamps in one file.

    Attributes:
        path: the file; it is made with the first stamp.
    """

    path: Path

    def of(self, step: str) -> dict[str, str]:
        """Unit -> mark, of one step."""
        return self._read().get(step, {})

    def due(self, step: str, marks: Marks) -> dict[str, str]:
        """Those of these units that the step was not done for as they are now, in order."""
        seen = self.of(step)
        return {unit: mark for unit, mark in sorted(marks.items()) if seen.get(unit) != mark}

    def put(self, step: str, marks: Marks, *, gone: Iterable[str] = ()) -> None:
        """Note that the step was done for these units; forget those that are gone."""
        content = self._read()
        of_step = content.setdefault(step, {})
        of_step.update(marks)
        for unit in gone:
            of_step.pop(unit, None)
        self._write(content)

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            content = json.loads(self.path.read_bytes())
            if content["format"] != _FORMAT:
                raise ValueError(_FORMAT)
            return {step: {str(u): str(m) for u, m in of.items()} for step, of in content["steps"].items()}
        except FileNotFoundError:
            return {}
        except (ValueError, KeyError, TypeError, AttributeError):
            _log.warning("%s cannot be read; every step is done again", self.path)
            return {}

    def _write(self, steps: Mapping[str, Marks]) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        try:
            draft.write_text(json.dumps({"format": _FORMAT, "steps": steps}) + "\n", encoding="utf-8")
            draft.replace(self.path)
        finally:
            draft.unlink(missing_ok=True)
