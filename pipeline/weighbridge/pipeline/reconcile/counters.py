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

import narwhals as nw

from weighbridge.pipeline.reconcile.frames import Frame, latest, tokens

SERIES = ("source", "series")
NAMED = ("engine", "engine_version", "model", "instance", "rank", "counter", "label", "unit", "metric")
READ = (*SERIES, *NAMED, "cell_hi", "cell_lo", "revision", "day", "scraped_at", "started_at", "value")
COLUMNS = (*SERIES, *NAMED, "day", "since", "scraped_at", "counted", "reset")


def between_scrapes(counters: Frame) -> Frame:
    """Per scrape of each series what it counted since the scrape before.

    Tensor-parallel workers of one server repeat each other, and a counter with labels tells the tokens of another one
    again: which series may be added up is up to whoever asks.

    Args:
        counters: rows of `engine_counter` with at least `READ`.

    Returns:
        `COLUMNS`: `since` is the time of the scrape before; `counted` and `reset` are null for the first scrape of a
        series. Scrapes whose time is not known have no row: nobody knows what they come after.
    """
    seen = latest(counters.select(*READ), ("cell_lo", "cell_hi", "source")).filter(~nw.col("scraped_at").is_null())
    before = seen.with_columns(
        since=nw.col("scraped_at").shift(1).over(*SERIES, order_by="scraped_at"),
        previous=nw.col("value").shift(1).over(*SERIES, order_by="scraped_at"),
    )
    began_later = (nw.col("started_at") > nw.col("since")).fill_null(value=False)
    told = before.with_columns(reset=(nw.col("value") < nw.col("previous")) | began_later)
    first = nw.col("previous").is_null()
    counted = nw.col("value") - nw.when(nw.col("reset")).then(tokens(0)).otherwise(nw.col("previous"))
    return told.with_columns(counted=nw.when(~first).then(counted), reset=nw.when(~first).then(nw.col("reset"))).select(
        *COLUMNS
    )
