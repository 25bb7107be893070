"""One recorder on a spool of its own for a check, and what an adapter has written there."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from weighbridge.capture import reader, seal
from weighbridge.capture.content import Content, Place, Run
from weighbridge.capture.contract.engine import Call, Engine, Installed
from weighbridge.capture.guard import RAISE_VARIABLE
from weighbridge.capture.recorder import Limits, Recorder
from weighbridge.schemas.errors import ContractError

Row = dict[str, Any]
KEY: Final = bytes(range(32))
_WAIT_S: Final = 15.0
_QUIET_S: Final = 2.5  # several sides of a call write one after the other, some of them once a second
_RAISED: Final = {"tenant": None, "route": None, "strategy": None, "level": 2, "purpose": "contract_test"}


class Trial:
    """A recorder, and the rows that came of it.

    Attributes:
        recorder: the recorder; None where the engine's agent is in another process.
        offered: token ids that were handed over, by attempt and child.
    """

    def __init__(self, spool: Path, recorder: Recorder | None) -> None:
        self.spool = spool
        self.recorder = recorder
        self.offered: dict[tuple[tuple[int, int], int, str], list[int]] = {}
        self._before = self._keys() if recorder is None else set()

    def rows(self, wanted: int) -> tuple[list[Row], list[Row], list[Row]]:
        """Attempts, children and gaps written since the begin; of several sources of one attempt one row is made.

        An agent in another process may need a moment: `wanted` attempts are waited for.
        """
        if self.recorder is not None:
            self.recorder.do_chores(last=True)
            self.recorder.close()
            return self._read()
        end = time.monotonic() + _WAIT_S
        told, since = self._read(), time.monotonic()
        while time.monotonic() < end and (len(told[0]) < wanted or time.monotonic() - since < _QUIET_S):
            time.sleep(0.25)
            now = self._read()
            if now != told:
                told, since = now, time.monotonic()
        return told

    def _read(self) -> tuple[list[Row], list[Row], list[Row]]:
        tables: dict[str, list[Row]] = {"attempt": [], "child": [], "gap": []}
        for path in reader.journals(self.spool):
            try:
                rows = seal.rows_of(reader.read_journal(path))
            except ContractError:
                continue
            for name, held in tables.items():
                held += [row for row in rows.get(name, ()) if name == "gap" or _key(row) not in self._before]
        merged: dict[tuple[int, int], Row] = {}
        for row in tables["attempt"]:
            kept = merged.setdefault(_key(row), {})
            kept |= {name: value for name, value in row.items() if kept.get(name) is None}
            kept["rows"] = kept.get("rows", 0) + 1
            kept.setdefault("sources", []).append(row["source"])
        return list(merged.values()), tables["child"], tables["gap"]

    def _keys(self) -> set[tuple[int, int]]:
        self._before = set()
        return {_key(row) for row in self._read()[0]}


@contextmanager
def trial(engine: Engine, *, level: int = 1, spool: Path | None = None) -> Iterator[Trial]:
    """A recorder of its own for one check, closed and removed afterwards.

    Args:
        engine: whose agent may be elsewhere.
        level: the level every attempt is taken at.
        spool: where the recorder writes, where the check is about that.
    """
    if engine.spool is not None:
        yield Trial(engine.spool, None)
        return
    with tempfile.TemporaryDirectory(prefix="weighbridge-contract-") as folder:
        policy = Path(folder) / "policy.json"
        cells = [] if level == 1 else [{**_RAISED, "expires": "9999-12-31"}]
        policy.write_text(json.dumps({"version": 1, "cells": cells}), encoding="utf-8")
        recorder = Recorder.start(
            spool or Path(folder) / "spool",
            installation="contract",
            key=KEY,
            limits=Limits(keeper_s=3600.0),
            policy_file=policy,
        )
        made = Trial(recorder.spool, recorder)
        try:
            with _taken(recorder, made):
                yield made
        finally:
            recorder.close()


@contextmanager
def _taken(recorder: Recorder, made: Trial) -> Iterator[None]:
    """Token ids are looked at where they are handed over, and go no further: a contract needs no keys."""

    class Taken(Content):
        def offer(self, place: Place, runs: Sequence[Run]) -> int:  # noqa: ARG002 - the signature it replaces
            total = 0
            for run in runs:
                ids = [int(each) for each in run.ids]
                made.offered.setdefault(((run.hi, run.lo), run.child, str(run.stream)), []).extend(ids)
                total += len(ids)
            return total or -1

    before = recorder.content
    taken = Taken(None, recorder.losses, buffer_bytes=1 << 20)
    recorder.content = taken
    try:
        yield
    finally:
        recorder.content = before


@contextmanager
def as_in_production() -> Iterator[None]:
    """Errors of the agent are swallowed and counted, as they are outside of tests."""
    before = os.environ.pop(RAISE_VARIABLE, None)
    try:
        yield
    finally:
        if before is not None:
            os.environ[RAISE_VARIABLE] = before


@contextmanager
def installed(engine: Engine, made: Trial) -> Iterator[Installed | None]:
    """The adapter, installed for as long as the block lasts."""
    held = None if made.recorder is None else engine.install(made.recorder)
    try:
        yield held
    finally:
        if held is not None:
            held.remove()


def once(row: Row) -> bool:
    """Whether each side that saw the attempt (an engine, the server before it) wrote of it once."""
    return bool(row["rows"] == len(set(row["sources"])))


def called(engine: Engine, scenario: str) -> Call:
    """Make the call of a scenario."""
    call: Callable[[], Call] = getattr(engine, scenario)
    return call()


def _key(row: Row) -> tuple[int, int]:
    return row["attempt_hi"], row["attempt_lo"]
