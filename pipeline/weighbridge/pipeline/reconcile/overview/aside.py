"""What has no plain pair in its own day: put beside what other days set aside, most of it is settled at once."""

from __future__ import annotations

import narwhals as nw
import polars as pl

from weighbridge.pipeline.reconcile.engines.on_polars import engine as polars
from weighbridge.pipeline.reconcile.frames import collected, frame_of
from weighbridge.pipeline.reconcile.overview import pairs
from weighbridge.pipeline.reconcile.overview.keys import LEAD
from weighbridge.pipeline.reconcile.overview.names import WHO, Names
from weighbridge.pipeline.reconcile.overview.numbers.runs import Ints
from weighbridge.pipeline.reconcile.overview.pairs import Certain
from weighbridge.schemas.errors import LakeError
from weighbridge.schemas.tables import UNASSIGNED

# Rows of one day without a plain pair in it: attempts, and reports.
ALONE, TOLD = "alone", "told"
_MISSING, _UNSEEN = pairs.KINDS.index(pairs.MISSING), pairs.KINDS.index(pairs.UNSEEN)
_KEY = {LEAD: pl.Int64, "attempt_hi": pl.Int64}
_EMPTY = {
    ALONE: pl.DataFrame(schema={**_KEY, WHO: pl.Int64, "input": pl.Int64, "output": pl.Int64, "day": pl.Date}),
    TOLD: pl.DataFrame(
        schema={
            **_KEY,
            "readable": pl.Boolean,
            "r_input": pl.Int64,
            "r_output": pl.Int64,
            "model": pl.String,
            "day": pl.Date,
        }
    ),
}


def sides(attempts: pl.DataFrame, reports: pl.DataFrame, seen: Certain, told: Certain) -> dict[str, pl.DataFrame]:
    """Rows of a stretch as they are set aside: `ALONE` and `TOLD`, without their day.

    Args:
        attempts, reports: rows as `stretches.Stretch` has them.
        seen, told: what the footers of their files say.
    """
    alone = polars().collected(pairs.attempt_side(nw.from_native(attempts.lazy()), (WHO,), seen))
    held = polars().collected(pairs.reading_side(nw.from_native(reports.drop("model").lazy()), told))
    return {ALONE: alone, TOLD: held.rename({"r_lo": LEAD, "r_hi": "attempt_hi"}).with_columns(reports["model"])}


def settled(bucket: dict[str, pl.DataFrame], names: Names) -> tuple[pl.DataFrame, Ints]:
    """Pairs over midnight, attempts without a report and reports without an attempt, where each has one row.

    They are what the long road would make of them: it is for attempts with several rows, reports that cannot be
    read, and rows without names. Keys that have one half in common are an attempt and a report without each other.

    Args:
        bucket: `ALONE` and `TOLD`, no second half of a key twice in either.
        names: the names met so far.

    Returns:
        Rows as `Packed.add` takes them, and the second halves of keys that have to take the long road.

    Raises:
        LakeError: joining lost or made rows.
    """
    alone, told = (bucket.get(name, empty) for name, empty in _EMPTY.items())
    told = told.rename({LEAD: "r_lo", "attempt_hi": "r_hi", "day": "r_day", "model": "r_model"})
    both = collected(pairs.paired(frame_of(alone), frame_of(told), (WHO,)))
    if both[LEAD].count() != alone.height or both["r_lo"].count() != told.height:
        raise LakeError("joining what was set aside lost or made rows; nothing is told. Run `weighbridge validate`.")
    strangers = pl.col("attempt_hi") != pl.col("r_hi")
    single = (pl.col("r_lo").is_null() | strangers) & pl.col(WHO).is_not_null()
    lone = pl.col(LEAD).is_null() | (strangers & pl.col(WHO).is_not_null())
    single, lone = single.fill_null(value=False), lone.fill_null(value=False)
    long = both.filter(~pl.col("plain") & ~single & ~lone)
    plain = collected(pairs.numbered(frame_of(both.filter("plain")), WHO)).select("group", *pairs.FIGURES)
    unknown = pl.lit(None, pl.Int64)
    missing = both.filter(single).select(
        (pl.col(WHO) * pairs.STEP + _MISSING).alias("group"),
        *("input", "output"),
        *(unknown.alias(f"{side}_difference") for side in ("input", "output")),
    )
    texts = both.filter(lone).select(tenant=pl.lit(UNASSIGNED), model="r_model")
    unseen = names.of_texts(texts).select(
        (pl.col(WHO) * pairs.STEP + _UNSEEN).alias("group"), *(unknown.alias(name) for name in pairs.FIGURES)
    )
    return pl.concat([plain, missing, unseen]), long[LEAD].to_numpy()
