"""The request path: a binding hands out attempts, an attempt is finished with one store.

Everything here runs inside somebody else's request. The fast path is a few attribute reads and one generated call;
whatever does not fit goes to `Recorder.write_slow`, which learns and tries again, and nothing is ever raised.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from weighbridge.capture import guard
from weighbridge.capture.content import BESIDE_BYTES, OBJECT_BYTES, OBJECTS, Place
from weighbridge.capture.layout import FRESH, Kind, fresh_key
from weighbridge.capture.plan import Plan, ShapeError
from weighbridge.capture.policy import ALL, Decision
from weighbridge.capture.scope import current
from weighbridge.schemas.identity import AttemptKey

if TYPE_CHECKING:
    from weighbridge.capture.recorder import Recorder
    from weighbridge.capture.traces import Events
    from weighbridge.schemas.strategy import Strategy

_FIRST: Final = 1 << 32
_LEVEL_1: Final = 1 << 32
_LEVEL_BITS: Final = 0xFF << 32
_MARK_BITS: Final = 0xFFF << 40
_PAIR_BYTES: Final = 2 * BESIDE_BYTES
_DAY_US: Final = 86_400_000_000
_new = object.__new__
_now = time.time_ns
_around = current.get


def _at(index: int, doc: str) -> property:
    """An integer of the head."""

    def get(attempt: Attempt) -> int:
        return attempt.head[index]

    def put(attempt: Attempt, value: int) -> None:
        attempt.head[index] = value

    return property(get, put, doc=doc)


def _of_key(index: int, doc: str) -> property:
    """An integer of the head that is worked out when it is asked for."""

    def get(attempt: Attempt) -> int:
        return attempt.settled()[index]

    def put(attempt: Attempt, value: int) -> None:
        attempt.settled()[index] = value

    return property(get, put, doc=doc)


def _bits(mask: int, doc: str) -> property:
    """Some bits of the outcome word, in their place."""

    def get(attempt: Attempt) -> int:
        return attempt.head[7] & mask

    def put(attempt: Attempt, value: int) -> None:
        attempt.head[7] = attempt.head[7] & ~mask | value & mask

    return property(get, put, doc=doc)


class Binding:
    """What stays the same for many attempts: provenance, tenant, task, route, parameters, and the counts stated.

    Attributes:
        counts: names of the integers that `finish` gets, in order.
        decision: what raises some of its attempts above level 1, None where nothing does.
        hot: (the store of the current plan, its tag); replaced as a whole, so a reader never sees half of it.
    """

    __slots__ = (
        "__weakref__", "context", "counts", "decision", "facts", "hot", "learnt",
        "parameters", "place", "plans", "recorder", "root", "subject_bucket",
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
        self.place: Place | None = None
        self.hot: tuple[Any, int] = (_never, 0)
        self.decision: Decision | None = None

    def begin(
        self,
        key: AttemptKey | None = None,
        request: AttemptKey | None = None,
        scope: int = 0,
        number: int = 1,
        level: int | None = None,
    ) -> Attempt:
        """Start an attempt; without a `key` it gets a fresh UUIDv7, without a `request` that of the scope around it.

        Name what you pass. The signature does not insist on it: keyword-only defaults are looked up one by one in a
        dictionary, which costs every attempt about two microseconds with cold caches.
        """
        recorder = self.recorder
        now = _now()
        attempt = _new(Attempt)
        attempt.binding = self
        attempt.done = False
        attempt.head = head = [
            FRESH, now, next(recorder.serials), 0, 0, 0, self.parameters, _LEVEL_1, _FIRST, -1,
        ]  # fmt: skip
        try:
            if number != 1:
                head[8] = number << 32
            if key is not None:
                hi, lo = key[0] | 0, key[1] | 0
                attempt.head = head = [0, hi, lo, 0, 0, now // 1000, *head[6:]]
            if request is not None:
                head[3], head[4] = request[0] | 0, request[1] | 0
                head[8] |= scope
            elif (around := _around()) is not None:
                (head[3], head[4]), inner = around.key, around.number
                head[8] |= inner
            elif scope:
                head[8] |= scope
            if level is not None:
                head[7] = (level & 0xFF) << 32
            elif (
                (decision := self.decision) is not None
                and now < decision.until_ns
                and (decision.threshold >= ALL or decision.covers(recorder.key, *attempt.key, now))
            ):
                attempt.head[7] = decision.level << 32
        except Exception as error:  # noqa: BLE001 - nothing may reach the host; what was set until here stands
            guard.report(error, "begin")
        return attempt

    def entries(self) -> Iterable[int]:
        """Dictionary numbers its records may refer to."""
        hot = self.hot[1] >> 8 & 0xFFFFFF
        return (self.context, self.parameters, hot, *(plan.number for plan in list(self.plans)))

    def tag(self, plan: Plan, kind: Kind = Kind.ATTEMPT) -> int:
        """The first integer of a slot written with `plan`."""
        return kind | plan.number << 8 | self.context << 32


class Attempt:
    """One attempt under way; `Binding.begin` makes it. `finish` stores it once; a second call is only counted.

    Attributes:
        head: the first ten integers of its slot (`layout.HEAD`), outcome and plan still missing.
    """

    __slots__ = ("binding", "done", "head")

    binding: Binding
    done: bool
    head: list[int]

    hi = _of_key(1, "First half of the key.")
    lo = _of_key(2, "Second half of the key.")
    request_hi = _at(3, "First half of the key of its request, 0 without one.")
    request_lo = _at(4, "Second half of the key of its request, 0 without one.")
    arrived_us = _of_key(5, "When it arrived, Unix microseconds.")
    parameters = _at(6, "Dictionary number of its generation parameters, -1 none.")
    level_bits = _bits(_LEVEL_BITS, "The level, where the outcome word has it.")
    mark_bits = _bits(_MARK_BITS, "The caller's mark, where the outcome word has it; see `layout.level_word`.")
    place = _at(8, "Scope and attempt number.")

    @property
    def key(self) -> AttemptKey:
        """The attempt's key."""
        head = self.settled()
        return AttemptKey(head[1], head[2])

    def settled(self) -> list[int]:
        """The head with the key and the time of arrival worked out."""
        head = self.head
        if head[0] & FRESH:
            now, serial = head[1], head[2]
            hi, lo = fresh_key(now, serial, self.binding.recorder.tail)
            # As a whole, so that no other thread sees half of it.
            self.head = head = [0, hi, lo, head[3], head[4], now // 1000, *head[6:]]
        return head

    def content_place(self) -> Place:
        """The place of its token ids: tenant, subject bucket and day."""
        binding = self.binding
        day = self.settled()[5] // _DAY_US
        place = binding.place
        if place is None or place.day != day:
            place = binding.place = Place(binding.facts[0], binding.subject_bucket or 0, day)
        return place

    @property
    def level(self) -> int:
        """The capture level that was decided for it."""
        return self.head[7] >> 32 & 0xFF

    def offer(self, prompt: Any, output: Any) -> int:
        """Hand over its token ids by reference (level 2 and up), for `ids_expected` of `finish`. Never raises.

        Args:
            prompt, output: sequences or arrays of integers that nobody changes any more; None where they are unknown.

        Returns:
            How many ids will follow; -1 where none will, which is counted.
        """
        recorder = self.binding.recorder
        try:
            content = recorder.content
            total = len(prompt) + len(output)
            size = total * (OBJECT_BYTES if type(prompt) in OBJECTS or type(output) in OBJECTS else 8) + _PAIR_BYTES
            if content.quick and total:
                # From here to the store of the sum no other thread can run: there is no call and no jump back.
                held = content.held + size
                if held <= content.room:
                    content.held = held
                    content.pairs.append((self, size, prompt, output))
                    return total
        except Exception:  # noqa: BLE001, S110 - whatever they are, it is looked at again below
            pass
        return recorder.offer_pair(self, prompt, output)

    def offer_trace(
        self,
        events: Events,
        strategy: Strategy | Sequence[Strategy] | None = None,
        *,
        child: int = 0,
        held_bytes: int = 0,
    ) -> bool:
        """Hand over what a sparse strategy did to its tokens (level 2 and up), by reference. Never raises.

        Args:
            events: state events whose `seq` count from 0, or a call that makes them; it is called off the request
                path, once.
            strategy: what it was; several where several worked together.
            child: the choice, beam or iteration it is about.
            held_bytes: what the call keeps in memory until then.

        Returns:
            Whether a trace will follow. At level 1 none is wanted; what is lost is counted.
        """
        return self.binding.recorder.offer_trace(self, events, strategy, child, held_bytes)

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
            offset = next(journal.places)
            if offset < journal.end:
                head = self.head
                head[0] |= tag
                head[7] |= outcome
                head[9] = ids_expected
                store(journal, offset, head, counts, usage)
                return True
        except Exception:  # noqa: BLE001 - whatever did not fit is looked at again there, and nothing reaches the host
            return self.binding.recorder.write_slow(self, outcome, counts, usage, ids_expected, journal, offset)
        return binding.recorder.write_slow(self, outcome, counts, usage, ids_expected, journal, offset)


def _never(*_: object) -> None:
    """The store of a binding that has no plan yet."""
    raise ShapeError
