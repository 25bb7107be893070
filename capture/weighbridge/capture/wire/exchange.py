"""One attempt on the wire, from its request to its last byte; the same for a client's side and a server's.

Every method is guarded: what goes wrong in here never reaches the host, and the bytes pass whatever happens.
"""

from __future__ import annotations

import asyncio
import dataclasses
import re
import time
from typing import TYPE_CHECKING, Final

from weighbridge.capture.adapters import _token_runs
from weighbridge.capture.binding import Attempt, Binding
from weighbridge.capture.context import Context, Parameters
from weighbridge.capture.guard import Guard
from weighbridge.capture.layout import outcome_word
from weighbridge.capture.wire.answer import Answer
from weighbridge.capture.wire.apis import Api
from weighbridge.capture.wire.call import Call
from weighbridge.capture.wire.carried import Answering, Names
from weighbridge.capture.wire.recounts import MOST_ONE, Recounts
from weighbridge.schemas.enumerations import AttemptStatus, Ended, FinishReason, ForeignIdKind, GapReason, ReportPart
from weighbridge.schemas.identity import NAME, ROUTE, AttemptKey

if TYPE_CHECKING:
    from weighbridge.capture.recorder import Recorder

COUNTS: Final = ("first_token_us", "total_us")
SERVED: Final = ("output_delivered", "withheld_stop_trimmed", "withheld_aborted")
_MOST_BINDINGS: Final = 4096
_NO_PARAMETERS: Final = Parameters()


class Exchanges:
    """Makes the exchanges of one adapter; holds the bindings by what differs between calls."""

    def __init__(
        self,
        recorder: Recorder,
        context: Context,
        recounts: Recounts | None = None,
        *,
        serving: bool = False,
        usage: bool = True,
    ) -> None:
        """Prepare.

        Args:
            recorder, context, recounts: where records go, what they have in common, who counts text again.
            serving: this is a server's side, whose code may state what became of the computed tokens.
            usage: whether usage reports are stored.
        """
        self.usage = usage
        self.recorder = recorder
        self.counts = (*COUNTS, *SERVED) if serving else COUNTS
        self.context = context
        self.recounts = recounts
        self._bindings: dict[tuple[object, ...], Binding] = {}

    def begin(
        self,
        api: Api,
        provider: str | None,
        call: Call,
        asked: bytes,
        names: Names,
        *,
        key: AttemptKey | None = None,
        request: AttemptKey | None = None,
        scope: int = 0,
        number: int = 1,
    ) -> Exchange:
        """Start an attempt that has just been sent, or has just arrived."""
        context = dataclasses.replace(
            self.context,
            provider=provider or self.context.provider,
            api=api.name,
            model_requested=call.model or self.context.model_requested,
            stream=call.stream,
            usage_expected=call.usage_expected,
            tenant=_allowed(names.tenant) or self.context.tenant,
            task=_allowed(names.task) or self.context.task,
            route=_allowed(names.route, ROUTE) or self.context.route,
        )
        attempt = self.bound(context).begin(key=key, request=request, scope=scope, number=number)
        if call.parameters != _NO_PARAMETERS:
            attempt.parameters = self.recorder.parameters(call.parameters)
        return Exchange(self, attempt, api, context, call.parameters, asked)

    def bound(self, context: Context, root: str = "usage", *, counted: bool = True) -> Binding:
        """The binding of a context."""
        name = (context, root, counted)
        found = self._bindings.get(name)
        if found is None:
            if len(self._bindings) >= _MOST_BINDINGS:
                self._bindings.clear()
            found = self.recorder.bind(context, counts=self.counts if counted else (), root=root)
            self._bindings[name] = found
        return found


def _allowed(name: str | None, pattern: re.Pattern[str] = NAME) -> str | None:
    return name if name is not None and pattern.fullmatch(name) else None


class Exchange:
    """One attempt under way."""

    __slots__ = (
        "_answer", "_api", "_asked", "_context", "_done", "_exchanges", "_first_us", "_http", "_parameters", "_started",
        "_streamed", "attempt", "stated",
    )  # fmt: skip

    def __init__(
        self, exchanges: Exchanges, attempt: Attempt, api: Api, context: Context, parameters: Parameters, asked: bytes
    ) -> None:
        self._exchanges = exchanges
        self.attempt = attempt
        self.stated: Answering | None = None
        self._api = api
        self._context = context
        self._parameters = parameters
        self._asked = asked
        self._answer: Answer | None = None
        self._http = 0
        self._streamed = False
        self._first_us = -1
        self._done = False
        self._started = time.perf_counter_ns()

    def state(self, stated: Answering) -> None:
        """Let serving code know of the attempt, and take what it states."""
        self.stated = stated
        stated.level, stated.context, stated.parameters = self.attempt.level, self._context, self._parameters

    def opened(self, http: int, content_type: str) -> None:
        """The head of the answer came."""
        with Guard("exchange.opened"):
            self._http = http
            self._streamed = content_type.partition(";")[0].strip().lower() == "text/event-stream"
            collect = MOST_ONE if self._exchanges.recounts is not None and http < 300 else 0
            self._answer = Answer(self._api, streamed=self._streamed, collect=collect)

    def feed(self, data: bytes) -> None:
        """The next bytes of the decoded body passed."""
        with Guard("exchange.feed"):
            answer = self._answer
            if answer is None or self._done:
                return
            answer.feed(data)
            if self._first_us < 0 and answer.began:
                self._first_us = (time.perf_counter_ns() - self._started) // 1000

    def end(self, error: BaseException | None = None, *, whole: bool = False) -> None:
        """The body came to its own end (`whole`), somebody went away, or an error ended it. Later calls do nothing."""
        if self._done:
            return
        self._done = True
        with Guard("exchange.end"):
            self._finish(error, whole=whole)

    def _finish(self, error: BaseException | None, *, whole: bool) -> None:
        total = (time.perf_counter_ns() - self._started) // 1000
        answer = self._answer or Answer(self._api, streamed=False)
        answer.close(whole=whole)
        status = self._status(answer, error)
        ended = Ended.ERROR if status is AttemptStatus.REJECTED and not answer.parts else answer.ended
        finish = answer.finish
        if finish is None and status is AttemptStatus.ABORTED:
            finish = FinishReason.ABORT
        recorder = self._exchanges.recorder
        if answer.unread and not answer.parts and self._http < 300:
            recorder.losses.count(GapReason.NOT_SEEN, attempts=0)
        context = dataclasses.replace(self._context, model_served=answer.model or self._context.model_served)
        if not self._exchanges.usage:
            answer.parts.clear()
        first = answer.parts[0] if answer.parts else None
        attempt = self.attempt
        attempt.binding = self._exchanges.bound(context, first.root if first else "usage")
        kind = first.kind if first else _lone(self._streamed)
        word = outcome_word(status, finish, self._http, part=kind, ended=ended)
        attempt.finish(word, (self._first_us, total, *self._served()), first.usage if first else None, self._ids())
        for number, part in enumerate(answer.parts[1:], start=1):
            binding = self._exchanges.bound(context, part.root, counted=False)
            word = outcome_word(status, finish, self._http, part=part.kind, ended=ended)
            recorder.put_usage(binding, attempt, word, part.usage, number)
        if answer.identifier is not None:
            recorder.put_foreign_id(attempt, ForeignIdKind.PROVIDER_RESPONSE_ID, answer.identifier)
        if self._exchanges.recounts is not None and answer.events:
            model = answer.model or context.model_requested
            self._exchanges.recounts.offer(
                attempt, model, self._api.name, self._asked, answer.events, streamed=self._streamed
            )
        self._asked = b""

    def _ids(self) -> int:
        """Hand over the ids that serving code has stated; how many will follow, -1 none."""
        stated = self.stated
        if stated is None or self.attempt.level < 2 or (stated.prompt_ids is None and not stated.output_ids):
            return -1
        return _token_runs.offer(self.attempt, stated.prompt_ids, sorted(stated.output_ids.items()))

    def _served(self) -> tuple[int, ...]:
        if len(self._exchanges.counts) == len(COUNTS):
            return ()
        return (-1,) * len(SERVED) if self.stated is None else tuple(getattr(self.stated, name) for name in SERVED)

    def _status(self, answer: Answer, error: BaseException | None) -> AttemptStatus:
        if self._http >= 500:
            return AttemptStatus.FAILED
        if self._http >= 300:
            return AttemptStatus.REJECTED
        if isinstance(error, Exception):
            return AttemptStatus.FAILED
        if answer.ended is Ended.ERROR:
            return AttemptStatus.FAILED
        gone = error is not None and isinstance(error, (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt))
        if answer.ended is Ended.CUT or (gone and answer.ended is not Ended.COMPLETE):
            return AttemptStatus.ABORTED
        return AttemptStatus.SUCCEEDED


def _lone(streamed: bool) -> ReportPart:
    return ReportPart.FINAL if streamed else ReportPart.WHOLE
