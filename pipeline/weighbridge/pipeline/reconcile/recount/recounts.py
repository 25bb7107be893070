"""How far usage reports are from counting the text again, attempt by attempt: what constants are learnt from.

    reported 36, recounted 28 without the template, 1 message   ->   8
    reported 12, recounted 12 with the template                 ->   0
    reported 25, recounted 24, ended by itself                  ->   1: the end token
    reported 90, of it reasoning 64, recounted 17               ->   9: what stands between reasoning and answer

Only whole comparisons count: every report of the attempt can be read, nobody lost any of it, it had one choice, and an
answer ended by itself, for one that was cut off has no end token.
"""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.frames import Expr, Frame, tokens, words
from weighbridge.pipeline.reconcile.recipe import stacked
from weighbridge.schemas.enumerations import Direction, FinishReason

CELL = ("direction", "provider", "model", "tokenizer", "template", "templated", "tools", "thinking")
POINT = (*CELL, "messages", "difference")


def points(compared: Frame) -> Frame:
    """How many attempts of each cell have which difference, at which number of messages.

    Args:
        compared: `match.compared`.

    Returns:
        `POINT`, `attempts`, `first_day`, `last_day`. `messages` is null wherever it does not matter: with the template
        counted, and for output.
    """
    rows = stacked([_input(compared), _output(compared)])
    return rows.group_by(*POINT).agg(
        attempts=nw.len().cast(nw.Int64), first_day=nw.col("day").min(), last_day=nw.col("day").max()
    )


def _input(compared: Frame) -> Frame:
    own = compared.filter(_whole(Direction.INPUT))
    size, templated = _completed(nw.col("input_recounted"), "template")
    size, _ = _completed(size, "special")
    bare = ~templated.fill_null(value=True)
    return own.with_columns(
        direction=words(Direction.INPUT),
        tokenizer=nw.col("input_tokenizer"),
        templated=templated,
        tools=nw.col("tools") > 0,
        thinking=nw.lit(None, dtype=nw.Boolean),
        messages=nw.when(bare).then(nw.col("messages")),
        difference=nw.col("reported_input") - nw.col("repeated_input") - size,
    ).select(*POINT, "day")


def _output(compared: Frame) -> Frame:
    ended = nw.col("finish_reason").is_null() | (nw.col("finish_reason") == FinishReason.STOP)
    own = compared.filter(_whole(Direction.OUTPUT) & ended.fill_null(value=True))
    thought = nw.col("reasoning").fill_null(0)
    return own.with_columns(
        direction=words(Direction.OUTPUT),
        tokenizer=nw.col("output_tokenizer"),
        template=words(),
        templated=nw.lit(None, dtype=nw.Boolean),
        tools=nw.lit(None, dtype=nw.Boolean),
        thinking=nw.col("reasoning") > 0,
        messages=tokens(),
        difference=nw.col("reported_output") - nw.col("repeated_output") - thought - nw.col("output_recounted"),
    ).select(*POINT, "day")


def _whole(direction: Direction) -> Expr:
    """Whether both sides of an attempt are there in full."""
    sending = nw.col("reports") - nw.col("empty")
    readable = (nw.col(f"counted_{direction}") == sending) & (sending > 0) & nw.col("loss").is_null()
    one = (nw.col("choices").fill_null(1) == 1) | (direction is Direction.INPUT)
    return nw.col("seen") & readable & one & ~nw.col(f"{direction}_recounted").is_null()


def _completed(size: Expr, part: str) -> tuple[Expr, Expr]:
    """A recount with a part that was counted beside it, and whether it holds that part now."""
    added, inside = nw.col(f"recount_{part}"), nw.col(f"recount_has_{part}")
    outside = (~inside & ~added.is_null()).fill_null(value=False)
    return size + nw.when(outside).then(added).otherwise(tokens(0)), inside | outside
