"""The keeper: one daemon thread per recorder that does what the request path must not.

Once a period, and when it is woken, it makes the pages ahead writable, adds page checksums, prepares the next file,
goes on from an old one, closes those it went on from, writes losses as gap records, hands over id runs and reads the
policy. It never holds a lock that a fast finish needs.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import weakref
from typing import TYPE_CHECKING

from weighbridge.capture.guard import Guard

if TYPE_CHECKING:
    from weighbridge.capture.recorder import Recorder


class Keeper:
    """Owns the thread. It holds the recorder weakly between two rounds."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = weakref.ref(recorder)
        self._period = recorder.limits.keeper_s
        # No Event: its lock is held for a moment, in which a signal handler or a fork may come.
        self._calls: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="weighbridge-keeper", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def thread_id(self) -> int | None:
        """Which thread it is, for whoever measures what it costs."""
        return self._thread.ident

    def wake(self) -> None:
        """Have the next round at once."""
        self._calls.put(None)

    def stop(self) -> None:
        """Stop it and wait for the round under way."""
        self._stopped = True
        self.wake()
        if self._thread is not threading.current_thread() and self._thread.ident is not None:
            self._thread.join(timeout=30)

    def _run(self) -> None:
        while True:
            with contextlib.suppress(queue.Empty):
                self._calls.get(timeout=self._period)
                while True:
                    self._calls.get_nowait()
            recorder = None if self._stopped else self._recorder()
            if recorder is None:
                return
            # Under test a guarded error is raised again; it must not end the thread and with it the capture.
            with Guard("keeper"):
                keep(recorder)
            del recorder


def keep(recorder: Recorder) -> None:
    """One round of the keeper's work. Each part is guarded on its own, so that one failure does not starve the rest."""
    journals = recorder.journals
    with Guard("keeper.files"):
        journals.replace_lost()
    with Guard("keeper.prepare"):
        journals.prepare()
    with Guard("keeper.old"):
        journals.follow_old()
    with Guard("keeper.pages"):
        journal = recorder.journal
        journal.check_pages()
        journal.populate()
    with Guard("keeper.retire"):
        journals.retire()
    with Guard("keeper.losses"):
        journals.write_losses()
    recorder.do_chores()
    with Guard("keeper.content"):
        recorder.drain_content()
    with Guard("keeper.policy"):
        recorder.read_policy()
