"""An engine's counters, read before and after a request until they stand still."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weighbridge.pipeline.probe.endpoint import Wire
from weighbridge.pipeline.probe.engine_counts import Counters, EngineCount, between, counters

READS = 40  # at most, after a request
PAUSE_S = 0.05


@dataclass(slots=True)
class Watch:
    """The `/metrics` of an engine.

    Attributes:
        wire: reads it.
        url: where it is.
        model: whose counters count.
        sleep: waits between two reads.
    """

    wire: Wire
    url: str
    model: str
    sleep: Callable[[float], None]

    def now(self) -> Counters:
        """The counters as they stand.

        Raises:
            ProbeError, ContractError: they cannot be read.
        """
        return counters(self.wire.get(self.url), self.model)

    def since(self, before: Counters) -> EngineCount | None:
        """What was counted since, once something was and it stands still; null where a counter began anew.

        An engine that counts nothing within two seconds has counted nothing.
        """
        last = self.now()
        for _ in range(READS):
            moved = between(before, last)
            if moved is None:
                return None
            self.sleep(PAUSE_S)
            again = self.now()
            if again == last and (moved.requests or (moved.requests is None and moved.output)):
                return moved
            last = again
        return between(before, last)
