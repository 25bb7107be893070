"""Attempts beside their usage reports: who has both, what is missing where it was expected, what nobody saw."""

from __future__ import annotations

import narwhals as nw

from weighbridge.pipeline.reconcile.frames import KEY, Frame, tokens, words
from weighbridge.pipeline.reconcile.match import attempts as one
from weighbridge.pipeline.reconcile.match import reports as many
from weighbridge.pipeline.reconcile.recipe import stacked
from weighbridge.schemas.enumerations import AttemptStatus
from weighbridge.schemas.tables import UNASSIGNED

# How a report without an attempt stands to what agents say they lost.
COVERED = "covered"  # a known loss of that day has room for it
EXCEEDED = "exceeded"  # there was a loss that day, but smaller than the number of such reports

# An attempt that ended so owes no usage report.
OWES_NOTHING = (AttemptStatus.FAILED, AttemptStatus.REJECTED)
_REPORT = tuple(name for name in many.OUTPUT if not name.startswith("r_"))
_SHARED = ("provider", "api", "model")
_COUNTED = ("reports", "empty", "contradictory", "unknown", *(name for name in _REPORT if name.startswith("counted_")))
_PLAIN = (*one.OUTPUT, *_REPORT, "seen", "due", "loss")
_RELATED = ("relation", "unsure", "tries_input", "tries_output")
OUTPUT = (*_PLAIN, "open_until", *_RELATED)


def compared(
    attempts: Frame,
    reports: Frame,
    speaking: Frame,
    unseen: Frame,
    waiting: Frame | None = None,
    related: Frame | None = None,
) -> Frame:
    """Every attempt and every report without one, one row each, both sides beside one another.

    Args:
        attempts: `attempts.one_per_attempt`.
        reports: `reports.per_attempt` of them, and of the reports that no attempt answers to.
        speaking: provider, api: who sent any usage report in the month (`speakers`).
        unseen: attempt_lo, attempt_hi, loss of the reports without an attempt (`held_against`).
        waiting: until when the other side may still come (`lateness.waiting`); null where nothing can.
        related: how attempts stand to others of their request (`links.related`); null where none does.

    Returns:
        `OUTPUT`: the columns of both under the attempt's key, plus `seen` (an attempt row exists), `due` (a usage
        report is expected), `loss` (COVERED, EXCEEDED or null), `open_until` (of waiting, whether or not anything is
        missing), and what is known of other attempts of its request.
    """
    orphans = reports.join(attempts.select(*KEY), how="anti", left_on=["r_lo", "r_hi"], right_on=list(KEY))
    alone = _as_attempts(orphans).join(unseen.select(*KEY, "loss"), on=list(KEY), how="left")
    seen = _seen(attempts, reports, speaking)
    both = stacked([seen.select(*_PLAIN), alone.select(*_PLAIN)])
    return _with_related(_with_waiting(both, waiting), related).select(*OUTPUT)


def _with_waiting(rows: Frame, waiting: Frame | None) -> Frame:
    """Until when the missing side may come, by who would send it; the day of most providers is the default's."""
    if waiting is None:
        return rows.with_columns(open_until=nw.lit(None, dtype=nw.Date))
    known = rows.with_columns(asked=nw.col("provider").fill_null(""))
    return known.join(waiting, how="left", left_on=["asked", "day", "seen"], right_on=["asked", "w_day", "w_seen"])


def _with_related(rows: Frame, related: Frame | None) -> Frame:
    if related is None:
        none = nw.lit(value=False)
        return rows.with_columns(relation=words(), unsure=none, tries_input=tokens(), tries_output=tokens())
    known = rows.join(related.select(*KEY, *_RELATED), on=list(KEY), how="left")
    return known.with_columns(nw.col("unsure").fill_null(value=False))


def speakers(readings: Frame) -> Frame:
    """provider, api of everyone who sent a usage report, with or without counts."""
    return readings.select("provider", "api").unique()


def held_against(unseen: Frame, losses: Frame, named_losses: Frame) -> Frame:
    """How each report without an attempt stands to the losses agents admit; a named loss comes before any count.

    Args:
        unseen: attempt_lo, attempt_hi, day, one row for each attempt that only reports know of.
        losses: day, cover, lost: which known loss covers a day, and how many attempts it lost (`coverage.losses`).
        named_losses: attempt_lo, attempt_hi of attempts that an agent says it lost.

    Returns:
        attempt_lo, attempt_hi, day, loss, and where a count decided, `cover`, `lost` and `unmatched`.
    """
    named = named_losses.select(*KEY).unique().with_columns(named=tokens(1))
    rows = unseen.join(named, on=list(KEY), how="left").join(losses, on="day", how="left")
    rows = rows.with_columns(cover=nw.when(nw.col("named").is_null()).then(nw.col("cover")))
    counted = rows.filter(~nw.col("cover").is_null()).group_by("cover").agg(unmatched=nw.len().cast(nw.Int64))
    fits = nw.when(nw.col("unmatched") <= nw.col("lost")).then(words(COVERED)).otherwise(words(EXCEEDED))
    by_count = nw.when(~nw.col("cover").is_null()).then(fits)
    loss = nw.when(~nw.col("named").is_null()).then(words(COVERED)).otherwise(by_count)
    return rows.join(counted, on="cover", how="left").with_columns(loss=loss).drop("named")


def _seen(attempts: Frame, reports: Frame, speaking: Frame) -> Frame:
    """The attempts with their reports. A report is due where the recorder says so, or the API sends others."""
    speaks = speaking.with_columns(speaks=tokens(1))
    both = attempts.join(reports, how="left", left_on=list(KEY), right_on=["r_lo", "r_hi"])
    rows = both.with_columns(
        *(nw.coalesce(name, f"r_{name}").alias(name) for name in _SHARED),
        *(nw.col(name).fill_null(0) for name in _COUNTED),
        seen=nw.lit(value=True),
        loss=words(),
    ).join(speaks, how="left", on=["provider", "api"])
    implied = (
        nw.col("usage_expected").is_null()
        & (nw.col("attempt_status") == AttemptStatus.SUCCEEDED)
        & ~nw.col("speaks").is_null()
    )
    owes = ~nw.col("attempt_status").is_in(list(OWES_NOTHING))
    return rows.with_columns(due=owes & (nw.col("usage_expected").fill_null(value=False) | implied))


def _as_attempts(orphans: Frame) -> Frame:
    """Reports without an attempt in the shape of attempts of which nothing else is known."""
    told = {"attempt_lo": nw.col("r_lo"), "attempt_hi": nw.col("r_hi"), "day": nw.col("r_day")}
    told |= {name: nw.col(f"r_{name}") for name in _SHARED}
    told |= {name: words(UNASSIGNED) for name in ("tenant", "task", "route")}
    rows = orphans.with_columns(**{**one.blank(), **told}, seen=nw.lit(value=False), due=nw.lit(value=False))
    return rows.select(*(name for name in _PLAIN if name != "loss"))
