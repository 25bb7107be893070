"""What one run is: answers as token ids, and what each of them took. Null is unknown, never zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from weighbridge.schemas.enumerations import FinishReason

NOTHING: Mapping[str, str | int | float] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What an answer took, as the run that made it counted.

    Attributes:
        prompt_tokens: tokens of the prompt as it was given.
        pruned: of these, tokens that did not reach the model.
        attended, attended_dense: keys read by attention, and those a dense causal attention would have read; summed
            over queries, layers and query heads.
        kv_written, kv_kept, kv_evicted, kv_masked: KV entries (layer, KV head, position): written, in the cache at the
            end, evicted by the strategy, and kept but hidden from attention.
        kv_peak_bytes: bytes of keys and values when there were most of them.
        drafted, accepted: proposed tokens, and those that stood.
        forward: positions processed by forward passes.
        hidden: of these, positions of passes that only served the strategy.
        events: state events that were recorded.
        seconds: of the call.
        forced, forced_agreed: positions of the baseline's answer fed to the model, and those at which its first choice
            is the baseline's token.
        nll, kl: sums over these positions: negative log-likelihood of the baseline's token, and divergence from the
            baseline's distribution, in nats.
    """

    prompt_tokens: int | None = None
    pruned: int | None = None
    attended: int | None = None
    attended_dense: int | None = None
    kv_written: int | None = None
    kv_kept: int | None = None
    kv_evicted: int | None = None
    kv_masked: int | None = None
    kv_peak_bytes: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    forward: int | None = None
    hidden: int | None = None
    events: int | None = None
    seconds: float | None = None
    forced: int | None = None
    forced_agreed: int | None = None
    nll: float | None = None
    kl: float | None = None


UNKNOWN = Cost()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer.

    Attributes:
        pair: the prompt it answers, by a name that both sides share.
        ids: its token ids, end token included.
        stop: why it ended, null where not known.
        cluster: task or session; answers of one cluster are not independent.
        score: what a task gives for it, from 0 to 1.
        alike: measure of meaning -> how like the baseline's answer it is; `..._unrelated`: like that to another prompt.
        cost: what it took.
    """

    pair: str
    ids: Sequence[int] = field(repr=False)
    stop: FinishReason | None = None
    cluster: str | None = None
    score: float | None = None
    alike: Mapping[str, float] = field(default_factory=dict)
    cost: Cost = UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The answers of one strategy.

    Attributes:
        name: of the strategy.
        answers: by pair.
        again: answers of the same strategy to the same prompts, made a second time; empty where nobody did.
        unlike: pairs of which it is known that a second answer differed, and not how.
        parameters: of the strategy.
        implementation: what carried it out.
        strategy_id: as traces know it, null where there is none.
        model, tokenizer: whose ids these are, null where not said.
        identity: what tells the model from others of its name, such as a fingerprint of its weights; null: its name.
        cap: most new tokens an answer could have, null where not said.
    """

    name: str
    answers: Mapping[str, Answer] = field(repr=False)
    again: Mapping[str, Answer] = field(default_factory=dict, repr=False)
    unlike: frozenset[str] = frozenset()
    parameters: Mapping[str, str | int | float] = field(default_factory=lambda: NOTHING)
    implementation: str | None = None
    strategy_id: str | None = None
    model: str | None = None
    tokenizer: str | None = None
    identity: str | None = None
    cap: int | None = None
