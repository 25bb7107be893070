"""What a strategy did to the tokens of one answer, as state events."""

from __future__ import annotations

from weighbridge.capture.comparison.answering import Made, Shape
from weighbridge.capture.comparison.setting import Setting
from weighbridge.schemas.enumerations import Axis, HeadKind, Operation, Phase, PositionSpace
from weighbridge.schemas.trace import Rule, StateEvent, Trace, row_of

_KEY_VALUE = HeadKind.KEY_VALUE


def events_of(made: Made, setting: Setting, shape: Shape, strategy_id: str, prompt: int) -> list[StateEvent]:
    """The events of one answer; none where nothing came of the strategy, as of a budget no answer reaches.

    Args:
        made: the answer.
        setting: its strategy.
        shape: of the model.
        strategy_id: the strategy as traces know it.
        prompt: tokens of the prompt as it was given.
    """
    trace = Trace(strategy_id)
    for told in made.traces if made.held.dropped else ():
        told.add_to(trace)
    if made.dropped:
        trace.add(Axis.INPUT, Operation.DROP, [row_of(made.dropped)], width=prompt, pos_space=PositionSpace.PROMPT)
    if made.held.dropped and setting.press is None:
        _stored(trace, made, setting, shape)
    dense = shape.dense(len(made.prompt) + len(made.ids) - 1)
    if (setting.attention_topk is not None or setting.window is not None) and made.read.attended < dense:
        trace.count(
            Axis.ATTEND, Operation.SELECT, made.read.attended, dense,
            layers=(0, shape.layers - 1), heads=(0, shape.query_heads - 1), head_kind=HeadKind.QUERY,
        )  # fmt: skip
    if setting.draft_length is not None:
        drafted, accepted = drafts(made)
        for op, count in ((Operation.DRAFT, drafted), (Operation.ACCEPT, accepted)) if drafted else ():
            trace.count(Axis.EMIT, op, count, drafted, phase=Phase.VERIFY, pos_space=PositionSpace.OUTPUT)
    return trace.events


def drafts(made: Made) -> tuple[int, int]:
    """Tokens that were drafted, and those that stood: each pass verifies its drafts and adds one token of its own."""
    drafted = made.read.forward - len(made.prompt) - (made.calls - 1)
    return drafted, min(drafted, max(0, len(made.ids) - made.calls))


def _stored(trace: Trace, made: Made, setting: Setting, shape: Shape) -> None:
    """The prompt comes in, a rule or scores decide what stays, the rest comes in."""
    written = len(made.prompt) + len(made.ids) - 1
    whole = (0, shape.layers - 1), (0, shape.kv_heads - 1)
    first, rest = made.held.prefill, range(made.held.prefill, written)
    trace.add(
        Axis.STORE, Operation.APPEND, [row_of(range(first))], width=first, layers=whole[0], heads=whole[1],
        head_kind=_KEY_VALUE,
    )  # fmt: skip
    if setting.budget is not None:
        rule = Rule(*setting.budget, standing=True)
        for span in _spans(sorted(made.held.evicting)):
            trace.add(
                Axis.STORE, Operation.KEEP_ONLY, rule, width=first, layers=span, heads=whole[1], head_kind=_KEY_VALUE
            )
    for layer, window in made.held.sliding.items():
        # A sliding layer keeps what the next query will read: all of its window but that query itself.
        trace.add(
            Axis.STORE, Operation.KEEP_ONLY, Rule(0, window - 1, standing=True), width=first, layers=(layer, layer),
            heads=whole[1], head_kind=_KEY_VALUE,
        )  # fmt: skip
    for span in _spans(sorted({layer for layer, _ in made.held.scored})):
        kept = [
            row_of(made.held.scored[layer, head])
            for layer in range(span[0], span[1] + 1)
            for head in range(shape.kv_heads)
        ]
        trace.add(Axis.STORE, Operation.KEEP_ONLY, kept, width=first, layers=span, heads=whole[1], head_kind=_KEY_VALUE)
    if rest:
        trace.add(
            Axis.STORE, Operation.APPEND, [row_of(rest)], width=written, step=len(made.ids) - 1, phase=Phase.DECODE,
            layers=whole[0], heads=whole[1], head_kind=_KEY_VALUE,
        )  # fmt: skip


def _spans(layers: list[int]) -> list[tuple[int, int]]:
    """Runs of neighbouring layers."""
    out: list[tuple[int, int]] = []
    for layer in layers:
        if out and out[-1][1] == layer - 1:
            out[-1] = (out[-1][0], layer)
        else:
            out.append((layer, layer))
    return out
