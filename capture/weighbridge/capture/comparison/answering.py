"""One answer under one strategy: generated, counted, and the baseline's answer fed to the model in the same way."""

from __future__ import annotations

import inspect
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from weighbridge.capture.comparison.attention import Reading, reading
from weighbridge.capture.comparison.cache import Held, counting_cache
from weighbridge.capture.comparison.press import pressing
from weighbridge.capture.comparison.setting import Setting
from weighbridge.schemas.enumerations import FinishReason

_CACHE: Final = ("cache", "past_key_values")  # how forward() calls it, newest name first


@dataclass(frozen=True, slots=True)
class Shape:
    """What the size of a count depends on."""

    layers: int
    query_heads: int
    kv_heads: int
    vocabulary: int

    @classmethod
    def of(cls, model: Any) -> Shape:
        """Of a model of transformers."""
        config = model.config.get_text_config(decoder=True)
        heads = int(config.num_attention_heads)
        kv_heads = getattr(config, "num_key_value_heads", None) or heads
        return cls(int(config.num_hidden_layers), heads, int(kv_heads), int(config.vocab_size))

    def dense(self, positions: int) -> int:
        """Keys a dense causal attention reads for so many positions."""
        return self.layers * self.query_heads * positions * (positions + 1) // 2


@dataclass(frozen=True, slots=True)
class Made:
    """One answer.

    Attributes:
        ids: its token ids.
        stop: why it ended.
        prompt: the ids that reached the model.
        dropped: positions of the prompt that did not.
        read: keys of all passes, positions of those that made the answer.
        calls: how many passes.
        held: what its cache held.
        hidden: positions of passes that only served the strategy.
        seconds: of the call.
        traces: of the press, where it is one.
    """

    ids: tuple[int, ...] = field(repr=False)
    stop: FinishReason
    prompt: tuple[int, ...] = field(repr=False)
    dropped: tuple[int, ...]
    read: Reading
    calls: int
    held: Held
    hidden: int
    seconds: float
    traces: tuple[Any, ...] = ()


def made(model: Any, setting: Setting, prompt: Sequence[int], cap: int, seed: int) -> Made:
    """Answer a prompt, greedily.

    Args:
        prompt: its ids.
        cap: most new tokens.
        seed: for whatever the model draws.
    """
    import torch  # noqa: PLC0415 - frameworks are imported where they are used

    torch.manual_seed(seed)
    dropped: tuple[int, ...] = ()
    scan = Reading(setting)
    began = time.perf_counter()
    if setting.token_pruning_ratio is not None:
        with reading(Setting(setting.name)) as scan:
            dropped = _least_surprising(model, prompt, setting.token_pruning_ratio)
    gone = frozenset(dropped)
    given = tuple(each for at, each in enumerate(prompt) if at not in gone)
    cache = counting_cache(model.config, setting)
    more = {} if setting.draft_length is None else {"prompt_lookup_num_tokens": setting.draft_length}
    with pressing(model, setting) as traces, reading(setting) as read, torch.inference_mode():
        row = torch.tensor([given])
        out = model.generate(
            input_ids=row, attention_mask=torch.ones_like(row), max_new_tokens=cap, do_sample=False, num_beams=1,
            temperature=None, top_p=None, top_k=None, **{_cache_name(model): cache}, **more,
        )  # fmt: skip
    seconds = time.perf_counter() - began
    read.attended += scan.attended
    ids = tuple(out[0, len(given) :].tolist())
    ends = model.generation_config.eos_token_id
    ended = ids[-1:] and ids[-1] in ({ends} if isinstance(ends, int) else set(ends or ()))
    stop = FinishReason.STOP if ended else FinishReason.LENGTH
    return Made(ids, stop, given, dropped, read, read.calls, cache.closed(), scan.forward, seconds, tuple(traces))


def _least_surprising(model: Any, prompt: Sequence[int], ratio: float) -> tuple[int, ...]:
    """The positions of the tokens the model finds likeliest; the first and the last one always stay."""
    import torch  # noqa: PLC0415 - as above

    with torch.inference_mode():
        row = torch.tensor([prompt])
        likely = model(input_ids=row, use_cache=False).logits[0, :-1].float().log_softmax(-1)
        found = likely.gather(-1, row[0, 1:, None])[:, 0]
    count = min(int(len(prompt) * ratio), max(0, len(prompt) - 2))
    # Place t of `found` is about token t + 1.
    order = found[:-1].argsort(descending=True, stable=True)[:count]
    return tuple(sorted(at + 1 for at in order.tolist()))


@dataclass(frozen=True, slots=True)
class Forced:
    """A given answer, fed to the model token by token.

    Attributes:
        likely: per place the log-probabilities of all tokens.
        nll: negative log-likelihood of the given tokens, added up.
    """

    likely: Any = field(repr=False)
    nll: float

    def agreed(self, base: Forced) -> int:
        """Places at which the first choice is that of the baseline."""
        return int((self.likely.argmax(-1) == base.likely.argmax(-1)).sum())

    def kl(self, base: Forced) -> float:
        """Divergence of these distributions from those of the baseline, added up; never below zero."""
        import torch  # noqa: PLC0415 - as above

        each = torch.nn.functional.kl_div(self.likely, base.likely, log_target=True, reduction="none").sum(-1)
        return max(0.0, float(each.sum()))


def forced(model: Any, setting: Setting, prompt: Sequence[int], ids: Sequence[int]) -> Forced:
    """Feed an answer to the model under a strategy, one token a step, as it would have been generated."""
    import torch  # noqa: PLC0415 - as above

    cache = counting_cache(model.config, setting)
    rows = []
    with pressing(model, setting), reading(setting), torch.inference_mode():
        for step in (list(prompt), *([each] for each in ids[:-1])):
            logits = model(input_ids=torch.tensor([step]), use_cache=True, **{_cache_name(model): cache}).logits
            rows.append(logits[0, -1].float().log_softmax(-1))
    likely = torch.stack(rows)
    return Forced(likely, -float(likely.gather(-1, torch.tensor(list(ids))[:, None]).sum()))


def _cache_name(model: Any) -> str:
    """How this version of the framework calls the cache."""
    accepted = inspect.signature(model.forward).parameters
    return next((each for each in _CACHE if each in accepted), _CACHE[-1])
