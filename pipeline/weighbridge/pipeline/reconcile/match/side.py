"""One direction of every comparison, under names that are the same for input and output: what a cause may rest on."""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.frames import KEY, Expr, Frame, first_of, tokens, words
from weighbridge.pipeline.reconcile.match.match import COVERED
from weighbridge.schemas.enumerations import AttemptStatus, Direction, Grade

IDENTITY = (*KEY, "day", "direction", "provider", "api", "model", "template", "tenant", "task", "route")
SITUATION = (
    *("seen", "missing", "loss", "open_until", "relation", "grade", "observer", "reporter", "reports"),
    "compared",
)
FIGURES = ("observed", "reported", "repeated", "gap", "input_size")
# What candidates are built from. A direction to which a column does not apply has it as null.
EVIDENCE: dict[str, type[nw.Int64] | type[nw.Boolean] | type[nw.String]] = {
    "cache_read": nw.Int64,
    "cache_write": nw.Int64,
    "cached_engine": nw.Int64,
    "reasoning": nw.Int64,
    "reasoning_engine": nw.Int64,
    "withheld_end_token": nw.Int64,
    "withheld_stop_trimmed": nw.Int64,
    "withheld_aborted": nw.Int64,
    "pruned": nw.Int64,
    "history": nw.Int64,
    "other_tokenizer": nw.Int64,
    "max_tokens": nw.Int64,
    "children": nw.Int64,
    "tries": nw.Int64,
    "padding": nw.Int64,
    "output_delivered": nw.Int64,
    "stop_strings": nw.Int64,
    "accepted": nw.Int64,
    "rejected": nw.Int64,
    "recomputed": nw.Int64,
    "generated": nw.Int64,
    "attempt_status": nw.String,
    "choices": nw.Int64,
    "finish_reason": nw.String,
    "messages": nw.Int64,
    "recount_special": nw.Int64,
    "recount_has_special": nw.Boolean,
    "recount_template": nw.Int64,
    "recount_has_template": nw.Boolean,
}
COLUMNS = (*IDENTITY, *SITUATION, *FIGURES, *EVIDENCE)

_BOTH = ("padding", "attempt_status", "choices")
_INPUT = ("cache_read", "cache_write", "cached_engine", "messages", "pruned", "recomputed")
_INPUT_RECOUNT = ("recount_special", "recount_has_special", "recount_template", "recount_has_template")
_OUTPUT = (
    *("reasoning", "withheld_end_token", "withheld_stop_trimmed", "withheld_aborted"),
    *("finish_reason", "max_tokens", "output_delivered", "stop_strings", "accepted", "rejected"),
)


def side(rows: Frame, direction: Direction) -> Frame:
    """One direction of `match.compared`: one row per attempt with `COLUMNS`.

    `grade` is G1 where the engine's own figure is compared, G3 where a recount is. `gap` is reported - observed; a
    side that is missing counts as 0 where it was expected: no usage though it was due, or though an engine worked for
    a call that was left or failed, or no attempt though an agent says it lost some, or other attempts of its request
    were observed. It is null where only one side exists otherwise, and where any report of the attempt cannot be
    read: what the others add up to (`reported`) is then not all that was reported. `open_until` is the last day on
    which the side that is missing may still come; nothing is compared before.
    """
    observed = nw.coalesce(f"{direction}_computed", f"{direction}_recounted")
    engine = ~nw.col(f"{direction}_computed").is_null()
    recount = ~engine & ~nw.col(f"{direction}_recounted").is_null()
    sending = nw.col("reports") - nw.col("empty")
    readable = (nw.col(f"counted_{direction}") == sending) & (sending > 0)
    # A report that may be this attempt's or another one's is there: nothing is missing, and nothing compared.
    owed = (nw.col("due") | _worked_for_nothing()) & (sending == 0) & ~nw.col("unsure")
    related = ~nw.col("relation").is_null()
    lost = nw.when(~related).then(nw.col("loss"))
    stray = ~nw.col("seen") & ~related & ~(lost == COVERED).fill_null(value=False)
    open_until = nw.when(owed | stray).then(nw.col("open_until"))
    settled = open_until.is_null()
    shown = rows.with_columns(
        direction=words(direction),
        observed=observed,
        grade=first_of([(engine, words(Grade.G1)), (recount, words(Grade.G3))], words()),
        observer=nw.coalesce(f"{direction}_computed_by", f"{direction}_recounted_by"),
        reported=nw.col(f"reported_{direction}"),
        repeated=nw.col(f"repeated_{direction}"),
        input_size=nw.coalesce("input_computed", "input_recounted", "reported_input"),
        missing=owed & settled,
        open_until=open_until,
        loss=nw.when(settled).then(lost),
        **_evidence(direction, recount),
    )
    gap = first_of(
        [
            (nw.col("missing"), tokens(0) - nw.col("observed")),
            (~readable, tokens()),
            (nw.col("observed").is_null() & _accounted(), nw.col("reported")),
        ],
        nw.col("reported") - nw.col("observed"),
    )
    known = shown.with_columns(gap=gap)  # a side that is null makes it null
    return known.with_columns(compared=~nw.col("gap").is_null()).select(*COLUMNS)


def _evidence(direction: Direction, recount: Expr) -> dict[str, Expr]:
    here = {name: nw.lit(None, dtype=kind) for name, kind in EVIDENCE.items()}
    here |= {name: nw.col(name) for name in _BOTH}
    here |= {
        "other_tokenizer": nw.col(f"{direction}_other"),
        "children": nw.col(f"children_{direction}"),
        "tries": nw.col(f"tries_{direction}"),
        "generated": nw.col("output_computed"),
    }
    if direction is Direction.INPUT:
        here |= {name: nw.col(name) for name in _INPUT}
        here["history"] = nw.col("input_history")
        here |= {name: nw.when(recount).then(nw.col(name)) for name in _INPUT_RECOUNT}
    else:
        here |= {name: nw.col(name) for name in _OUTPUT}
        here["reasoning_engine"] = nw.col("reasoning_computed")
    return here


def _accounted() -> Expr:
    """Whether it is known why nobody saw the attempt: an agent lost it, or others of its request were seen."""
    return ~nw.col("loss").is_null() | ~nw.col("relation").is_null()


def was_aborted() -> Expr:
    """Whether the client went away before the answer was over."""
    return (nw.col("attempt_status") == AttemptStatus.ABORTED).fill_null(value=False)


def left_in_prefill() -> Expr:
    """Whether the client went away before the engine had generated a token."""
    return was_aborted() & (nw.col("generated") == 0).fill_null(value=False)


def has_failed() -> Expr:
    """Whether the call was answered with an error."""
    return nw.col("attempt_status").is_in([AttemptStatus.FAILED, AttemptStatus.REJECTED]).fill_null(value=False)


def _worked_for_nothing() -> Expr:
    """Whether an engine computed anything for a call that was left or failed: no usage says so, due or not."""
    worked = (nw.coalesce("input_computed", "output_computed") >= 0).fill_null(value=False)
    return worked & (was_aborted() | has_failed())


def is_covered() -> Expr:
    """Whether a report without an attempt fits into a known loss."""
    return (nw.col("loss") == COVERED).fill_null(value=False)
