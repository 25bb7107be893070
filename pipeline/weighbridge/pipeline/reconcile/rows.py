"""The rows of `reconciled` and of the causes, from one explained direction."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import causes_of
from weighbridge.pipeline.reconcile.frames import KEY, Expr, Frame, first_of, words
from weighbridge.pipeline.reconcile.match.match import EXCEEDED
from weighbridge.pipeline.reconcile.match.side import has_failed, left_in_prefill, was_aborted
from weighbridge.pipeline.reconcile.recipe import stacked
from weighbridge.schemas.enumerations import Confidence, Direction, MatchedBy, Status

RECONCILED = (
    *KEY,
    *("day", "direction", "observer", "reporter", "provider", "api", "model", "tenant", "task", "route", "grade"),
    *("observed", "reported", "gap", "explained", "residual", "status", "confidence", "reports"),
    *("matched_by", "open_until"),
)
PARTS = (
    *KEY,
    *("day", "direction", "cause", "tokens", "confidence", "alternatives", "priced_as"),
    *("compared", "provider", "model", "grade", "reported", "input_size"),
)


def status() -> Expr:
    """The outcome of a row: a gap of nothing with both sides there is a match; a cause without a residual explains.

    Nothing is said as long as the side that is missing may still come.
    """
    both = ~nw.col("observed").is_null() & ~nw.col("reported").is_null()
    return first_of(
        [
            (~nw.col("open_until").is_null(), words(Status.PROVISIONAL)),
            (~nw.col("compared"), words(Status.NOT_COMPARED)),
            ((nw.col("loss") == EXCEEDED).fill_null(value=False), words(Status.UNEXPLAINED)),
            (both & (nw.col("gap") == 0) & (nw.col("residual") == 0), words(Status.MATCHED)),
            (nw.col("residual") == 0, words(Status.EXPLAINED)),
        ],
        words(Status.UNEXPLAINED),
    )


def reconciled(rows: Frame) -> Frame:
    """Rows of the table `reconciled` from an explained direction."""
    outcome = rows.with_columns(status=status())
    told = first_of(
        [
            (nw.col("status").is_in([Status.NOT_COMPARED, Status.PROVISIONAL]), words()),
            ((nw.col("status") == Status.UNEXPLAINED) & nw.col("loss").is_null(), words(Confidence.NONE)),
        ],
        nw.col("confidence"),
    )
    both = ~nw.col("observer").is_null() & ~nw.col("reporter").is_null()
    met = first_of(
        [(~nw.col("relation").is_null(), words(MatchedBy.REQUEST)), (both, words(MatchedBy.KEY))],
        words(),
    )
    return outcome.with_columns(confidence=told, matched_by=met).select(*RECONCILED)


# A report that never came is counted although its size is unknown, under the cause that explains why.
_UNSIZED: Mapping[str, Callable[[], nw.Expr]] = {
    "usage_missing": lambda: ~was_aborted() & ~has_failed(),
    "aborted": lambda: was_aborted() & ~left_in_prefill(),
}


def parts(rows: Frame, direction: Direction) -> Frame:
    """One row per attempt and cause of an explained direction, with `PARTS`.

    Parts of rows that could not be compared as a whole are among them (`compared` is false): a repeated report is
    certain even where nobody observed the attempt, and a missing one is counted although its size is unknown
    (`tokens` is null). Only compared ones become rows of `gap_cause`.
    """
    out = []
    for structural in (True, False):
        for cause in causes_of(direction, structural=structural):
            tokens = nw.col(f"tokens_{cause.code}")
            there = ~tokens.is_null()
            if cause.code in _UNSIZED:
                there |= nw.col("missing") & _UNSIZED[cause.code]()
            own = rows.filter(there).with_columns(
                cause=words(cause.code),
                tokens=tokens,
                priced_as=nw.col(f"class_{cause.code}"),
                confidence=words(Confidence.CERTAIN) if structural else nw.col("confidence"),
                alternatives=words() if structural else nw.col("alternatives"),
            )
            out.append(own.select(*PARTS))
    return stacked(out)
