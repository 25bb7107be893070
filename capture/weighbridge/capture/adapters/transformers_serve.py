"""`transformers serve`: its engine and what it delivers, in the serving process.

    with transformers_serve.install(server, engine, tenant_header="x-tenant"):
        transformers.cli.serve.Serve("my-model", host="127.0.0.1", port=8000)      # what the command line calls

The server reads an `x-request-id` header and no other, and it generates on a thread of its own, which sees nothing of
the request that waits for it. Here the context of the request goes along to that thread, so that engine and server
write of the same attempt: the one whose id a watched client sent. Models are watched as they are loaded.

A stream whose client goes away is ended by an exception inside `generate()`, when the next token comes: the engine's
row is aborted, with the tokens its streamer took and the one it refused. With drafts, where it may have refused
several, it is as many as the verify steps say.
"""

from __future__ import annotations

import contextvars
import importlib
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from weighbridge.capture.adapters import asgi
from weighbridge.capture.adapters import transformers as generation
from weighbridge.capture.adapters._generate_call import leaving
from weighbridge.capture.adapters.adapter import Adapter, Installed, put_attribute
from weighbridge.capture.context import Context
from weighbridge.capture.guard import Guard
from weighbridge.capture.wire.call import model_name
from weighbridge.schemas.errors import ConfigError

if TYPE_CHECKING:
    from weighbridge.capture.recorder import Recorder

_KEPT: Final = "_weighbridge_installed"


class _Server:
    """What is put into one application while it is built, and taken out again."""

    def __init__(self, server: Recorder, engine: Recorder, context: Context, settings: dict[str, Any]) -> None:
        self._server = server
        self._engine = engine
        self._context = context
        self._settings = settings
        self._lock = threading.Lock()
        self.installed = Installed(supported=True)

    def watch(self, app: Any, models: Any, generating: Any) -> None:
        """Watch an application of FastAPI, its models, and the threads they generate on."""
        self.installed.undo(lambda: _unwatch(models))
        for name, timed in models.loaded_models.items():
            self._watch_model(name, timed.model, timed.processor)
        put_attribute(self.installed, models, "load_model_and_processor", self._loading(models))
        put_attribute(self.installed, generating, "get_manager", self._managing(generating))
        middleware = asgi.install(app, self._server, context=self._context, **self._settings)
        self.installed.undo(middleware.remove)

    def _loading(self, models: Any) -> Callable[..., Any]:
        load = models.load_model_and_processor

        def load_model_and_processor(name: str, *args: Any, **kwargs: Any) -> Any:
            model, processor = load(name, *args, **kwargs)
            with Guard("transformers_serve.load"):
                self._watch_model(name, model, processor)
            return model, processor

        return load_model_and_processor

    def _managing(self, generating: Any) -> Callable[..., Any]:
        get = generating.get_manager

        def get_manager(*args: Any, **kwargs: Any) -> Any:
            manager = get(*args, **kwargs)
            with Guard("transformers_serve.manager"):
                for name in ("submit", "async_submit"):
                    submit = getattr(manager, name, None)
                    if submit is not None and not isinstance(submit, _Carried):
                        put_attribute(self.installed, manager, name, _Carried(submit))
            return manager

        return get_manager

    def _watch_model(self, name: str, model: Any, processor: Any) -> None:
        with self._lock:
            kept = vars(model).get(_KEPT)
            if (kept is not None and kept.installed is not None) or not hasattr(model, "generate"):
                return
            context = self._context
            if context.model_served is None:
                context = replace(context, model_served=model_name(name.removesuffix("@main")))
            tokenizer = getattr(processor, "tokenizer", processor)
            vars(model)[_KEPT] = _Kept(generation.install(model, self._engine, context, tokenizer=tokenizer))


def _unwatch(models: Any) -> None:
    for timed in list(models.loaded_models.values()):
        kept = None if timed.model is None else vars(timed.model).pop(_KEPT, None)
        if kept is not None and kept.installed is not None:
            kept.installed.remove()


class _Kept:
    """What undoes the watching of a model. Kept by the model, so that one the server unloads is not held in memory."""

    def __init__(self, installed: Installed | None = None) -> None:
        self.installed = installed

    def __reduce__(self) -> tuple[Any, ...]:
        return _Kept, ()  # a copy of the model is not watched


class _Carried:
    """Hands work to another thread together with the context it was asked for in."""

    def __init__(self, submit: Callable[..., Any]) -> None:
        self._submit = submit

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return self._submit(contextvars.copy_context().run, function, *args, **kwargs)


def install(server: Recorder, engine: Recorder, *, context: Context | None = None, **settings: Any) -> Installed:
    """Watch every application that `transformers serve` builds until the answer is removed.

    Args:
        server, engine: where the records of the server's side and of the engine go; two installation names, for a row
            is known by its key and its source.
        context: what all attempts have in common.
        settings: those of `CaptureMiddleware`.

    Raises:
        ConfigError: both recorders write under one name, or the servers of this process are watched already.
    """
    if server is engine or server.installation == engine.installation:
        raise ConfigError("server and engine write of the same attempts; give their recorders two installation names")
    installed = Installed(supported=ADAPTER.admit(server))
    if not installed.supported:
        return installed
    module: Any = importlib.import_module("transformers.cli.serving.server")
    build = module.build_server
    if getattr(build, _KEPT, False):
        raise ConfigError("the servers of this process are watched already; remove that first")

    def build_server(model_manager: Any, *args: Any, **kwargs: Any) -> Any:
        app = build(model_manager, *args, **kwargs)
        with Guard("transformers_serve.build"):
            watched = _Server(server, engine, context or Context(), settings)
            installed.undo(watched.installed.remove)
            watched.watch(app, model_manager, kwargs["generation_state"])
        return app

    setattr(build_server, _KEPT, True)
    put_attribute(installed, module, "build_server", build_server)
    with Guard("transformers_serve.leaving"):
        cancelled = vars(importlib.import_module("transformers.cli.serving.utils"))["_GenerationCancelled"]
        leaving[cancelled] = _computed
        installed.undo(lambda: leaving.pop(cancelled, None))
    return installed


def _computed(streamer: Any) -> int | None:
    """Tokens that were computed when the streamer refused the next one; None where it had not begun."""
    return None if vars(streamer)["_first"] else streamer.total_tokens + 1


ADAPTER: Final = Adapter(
    name="transformers_serve", framework="transformers", first="5.24", below="5.25", install=install
)
