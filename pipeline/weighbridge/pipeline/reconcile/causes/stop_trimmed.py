"""Tokens that were computed and then cut off with a stop string are missing from the report.

An engine counts every token it verified; a server that removes the stop string, and whatever the last step brought
beyond it, may report only what is left. The gap is then negative by the withheld tokens: by as many as are stated, or as
were computed and not delivered of an answer that a stop string may have ended. Where neither is known, a stop string is
found within the tokens of one step, so what was cut off behind it are accepted drafts: no more than there were. A
recount of the delivered text cannot see them, so this applies to what an engine counted (grade G1).

Worked example (output):

    grade  observed  reported  withheld_stop_trimmed  finish_reason  stop_strings  output_delivered  accepted | stop_trimmed
       G1         9         7                      2              -             -                 -         - |           -2
       G1         9         9                      2              -             -                 -         - |            -
       G1         9         8                      2              -             -                 -         - |            -
       G3         9         7                      2              -             -                 -         - |            -
       G1         9         7                      -           stop             1                 7         - |           -2
       G1         4         3                      -           stop             1                 -         1 |           -1
       G1         4         2                      -           stop             1                 -         1 |            -
       G1         4         3                      -         length             1                 -         1 |            -
       G1         4         3                      -           stop             -                 -         1 |            -
"""  # noqa: E501 - a table

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, Cause
from weighbridge.pipeline.reconcile.frames import tokens
from weighbridge.schemas.enumerations import Direction, FinishReason, Grade, Severity, TokenClass


def _candidate(_: Direction) -> tuple[Candidate, ...]:
    seen = nw.col("grade") == Grade.G1
    by_string = seen & (nw.col("finish_reason") == FinishReason.STOP) & (nw.col("stop_strings") > 0)
    left_out = nw.col("observed") - nw.col("reported")
    in_one_step = by_string & (left_out > 0) & (left_out <= nw.col("accepted"))
    amounts = (
        nw.when(seen).then(tokens(0) - nw.col("withheld_stop_trimmed")),
        nw.when(by_string).then(nw.col("output_delivered") - nw.col("observed")),
        nw.when(in_one_step).then(tokens(0) - left_out),
    )
    return tuple(Candidate(amount, TokenClass.OUTPUT_VISIBLE) for amount in amounts)


CAUSE = Cause(
    code="stop_trimmed",
    title="Tokens cut off with a stop string and not reported",
    directions=(Direction.OUTPUT,),
    cure="Nothing is owed for them; where your own engine bills by usage, count what it computed, not what was left.",
    structural=False,
    order=90,
    candidate=_candidate,
    severity=Severity.NOTICE,
    at_stake=False,
)
