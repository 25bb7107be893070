"""The writer's lock of a lake on object storage: a lease that every host can see.

No file system can lock an object, but a Delta commit is one object that is created only if it is not there yet (a
conditional put): of two writers who saw the same version, one makes the next and the other is told that it lost. So the
lock is a table without rows whose last commit says who holds it and until when. The holder renews it in the
background; one that was killed is over when its time is.
"""

from __future__ import annotations

import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaError

from weighbridge.schemas.errors import LakeBusyError

FOLDER = "_lock"
# How long a lease lasts without being renewed, and how far clocks of hosts may be apart, seconds.
LASTS = 300.0
APART = 30.0
_HOLDER, _UNTIL = "weighbridge.holder", "weighbridge.until"
_SCHEMA = Schema.from_arrow(pa.schema([pa.field("nothing", pa.string())]))


@dataclass(slots=True)
class Lease:
    """The right to write a lake, for as long as it is renewed.

    Attributes:
        uri: the address of the lock's table.
        lasts: how long it lasts without being renewed, seconds.
        clock: the time, seconds since 1970.
    """

    uri: str
    lasts: float = LASTS
    clock: Callable[[], float] = time.time
    holder: str = field(default_factory=lambda: f"{socket.gethostname()}-{secrets.token_hex(8)}")
    _lost: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lease while the block runs.

        Raises:
            LakeBusyError: somebody else holds it; or, when it was to be renewed, it had been lost.
        """
        self.take()
        done = threading.Event()
        renewing = threading.Thread(target=self._renewing, args=(done,), name="weighbridge-lease", daemon=True)
        renewing.start()
        try:
            yield
        finally:
            done.set()
            renewing.join()
            self._give_up()

    def check(self) -> None:
        """See that the lease was not lost meanwhile; asked before every commit.

        Raises:
            LakeBusyError: it was.
        """
        if self._lost.is_set():
            raise LakeBusyError(
                f"{self.uri}: the lease of this process ran out and another writer has it; nothing more was committed. "
                "Run the same command again once the other one has ended."
            )

    def take(self) -> None:
        """Take the lease, or take it again.

        Raises:
            LakeBusyError: somebody else holds it.
        """
        table = self._table()
        holder, until = self._last(table)
        if holder not in {None, self.holder} and until + APART > self.clock():
            raise self._busy(holder, until)
        try:
            self._write(table, self.clock() + self.lasts)
        except CommitFailedError:
            raise self._busy(*self._last(self._table())) from None

    def _busy(self, holder: str | None, until: float) -> LakeBusyError:
        left = max(0, round(until + APART - self.clock()))
        return LakeBusyError(
            f"{self.uri.removesuffix(FOLDER)} is being written by {holder or 'another process'}, whose lease ends in "
            f"{left} s at the latest if it is not renewed; nothing was changed. Wait, then run the same command again."
        )

    def _renewing(self, done: threading.Event) -> None:
        while not done.wait(self.lasts / 3):
            try:
                self.take()
            except LakeBusyError:
                self._lost.set()
                return
            except (DeltaError, OSError):
                continue  # the store is not to be reached; there is time to try again

    def _give_up(self) -> None:
        """Let others have it at once. Where that fails, they have it when its time is over."""
        try:
            table = self._table()
            if self._last(table)[0] == self.holder:
                self._write(table, 0.0)
        except (CommitFailedError, DeltaError, OSError):
            return

    def _table(self) -> DeltaTable:
        if DeltaTable.is_deltatable(self.uri):
            return DeltaTable(self.uri)
        kept = {"delta.logRetentionDuration": "interval 1 hours", "delta.checkpointInterval": "20"}
        return DeltaTable.create(self.uri, _SCHEMA, mode="ignore", configuration=kept)

    def _last(self, table: DeltaTable) -> tuple[str | None, float]:
        said = next(iter(table.history(1)), {})
        return said.get(_HOLDER), float(said.get(_UNTIL, 0.0))

    def _write(self, table: DeltaTable, until: float) -> None:
        """The next version after the one this table was opened at; if somebody made it before, it fails."""
        about = CommitProperties(custom_metadata={_HOLDER: self.holder, _UNTIL: repr(until)}, max_commit_retries=0)
        seen = table.version()
        table.create_write_transaction([], "append", table.schema(), commit_properties=about)
        now = DeltaTable(self.uri)
        mine = [c for c in now.history() if c["version"] == seen + 1]
        if not mine or mine[0].get(_HOLDER) != self.holder or float(mine[0].get(_UNTIL, 0.0)) != until:
            raise CommitFailedError("another writer made this version")
