"""What a plain cache of transformers holds and what its layers attend, worked out from the configuration.

A full layer keeps every position and attends all before. A sliding one attends the last `window` positions, the query's
own included; its dynamic cache keeps `window` - 1 of them after each pass, its static one `window`. So nothing is
watched while tokens are generated, and a trace takes the same few bytes for any number of tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from weighbridge.capture.adapters._speculation import Drafts
from weighbridge.schemas.enumerations import Axis, HeadKind, Operation, Phase
from weighbridge.schemas.position_sets import full
from weighbridge.schemas.strategy import Strategy
from weighbridge.schemas.trace import Rule, Trace

_FULL: Final = "full_attention"
_SLIDING: Final = "sliding_attention"
_PLAIN: Final = (None, "eager", "sdpa", "flex_attention", *(f"flash_attention_{n}" for n in (2, 3, 4)))
_LAYERS: Final = {
    "DynamicLayer": False,
    "StaticLayer": False,
    "DynamicSlidingWindowLayer": True,
    "StaticSlidingWindowLayer": True,
}


@dataclass(frozen=True, slots=True)
class Geometry:
    """The layers of a model that keep keys and values.

    Attributes:
        windows: per layer how many positions it attends, None for all.
        kept: per layer how many positions its cache keeps after a pass, None for all.
        heads: key-value heads of each.
        query_heads: query heads of each.
        static: the cache is allocated at once.
        plain: the attention is the framework's own, so windows say what it reads.
    """

    windows: tuple[int | None, ...]
    kept: tuple[int | None, ...]
    heads: int
    query_heads: int
    static: bool
    plain: bool = True

    def strategy(self, version: str | None) -> Strategy | None:
        """The strategy it is; None where it is dense and grows as needed."""
        sliding = [window for window in self.windows if window is not None]
        if not sliding and not self.static:
            return None
        parameters: dict[str, int | bool] = {"static": self.static, "sliding_layers": len(sliding)}
        if sliding:
            parameters["window"] = max(sliding)
        return Strategy(
            "sliding_window" if sliding else "static_cache",
            "window" if sliding else "dense",
            parameters,
            token_events=bool(sliding),
            library="transformers",
            library_version=version,
            layers=len(self.windows),
            query_heads=self.query_heads,
            kv_heads=self.heads,
        )


def geometry(config: Any, cache: Any = None, implementation: str | None = None) -> Geometry | None:
    """The geometry of a decoder-only model; None where its layers are of a kind that is not worked out here.

    Args:
        config: of the model.
        cache: that of the call, where the host gave one.
        implementation: the name of the cache that was asked for.
    """
    text = config.get_text_config(decoder=True) if hasattr(config, "get_text_config") else config
    layers, query_heads = getattr(text, "num_hidden_layers", None), getattr(text, "num_attention_heads", None)
    heads = getattr(text, "num_key_value_heads", None) or query_heads
    windows = _windows(text, layers)
    if windows is None or type(heads) is not int or type(query_heads) is not int:
        return None
    static = (implementation or "").endswith("static")
    slides: Sequence[bool] = [window is not None for window in windows]
    if cache is not None:
        found = [_LAYERS.get(type(layer).__name__) for layer in getattr(cache, "layers", ())]
        if None in found or len(found) not in (0, len(windows)):
            return None
        static = type(cache).__name__ == "StaticCache"
        # A cache that was made without a configuration has no layers yet, and keeps all.
        slides = [bool(each) for each in found] or [False] * len(windows)
    elif implementation not in (None, "dynamic", "offloaded", "static", "offloaded_static"):
        return None
    kept = tuple(
        None if window is None or not slide else window if static else window - 1
        for window, slide in zip(windows, slides, strict=True)
    )
    return Geometry(windows, kept, heads, query_heads, static, getattr(text, "_attn_implementation", None) in _PLAIN)


def _windows(text: Any, layers: Any) -> tuple[int | None, ...] | None:
    kinds, window = getattr(text, "layer_types", None), getattr(text, "sliding_window", None)
    if type(layers) is not int or getattr(text, "num_kv_shared_layers", None):
        return None
    if kinds is None:
        if getattr(text, "attention_chunk_size", None):
            return None
        kinds = [_SLIDING if window else _FULL] * layers
    if len(kinds) != layers or any(kind not in (_FULL, _SLIDING) for kind in kinds):
        return None
    if _SLIDING in kinds and (type(window) is not int or window < 2):
        return None
    return tuple(window if kind == _SLIDING else None for kind in kinds)


@dataclass(frozen=True, slots=True)
class CacheTrace:
    """One sequence in such a cache.

    Attributes:
        layers: the model's.
        seen: positions in the sequence whose keys and values were computed.
        passes: (first position, positions, further passes) of the passes, neighbouring ones as one; each of the
            further ones begins where the first did and has one position more than the one before.
        cached: keys and values were kept between passes.
        strategy: what it is, if it is one.
    """

    layers: Geometry
    seen: int
    passes: tuple[tuple[int, int, int], ...]
    cached: bool
    strategy: Strategy | None = None
    held_bytes: int = 0

    def counts(self, _: int = 0) -> dict[str, int]:
        """The counts of level 1; keys read are those of one head, the mean over layers, rounded down."""
        layers = self.layers
        dense = sum(_read(*each, None) for each in self.passes)
        read = sum(_read(*each, window) for window in layers.windows for each in self.passes)
        told = {"attended_dense": dense} | ({"attended": read // len(layers.windows)} if layers.plain else {})
        if not self.cached:
            return told
        # What drafts wrote and a verify step took back never was part of the sequence: nothing evicted it.
        appended = self.seen * len(layers.windows)
        stayed = sum(self.seen if kept is None else min(self.seen, kept) for kept in layers.kept)
        return told | {
            "kv_appended": appended * layers.heads,
            "kv_evicted": (appended - stayed) * layers.heads,
            "kv_merged": 0,
            "kv_kept": stayed * layers.heads,
        }

    def add_to(self, trace: Trace, _: int = 0) -> None:
        """Add the state events: all that was written, and the rules of layers that slide.

        What drafts wrote and a verify step took back is told by the events of the axis `emit`.
        """
        trace.strategy_id = None if self.strategy is None else self.strategy.strategy_id
        if not self.cached or not self.seen:
            return
        layers = self.layers
        for low, high, (window, kept) in _alike(list(zip(layers.windows, layers.kept, strict=True))):
            each = {"layers": (low, high), "heads": (0, layers.heads - 1), "head_kind": HeadKind.KEY_VALUE}
            trace.add(Axis.STORE, Operation.APPEND, [full(self.seen)], width=self.seen, phase=Phase.DECODE, **each)  # type: ignore[arg-type]
            if kept is not None:
                rule = Rule(0, kept, standing=True)
                trace.add(Axis.STORE, Operation.KEEP_ONLY, rule, width=self.seen, phase=Phase.DECODE, **each)  # type: ignore[arg-type]
            if window is not None and layers.plain:
                rule = Rule(0, window, standing=True)
                trace.add(Axis.ATTEND, Operation.SELECT, rule, width=self.seen, phase=Phase.DECODE, **each)  # type: ignore[arg-type]


def passes(
    prompt: int, computed: int, steps: int, *, cached: bool, drafts: Drafts
) -> tuple[int, tuple[tuple[int, int, int], ...]]:
    """(positions that were computed and stayed in the sequence, the passes) of one sequence.

    Args:
        prompt: its tokens.
        computed: tokens generated for it.
        steps: columns that were generated.
        drafts: what speculation proposed.
    """
    if drafts.starts:
        first = drafts.starts[0] + drafts.drafted[0]
        rest = zip(drafts.starts[1:], drafts.drafted[1:], strict=True)
        return prompt + computed - 1, ((0, first, 0), *((start - 1, drafted + 1, 0) for start, drafted in rest))
    decoded = min(computed, steps - 1)
    if cached:
        return prompt + decoded, ((0, prompt + decoded, 0),)
    return prompt + decoded, ((0, prompt, decoded),)


def _read(first: int, width: int, further: int, window: int | None) -> int:
    """Keys that the queries at `width` positions read, and those of the further passes, each a position wider."""
    last, passes = first + width, further + 1
    # A query at position p reads p + 1 keys, or `window`: sums over queries, and of these over passes.
    read = _up_to(last + further, window) - _up_to(last - 1, window)
    return read - passes * _queries(first, window)


def _queries(ends: int, window: int | None) -> int:
    """Keys that the queries at all positions below `ends` read."""
    near = ends if window is None else min(ends, window)
    return near * (near + 1) // 2 + (ends - near) * (window or 0)


def _up_to(ends: int, window: int | None) -> int:
    """The sum of `_queries` from 0 to `ends`."""
    near = ends if window is None else min(ends, window)
    more = ends - near
    whole = near * (near + 1) * (near + 2) // 6
    return whole + more * (near * (near + 1) // 2) + (window or 0) * (more * (more + 1) // 2)


def _alike(kinds: list[tuple[int | None, int | None]]) -> list[tuple[int, int, tuple[int | None, int | None]]]:
    """First and last of neighbouring layers of one kind."""
    out: list[tuple[int, int, tuple[int | None, int | None]]] = []
    for index, kind in enumerate(kinds):
        if out and out[-1][2] == kind:
            out[-1] = (out[-1][0], index, kind)
        else:
            out.append((index, index, kind))
    return out
