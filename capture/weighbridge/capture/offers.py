"""What a recorder is handed beside its records: token ids and traces, encrypted and written off the request path."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from weighbridge.capture.binding import Attempt
from weighbridge.capture.content import Run
from weighbridge.capture.content_files import ContentFiles
from weighbridge.capture.guard import raises
from weighbridge.capture.guard import report as report_error
from weighbridge.capture.records import Records
from weighbridge.capture.replicated import placed
from weighbridge.capture.traces import Events, Traces
from weighbridge.schemas.enumerations import GapReason, RunStream
from weighbridge.schemas.parts import Part
from weighbridge.schemas.strategy import Strategy


class Offers(Records):
    """The content side of a recorder.

    Attributes:
        traces: where state events wait.
        content_files: the files both go to.
        part: place of this process in a model that runs in several; None where it runs in one.
    """

    traces: Traces
    content_files: ContentFiles
    part: Part | None = None

    def offer_ids(self, attempt: Attempt, runs: Sequence[Run]) -> int:
        """Hand over the token ids of one attempt by reference (level 2 and up); how many ids will follow, -1 none."""
        if self.follows:
            return -1
        return self.content.offer(attempt.content_place(), runs)

    def offer_pair(self, attempt: Attempt, prompt: object, output: object) -> int:
        """`Attempt.offer`, for whatever does not fit its fast path. Never raises."""
        ids = ((RunStream.PROMPT, prompt), (RunStream.OUTPUT, output))
        try:
            hi, lo = attempt.key
            given = [(stream, held) for stream, held in ids if held is not None]
            runs = [Run(hi, lo, 0, number, stream, 0, held) for number, (stream, held) in enumerate(given)]
            return self.content.offer(attempt.content_place(), runs)
        except Exception as error:
            self.losses.count(GapReason.SERIALISE, attempts=0)
            report_error(error, "offer")
            if raises():
                raise
        return -1

    def offer_trace(
        self,
        attempt: Attempt,
        events: Events,
        strategy: Strategy | Sequence[Strategy] | None,
        child: int,
        held_bytes: int,
    ) -> bool:
        """`Attempt.offer_trace`. Never raises."""
        try:
            if self.part is not None:
                events = partial(placed, self.part, events)
            return self.traces.offer(attempt, events, strategy, child, held_bytes)
        except Exception as error:
            self.losses.count(GapReason.SERIALISE, attempts=0)
            report_error(error, "offer_trace")
            if raises():
                raise
        return False

    def drain_content(self, *, all_: bool = False) -> None:
        """Write the id blocks that are due, and the traces (keeper and close only)."""
        self.content.drain(self.content_files.append, all_=all_)
        self.traces.drain(self.content_files.append)
        self.content_files.roll()
