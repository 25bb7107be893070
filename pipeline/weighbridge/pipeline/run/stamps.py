"""What each step of a night has seen: step and unit -> the mark of the rows it was done for.

A unit is a day or a month. It is due while the mark of its rows is another than the one the step was last done for: so
what a run that was cut off has not come to is done by the next one, whatever that is given to take in, and what has not
changed rests. The file is an aid and no record: where it is lost or cannot be read, everything is done again and comes
out the same, but for what retention has taken from, which stays as it is (`forgotten`).

Beside the marks stands what rests while rows are deleted or packed (`Rest`): a run that is cut off in between leaves it
there, and the next one goes on with it.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

_log = logging.getLogger("weighbridge.run")
_FORMAT = "weighbridge stamps 1"
_RESTING = "resting"
Marks = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Rest:
    """What was done before rows were rewritten, so that their rewriting makes none of it due.

    Attributes:
        day: the UTC day it was looked at.
        facts: a mark of all else that could make anything due.
        done: step -> units that were done as their rows were.
    """

    day: date
    facts: str
    done: Mapping[str, Sequence[str]]


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
        self._write(content, self.resting())

    def resting(self) -> Rest | None:
        """What rests while rows are rewritten; null where nobody is at it."""
        told = self._content().get(_RESTING)
        try:
            return None if told is None else Rest(date.fromisoformat(told["day"]), told["facts"], dict(told["done"]))
        except (ValueError, KeyError, TypeError):
            return None

    def rest(self, rest: Rest) -> None:
        """Note what rests, before the first row is rewritten."""
        self._write(self._read(), rest)

    def settle(self, marks: Mapping[str, Marks]) -> None:
        """Note step -> unit -> mark as they are now, and that nothing rests any more, in one piece."""
        content = self._read()
        for step, of_step in marks.items():
            content.setdefault(step, {}).update(of_step)
        self._write(content, None)

    def _read(self) -> dict[str, dict[str, str]]:
        steps = self._content().get("steps", {})
        return {step: {str(u): str(m) for u, m in of.items()} for step, of in steps.items()}

    def _content(self) -> dict[str, Any]:
        try:
            content = json.loads(self.path.read_bytes())
            if content["format"] != _FORMAT:
                raise ValueError(_FORMAT)
            for of_step in content["steps"].values():
                of_step.items()
        except FileNotFoundError:
            return {}
        except (ValueError, KeyError, TypeError, AttributeError):
            _log.warning("%s cannot be read; every step is done again", self.path)
            return {}
        return dict(content)

    def _write(self, steps: Mapping[str, Marks], rest: Rest | None) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        content: dict[str, Any] = {"format": _FORMAT, "steps": steps}
        if rest is not None:
            content[_RESTING] = {"day": rest.day.isoformat(), "facts": rest.facts, "done": rest.done}
        draft = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        try:
            draft.write_text(json.dumps(content) + "\n", encoding="utf-8")
            draft.replace(self.path)
        finally:
            draft.unlink(missing_ok=True)
