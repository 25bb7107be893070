"""`generate()` and continuous batching of transformers 5.x: one attempt per prompt, read when it is over.

    with transformers.ADAPTER.install(model, recorder, Context(model_served="tiny-llama"), tokenizer=tokenizer):
        model.generate(...)

What the host gets is what it would have got: nothing of the call is changed, exceptions pass as they are, and no code
runs per generated token (per verify step under speculation, a few integers). Methods of the instance are wrapped that
run once per call or once per request. Outside the versions this was run with, private ones are not touched: prompt and
output are still counted where the result shows them beyond doubt; times, drafts and what was cached are unknown.

Computed: every token generated for a returned sequence, its end token included. Delivered: without the end token, which
a host skips when it decodes. A stop string stays in the ids and is delivered. Beams that were not returned appear in
`forward` only. Counts of an assistant model's own passes are not in `forward`.

Times are those of the call, so the prompts of a batch share them: `prefill_us` ends with the first token (of a beam
search, with its first step; under speculation, with the first verify step), and `decode_us` is the rest of the total.

A call inside another one (an assistant's, a judge's that a criterion asks) is part of it, not an attempt of its own.
A model whose class has a `generate()` of its own, or prepares a call more than once (speech in several windows), is
read only where its result begins with the prompt.

Continuous batching (`generate_batch`, the manager, `generate(cache_implementation="paged")`): each request is an
attempt, each sequence of a request that asked for several a child. Prompt, output, prefix-cache hits, queue and total
are known, of cancelled requests the tokens that were computed. What each forward pass processed (`forward`, `padding`,
`verify_width`) is not, nor what was computed again when a request lost its place in the cache; the first token is timed
where the caller has times recorded. A manager that was made before `install` is not seen until it is asked for again.

Inside a server's middleware of this product a single prompt takes the key of the answer, so that both rows are of one
attempt; the recorder of each then needs an installation name of its own, for a row is known by its key and its source.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from weighbridge.capture.adapters._batching import Batches, Managers
from weighbridge.capture.adapters._counts import COUNTS
from weighbridge.capture.adapters._generate_call import Keys, attempt_keys
from weighbridge.capture.adapters._generate_watch import HOOKS, Hook, Numbers, Watched
from weighbridge.capture.adapters._identity import model_fingerprint
from weighbridge.capture.adapters.adapter import Adapter, Installed, put_attribute
from weighbridge.capture.context import Context
from weighbridge.capture.guard import Guard
from weighbridge.schemas.errors import ConfigError

if TYPE_CHECKING:
    from weighbridge.capture.recorder import Recorder

__all__ = ["ADAPTER", "COUNTS", "attempt_keys", "install"]


def install(
    model: Any,
    recorder: Recorder,
    context: Context | None = None,
    *,
    tokenizer: Any = None,
    fingerprint: bool = True,
) -> Installed:
    """Watch `model.generate` and its continuous batching until the answer is removed or its `with` block ends.

    Args:
        model: a model with `generate`.
        recorder: where attempts go.
        context: provenance, tenant, task, route; framework, version and fingerprints are added where it has none.
        tokenizer: the tokenizer of the model's callers, for its fingerprint and its template's.
        fingerprint: whether to read a sample of the weights for `model_revision`.

    Raises:
        ConfigError: the model has no `generate`, or is watched already.
    """
    original = getattr(model, "generate", None)
    if original is None:
        raise ConfigError(f"{type(model).__name__} has no generate(); pass a generative model of transformers")
    if isinstance(original, Watched):
        raise ConfigError("generate() of this model is watched already; remove that first")
    binding = recorder.bind(_provenance(model, context or Context(), tokenizer, fingerprint=fingerprint), counts=COUNTS)
    installed = Installed(supported=ADAPTER.admit(recorder))
    keys, numbers = Keys(), Numbers(binding)
    if installed.supported:
        for name, after in HOOKS.items():
            if callable(getattr(model, name, None)):
                put_attribute(installed, model, name, Hook(model, name, after))
        if callable(getattr(model, "init_continuous_batching", None)):
            managers = Managers(model, binding, keys, numbers)
            put_attribute(installed, model, managers.name, managers)
            installed.undo(managers.remove)
    if callable(getattr(model, "generate_batch", None)):
        batches = Batches(model, binding, keys, seen=installed.supported)
        put_attribute(installed, model, batches.name, batches)
    put_attribute(installed, model, "generate", Watched(model, binding, keys, numbers))
    return installed


def _provenance(model: Any, context: Context, tokenizer: Any, *, fingerprint: bool) -> Context:
    found: dict[str, str | None] = {"framework": "transformers", "framework_version": ADAPTER.version()}
    with Guard("transformers.fingerprint"):
        if fingerprint:
            found["model_revision"] = model_fingerprint(model)
        if tokenizer is not None:
            from weighbridge.recount.transformers import TransformersRecounter  # noqa: PLC0415 - takes a second

            counter = TransformersRecounter(tokenizer)
            found |= {"tokenizer": counter.tokenizer, "template": counter.template}
    missing = {name: value for name, value in found.items() if getattr(context, name) is None}
    return replace(context, **missing)  # type: ignore[arg-type]


ADAPTER: Final = Adapter(name="transformers", framework="transformers", first="5.24", below="5.25", install=install)
