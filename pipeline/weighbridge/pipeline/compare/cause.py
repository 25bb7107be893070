"""Why an answer may be worse under a strategy, and what cures it.

State events say what a strategy did, and speak for a cause; the parameter that was set only says what it could do.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Cause:
    """A likely cause.

    Attributes:
        code: stable, snake_case.
        title: what happens, in a sentence.
        cure: what to change.
    """

    code: str
    title: str
    cure: str


_EVICTED = Cause(
    "context_evicted",
    "Keys the answer needed were no longer in the cache.",
    "Raise the window or the limit of the cache until the loss ends, and keep the first positions (sinks) of a prompt.",
)
_SCORED = Cause(
    "scores_dropped_context",
    "What was evicted by score was needed later.",
    "Lower compression_ratio; where answers repeat, keep the last positions of the prompt whole.",
)
_NARROW = Cause(
    "attention_narrow",
    "Queries read fewer keys than the answer needed.",
    "Raise attention_topk; the loss by length shows from where on it is too small.",
)
_PRUNED = Cause(
    "input_pruned",
    "Tokens of the prompt never reached the model.",
    "Lower token_pruning_ratio, or prune only what is context, never instructions and questions.",
)
_DRAFTED = Cause(
    "drafts_not_verified",
    "Greedy decoding with verified drafts gives the same ids; where it does not, verification differs.",
    "Compare with drafts of length 1, and report it to the maker of the engine: this is a fault, not a trade.",
)
UNKNOWN = Cause(
    "cause_unknown",
    "The run names no parameter that would explain it.",
    "Name the strategy's parameters in the run, and record state events, so that what was evicted can be told.",
)
OF_PARAMETER: Mapping[str, Cause] = MappingProxyType(
    {
        "kv_cache_limit": _EVICTED,
        "window": _EVICTED,
        "compression_ratio": _SCORED,
        "attention_topk": _NARROW,
        "token_pruning_ratio": _PRUNED,
        "draft_length": _DRAFTED,
    }
)
CAUSES = (*dict.fromkeys(OF_PARAMETER.values()), UNKNOWN)


def likely(parameters: Iterable[str], done: Container[str] | None = None) -> Cause:
    """The cause that goes with the parameters that were set, the first of `OF_PARAMETER` of several.

    Args:
        parameters: that were set.
        done: parameters whose work is known to have been done; null where nothing tells that.
    """
    named = [name for name in OF_PARAMETER if name in set(parameters)]
    seen = named if done is None else [name for name in named if name in done]
    return OF_PARAMETER[seen[0]] if seen else UNKNOWN
