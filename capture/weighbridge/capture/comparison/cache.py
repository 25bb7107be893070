"""Caches that evict, and count what they hold. Classes are made where torch is there, never at import."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from weighbridge.capture.comparison.setting import Setting


@dataclass(slots=True)
class Held:
    """What a cache held, entry by entry: an entry is one (layer, KV head, position).

    Attributes:
        written: entries that were ever written and not taken back as rejected drafts.
        kept: in the cache now.
        dropped: entries the strategy evicted; what a sliding layer of the model lets go is none of these.
        peak_bytes: bytes of keys and values when there were most of them, what a step needs while it runs included.
        scored: per layer and head the positions that a score kept at the end of prefill.
        evicting: layers that drop entries for the strategy.
        sliding: layers of the model that slide by themselves, and their windows.
        prefill: positions of the prefill.
    """

    written: int = 0
    kept: int = 0
    dropped: int = 0
    peak_bytes: int = 0
    scored: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)
    evicting: set[int] = field(default_factory=set)
    sliding: dict[int, int] = field(default_factory=dict)
    prefill: int = 0


@cache
def _evicting_layer() -> type:
    from transformers.cache_utils import DynamicLayer  # noqa: PLC0415 - frameworks are imported where they are used

    class EvictingLayer(DynamicLayer):  # type: ignore[misc]
        """A layer that drops entries after the step that wrote them has read them. Keys keep their rotation."""

        is_croppable = False

        def __init__(self, setting: Setting, held: Held, layer: int) -> None:
            super().__init__()
            self.setting = setting
            self.held = held
            self.layer = layer
            self.seen = 0

        def update(self, key_states: Any, value_states: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
            first = self.seen == 0
            self.seen += key_states.shape[-2]
            keys, values = super().update(key_states, value_states, *args, **kwargs)
            budget, ratio = self.setting.budget, self.setting.compression_ratio
            if budget is not None:
                self.keys, self.values = (_ends(each, *budget) for each in (keys, values))
            elif ratio is not None and first:
                self._compress(keys, values, ratio)
            gone = keys.shape[-2] - self.keys.shape[-2]
            self.held.dropped += int(gone * keys.shape[0] * keys.shape[1])
            return keys, values

        def _compress(self, keys: Any, values: Any, ratio: float) -> None:
            """Keep the keys of the smallest norm, as they are attended most; per head, equally many."""
            count = max(1, keys.shape[-2] - int(keys.shape[-2] * ratio))
            kept = keys.norm(dim=-1).topk(count, largest=False, sorted=False).indices.sort(dim=-1).values
            for head, positions in enumerate(kept[0].tolist()):
                self.held.scored[self.layer, head] = tuple(positions)
            index = kept.unsqueeze(-1).expand(-1, -1, -1, keys.shape[-1])
            self.keys, self.values = keys.gather(2, index), values.gather(2, index)

        def get_seq_length(self) -> int:
            return self.seen

        def get_mask_sizes(self, query_length: Any) -> tuple[int, int]:
            # Earlier versions of the framework give the places of the queries and not how many they are.
            query_length = query_length if isinstance(query_length, int) else int(query_length.shape[0])
            held = 0 if self.keys is None or self.keys.numel() == 0 else int(self.keys.shape[-2])
            return held + query_length, self.seen - held

    return EvictingLayer


def _ends(states: Any, sinks: int, latest: int) -> Any:
    """The first and the last positions of keys or values."""
    import torch  # noqa: PLC0415 - as above

    if states.shape[-2] <= sinks + latest:
        return states
    parts = (states[..., :sinks, :], states[..., states.shape[-2] - latest :, :])
    return torch.cat(parts, dim=-2)


@cache
def _counting_cache() -> type:
    from transformers.cache_utils import DynamicCache, DynamicLayer  # noqa: PLC0415 - as above

    class CountingCache(DynamicCache):  # type: ignore[misc]
        """A cache that knows how much it held."""

        def __init__(self, config: Any, setting: Setting) -> None:
            super().__init__(config=config)
            self.held = Held()
            self.pressed = setting.press is not None
            self._sizes: dict[int, int] = {}
            for at, layer in enumerate(self.layers):
                # Sliding layers of the model itself have a rule of their own, and keep it.
                if getattr(layer, "is_sliding", False):
                    self.held.sliding[at] = int(layer.sliding_window)
                elif setting.evicts and type(layer) is DynamicLayer:
                    self.layers[at] = _evicting_layer()(setting, self.held, at)
                    self.held.evicting.add(at)

        def update(self, key_states: Any, value_states: Any, layer_idx: int, *args: Any, **kwargs: Any) -> Any:
            if layer_idx == 0 and not self.held.prefill:
                self.held.prefill = int(key_states.shape[-2])
            keys, values = super().update(key_states, value_states, layer_idx, *args, **kwargs)
            self.held.written += int(key_states.shape[0] * key_states.shape[1] * key_states.shape[-2])
            self._sizes[layer_idx] = (keys.numel() + values.numel()) * keys.element_size()
            self.held.peak_bytes = max(self.held.peak_bytes, sum(self._sizes.values()))
            layer = self.layers[layer_idx]
            self._sizes[layer_idx] = (layer.keys.numel() + layer.values.numel()) * layer.keys.element_size()
            return keys, values

        def crop(self, *args: Any, **kwargs: Any) -> None:
            """Take rejected drafts back: they were never part of the answer."""
            # Versions of the framework differ in what they are told: what was taken back is what it is shorter by.
            before = self.get_seq_length()
            super().crop(*args, **kwargs)
            rows = sum(int(layer.keys.shape[0] * layer.keys.shape[1]) for layer in self.layers if layer.is_initialized)
            self.held.written -= (before - self.get_seq_length()) * rows

        def entries(self) -> int:
            held = (layer.keys for layer in self.layers if layer.is_initialized)
            return sum(int(keys.shape[0] * keys.shape[1] * keys.shape[2]) for keys in held if keys is not None)

        def closed(self) -> Held:
            """What it held, once nothing more comes."""
            self.held.kept = self.entries()
            if self.pressed:  # a press takes entries out by itself, after each layer
                self.held.dropped = self.held.written - self.held.kept
            return self.held

    return CountingCache


def counting_cache(config: Any, setting: Setting) -> Any:
    """A fresh cache for one answer.

    Args:
        config: of the model.
        setting: what it evicts, if anything.
    """
    made: Any = _counting_cache()(config.get_text_config(decoder=True), setting)
    return made
