"""Attempts beside their reports, for the overview: what is plain takes the short road, everything else the long one.

A pair is *plain* where an attempt has one row, one readable report of the same day, and both of its names; on any host
that is nearly all of them. The short road joins on the second half of the key and compares the first half afterwards:
one whole number joins in half the time of two. What is not plain (no report, no attempt, another day, several rows,
an unreadable report) is *set aside* by its key and goes through the matching that every other figure comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

import narwhals as nw

from weighbridge.pipeline.lake.figures import LARGEST
from weighbridge.pipeline.lake.footer import Footer
from weighbridge.pipeline.reconcile.frames import KEY, Expr, Frame, beyond, first_of, tokens, words
from weighbridge.pipeline.reconcile.match import attempts as one
from weighbridge.pipeline.reconcile.match import reports as many
from weighbridge.schemas.enumerations import Direction, Verdict
from weighbridge.schemas.tables import UNASSIGNED

MATCHED, INPUT_DIFFERS, OUTPUT_DIFFERS = "matched", "input_differs", "output_differs"
NOT_COMPARED, MISSING, UNSEEN = "not_compared", "missing", "unseen"
KINDS = (MATCHED, INPUT_DIFFERS, OUTPUT_DIFFERS, NOT_COMPARED, MISSING, UNSEEN)
NAMES = ("tenant", "model")
FIGURES = ("input", "output", "input_difference", "output_difference")
ATTEMPT_COUNTS = ("input_computed", "input_recounted", "output_computed", "output_recounted")
ATTEMPT_READ = (
    *KEY,
    *("tenant", "model_served", "model_requested"),
    *ATTEMPT_COUNTS,
)
READING_READ = (*KEY, "verdict", *many.COUNTS)
# What a footer is asked about.
ASKED = (*ATTEMPT_COUNTS, *many.COUNTS, "verdict", "model_requested")
_READABLE = (Verdict.PROVED, Verdict.ASSUMED)
_BOTH = (Direction.INPUT, Direction.OUTPUT)
# Kinds are numbered in steps of so many.
STEP = 8


@dataclass(frozen=True, slots=True)
class Certain:
    """What is known of the columns of some rows before they are read; nothing by default.

    Attributes:
        absent: columns that are null in every row.
        small: columns of whole numbers none of which is beyond all reason, either way.
        readable: whether every report has a verdict by which it can be read.
    """

    absent: frozenset[str] = frozenset()
    small: frozenset[str] = frozenset()
    readable: bool = False


NOTHING = Certain()


def certain(footers: Sequence[Footer]) -> Certain:
    """What the footers of all files say of `ASKED`."""
    if not footers:
        return NOTHING
    absent = frozenset.intersection(*(each.absent for each in footers))
    small = [name for name in ASKED if all(name in each.absent or _is_small(each, name) for each in footers)]
    return Certain(absent, frozenset(small), all(each.only.get("verdict") in _READABLE for each in footers))


def _is_small(said: Footer, name: str) -> bool:
    return name in said.most and said.least[name] >= -LARGEST and said.most[name] <= LARGEST


def attempt_read(known: Certain) -> list[str]:
    """What `attempt_side` needs beside the names."""
    return [*KEY, *(name for name in ATTEMPT_COUNTS if name not in known.absent)]


def reading_read(known: Certain) -> list[str]:
    """What `reading_side` needs."""
    counts = [name for name in many.COUNTS if name in {"input_total", "output_total"} or name not in known.small]
    verdict = [] if known.readable else ["verdict"]
    return [*KEY, *verdict, *(name for name in counts if name not in known.absent)]


def attempt_side(rows: Frame, names: Sequence[str] = NAMES, known: Certain = NOTHING) -> Frame:
    """Attempts with one row each: key, names, `input`, `output`; a figure beyond all reason is unknown."""
    model = {"model": nw.coalesce("model_served", "model_requested")} if "model" in names else {}
    figures = {str(side): _seen(side, known) for side in _BOTH}
    return rows.with_columns(**model, **figures).select(*KEY, *names, *map(str, _BOTH))


def reading_side(rows: Frame, known: Certain = NOTHING) -> Frame:
    """Reports: `r_lo`, `r_hi`, `readable` and the figures `r_input`, `r_output`."""
    readable = nw.lit(value=True)
    if not known.readable:
        readable = nw.col("verdict").is_in([str(each) for each in _READABLE])
    doubtful = [name for name in many.COUNTS if name not in known.absent | known.small]
    if doubtful:
        readable = readable & ~beyond(*doubtful)
    told = {side: _known(f"{side}_total", known) for side in _BOTH}
    return rows.select(
        r_lo=nw.col("attempt_lo"),
        r_hi=nw.col("attempt_hi"),
        readable=readable,
        r_input=told[Direction.INPUT],
        r_output=told[Direction.OUTPUT],
    )


def paired(attempts: Frame, reports: Frame, names: Sequence[str] = NAMES) -> Frame:
    """Every row of either side once, with `plain`; keys that a side has twice must have been left out of both."""
    both = attempts.join(reports, how="full", left_on="attempt_lo", right_on="r_lo")
    same = (nw.col("attempt_hi") == nw.col("r_hi")) & nw.col("readable")
    for name in names:
        same = same & ~nw.col(name).is_null()
    return both.with_columns(plain=same.fill_null(value=False))


def plain(pairs: Frame, names: Sequence[str] = NAMES) -> Frame:
    """The plain ones of them: names, `kind` and `FIGURES`."""
    return _outcomes(pairs.filter(nw.col("plain")), names, first_of(_cases(words), words(MATCHED)))


def numbered(pairs: Frame, name: str) -> Frame:
    """All of them in one pass, for names that are one number: `group` (that number and the kind), `FIGURES`, `aside`.

    Of what is not plain `group` is null, and `aside_lo`, `aside_r_lo` are the second halves of its keys.
    """
    kind = first_of(_cases(_number), _number(MATCHED))
    group = nw.when(nw.col("plain")).then(nw.col(name) * STEP + kind)
    keys = {f"aside_{key}": nw.when(~nw.col("plain")).then(nw.col(key)) for key in ("attempt_lo", "r_lo")}
    return pairs.select(group=group, **_figures(), **keys)


def aside(pairs: Frame) -> Frame:
    """The second halves of the keys of all others, as `attempt_lo`; some may be told twice."""
    rest = pairs.filter(~nw.col("plain"))
    sides = [rest.select(attempt_lo=nw.col(name)) for name in ("attempt_lo", "r_lo")]
    return nw.concat([side.filter(~nw.col("attempt_lo").is_null()) for side in sides], how="vertical")


def matched(attempts: Frame, readings: Frame, kept: Callable[[Frame], Frame] = lambda frame: frame) -> Frame:
    """Whatever was set aside, matched as everywhere else: names, `kind`, `FIGURES` and `home`, the day it belongs to.

    Args:
        attempts, readings: rows of the tables with `attempts.COLUMNS_READ` and `reports.COLUMNS_READ`; all rows of
            each key, whatever day they are of.
        kept: what computes once what is asked for several times, on engines that would compute it each time.
    """
    known = kept(one.one_per_attempt(attempts))
    told = many.per_attempt(readings)
    days = (
        readings.group_by(*KEY).agg(told_day=nw.col("day").min()).rename({"attempt_lo": "d_lo", "attempt_hi": "d_hi"})
    )
    told = kept(told.join(days, how="left", left_on=["r_lo", "r_hi"], right_on=["d_lo", "d_hi"]))
    seen = known.join(told, how="left", left_on=list(KEY), right_on=["r_lo", "r_hi"])
    sending = nw.col("reports").fill_null(0) - nw.col("empty").fill_null(0)
    figures: dict[str, Expr] = {}
    for side in _BOTH:
        figures[str(side)] = nw.coalesce(f"{side}_computed", f"{side}_recounted")
        whole = (nw.col(f"counted_{side}") == sending) & (sending > 0)
        figures[f"r_{side}"] = nw.when(whole.fill_null(value=False)).then(nw.col(f"reported_{side}"))
    shown = seen.with_columns(**figures, model=nw.coalesce("model", "r_model"), sending=sending, home=nw.col("day"))
    alone = told.join(known.select(*KEY), how="anti", left_on=["r_lo", "r_hi"], right_on=list(KEY))
    orphans = alone.with_columns(
        tenant=words(UNASSIGNED),
        model=nw.col("r_model"),
        home=nw.col("told_day"),
        **{name: nw.lit(None, dtype=nw.Int64) for name in ("input", "output")},
        **{f"r_{side}": nw.col(f"reported_{side}") for side in _BOTH},
    )
    kind = first_of([(nw.col("sending") == 0, words(MISSING)), *_cases(words)], words(MATCHED))
    with_home = (*NAMES, "home")
    return nw.concat([_outcomes(shown, with_home, kind), _outcomes(orphans, with_home, words(UNSEEN))], how="vertical")


def _outcomes(rows: Frame, names: Sequence[str], kind: Expr) -> Frame:
    return rows.select(*names, kind=kind, **_figures())


def _figures() -> dict[str, Expr]:
    figures = {str(side): nw.col(str(side)) for side in _BOTH}
    return figures | {f"{side}_difference": nw.col(f"r_{side}") - nw.col(str(side)) for side in _BOTH}


def _cases(label: Callable[[str], Expr]) -> list[tuple[Expr, Expr]]:
    """A difference in one direction is one even where the other cannot be compared."""
    differ = {side: (nw.col(f"r_{side}") != nw.col(str(side))).fill_null(value=False) for side in _BOTH}
    unknown = reduce(or_, (nw.col(name).is_null() for name in ("input", "output", "r_input", "r_output")))
    return [
        (differ[Direction.INPUT], label(INPUT_DIFFERS)),
        (differ[Direction.OUTPUT], label(OUTPUT_DIFFERS)),
        (unknown, label(NOT_COMPARED)),
    ]


def _number(kind: str) -> Expr:
    return tokens(KINDS.index(kind))


def _seen(side: Direction, known: Certain) -> Expr:
    held = [name for name in (f"{side}_computed", f"{side}_recounted") if name not in known.absent]
    figures = [_known(name, known) for name in held]
    return nw.coalesce(*figures) if len(figures) > 1 else (figures or [tokens()])[0]


def _known(name: str, known: Certain) -> Expr:
    """A count; null where it is beyond all reason, for some engines refuse a difference beyond 64 bits."""
    if name in known.absent:
        return tokens()
    return nw.col(name) if name in known.small else nw.when(~beyond(name)).then(nw.col(name))
