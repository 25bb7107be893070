"""The keeper: one daemon thread per recorder that does what the request path must not.

Once a period it makes the pages ahead writable, adds page checksums, prepares the next file, retires full ones, writes
losses as gap records, hands over id runs and reads the policy. It never holds a lock that a fast finish needs.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING

from weighbridge.capture.guard import Guard

if TYPE_CHECKING:
    from weighbridge.capture.recorder import Recorder


class Keeper:
    """Owns the thread. It holds the recorder weakly, so a recorder that is dropped takes its keeper with it."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = weakref.ref(recorder)
        self._period = recorder.limits.keeper_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="weighbridge-keeper", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop it and wait for the round under way."""
        self._stop.set()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout=30)

    def _run(self) -> None:
        while not self._stop.wait(self._period):
            recorder = self._recorder()
            if recorder is None:
                return
            keep(recorder)
            del recorder


def keep(recorder: Recorder) -> None:
    """One round of the keeper's work. Each part is guarded on its own, so that one failure does not starve the rest."""
    journal = recorder.journal
    with Guard("keeper.prepare"):
        recorder.prepare()
    with Guard("keeper.pages"):
        journal.used()
        journal.populate()
        journal.check_pages()
    with Guard("keeper.retire"):
        recorder.retire(wait=False)
    with Guard("keeper.losses"):
        recorder.write_losses()
    recorder.do_chores()
    with Guard("keeper.content"):
        recorder.drain_content()
    with Guard("keeper.policy"):
        recorder.read_policy()
