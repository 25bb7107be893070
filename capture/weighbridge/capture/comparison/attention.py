"""Attention as a strategy restricts it: the model's own code, with a narrower mask, and a count of the keys it read.

Dense runs go through the same code, so that a difference is that of the strategy and not of two kernels.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from weighbridge.capture.comparison.setting import Setting

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME: Final = "weighbridge_comparison"
_OWN: Final = "eager_attention_forward"


@dataclass(slots=True)
class Reading:
    """Keys that are read while it is the present one.

    Attributes:
        setting: the strategy.
        attended: keys read, summed over queries, layers and query heads.
        forward: positions of forward passes, as the first layer sees them.
        calls: forward passes.
    """

    setting: Setting
    attended: int = 0
    forward: int = 0
    calls: int = 0


_present: list[Reading] = []


@contextmanager
def reading(setting: Setting) -> Iterator[Reading]:
    """Restrict attention as the strategy says, and count."""
    made = Reading(setting)
    _present.append(made)
    try:
        yield made
    finally:
        _present.pop()


def supported(model: Any) -> bool:
    """Whether every attention of the model can go through here: its module brings the plain code of its own."""
    return bool(_attentions(model)) and all(
        hasattr(sys.modules[type(each).__module__], _OWN) for each in _attentions(model)
    )


def _attentions(model: Any) -> list[Any]:
    return [
        each for each in model.modules() if hasattr(each, "layer_idx") and type(each).__name__.endswith("Attention")
    ]


def register() -> None:
    """Make the framework know it. Again, it does nothing."""
    from transformers import AttentionInterface  # noqa: PLC0415 - frameworks are imported where they are used
    from transformers.masking_utils import AttentionMaskInterface, eager_mask  # noqa: PLC0415 - as above

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, eager_mask)


def attend(module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **kwargs: Any) -> Any:
    """The attention function: narrows the mask and hands over to the model's own."""
    own = getattr(sys.modules[type(module).__module__], _OWN)
    if _present:
        present = _present[-1]
        attention_mask = _narrowed(present.setting, query, key, attention_mask, kwargs.get("scaling", 1.0))
        shape = (query.shape[0], query.shape[1], query.shape[2], key.shape[2])
        seen = attention_mask[..., : key.shape[2]] == 0
        present.attended += int(seen.expand(shape).sum())
        if module.layer_idx == 0:
            present.forward += int(query.shape[2])
            present.calls += 1
    return own(module, query, key, value, attention_mask, **kwargs)


def _narrowed(setting: Setting, query: Any, key: Any, mask: Any, scaling: float) -> Any:
    import torch  # noqa: PLC0415 - as above

    queries, keys = query.shape[2], key.shape[2]
    if mask is None:
        mask = torch.zeros((1, 1, queries, keys), dtype=query.dtype, device=query.device)
    mask = mask[..., :keys]
    if mask.shape[-1] < keys and queries == 1:
        # One mask is made for all layers, as long as the first; of a layer that kept more, one query reads all as well.
        mask = torch.nn.functional.pad(mask, (keys - mask.shape[-1], 0))
    least = torch.finfo(query.dtype).min
    if setting.window is not None and queries > 1:
        # Later steps have one query, and the cache has dropped what it may not read.
        at = torch.arange(keys, device=query.device)
        place = torch.arange(keys - queries, keys, device=query.device).unsqueeze(-1)
        sinks = setting.budget[0] if setting.budget else 0
        outside = (place - at >= setting.window) & (at >= sinks)
        mask = mask.masked_fill(outside, least)
    if setting.attention_topk is not None and keys > setting.attention_topk:
        groups = query.shape[1] // key.shape[1]
        scores = torch.matmul(query, key.repeat_interleave(groups, dim=1).transpose(2, 3)) * scaling + mask
        # Where fewer keys are visible than may be read, hidden ones fill up, and stay hidden.
        best = scores.topk(setting.attention_topk, dim=-1).indices
        chosen = torch.zeros_like(scores, dtype=torch.bool).scatter(-1, best, value=True)
        mask = mask.expand(scores.shape).masked_fill(~chosen, least)
    return mask
