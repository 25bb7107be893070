"""The largest single calls: by amount in each currency, and by tokens where there is no price."""

from __future__ import annotations

import polars as pl

from weighbridge.pipeline.report.facts import currencies, facts, money_column
from weighbridge.pipeline.report.query.totals import whole_price
from weighbridge.pipeline.report.sheet import Column, Kind, Row, Sheet
from weighbridge.pipeline.report.view import ATTEMPT, View
from weighbridge.schemas.identity import AttemptKey

TOP = 10
SHORT = 16
NOT_PRICED = "not priced"

COLUMNS = (
    Column("list", "List"),
    Column("rank", "Rank", Kind.COUNT),
    Column("short_id", "Attempt", Kind.CODE),
    Column("day", "Day", Kind.DAY),
    Column("input_tokens", "Input", Kind.COUNT),
    Column("output_tokens", "Output", Kind.COUNT),
    Column("amount", "Amount", Kind.MONEY, currency_in="currency"),
    Column("currency", "Currency", page=False),
    Column("reports", "Reports", Kind.COUNT),
    Column("model", "Model"),
    Column("task", "Task"),
    Column("route", "Route"),
    Column("tenant", "Tenant", Kind.CODE),
    Column("attempt_id", "Attempt id", Kind.CODE, page=False),
)
_SIZE = ("on", "input", "output")
_NAMES = ("model", "task", "route", "tenant")


def top_requests(view: View) -> Sheet:
    """At most ten attempts a list: one list for each currency, one for attempts with a report that has no price."""
    frame = view.get(facts)
    lists = [_list(frame.filter(whole_price()), name, money_column(name), name) for name in view.get(currencies)]
    rows = [row for part in (*lists, _list(frame.filter(~whole_price()), NOT_PRICED, "tokens", None)) for row in part]
    return Sheet(
        name="top_requests",
        title="Largest single attempts",
        columns=COLUMNS,
        rows=tuple(rows),
        unit="reported tokens",
        sources=("attempt", "reading", "priced_amount"),
        empty="No attempt of this period has a known amount or size.",
        note="Attempts without a price are ranked by tokens. Any of them: weighbridge explain, and its id.",
        shown=40,
    )


def _list(frame: pl.DataFrame, name: str, by: str, currency: str | None) -> list[Row]:
    known = frame.filter(pl.col(by).is_not_null())
    if known.is_empty():
        return []
    least = known[by].top_k(TOP).min()
    # Ties at the cut stay in until the id decides, so the order does not hang on the order of rows.
    top = known.filter(pl.col(by) >= least).sort(by, *reversed(ATTEMPT), descending=[True, False, False]).head(TOP)
    rows: list[Row] = []
    for place, row in enumerate(top.iter_rows(named=True), start=1):
        attempt = AttemptKey(row["attempt_hi"], row["attempt_lo"]).to_hex()
        money = (row[by] if currency else None, currency)
        size, names = (tuple(row[column] for column in wanted) for wanted in (_SIZE, _NAMES))
        rows.append((name, place, _short(frame, row, attempt), *size, *money, row["reports"], *names, attempt))
    return rows


def _short(frame: pl.DataFrame, row: dict[str, int], attempt: str) -> str:
    """Half of the id where that half tells it from every other attempt of the list."""
    alike = frame.filter(pl.col("attempt_hi") == row["attempt_hi"]).height
    return attempt[:SHORT] if alike == 1 else attempt
