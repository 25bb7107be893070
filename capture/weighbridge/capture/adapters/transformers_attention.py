"""Attention functions of your own, registered with transformers 5.24: which keys each query read.

    with transformers_attention.install("topk", topk_attention, mask=sdpa_mask) as watched:
        model.set_attn_implementation("topk")
        model.generate(...)                  # watched by the adapter of transformers: part of that attempt at level 3
        with watched.watching() as trace:    # or a forward pass of your own
            model(ids)

The function and its mask are registered in both registries and taken out again. What was read is, in this order: what
the function says with `attended(selected)`, the weights it returns that are not 0, the mask it was given, and without
one all keys up to the query's own. Counts are kept per layer and pass as tensors, and added off the request path; with
`sets=True` also the keys of every pass with one query. At level 2 and below, and outside `watching`, nothing is looked
at: the function is called as it is.

Run with transformers 5.24.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from weighbridge.capture.adapters._generate_call import current
from weighbridge.capture.adapters.adapter import Adapter, Installed
from weighbridge.capture.guard import Guard
from weighbridge.schemas.enumerations import Axis, HeadKind, Operation, Phase
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.strategy import Strategy
from weighbridge.schemas.trace import Trace

_WHOLE: Final = 3
_BOUND: Final = 1 << 16  # readings of one call
_selected: ContextVar[list[Any] | None] = ContextVar("weighbridge_attended", default=None)


def attended(selected: Any) -> None:
    """Say which keys are read; call it from an attention function.

    Args:
        selected: booleans (batch x heads x queries x keys), or indices of keys (batch x heads x queries x as
            many as are read). Heads may be 1 for all.
    """
    said = _selected.get()
    if said is not None:
        said.append(selected)


@dataclass(slots=True)
class Reading:
    """One pass of one layer: keys read per row of the batch (a tensor), and what there was to read."""

    layer: int
    queries: int
    keys: int
    heads: int
    read: Any
    chosen: Any = None


@dataclass(slots=True)
class AttentionTrace:
    """What one call read.

    Attributes:
        strategy: the function, with the parameters it was registered with.
        readings: in the order of passes.
        left_out: readings beyond the bound.
    """

    strategy: Strategy | None = None
    readings: list[Reading] = field(default_factory=list)
    left_out: int = 0

    @property
    def held_bytes(self) -> int:
        """What it keeps in memory."""
        return sum(256 + (0 if each.chosen is None else each.chosen.numel()) for each in self.readings)

    def counts(self, row: int = 0) -> dict[str, int]:
        """Keys read by one head (the mean over layers and heads, rounded down), and what dense attention reads.

        Of a batch they are not told: rows that ended, and padding, are computed with the others.
        """
        scopes = {(each.layer, each.heads) for each in self.readings}
        if not scopes or self.left_out or self.readings[0].read.shape[0] > 1 or len({heads for _, heads in scopes}) > 1:
            return {}
        read = sum(int(each.read[row]) for each in self.readings)
        dense = sum(_dense(each.queries, each.keys) for each in self.readings)
        return {"attended": read // sum(heads for _, heads in scopes), "attended_dense": dense // len(scopes)}

    def add_to(self, trace: Trace, row: int = 0) -> None:
        """SELECT per layer and phase: keys read, of those dense attention reads; sets where they were kept."""
        trace.strategy_id = None if self.strategy is None else self.strategy.strategy_id
        sums: dict[tuple[int, bool, int], tuple[int, int]] = {}
        steps: dict[int, int] = {}
        for each in self.readings:
            step = steps[each.layer] = steps.get(each.layer, -1) + 1
            if each.chosen is not None:
                self._add_sets(trace, each, step, row)
                continue
            key = (each.layer, step > 0, each.heads)
            read, dense = sums.get(key, (0, 0))
            sums[key] = (read + int(each.read[row]), dense + _dense(each.queries, each.keys) * each.heads)
        for (layer, later, heads), (read, dense) in sums.items():
            trace.count(
                Axis.ATTEND, Operation.SELECT, read, max(read, dense), layers=(layer, layer), heads=(0, heads - 1),
                head_kind=HeadKind.QUERY, phase=Phase.DECODE if later else Phase.PREFILL, step=int(later),
            )  # fmt: skip

    def _add_sets(self, trace: Trace, each: Reading, step: int, row: int) -> None:
        chosen = each.chosen[row].cpu()
        sets = [_set(chosen[head]) for head in range(chosen.shape[0])]
        sets = sets * each.heads if len(sets) == 1 else sets
        trace.add(
            Axis.ATTEND, Operation.SELECT, sets, width=each.keys, layers=(each.layer, each.layer),
            heads=(0, each.heads - 1), head_kind=HeadKind.QUERY, step=step,
            phase=Phase.DECODE if step else Phase.PREFILL,
        )  # fmt: skip


def _set(chosen: Any) -> int:
    """A row of booleans as a set."""
    return sum(1 << position for position in chosen.nonzero()[:, 0].tolist())


def _dense(queries: int, keys: int) -> int:
    before = keys - queries
    return queries * before + queries * (queries + 1) // 2


class WatchedAttention(Installed):
    """A registered attention function."""

    def __init__(self, strategy: Strategy, *, supported: bool) -> None:
        super().__init__(supported=supported)
        self.strategy = strategy
        self._trace: ContextVar[AttentionTrace | None] = ContextVar("weighbridge_attention", default=None)

    def __enter__(self) -> WatchedAttention:
        return self

    @contextmanager
    def watching(self) -> Iterator[AttentionTrace]:
        """Keep what is read while the block runs."""
        trace = AttentionTrace(self.strategy)
        token = self._trace.set(trace)
        try:
            yield trace
        finally:
            self._trace.reset(token)

    def trace(self) -> AttentionTrace | None:
        """Where the present pass is kept, None where nobody wants it."""
        own = self._trace.get()
        call = current.get()
        if own is not None or call is None or call.ignored or call.attempt.level < _WHOLE:
            return own
        for told in call.told:
            if isinstance(told, AttentionTrace) and told.strategy is self.strategy:
                return told
        made = AttentionTrace(self.strategy)
        call.told.append(made)
        return made


class _Function:
    """An attention function, watched."""

    def __init__(self, function: Callable[..., Any], watched: WatchedAttention, *, sets: bool) -> None:
        self._function = function
        self._watched = watched
        self._sets = sets

    def __call__(self, module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **kwargs: Any) -> Any:
        trace = None
        with Guard("attention.begin"):
            trace = self._watched.trace()
        if trace is None:
            return self._function(module, query, key, value, attention_mask, **kwargs)
        said: list[Any] = []
        token = _selected.set(said)
        try:
            result = self._function(module, query, key, value, attention_mask, **kwargs)
        finally:
            _selected.reset(token)
        with Guard("attention.read"):
            weights = result[1] if isinstance(result, tuple) and len(result) > 1 else None
            self._keep(trace, module, query, key, attention_mask, said[-1] if said else None, weights)
        return result

    def _keep(
        self, trace: AttentionTrace, module: Any, query: Any, key: Any, mask: Any, said: Any, weights: Any
    ) -> None:
        if len(trace.readings) >= _BOUND:
            trace.left_out += 1
            return
        batch, heads, queries, keys = query.shape[0], query.shape[1], query.shape[2], key.shape[2]
        chosen = _chosen(said, weights, mask, queries, keys, query.device)
        read = chosen.sum((1, 2, 3)) * (heads // chosen.shape[1])
        if read.shape[0] != batch:
            read, chosen = read.expand(batch), chosen.expand(batch, -1, -1, -1)
        kept = chosen[:, :, 0, :] if self._sets and queries == 1 else None
        trace.readings.append(Reading(int(module.layer_idx), queries, keys, heads, read, kept))


def _chosen(said: Any, weights: Any, mask: Any, queries: int, keys: int, device: Any) -> Any:
    """Booleans (batch or 1 x heads or 1 x queries x keys): the keys each query reads."""
    import torch  # noqa: PLC0415 - the host has it loaded

    if said is not None and said.dtype != torch.bool:
        every = torch.zeros(*said.shape[:3], keys, dtype=torch.bool, device=said.device)
        return every.scatter_(3, said.long(), True)
    if said is not None:
        return said
    if weights is not None:
        return weights != 0
    if mask is None:
        causal = torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)
        return causal[None, None]
    allowed = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
    return allowed[..., :keys]


def install(
    name: str,
    function: Callable[..., Any],
    mask: Callable[..., Any] | None = None,
    *,
    parameters: dict[str, int | float | bool | str] | None = None,
    sets: bool = False,
) -> WatchedAttention:
    """Register an attention function, watched, until the answer is removed or its `with` block ends.

    Args:
        name: for `model.set_attn_implementation`.
        function: as transformers calls it: (module, query, key, value, attention_mask, **more) -> (output, weights).
        mask: what makes its mask, as `transformers.masking_utils.sdpa_mask`, which is taken where none is given: an
            implementation without a mask of its own gets none at all.
        parameters: numbers and words that tell this strategy from others, such as k or a window.
        sets: keep which keys are read in passes with one query, not only how many.

    Raises:
        ConfigError: the name is taken.
    """
    from transformers import AttentionInterface, AttentionMaskInterface  # noqa: PLC0415 - the host has it loaded
    from transformers.masking_utils import sdpa_mask  # noqa: PLC0415

    if name == "eager" or name in AttentionInterface() or name in AttentionMaskInterface():
        raise ConfigError(f"an attention function is called {name!r} already; register yours under another name")
    strategy = Strategy(
        name, "attention", dict(parameters or {}), library="transformers", library_version=ADAPTER.version()
    )
    watched = WatchedAttention(strategy, supported=ADAPTER.supports(ADAPTER.version()))
    for registry, member in (
        (AttentionInterface, _Function(function, watched, sets=sets) if watched.supported else function),
        (AttentionMaskInterface, mask or sdpa_mask),
    ):
        registry.register(name, member)
        # What is registered for all can be taken out in no public way.
        watched.undo(lambda registry=registry: registry._global_mapping.pop(name, None))  # type: ignore[misc]  # noqa: SLF001
    return watched


ADAPTER: Final = Adapter(
    name="transformers_attention", framework="transformers", first="5.24", below="5.25", install=install
)
