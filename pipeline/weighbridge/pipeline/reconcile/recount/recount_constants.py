"""By how much recounts differ from reports as a rule: learnt per cell and month, stored, and watched for moving.

Most differences are one number: 0 where tokenizer and template are the server's own, -1 where its template has a token
less, 3 a request and 4 a message where the template was not counted, 1 where the end token is. That number is a
convention of the model and no discrepancy. When it moves, something was changed: the model behind its name, its
template, its tokenizer, or ours.

    differences 0 0 0 0 0 0 1   ->   constant 0, exact 6 of 7, median 0 between 0 and 1 (at least 0.98)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

import polars as pl

from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.lake.shape import polars_schema
from weighbridge.pipeline.reconcile.explain import template
from weighbridge.pipeline.reconcile.frames import collected, frame_of
from weighbridge.pipeline.reconcile.recipe import by_recipe
from weighbridge.pipeline.reconcile.recount.median_ranks import median_ranks
from weighbridge.pipeline.reconcile.recount.recounts import CELL, POINT
from weighbridge.schemas.enumerations import Direction, Severity
from weighbridge.schemas.finding import Finding

TABLE = "recount_constant"
LEAST_ATTEMPTS = template.LEAST_ATTEMPTS
_CURE = (
    "Find out what was changed at that time (model revision, chat template, tokenizer, server version), count with "
    "what is used now, and ask the provider if nothing was."
)
Row = Mapping[str, Any]


def write_constants(lake: Lake, period: str, seen: Sequence[pl.DataFrame]) -> None:
    """Store what a month teaches; what other months taught stays.

    Args:
        lake: where it is stored.
        period: the month.
        seen: `recounts.points`, per batch.
    """
    learnt = constants(pl.concat(seen), period) if seen else pl.DataFrame(schema=polars_schema(TABLE))
    others = lake.scan(TABLE).filter(pl.col("period") != period).collect()
    if learnt.height or lake.rows(TABLE) > others.height:
        lake.replace(TABLE, pl.concat([others, learnt.select(others.columns)]), days=None)


def constants(seen: pl.DataFrame, period: str) -> pl.DataFrame:
    """Rows of `recount_constant` of one month, a row per cell with at least `LEAST_ATTEMPTS` attempts.

    Args:
        seen: `recounts.points`, of one batch or of several together.
        period: the month.
    """
    known = seen.group_by(POINT).agg(pl.col("attempts").sum(), pl.col("first_day").min(), pl.col("last_day").max())
    shares = _per_message(known)
    rows = [
        {"period": period, **dict(zip(CELL, cell, strict=True)), **told}
        for cell, own in known.sort("difference").group_by(CELL, maintain_order=True)
        if (told := _constant(own, shares.get(cell, 0))) is not None
    ]
    return pl.DataFrame(rows, schema=polars_schema(TABLE)).sort(CELL, nulls_last=False)


def moved(learnt: pl.DataFrame, period: str) -> Iterator[Finding]:
    """A finding per cell whose constant is another one than in the last month before that has one.

    It moved where most attempts of both months have exactly their constant and these differ, or where the new median
    lies outside the interval of the old one.

    Args:
        learnt: rows of `recount_constant`.
        period: the month in question.
    """
    before: dict[tuple[Any, ...], Row] = {}
    for row in learnt.filter(pl.col("period") < period).sort("period").iter_rows(named=True):
        before[tuple(row[name] for name in CELL)] = row
    for row in learnt.filter(pl.col("period") == period).sort(CELL).iter_rows(named=True):
        old = before.get(tuple(row[name] for name in CELL))
        if old is not None and (figure := _moved(old, row)) is not None:
            yield _finding(old, row, figure)


def _moved(old: Row, new: Row) -> str | None:
    """The figure that moved; null where none did."""
    if all(2 * row["exact"] > row["attempts"] for row in (old, new)):
        return next((name for name in ("constant", "per_message") if old[name] != new[name]), None)
    if old["per_message"] != new["per_message"] or old["lower"] is None:
        return None
    return None if old["lower"] <= new["median"] <= old["upper"] else "median"


def _finding(old: Row, new: Row, figure: str) -> Finding:
    subject = {
        name: str(new[name]).lower() if isinstance(new[name], bool) else str(new[name])
        for name in CELL
        if new[name] is not None
    }
    return Finding(
        code="recount_constant_moved",
        severity=Severity.WARNING,
        period=new["period"],
        subject=subject,
        rows=new["attempts"],
        expected=old[figure],
        observed=new[figure],
        difference=new[figure] - old[figure],
        first_day=new["first_day"],
        last_day=new["last_day"],
        cure=f"{_told(old, new, figure)} {_CURE}",
    )


def _told(old: Row, new: Row, figure: str) -> str:
    """What moved, in the figure that did: most attempts agree on a constant, where they scatter there is a median."""
    many = {name: f"{_tokens(new[name])}, in {old['period']} by {_tokens(old[name])}" for name in ("constant", figure)}
    if figure == "median":
        outside = f"outside {old['lower']} to {old['upper']}, where that of {old['period']} lies"
        return f"Reports differ from recounts by a median of {many[figure]}: {outside}."
    beside = ""
    if not old["per_message"] == new["per_message"] == 0:
        beside = f" (and {new['per_message']} a message, before {old['per_message']})"
    return f"Reports differ from recounts by {many['constant']}{beside}."


def _tokens(number: int) -> str:
    return f"{number} token" if abs(number) == 1 else f"{number} tokens"


def _per_message(known: pl.DataFrame) -> dict[tuple[Any, ...], int]:
    """Per cell of bare recounts what each message adds, where most of its attempts lie on one line."""
    bare = known.filter((pl.col("direction") == str(Direction.INPUT)) & pl.col("messages").is_not_null())
    if bare.is_empty():
        return {}
    cells = bare.select(CELL).unique().with_row_index("number")
    placed = bare.join(cells, on=CELL, how="left", nulls_equal=True)
    seen = placed.select(
        pl.col("number").cast(pl.String).alias(template.CELL[0]),
        *(pl.lit("").alias(name) for name in template.CELL[1:3]),
        pl.lit(value=True).alias(template.CELL[3]),
        cell_messages="messages",
        remaining="difference",
        attempts="attempts",
    )
    lines = collected(by_recipe(template.learnt, frame_of(seen)))
    found = dict(lines.select(template.CELL[0], "per_message").iter_rows())
    return {tuple(row[1:]): found[str(row[0])] for row in cells.iter_rows() if str(row[0]) in found}


def _constant(own: pl.DataFrame, per_message: int) -> dict[str, object] | None:
    """What the differences of one cell come to, without what its messages add; null where they are too few."""
    if own["messages"].count():
        own = own.filter(pl.col("messages").is_not_null())
    rest = pl.col("difference") - per_message * pl.col("messages").fill_null(0)
    by_value = own.group_by(value=rest).agg(pl.col("attempts").sum()).sort("value")
    values, counts = by_value["value"].to_list(), by_value["attempts"].to_list()
    attempts, up_to = sum(counts), list(accumulate(counts))
    if attempts < LEAST_ATTEMPTS:
        return None
    exact = max(counts)
    ranks = median_ranks(attempts)

    def of_rank(rank: int) -> int:
        return int(values[next(place for place, seen in enumerate(up_to) if seen >= rank)])

    return {
        "constant": values[counts.index(exact)],
        "per_message": per_message,
        "attempts": attempts,
        "exact": exact,
        "median": of_rank((attempts + 1) // 2),
        "lower": None if ranks is None else of_rank(ranks.lower),
        "upper": None if ranks is None else of_rank(ranks.upper),
        "coverage": None if ranks is None else ranks.coverage,
        "first_day": own["first_day"].min(),
        "last_day": own["last_day"].max(),
    }
