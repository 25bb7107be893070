"""Pruning of prompts by self-information: what a small model expects anyway is left out, before the large one sees it.

    shorter, pruned = prune(text, small, tokenizer, ratio=0.5)
    with told(pruned):
        model.generate(...)

The idea is that of Selective Context (Li et al., 2023), token by token. Run with transformers 5.24.
"""

from __future__ import annotations

from typing import Any, Final

from weighbridge.capture.adapters._identity import model_fingerprint
from weighbridge.capture.adapters.adapter import Adapter, Installed
from weighbridge.capture.pruning import Pruning
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.strategy import Strategy


def prune(text: str, model: Any, tokenizer: Any, *, ratio: float, counted_by: Any = None) -> tuple[str, Pruning]:
    """Leave out the share of tokens that the model expects most.

    Args:
        text: the prompt.
        model: a causal model of transformers, the smaller the better.
        tokenizer: its tokenizer, with offsets.
        ratio: share of its tokens to leave out, from 0 and below 1.
        counted_by: the tokenizer both token counts are of; its own if not given.

    Returns:
        The shorter text, and what of it was kept.

    Raises:
        ConfigError: a ratio out of range, or a tokenizer that does not tell where its tokens stand.
    """
    import torch  # noqa: PLC0415 - the host has it loaded

    if not 0 <= ratio < 1:
        raise ConfigError(f"ratio {ratio}; the share to leave out is from 0 and below 1")
    if not getattr(tokenizer, "is_fast", False):
        raise ConfigError(f"{type(tokenizer).__name__} does not tell where its tokens stand; take a fast tokenizer")
    told = tokenizer(text, return_offsets_mapping=True, add_special_tokens=False)
    ids, spans = told["input_ids"], told["offset_mapping"]
    dropped: set[int] = set()
    if len(ids) > 1:
        with torch.no_grad():
            logits = model(torch.tensor([ids], device=model.device)).logits[0, :-1]
        surprise = -logits.log_softmax(-1).gather(1, torch.tensor(ids[1:], device=logits.device)[:, None])[:, 0]
        # The first token has no surprise: nothing comes before it.
        dropped = {at + 1 for at in surprise.argsort()[: int(len(ids) * ratio)].tolist()}
    kept = _joined([spans[at] for at in range(len(ids)) if at not in dropped])
    shorter = "".join(text[low : high + 1] for low, high in kept)
    counter = counted_by or tokenizer
    counts = [len(counter(each, add_special_tokens=False)["input_ids"]) for each in (text, shorter)]
    strategy = Strategy(
        "SelectiveContext", "pruning", {"ratio": ratio}, library="weighbridge", model_revision=model_fingerprint(model)
    )
    # Cut apart, words may come to more tokens than before: then the counts are left out, for no token was added.
    known = counts if counts[1] <= counts[0] else (None, None)
    return shorter, Pruning(len(text), tuple(kept), known[0], known[1], strategy)


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans (first, and one past the last) as ranges, first and last; those that touch or overlap are one."""
    out: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if high <= low:
            continue
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], high - 1))
        else:
            out.append((low, high - 1))
    return out


def install(*_: Any) -> Installed:
    """Nothing is put into the framework: call `prune`."""
    return Installed(supported=ADAPTER.supports(ADAPTER.version()))


ADAPTER: Final = Adapter(
    name="selective_context", framework="transformers", first="5.24", below="5.25", install=install
)
