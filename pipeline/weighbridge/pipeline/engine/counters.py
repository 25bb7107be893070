"""What a serving engine counted between two scrapes: differences of its counters, with restarts told apart.

    scraped  value  started   |  since    counted  reset
    10:00      100  09:00     |    -            -      -
    10:05      160  09:00     |  10:00         60  false
    10:10       20  10:07     |  10:05         20   true      what was counted from 10:05 to 10:07 is not known
    10:15       50    -       |  10:10         30  false

A counter begins anew with its server: where its value falls, or where it says that it began after the scrape before.
What the old one counted after its last scrape nobody knows, so a stretch with a reset is a lower bound.
"""

from __future__ import annotations

import polars as pl

SERIES = ("source", "series")
NAMED = ("engine", "engine_version", "model", "instance", "rank", "counter", "label", "unit", "metric")
CELL = ("cell_lo", "cell_hi", "source")
READ = (*SERIES, *NAMED, "cell_hi", "cell_lo", "revision", "day", "scraped_at", "started_at", "value")
COLUMNS = (*SERIES, *NAMED, "day", "since", "scraped_at", "counted", "reset")


def between_scrapes(counters: pl.LazyFrame, *, from_start: bool = False) -> pl.LazyFrame:
    """Per scrape of each series what it counted since the scrape before.

    Tensor-parallel workers of one server repeat each other, and a counter with labels tells the tokens of another one
    again: which series may be added up is up to whoever asks.

    Args:
        counters: rows of `engine_counter` with at least `READ`.
        from_start: nothing came before the first scrape of a series: where that says when counting began, it counted
            all of its value since then.

    Returns:
        `COLUMNS`: `since` is the time of the scrape before; `counted` and `reset` are null for the first scrape of a
        series that nothing is known to come before. Scrapes whose time is not known have no row: nobody knows what
        they come after.
    """
    dated = counters.select(READ).filter(pl.col("scraped_at").is_not_null())
    seen = dated.sort("revision").group_by(CELL).last()
    before = seen.sort("scraped_at", *CELL).with_columns(
        since=pl.col("scraped_at").shift(1).over(SERIES),
        previous=pl.col("value").shift(1).over(SERIES),
    )
    if from_start:
        first = pl.col("since").is_null() & (pl.col("started_at") <= pl.col("scraped_at"))
        before = before.with_columns(
            since=pl.when(first).then("started_at").otherwise("since"),
            previous=pl.when(first).then(pl.lit(0, dtype=pl.Int64)).otherwise("previous"),
        )
    began_later = (pl.col("started_at") > pl.col("since")).fill_null(value=False)
    fell = pl.col("value") < pl.col("previous")
    told = before.with_columns(reset=pl.when(pl.col("previous").is_not_null()).then(fell | began_later))
    counted = pl.col("value") - pl.when(pl.col("reset")).then(pl.lit(0, dtype=pl.Int64)).otherwise("previous")
    return told.with_columns(counted=counted).select(COLUMNS)
