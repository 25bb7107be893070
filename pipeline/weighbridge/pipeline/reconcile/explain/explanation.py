"""From a gap to its causes: structural ones first, then the smallest set of candidates that adds up exactly.

What no set of candidates explains to the last token stays a residual as a whole: there is no partial guess. Where
several sets of the smallest size fit, the first in the documented order is taken, and the others are kept as
alternatives. So the causes and the residual always add up to the gap, and no token is explained twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add, or_

import narwhals as nw

from weighbridge.pipeline.reconcile.explain.cause import Candidate, causes_of
from weighbridge.pipeline.reconcile.explain.late import CHILDREN, OWN_END, RUNNING
from weighbridge.pipeline.reconcile.explain.search import Offer, offers_of, with_smallest
from weighbridge.pipeline.reconcile.explain.template import points, with_learnt
from weighbridge.pipeline.reconcile.frames import KEY, Expr, Frame, first_of, tokens, words
from weighbridge.pipeline.reconcile.match.side import COLUMNS
from weighbridge.pipeline.reconcile.recipe import stacked
from weighbridge.schemas.enumerations import Confidence, Direction


def explained(
    rows: Frame, direction: Direction, lessons: Frame, children: Frame, running: Frame | None = None
) -> Frame:
    """Every row of one direction with its causes.

    Args:
        rows: `side.side` of that direction.
        lessons: `template.learnt` of the input rows of the month.
        children: `late.of_children` of their children.
        running: `late.of_running` of their reports; null where none has several parts.

    Returns:
        The columns of `side`, plus per cause of the direction `tokens_<code>` (null where it has no part) and
        `class_<code>` (the class its tokens are priced as), and `explained`, `residual` (null where nothing was
        compared), `confidence` (null where there was nothing to explain) and `alternatives` (null where none).
    """
    known = with_structural(rows, direction)
    found = searched(known, direction, lessons, children, running)
    return stacked([settled(known, direction), found])


def settled(known: Frame, direction: Direction) -> Frame:
    """Of rows `with_structural` causes those with nothing left that candidates may explain, as `explained`."""
    return _settled(known.filter(~is_open()), direction)


def searched(
    known: Frame, direction: Direction, lessons: Frame, children: Frame, running: Frame | None = None
) -> Frame:
    """The other ones of them, as `explained`."""
    late = _with_late_evidence(known.filter(is_open()), direction, lessons, children, running)
    return _searched(late, direction)


def with_structural(rows: Frame, direction: Direction) -> Frame:
    """The rows with the structural causes taken off: `tokens_<code>`, `class_<code>` and `remaining`."""
    causes = causes_of(direction, structural=True)
    offers = {cause.code: cause.candidate(direction)[0] for cause in causes}
    taken = rows.with_columns(**{f"tokens_{code}": offer.amount for code, offer in offers.items()}).with_columns(
        **{f"class_{code}": words(offer.priced_as) for code, offer in offers.items()}
    )
    off = reduce(add, (nw.col(f"tokens_{code}").fill_null(0) for code in offers))
    return taken.with_columns(remaining=nw.col("gap") - off)


def is_open() -> Expr:
    """Whether something is left that candidates may explain: both sides are there and differ."""
    both = ~nw.col("observed").is_null() & ~nw.col("reported").is_null()
    return (both & (nw.col("remaining") != 0)).fill_null(value=False)


def lessons_of(rows: Frame) -> Frame:
    """What some input rows can teach about templates, as `template.points`."""
    return points(with_structural(rows, Direction.INPUT))


def _settled(rows: Frame, direction: Direction) -> Frame:
    """Rows that the structural causes settle, or that no candidate can: what remains is the residual."""
    candidates = causes_of(direction, structural=False)
    blank = rows.with_columns(
        **{f"tokens_{cause.code}": tokens() for cause in candidates},
        **{f"class_{cause.code}": words() for cause in candidates},
        alternatives=words(),
    )
    parts = [nw.col(f"tokens_{cause.code}") for cause in causes_of(direction, structural=True)]
    some = reduce(or_, (~part.is_null() for part in parts))
    confidence = first_of(
        [
            (nw.col("remaining") == 0, nw.when(some).then(words(Confidence.CERTAIN))),
            (~nw.col("loss").is_null() & ~nw.col("gap").is_null(), words(Confidence.AMBIGUOUS)),
        ],
        nw.when(some).then(words(Confidence.CERTAIN)),
    )
    return _finished(blank.with_columns(residual=nw.col("remaining"), confidence=confidence), direction)


def _with_late_evidence(
    rows: Frame, direction: Direction, lessons: Frame, children: Frame, running: Frame | None
) -> Frame:
    """Evidence that is only worth fetching for the few rows with something left to explain."""
    inner = rows.join(children.select(*KEY, *CHILDREN), on=list(KEY), how="left")
    inner = inner.with_columns(iterations=nw.col(f"iterations_{direction}"))
    if running is not None:
        inner = inner.join(running.select(*KEY, *RUNNING), on=list(KEY), how="left")
    for which in ("first", "last", "sum"):
        told = tokens() if running is None else nw.col(f"{which}_{direction}")
        inner = inner.with_columns(**{f"running_{which}": told})
    if direction is Direction.INPUT:
        return with_learnt(inner, lessons)
    own = nw.when(nw.col("finish_reason").is_in(list(OWN_END))).then(nw.coalesce(nw.col("choices"), tokens(1)))
    return inner.with_columns(ended_choices=nw.coalesce(nw.col("ended_choices"), own))


def _searched(rows: Frame, direction: Direction) -> Frame:
    candidates = {cause.code: cause.candidate(direction) for cause in causes_of(direction, structural=False)}
    offers = offers_of({code: len(own) for code, own in candidates.items()})
    offered = _distinct(rows.with_columns(**_amounts(candidates)), list(offers.values()))
    picked = with_smallest(offered, offers)
    parts: dict[str, Expr] = {}
    for code, own in offers.items():
        parts |= _part(own, candidates[code])
    found = ~nw.col("fits").is_null()
    confidence = first_of(
        [
            (~found, words(Confidence.NONE)),
            (nw.col("fits") > 1, words(Confidence.AMBIGUOUS)),
        ],
        words(Confidence.PROBABLE),
    )
    residual = nw.when(~found).then(nw.col("remaining")).otherwise(tokens(0))
    return _finished(picked.with_columns(**parts, confidence=confidence, residual=residual), direction)


def _amounts(candidates: dict[str, tuple[Candidate, ...]]) -> dict[str, Expr]:
    """A column per candidate amount; nothing is explained by nought."""
    out: dict[str, Expr] = {}
    for code, offers in candidates.items():
        for number, offer in enumerate(offers):
            out[f"offer_{code}_{number}"] = nw.when(offer.amount != 0).then(offer.amount)
    return out


def _distinct(rows: Frame, offers: Sequence[Sequence[Offer]]) -> Frame:
    """An amount that a cause offers twice (the report and the engine agree) is one offer: the first."""
    blanked = {}
    for own in offers:
        for number, offer in enumerate(own[1:], start=1):
            told = reduce(
                or_, ((nw.col(offer.column) == nw.col(e.column)).fill_null(value=False) for e in own[:number])
            )
            blanked[offer.column] = nw.when(~told).then(nw.col(offer.column))
    return rows.with_columns(**blanked) if blanked else rows


def _part(own: Sequence[Offer], candidates: Sequence[Candidate]) -> dict[str, Expr]:
    """What a cause explains under the set that was taken, and the class these tokens are priced as."""
    cases = [(offer.is_taken(), offer, candidate) for offer, candidate in zip(own, candidates, strict=True)]
    code = own[0].cause
    return {
        f"tokens_{code}": first_of([(case, nw.col(offer.column)) for case, offer, _ in cases], tokens()),
        f"class_{code}": first_of([(case, words(candidate.priced_as)) for case, _, candidate in cases], words()),
    }


def _finished(rows: Frame, direction: Direction) -> Frame:
    codes = [cause.code for kind in (True, False) for cause in causes_of(direction, structural=kind)]
    named = rows.with_columns(explained=nw.col("gap") - nw.col("residual"))
    parts = [f"{what}_{code}" for code in codes for what in ("tokens", "class")]
    return named.select(*COLUMNS, *parts, "explained", "residual", "confidence", "alternatives")
