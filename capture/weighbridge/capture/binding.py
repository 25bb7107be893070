"""The request path: a binding hands out attempts, an attempt is finished with one store.

Everything here runs inside somebody else's request. The fast path is a few attribute reads and one generated call;
whatever does not fit goes to `Recorder.write_slow`, which learns and tries again, and nothing is ever raised.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from weighbridge.capture import guard
from weighbridge.capture.layout import Kind
from weighbridge.capture.plan import Plan, ShapeError
from weighbridge.capture.policy import Decision
from weighbridge.capture.scope import current
from weighbridge.schemas.identity import AttemptKey

if TYPE_CHECKING:
    from weighbridge.capture.recorder import Recorder

_VERSION: Final = 0x7000


class Binding:
    """What stays the same for many attempts: provenance, tenant, task, route, parameters, and the counts stated.

    Attributes:
        counts: names of the integers that `finish` gets, in order.
        hot: (the store of the current plan, its tag); replaced as a whole, so a reader never sees half of it.
    """

    __slots__ = (
        "__weakref__", "context", "counts", "decision", "facts", "hot", "learnt", "level_bits", "mark_bits",
        "parameters", "plans", "recorder", "root", "subject_bucket",
    )  # fmt: skip

    def __init__(
        self, recorder: Recorder, context: int, counts: Sequence[str], facts: tuple[str, str, str | None], root: str,
        parameters: int, subject_bucket: int | None,
    ) -> None:  # fmt: skip
        self.recorder = recorder
        self.context = context
        self.counts = tuple(counts)
        self.facts = facts
        self.root = root
        self.parameters = parameters
        self.subject_bucket = subject_bucket
        self.plans: list[Plan] = []
        self.learnt = 0
        self.hot: tuple[Any, int] = (_never, 0)
        self.decision = Decision()
        self.level_bits = 1 << 32
        self.mark_bits = 0

    def begin(
        self,
        *,
        key: AttemptKey | None = None,
        request: AttemptKey | None = None,
        scope: int = 0,
        number: int = 1,
        level: int | None = None,
    ) -> Attempt:
        """Start an attempt; without a `key` it gets a fresh UUIDv7, without a `request` that of the scope around it."""
        recorder = self.recorder
        now = time.time_ns()
        serial = recorder.serial()
        attempt = Attempt(
            self, (now // 1_000_000) << 16 | _VERSION | serial & 0xFFF, recorder.tail ^ serial, now // 1000
        )
        try:
            if key is not None:
                attempt.hi, attempt.lo = key[0] | 0, key[1] | 0
            if request is None:
                if (around := current.get()) is not None:
                    (attempt.request_hi, attempt.request_lo), scope = around.key, around.number
            else:
                attempt.request_hi, attempt.request_lo = request[0] | 0, request[1] | 0
            attempt.place = scope | number << 32
            if level is not None:
                attempt.level_bits = (level & 0xFF) << 32
            elif self.decision.threshold and self.decision.covers(recorder.key, attempt.hi, attempt.lo, now):
                attempt.level_bits = self.decision.level << 32
        except Exception as error:  # noqa: BLE001 - nothing may reach the host; what was set until here stands
            guard.report(error, "begin")
        return attempt

    def tag(self, plan: Plan, kind: Kind = Kind.ATTEMPT) -> int:
        """The first integer of a slot written with `plan`."""
        return kind | plan.number << 8 | self.context << 32


class Attempt:
    """One attempt under way. `finish` may be called once; a second call is counted, not stored."""

    __slots__ = (
        "arrived_us", "binding", "done", "hi", "level_bits", "lo", "mark_bits", "parameters", "place", "request_hi",
        "request_lo",
    )  # fmt: skip

    def __init__(self, binding: Binding, hi: int, lo: int, arrived_us: int) -> None:
        self.binding = binding
        self.hi = hi
        self.lo = lo
        self.arrived_us = arrived_us
        self.request_hi = 0
        self.request_lo = 0
        self.place = 0
        self.parameters = binding.parameters
        self.level_bits = 1 << 32
        self.mark_bits = 0
        self.done = False

    @property
    def key(self) -> AttemptKey:
        """The attempt's key."""
        return AttemptKey(self.hi, self.lo)

    @property
    def level(self) -> int:
        """The capture level that was decided for it."""
        return self.level_bits >> 32

    def finish(self, outcome: int, counts: Sequence[int] = (), usage: object = None, ids_expected: int = -1) -> bool:
        """Write the level-1 record.

        Args:
            outcome: see `layout.outcome_word`.
            counts: the integers the binding names, in its order, -1 where unknown.
            usage: the usage object as parsed from JSON, or None where the answer carried none.
            ids_expected: token ids that follow off the path, -1 none.

        Returns:
            True when the record survives a SIGKILL from here on. False when it waits in a buffer or was counted lost.
        """
        try:
            # Between this test and the mark no other thread can run: there is no call and no jump back.
            if self.done:
                return self.binding.recorder.repeat()
            self.done = True
            binding = self.binding
            # The plan before the file: a file that is present later than a plan was learnt has its entry.
            store, tag = binding.hot
            journal = binding.recorder.journal
            offset = journal.take()
            if offset < journal.end:
                store(
                    journal.buffer,
                    offset,
                    (
                        tag,
                        self.hi,
                        self.lo,
                        self.request_hi,
                        self.request_lo,
                        self.arrived_us,
                        self.parameters,
                        outcome | self.level_bits | self.mark_bits,
                        self.place,
                        ids_expected,
                    ),
                    counts,
                    usage,
                    offset,
                )
                return True
        except Exception:  # noqa: BLE001 - whatever did not fit is looked at again there, and nothing reaches the host
            return self.binding.recorder.write_slow(self, outcome, counts, usage, ids_expected, journal, offset)
        return self.binding.recorder.write_slow(self, outcome, counts, usage, ids_expected, None, 0)


def _never(*_: object) -> None:
    """The store of a binding that has no plan yet."""
    raise ShapeError
