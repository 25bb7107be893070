"""One flow run: it holds the turn of an installation, shows how far it is, and leaves an account behind."""

from __future__ import annotations

import os
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from prefect.artifacts import (
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)

from weighbridge.dags import work
from weighbridge.dags.safety import guarded
from weighbridge.pipeline.run.failure import GateRefusedError
from weighbridge.pipeline.run.home import Home, open_home
from weighbridge.pipeline.run.month import months_due, span_of_month, steps_of
from weighbridge.pipeline.run.step import Span, Step
from weighbridge.pipeline.run.steps import settle
from weighbridge.pipeline.run.turn import patiently, turn
from weighbridge.pipeline.settings import find_config

# A run that finds another one at work waits for it; then it fails, and the next one of the schedule does what is due.
WAIT_S = 4 * 3600.0
Told = dict[str, Any]


@dataclass(slots=True)
class Run:
    """What a flow run has done so far.

    Attributes:
        name: of the flow.
        home: the installation.
        counts: step -> what was counted, added up over its units.
        units: step -> the days or months it worked on.
        files: paths of what was made.
        today: the UTC day it began on.
        progress: the artifact that shows how far it is.
    """

    name: str
    home: Home
    today: date
    progress: UUID | Coroutine[Any, Any, UUID]  # the library's own type; an id wherever a flow runs
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    units: dict[str, list[str]] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)

    def take_in(
        self, paths: Sequence[Path] | None, day: date | None, importer: str | None, mapping: Path | None
    ) -> None:
        """Take in what waits at these paths, else in the spool, and fetch what the settings name."""
        chosen = list(paths) if paths else [self.home.spool]
        self._note("take_in", work.take(self.home.root, chosen, day or self.today, importer, mapping))
        if self.home.settings.sources:
            self._note("fetch", work.fetch_sources(self.home.root))

    def go(self, steps: Sequence[Step], span: Span | None = None) -> None:
        """Do what is due of each step, or all within a span of days: one task per day or month."""
        for place, step in enumerate(steps):
            pieces = list(pieces_of(step, guarded(step.asked)(self.home, span, self.today)))
            for number, (units, marks) in enumerate(pieces):
                done = work.work(self.home.root, step.name, units, marks, self.today)
                self._note(step.name, done["counts"], *marks)
                self.files += done["files"]
                self.show((place + (number + 1) / len(pieces)) / len(steps))

    def month(self, month: str | None, by: str) -> None:
        """Bring a month up to date and close it; by default every one that is due, whatever a gate says of another."""
        refused = []
        for each in [month] if month else guarded(months_due)(self.home, datetime.now(UTC)):
            try:
                self._close(each, by)
            except GateRefusedError as error:
                refused.append(str(error))
        if refused:
            raise GateRefusedError("\n".join(refused))

    def _close(self, month: str, by: str) -> None:
        self.go(guarded(steps_of)(self.home, month), span_of_month(month))
        done = work.close(self.home.root, month, by)
        self._note("close", done["counts"], month)
        self.files += done["files"]

    def delete(self, today: date | None, by: str, *, accept_clock: bool) -> None:
        """Delete what is past its time."""
        self._note("retention", work.delete(self.home.root, today or self.today, by, accept_clock=accept_clock))

    def pack(self) -> None:
        """Pack the token ids that came."""
        self._note("pack", work.pack_up(self.home.root, self.today))

    def told(self) -> Told:
        """What the flow returns: days, months, paths and counts."""
        return {"counts": self.counts, "units": self.units, "files": self.files}

    def _note(self, step: str, counts: dict[str, int], *units: str) -> None:
        held = self.counts.setdefault(step, {})
        for name, count in counts.items():
            held[name] = held.get(name, 0) + count
        self.units.setdefault(step, []).extend(units)

    def show(self, share: float) -> None:
        """Say how much of the run is done, 0 to 1."""
        if isinstance(self.progress, UUID):
            update_progress_artifact(self.progress, round(100 * share, 1))

    def account(self) -> None:
        """Leave the account and the paths of what was made as artifacts."""
        rows = [
            {"step": step, "units": len(self.units.get(step, ())), "count": name, "value": value}
            for step, counts in self.counts.items()
            for name, value in counts.items()
        ]
        create_table_artifact(table=rows, key=f"weighbridge-{self.name}", description="What each step did")
        if self.files:
            lines = "\n".join(f"- `{path}`" for path in self.files)
            create_markdown_artifact(
                markdown=f"# Files\n\n{lines}\n", key=f"weighbridge-{self.name}-files", description="What was made"
            )


def pieces_of(step: Step, asked: Mapping[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    """What one task does, with its name: a day or a month, or all of them where they belong together."""
    if not step.together:
        yield from ((unit, {unit: mark}) for unit, mark in asked.items())
    elif asked:
        first, last = min(asked), max(asked)
        yield first if first == last else f"{first}-to-{last}", dict(asked)


@contextmanager
def run_of(name: str, config: Path | None) -> Iterator[Run]:
    """Open the installation, hold its turn, and leave an account whatever happens.

    Args:
        name: of the flow.
        config: the settings file or its folder; null: as the environment says, or the current folder.

    Raises:
        ConfigError: there is no such installation.
        LakeBusyError: another run was at work for too long.
    """
    home = guarded(open_home)(find_config(config, os.environ))
    with turn(home, wait_s=WAIT_S):
        guarded(patiently)(lambda: settle(home), WAIT_S)
        key = f"weighbridge-{name}-progress"
        progress = create_progress_artifact(progress=0.0, key=key, description="How much of the run is done")
        run = Run(name, home, datetime.now(UTC).date(), progress)
        try:
            work.note_changes(home.root)
            yield run
            run.show(1.0)
        finally:
            run.account()
