"""One row per attempt, whoever wrote about it: engine figures from the row that has them, recounts likewise."""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.frames import (
    KEY,
    Expr,
    Frame,
    added,
    beyond,
    latest,
    single_and_several,
    tokens,
    words,
)
from weighbridge.schemas.enumerations import AttemptStatus, Direction
from weighbridge.schemas.tables import UNASSIGNED

# A figure that leads, and the evidence that is only worth something beside it: all from the row of one source.
FIGURES: dict[str, tuple[str, ...]] = {
    "input_computed": ("cached_engine", "pruned"),
    "output_computed": ("reasoning_computed", "withheld_end_token"),
    "input_recounted": (
        *("recount_template", "recount_special", "recount_has_template", "recount_has_special"),
        "input_tokenizer",
    ),
    "output_recounted": ("output_tokenizer",),
}
# Columns that describe the attempt; a source that leaves one out does not hide what another says.
DESCRIPTION = (
    *("provider", "api", "model", "template", "tenant", "task", "route"),
    *("attempt_status", "messages", "tools", "choices", "finish_reason", "max_tokens", "input_history"),
    # The engine knows of padding, the server in front of it what was cut off or came too late.
    *("padding", "withheld_stop_trimmed", "withheld_aborted"),
    # The caller knows what came and what he asked for, the engine or its counters what was drafted and done again.
    *("output_delivered", "stop_strings", "accepted", "rejected", "recomputed"),
)
COUNTS = (
    *("input_computed", "cached_local", "cached_external", "output_computed", "reasoning_computed"),
    *("padding", "withheld_stop_trimmed", "withheld_aborted"),
    *("output_delivered", "accepted", "rejected", "recomputed"),
    *("withheld_end_token", "input_recounted", "recount_template", "recount_special", "output_recounted"),
    *("kv_appended", "kv_evicted", "input_history"),
)
COLUMNS_READ = (
    *KEY,
    *("source", "revision", "day", "provider", "api", "model_requested", "model_served", "template"),
    *("tenant", "task", "route", "status", "messages", "tools", "n", "finish_reason", "usage_expected", "tokenizer"),
    *("max_tokens", "stop_strings"),
    *("recount_has_template", "recount_has_special"),
    *COUNTS,
)
_FAILED = (AttemptStatus.FAILED, AttemptStatus.REJECTED)
_PLACES = ("tenant", "task", "route")
OUTPUT = (
    *KEY,
    "day",
    *DESCRIPTION,
    "usage_expected",
    *(name for lead, beside in FIGURES.items() for name in (f"{lead}_by", lead, *beside)),
    *("input_other", "output_other"),
)
# Positions of a prompt and its answer, up to which their products with counts of entries fit into 64 bits.
_POSITIONS = 2**21
_WORDS = (*("provider", "api", "model", "template", "tenant", "task", "route"), "attempt_status", "finish_reason")
_TOKENIZERS = ("input_tokenizer", "output_tokenizer")
_FLAGS = ("usage_expected", "recount_has_template", "recount_has_special")


def blank() -> dict[str, Expr]:
    """Every column of `OUTPUT` as a null of its type: an attempt of which nothing is known."""
    nulls: dict[str, Expr] = dict.fromkeys(OUTPUT, tokens())
    nulls |= dict.fromkeys((*_WORDS, *_TOKENIZERS, *(f"{lead}_by" for lead in FIGURES)), words())
    return nulls | dict.fromkeys(_FLAGS, nw.lit(None, dtype=nw.Boolean)) | {"day": nw.lit(None, dtype=nw.Date)}


def one_per_attempt(attempts: Frame) -> Frame:
    """The attempts, last revisions only, with the rows of several sources made one.

    Args:
        attempts: rows of the table `attempt` with at least `COLUMNS_READ`.

    Returns:
        One row per attempt key with `OUTPUT`. `<figure>_by` names the source the figure was taken from: the first in
        alphabetical order that has it. Descriptive columns come from that source too, else from any that knows; the
        day is the earliest.
    """
    rows = _shaped(latest(attempts.select(*COLUMNS_READ), (*KEY, "source")))
    return single_and_several(rows, lambda alone: alone.select(*OUTPUT), _merged)


def _shaped(seen: Frame) -> Frame:
    rows = seen.with_columns(nw.when(~beyond(name)).then(nw.col(name)).alias(name) for name in COUNTS)
    return rows.with_columns(
        model=nw.coalesce("model_served", "model_requested"),
        cached_engine=added(nw.col("cached_local"), nw.col("cached_external")),
        attempt_status=nw.col("status"),
        choices=nw.col("n").cast(nw.Int64),
        messages=nw.col("messages").cast(nw.Int64),
        tools=nw.col("tools").cast(nw.Int64),
        max_tokens=nw.col("max_tokens").cast(nw.Int64),
        stop_strings=nw.col("stop_strings").cast(nw.Int64),
        pruned=_pruned(),
        # The same text counted with another tokenizer takes another source.
        input_other=tokens(),
        output_other=tokens(),
        **{name: nw.col("tokenizer") for name in _TOKENIZERS},
        **{f"{lead}_by": nw.when(~nw.col(lead).is_null()).then(nw.col("source")) for lead in FIGURES},
    )


def _merged(rows: Frame) -> Frame:
    leading = rows.with_columns(**{f"{lead}_by": nw.col(f"{lead}_by").min().over(*KEY) for lead in FIGURES})
    first = nw.col("source").min().over(*KEY)
    placed = leading.with_columns(main=nw.coalesce(*(nw.col(f"{lead}_by") for lead in FIGURES), first))
    known = placed.with_columns(
        *(_unless(name, UNASSIGNED).alias(name) for name in _PLACES),
        _unless("attempt_status", AttemptStatus.UNKNOWN).alias("attempt_status"),
    )
    described = {name: _told("main", name) for name in DESCRIPTION}
    figures = {
        name: _of(f"{lead}_by", name) for lead, beside in FIGURES.items() for name in (f"{lead}_by", lead, *beside)
    }
    for direction in Direction:
        lead = nw.coalesce(f"{direction}_computed_by", f"{direction}_recounted_by")
        known = known.with_columns(leading=nw.when(nw.col("source") == lead).then(nw.col("tokenizer")))
        known = known.with_columns(leading=nw.col("leading").min().over(*KEY))
        differs = nw.col("tokenizer") != nw.col("leading")
        known = known.with_columns(nw.when(differs).then(nw.col(f"{direction}_recounted")).alias(f"{direction}_other"))
    grouped = known.group_by(*KEY).agg(
        **described,
        **figures,
        input_other=nw.col("input_other").min(),
        output_other=nw.col("output_other").min(),
        day=nw.col("day").min(),
        usage_expected=nw.col("usage_expected").max(),
        went_away=(nw.col("attempt_status") == AttemptStatus.ABORTED).max(),
        failed=nw.when(nw.col("attempt_status").is_in(list(_FAILED))).then(nw.col("attempt_status")).max(),
    )
    filled = grouped.with_columns(
        *(nw.col(name).fill_null(UNASSIGNED) for name in _PLACES),
        # An engine that was told to stop has succeeded, and one whose answer was refused behind it as well; whoever
        # saw the client go, or the error, knows better.
        attempt_status=nw.when(nw.col("went_away").fill_null(value=False))
        .then(words(AttemptStatus.ABORTED))
        .otherwise(nw.coalesce("failed", "attempt_status", words(AttemptStatus.UNKNOWN))),
    )
    return filled.select(*OUTPUT)


def _pruned() -> Expr:
    """Positions whose entries were all evicted: evicted of appended entries, where that is a whole number of them."""
    positions = nw.col("input_computed") + nw.col("output_computed") - 1
    evicted, appended = nw.col("kv_evicted"), nw.col("kv_appended")
    product = evicted * nw.when(positions < _POSITIONS).then(positions)
    whole = nw.when(appended > 0).then(appended)
    return nw.when((evicted > 0) & (product % whole == 0)).then(product // whole)


def _unless(name: str, blank: str) -> Expr:
    return nw.when(nw.col(name) != blank).then(nw.col(name))


def _of(source: str, name: str) -> Expr:
    return nw.when(nw.col("source") == nw.col(source)).then(nw.col(name)).max()


def _told(source: str, name: str) -> Expr:
    return nw.coalesce(_of(source, name), nw.col(name).min())
