"""From a gap to its causes: structural ones first, then the smallest set of candidates that adds up exactly.

What no set of candidates explains to the last token stays a residual as a whole: there is no partial guess. Where
several sets of the smallest size fit, the first in the documented order is taken, and the others are kept as
alternatives. So the causes and the residual always add up to the gap, and no token is explained twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, product
from operator import add, and_, or_

import narwhals as nw

from weighbridge.pipeline.reconcile.cause import Candidate, Cause, causes_of
from weighbridge.pipeline.reconcile.frames import KEY, Expr, Frame, first_of, latest, rows_where, tokens, words
from weighbridge.pipeline.reconcile.side import COLUMNS
from weighbridge.pipeline.reconcile.template import points, with_learnt
from weighbridge.schemas.enumerations import ChildKind, Confidence, Direction, FinishReason

_OWN_END = (FinishReason.STOP, FinishReason.TOOL_CALLS)


@dataclass(frozen=True, slots=True)
class Offer:
    """One candidate amount of one cause: the column it stands in."""

    cause: str
    column: str


def explained(rows: Frame, direction: Direction, lessons: Frame, ended: Frame) -> Frame:
    """Every row of one direction with its causes.

    Args:
        rows: `side.side` of that direction.
        lessons: `template.learnt` of the input rows of the month.
        ended: `ended_choices` of their children.

    Returns:
        The columns of `side`, plus per cause of the direction `tokens_<code>` (null where it has no part) and
        `class_<code>` (the class its tokens are priced as), and `explained`, `residual` (null where nothing was
        compared), `confidence` (null where there was nothing to explain) and `alternatives` (null where none).
    """
    known = with_structural(rows, direction)
    open_row = is_open()
    settled = _settled(known.filter(~open_row), direction)
    offered = _with_late_evidence(known.filter(open_row), direction, lessons, ended)
    return nw.concat([settled, _searched(offered, direction)], how="vertical")


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


def ended_choices(children: Frame) -> Frame:
    """attempt_lo, attempt_hi, ended_choices: how many choices of an attempt came to their own end."""
    rows = latest(children, (*KEY, "source", "child")).filter(nw.col("kind") == ChildKind.CHOICE)
    own = rows.group_by(*KEY, "source").agg(ended_choices=rows_where(nw.col("finish_reason").is_in(list(_OWN_END))))
    return own.group_by(*KEY).agg(ended_choices=nw.col("ended_choices").max())


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


def _with_late_evidence(rows: Frame, direction: Direction, lessons: Frame, ended: Frame) -> Frame:
    """Evidence that is only worth fetching for the few rows with something left to explain."""
    if direction is Direction.INPUT:
        return with_learnt(rows, lessons)
    counted = rows.join(ended, on=list(KEY), how="left")
    own = nw.when(nw.col("finish_reason").is_in(list(_OWN_END))).then(nw.coalesce(nw.col("choices"), tokens(1)))
    return counted.with_columns(ended_choices=nw.coalesce(nw.col("ended_choices"), own))


def subsets(offers: Sequence[Sequence[Offer]]) -> Iterator[tuple[Offer, ...]]:
    """Every choice of at least one cause and one amount for each, smallest first, then in the documented order."""
    for size in range(1, len(offers) + 1):
        for chosen in combinations(offers, size):
            yield from product(*chosen)


def _searched(rows: Frame, direction: Direction) -> Frame:
    causes = causes_of(direction, structural=False)
    candidates = {cause.code: cause.candidate(direction) for cause in causes}
    offers = [
        [Offer(cause.code, f"offer_{cause.code}_{number}") for number in range(len(candidates[cause.code]))]
        for cause in causes
    ]
    sets = list(subsets(offers))
    offered = _distinct(rows.with_columns(**_amounts(candidates)), offers)
    picked = offered.with_columns(pick=_first_fit(sets)).with_columns(alternatives=_alternatives(sets))
    parts: dict[str, Expr] = {}
    for cause, own in zip(causes, offers, strict=True):
        parts |= _part(cause, own, candidates[cause.code], sets)
    named = picked.with_columns(**parts)
    confidence = first_of(
        [
            (nw.col("pick").is_null(), words(Confidence.NONE)),
            (~nw.col("alternatives").is_null(), words(Confidence.AMBIGUOUS)),
        ],
        words(Confidence.PROBABLE),
    )
    residual = nw.when(nw.col("pick").is_null()).then(nw.col("remaining")).otherwise(tokens(0))
    return _finished(named.with_columns(confidence=confidence, residual=residual), direction)


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


def _equal(left: str, right: str) -> Expr:
    return (nw.col(left) == nw.col(right)).fill_null(value=False)


def _fits(chosen: Sequence[Offer]) -> Expr:
    return reduce(add, (nw.col(offer.column) for offer in chosen)) == nw.col("remaining")


def _first_fit(sets: Sequence[Sequence[Offer]]) -> Expr:
    return first_of([(_fits(chosen), tokens(number)) for number, chosen in enumerate(sets)], tokens())


def _alternatives(sets: Sequence[Sequence[Offer]]) -> Expr:
    """The other sets of the size of the one picked that fit as well, as `cause+cause, cause`."""
    pick = nw.col("pick")
    names = []
    for number, chosen in enumerate(sets):
        smaller = [n for n, other in enumerate(sets) if len(other) == len(chosen) and n < number]
        if smaller:
            rival = and_(pick.is_in(smaller), _fits(chosen))
            names.append(nw.when(rival).then(words("+".join(offer.cause for offer in chosen))))
    if not names:
        return words()
    joined = nw.concat_str(*names, separator=",", ignore_nulls=True)
    return nw.when(joined != "").then(joined)


def _part(
    cause: Cause, own: Sequence[Offer], candidates: Sequence[Candidate], sets: Sequence[Sequence[Offer]]
) -> dict[str, Expr]:
    """What a cause explains under the set that was picked, and the class these tokens are priced as."""
    cases = []
    for offer, candidate in zip(own, candidates, strict=True):
        among = [number for number, chosen in enumerate(sets) if offer in chosen]
        cases.append((nw.col("pick").is_in(among), nw.col(offer.column), words(candidate.priced_as)))
    return {
        f"tokens_{cause.code}": first_of([(case, amount) for case, amount, _ in cases], tokens()),
        f"class_{cause.code}": first_of([(case, priced_as) for case, _, priced_as in cases], words()),
    }


def _finished(rows: Frame, direction: Direction) -> Frame:
    codes = [cause.code for kind in (True, False) for cause in causes_of(direction, structural=kind)]
    named = rows.with_columns(explained=nw.col("gap") - nw.col("residual"))
    parts = [f"{what}_{code}" for code in codes for what in ("tokens", "class")]
    return named.select(*COLUMNS, *parts, "explained", "residual", "confidence", "alternatives")
