"""Levels 2 and 3: traces leave the request path by reference and reach the disk encrypted, or not at all.

A trace is handed over as events, or as a call that makes them of what the adapter kept, such as the scores of a press:
the keeper calls it, packs the events of one attempt and encrypts them as one block under the key of traces of its
(tenant, subject bucket, month). Level 2 keeps counts and, of what is stored, in how many (layer, head) each position
is; level 3 keeps all. Without a key nothing is written: it is counted under `no_key`.

A small slot in the journal says that a trace follows. Where none comes, through a kill or otherwise, that is a gap
row; traces and ids that wait share one bound.
"""

from __future__ import annotations

import os
import struct
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from weighbridge.capture.content import Content, Place, frame
from weighbridge.capture.guard import report
from weighbridge.capture.layout import SLOT, Kind
from weighbridge.schemas.block import CipherMissingError, seal_block
from weighbridge.schemas.enumerations import GapReason
from weighbridge.schemas.identity import AttemptKey
from weighbridge.schemas.keys import KeyProvider, KeyScope, KeyUnavailableError
from weighbridge.schemas.state_event import StateEvent
from weighbridge.schemas.strategy import Strategy
from weighbridge.schemas.trace import survival_events
from weighbridge.schemas.trace_block import KIND, block_name, pack_events, shown_rows

if TYPE_CHECKING:
    from weighbridge.capture.binding import Attempt
    from weighbridge.capture.losses import Losses

Events = Sequence[StateEvent] | Callable[[], Sequence[StateEvent]]
WHOLE: Final = 3  # the level that keeps sets; the one below keeps counts
_COUNTS: Final = 2
_EVENT_BYTES: Final = 512  # of an event in memory, its payload apart
_SLOT: Final = struct.Struct("<6q")


@dataclass(slots=True)
class _Waiting:
    """A trace that waits."""

    place: Place
    key: AttemptKey
    child: int
    level: int
    cost: int
    events: Events
    strategies: tuple[Strategy, ...]


class Traces:
    """The traces of one recorder. Only the keeper calls anything but `offer`."""

    def __init__(self, keys: KeyProvider | None, losses: Losses, room: Content, expect: Callable[[bytes], Any]) -> None:
        """Args.

        Args:
            room: whose bound is shared.
            expect: stores the slot that says a trace follows.
        """
        self._keys = keys
        self._losses = losses
        self._room = room
        self._expect = expect
        self._queue: deque[_Waiting] = deque()

    def offer(
        self,
        attempt: Attempt,
        events: Events,
        strategy: Strategy | Sequence[Strategy] | None,
        child: int = 0,
        held_bytes: int = 0,
    ) -> bool:
        """Hand over a trace by reference; whether it will follow. Below level 2 nothing is wanted, and nothing lost."""
        level = attempt.level
        if level < _COUNTS:
            return False
        if self._keys is None:
            self._losses.count(GapReason.NO_KEY, 1)
            return False
        key = attempt.key
        given = (strategy,) if isinstance(strategy, Strategy) else tuple(strategy or ())
        self._expect(_SLOT.pack(Kind.TRACE, *key, child, 1, attempt.arrived_us) + bytes(SLOT - _SLOT.size))
        known = () if callable(events) else events
        cost = held_bytes + _EVENT_BYTES + sum(_EVENT_BYTES + len(event.payload or b"") for event in known)
        if not self._room.reserve(cost):
            self._losses.count(GapReason.BUFFER_FULL, 0)
            return False
        self._queue.append(_Waiting(attempt.content_place(), key, child, level, cost, events, given))
        return True

    def drain(self, write: Callable[[bytes], GapReason | None]) -> None:
        """Pack, encrypt and write what waits.

        Args:
            write: appends a frame to the content file; the reason where it could not.
        """
        while self._queue:
            waiting = self._queue.popleft()
            try:
                made = self._frame(waiting)
            except (KeyUnavailableError, CipherMissingError):
                self._losses.count(GapReason.NO_KEY, 1)
            except Exception as error:  # noqa: BLE001 - whatever an adapter handed over, the other traces go on
                report(error, "trace")
                self._losses.count(GapReason.SERIALISE, 0)
            else:
                refused = None if made is None else write(made)
                if refused is not None:
                    self._losses.count(refused, 0)
            finally:
                self._room.release(waiting.cost)

    def _frame(self, waiting: _Waiting) -> bytes | None:
        events = list(waiting.events() if callable(waiting.events) else waiting.events)
        if waiting.level < WHOLE:
            events = survival_events(events)
        place, block = waiting.place, os.urandom(16).hex()
        assert self._keys is not None
        key_name, key = self._keys.current(KeyScope(place.tenant, place.bucket, place.date.strftime("%Y-%m"), KIND))
        about = {
            "tenant": place.tenant,
            "bucket": place.bucket,
            "day": place.date.isoformat(),
            "block": block,
            "key": key_name,
            "trace": [*waiting.key, waiting.child],
            "events": shown_rows(events),
            "strategies": [strategy.columns() for strategy in waiting.strategies],
        }
        # A trace without events was announced; its frame says that it came.
        return frame(about, seal_block(key, block_name(key_name, block), pack_events(events)) if events else b"")
