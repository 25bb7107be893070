"""Presses of kvpress 0.5: which KV entries they keep, evict or mask, per layer and head.

    press = SnapKVPress(compression_ratio=0.5)
    with kvpress.install(press) as watched:
        with press(model):
            model.generate(...)            # watched by the adapter of transformers, it becomes part of that attempt
    watched.traces[-1].add_to(Trace())     # or read it yourself

The hook of the press is wrapped; what it returns and stores is what it would have been. While it runs, the rows it
takes out of the cache are followed by index, so scores are not computed again, no value is copied, and every press that
gathers, slices or concatenates is covered, nested and decoding-time ones included: positions are those of the sequence.
A press that masks (`masked_key_indices`: AdaKV, CriticalAdaKV) leaves the cache whole; what it masked is told as MASK.
Channels (ThinK) are no tokens: no event. What MergingPress folds into which survivor is told as MERGE; CAMPress divides
a value among several, which is not.

Not seen: quantised caches, presses that work after the `with` block has ended (KVzip). Where rows went that could not
be followed, the event is a count. Run with kvpress 0.5.5, transformers 5.2 and torch 2.13.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.metadata
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from weighbridge.capture.adapters._followed import Followed, following
from weighbridge.capture.adapters._generate_call import Call, current
from weighbridge.capture.adapters._method import Method
from weighbridge.capture.adapters._press_merges import merged, merging, noting, spreads
from weighbridge.capture.adapters._press_trace import Layer, PressTrace
from weighbridge.capture.adapters.adapter import Adapter, Installed, put_attribute
from weighbridge.capture.guard import Guard
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.strategy import Strategy, Value

if TYPE_CHECKING:
    from weighbridge.capture.recorder import Recorder

_KEPT: Final = 8
_POSITIONS: Final = 2  # the lowest level that keeps them
_FAMILIES: Final = {
    "StreamingLLMPress": "position",
    "SimLayerKVPress": "position",
    "DuoAttentionPress": "mask",
    "AdaKVPress": "mask",
    "CriticalAdaKVPress": "mask",
    "DMSPress": "mask",
    "KVzipPress": "mask",
    "MergingPress": "merging",
    "ThinKPress": "channels",
}
# Presses that touch no token.
_TOKENLESS: Final = ("ThinKPress",)


class WatchedPress(Installed):
    """A press that is watched.

    Attributes:
        traces: of the last generations, the latest last.
    """

    def __init__(self, *, supported: bool) -> None:
        super().__init__(supported=supported)
        self.traces: deque[PressTrace] = deque(maxlen=_KEPT)

    def __enter__(self) -> WatchedPress:
        return self


def install(press: Any, recorder: Recorder | None = None) -> WatchedPress:
    """Watch a press until the answer is removed or its `with` block ends. Call it before `press(model)`.

    Args:
        press: a press of kvpress.
        recorder: where it is counted that this version was not run with; generations are those of the adapter of
            transformers.

    Raises:
        ConfigError: it is no press, or is watched already.
    """
    original = getattr(press, "forward_hook", None)
    if not callable(original) or not dataclasses.is_dataclass(press):
        raise ConfigError(
            f"{type(press).__name__} is no press of kvpress; pass the press that is called with the model"
        )
    if isinstance(original, _Hook):
        raise ConfigError("this press is watched already; remove that first")
    supported = ADAPTER.supports(ADAPTER.version()) if recorder is None else ADAPTER.admit(recorder)
    watched = WatchedPress(supported=supported)
    if supported:
        hook = _Hook(press, watched.traces)
        put_attribute(watched, press, "forward_hook", hook)
        for each in merging(press):
            put_attribute(watched, each, "merge", _Merge(each, hook))
        if hook.scorer is not None:
            put_attribute(watched, hook.scorer, "score", _Score(hook.scorer, hook))
    return watched


def strategy(press: Any, config: Any = None, *, model_revision: str | None = None) -> Strategy:
    """The strategy of a press: class and parameters, those of the presses inside it under `name.parameter`.

    Args:
        config: the model's, for its geometry.
        model_revision: revision of the weights.
    """
    name = type(press).__name__
    return Strategy(
        name,
        _FAMILIES.get(name, "score"),
        dict(_parameters(press, "")),
        token_events=name not in _TOKENLESS,
        library="kvpress",
        library_version=_version("kvpress"),
        model_revision=model_revision,
        layers=getattr(config, "num_hidden_layers", None),
        query_heads=getattr(config, "num_attention_heads", None),
        kv_heads=getattr(config, "num_key_value_heads", None),
    )


@functools.cache
def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _parameters(press: Any, prefix: str) -> Iterator[tuple[str, Value]]:
    for each in dataclasses.fields(press):
        if each.init and not each.name.startswith("_"):
            yield from _values(prefix + each.name, getattr(press, each.name, None))


def _values(name: str, value: Any) -> Iterator[tuple[str, Value]]:
    """Numbers and nested presses; anything else (tensors, texts, paths) is left out."""
    if dataclasses.is_dataclass(value):
        yield f"{name}.class", type(value).__name__
        yield from _parameters(value, f"{name}.")
    elif isinstance(value, bool | int | float) or value is None:
        yield name, value
    elif isinstance(value, list | tuple) and len(value) <= 256:
        for index, each in enumerate(value):
            yield from _values(f"{name}.{index}", each)


class _Hook(Method):
    """The hook of a press, watched; torch calls it after each attention layer."""

    def __init__(self, press: Any, traces: deque[PressTrace]) -> None:
        super().__init__(press, "forward_hook")
        self._traces = traces
        self._call: Call | None = None
        self._trace = PressTrace()
        self._once = _acts_once(press)
        self._decoding = _decoding(press)
        self._merges = any(merging(press))
        self._spreads = spreads(press)
        # The layer whose hook runs, and what is followed in it, for the merges within.
        self._layer_now: Layer | None = None
        self._followed: Followed | None = None
        # Of most presses the scores take most of the time, and no rows: following begins once they are there.
        self.scorer = _scorer(press)
        self._following: Any = None
        self._began = False

    def __call__(self, module: Any, inputs: Any, kwargs: dict[str, Any], output: Any) -> Any:
        if self._went_on(module, kwargs):
            return self.original(module, inputs, kwargs, output)
        followed = layer = held = None
        with Guard("kvpress.before"):
            held = _cache_layer(module, kwargs)
            if held is not None:
                layer = self._layer(module, int(kwargs["hidden_states"].shape[1]), held.keys)
                if self._trace.wanted and not layer.lost_track:
                    followed = Followed()
                    for rows in (held.keys, held.values):
                        followed.add(rows, functools.partial(layer.current, rows.device))
        self._layer_now, self._followed = layer, followed
        merges = 0 if layer is None else len(layer.merges)
        if followed is None:
            answer = self.original(module, inputs, kwargs, output)
        else:
            self._following, self._began = following()(followed), False
            try:
                if self.scorer is None:
                    self.follow()
                answer = self.original(module, inputs, kwargs, output)
            finally:
                if self._began:
                    self._following.__exit__(None, None, None)
                self._following = None
        with Guard("kvpress.after"):
            if layer is not None and _read(layer, held, followed, module) and self._merges:
                self._trace.merges_unknown |= len(layer.merges) == merges
        self._layer_now = self._followed = None
        return answer

    def follow(self) -> None:
        """From here on rows may be taken."""
        if self._following is not None and not self._began:
            self._following.__enter__()
            self._began = True

    def merged(self, noted: Any, keys: Any, indices: Any) -> None:
        """A press within has folded values together."""
        layer, followed = self._layer_now, self._followed
        if layer is not None and noted is not None:
            held = None if followed is None else followed.positions(keys)
            layer.merged(merged(noted, indices, held, int(keys.shape[2])))

    def _went_on(self, module: Any, kwargs: dict[str, Any]) -> bool:
        """Whether this is a pass in which the press does nothing; it is counted then. Most passes are: it is quick."""
        layer = self._trace.layers.get(module.layer_idx)
        if layer is None or current.get() is not self._call:
            return False
        try:
            rows = kwargs["past_key_values"].layers[module.layer_idx].keys.shape[2]
            width = kwargs["hidden_states"].shape[1]
        except (KeyError, AttributeError, IndexError, TypeError):
            return False
        if rows - width != layer.rows or not layer.rows:
            return False
        if not self._once and not _rests(self._decoding, module.layer_idx, width):
            return False
        layer.went_on(width)
        return True

    def _layer(self, module: Any, width: int, keys: Any) -> Layer:
        """The layer's account, with what this pass wrote."""
        index, call = int(module.layer_idx), current.get()
        first = int(keys.shape[2]) == width
        if call is not self._call or (first and index in self._trace.layers) or not self._traces:
            self._call = call
            described = strategy(self.model, getattr(module, "config", None))
            wanted = call is None or call.attempt.level >= _POSITIONS
            self._trace = PressTrace(described, merges_unknown=self._spreads, wanted=wanted)
            self._traces.append(self._trace)
            if call is not None:
                call.told.append(self._trace)
        layer = self._trace.layers.setdefault(index, Layer())
        layer.wrote(keys, width)
        return layer


class _Score(Method):
    """The `score` of a press that takes rows only afterwards."""

    def __init__(self, press: Any, hook: _Hook) -> None:
        super().__init__(press, "score")
        self._hook = hook

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        scores = self.original(*args, **kwargs)
        self._hook.follow()
        return scores


class _Merge(Method):
    """The `merge` of a MergingPress, watched."""

    def __init__(self, press: Any, hook: _Hook) -> None:
        super().__init__(press, "merge")
        self._hook = hook

    def __call__(self, keys: Any, values: Any, indices: Any) -> Any:
        watch = noting()()
        with watch:
            answer = self.original(keys, values, indices)
        with Guard("kvpress.merge"):
            self._hook.merged(watch.noted, keys, indices)
        return answer


def _decoding(press: Any) -> Any:
    """The press that acts on each so many passes of decoding, in it or itself; None where it is of another kind."""
    if type(press).__name__ == "PrefillDecodingPress":
        press = press.decoding_press
    return press if type(press).__name__ == "DecodingPress" else None


def _rests(press: Any, layer: int, width: int) -> bool:
    """Whether it is a decoding-time press that only counts this pass: it acts on each `compression_interval`-th."""
    if press is None or width >= press.target_size:
        return False
    waited: int = press.layer_step_counts.get(layer, 0) + 1
    return waited < int(press.compression_interval)


def _scorer(press: Any) -> Any:
    """The press inside that scores, where what takes the rows is known, and scores first; else None."""
    inner = press.base_press if type(press).__name__ == "DecodingPress" else press
    if inner is press and not _acts_once(press):
        return None
    base = next((kind for kind in type(inner).__mro__ if kind.__name__ == "ScorerPress"), None)
    plain = base is not None and type(inner).compress is vars(base).get("compress") and "compress" not in vars(inner)
    return inner if plain else None


def _acts_once(press: Any) -> bool:
    """Whether it acts on the first pass alone: its hook is that of all presses, which leaves all later ones."""
    if type(press).__name__ == "ComposedPress":
        return all(_acts_once(each) for each in press.presses)
    base = next((kind for kind in type(press).__mro__ if kind.__name__ == "BasePress"), None)
    return base is not None and type(press).forward_hook is vars(base).get("forward_hook")


def _cache_layer(module: Any, kwargs: dict[str, Any]) -> Any:
    """The layer of the cache, None where its keys are not at hand (quantised, or no cache)."""
    cache = kwargs.get("past_key_values")
    held = None if cache is None else cache.layers[module.layer_idx]
    # What stands in the keys of a quantised layer is only what is not packed yet.
    if hasattr(held, "_quantize"):
        return None
    keys = getattr(held, "keys", None)
    return held if getattr(keys, "ndim", 0) == 4 and hasattr(held, "values") else None


def _read(layer: Layer, held: Any, followed: Followed | None, module: Any) -> bool:
    """What the hook left in the cache; whether it took rows out."""
    rows = int(held.keys.shape[2]) if held.keys.ndim == 4 else layer.rows
    lost = rows != layer.rows
    if lost:
        kept = None
        if followed is not None:
            kept = followed.positions(held.keys)
            if kept is None:
                kept = followed.positions(held.values)
        layer.lost(rows, kept)
    masked = getattr(module, "masked_key_indices", None)
    if masked is not None:
        layer.masks(masked)
    return lost


ADAPTER: Final = Adapter(name="kvpress", framework="kvpress", first="0.5.5", below="0.5.6", install=install)
