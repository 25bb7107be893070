"""Rows that a case tells about, explained by the reconciliation itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import narwhals as nw
import polars as pl

from weighbridge.pipeline.lake.shape import polars_schema
from weighbridge.pipeline.reconcile.explain.cause import causes_of
from weighbridge.pipeline.reconcile.explain.explanation import explained
from weighbridge.pipeline.reconcile.explain.late import CHILDREN, nothing
from weighbridge.pipeline.reconcile.explain.template import CELL, NO_POINTS
from weighbridge.pipeline.reconcile.frames import collected, frame_of
from weighbridge.pipeline.reconcile.match.side import COLUMNS, EVIDENCE
from weighbridge.schemas.enumerations import Direction

_EVIDENCE: Mapping[object, pl.DataType] = {nw.Int64: pl.Int64(), nw.Boolean: pl.Boolean(), nw.String: pl.String()}
_SITUATION: Mapping[str, pl.DataType] = {
    **dict.fromkeys(("seen", "missing", "compared"), pl.Boolean()),
    **dict.fromkeys(("template", "loss", "relation"), pl.String()),
}
NO_LESSONS = NO_POINTS.select(*CELL).with_columns(
    pl.lit(0).cast(pl.Int64).alias(name) for name in ("per_request", "per_message", "fitting", "pupils")
)


def input_rows(rows: Iterable[Mapping[str, object]]) -> pl.DataFrame:
    """Inputs of attempts, both figures known, as the reconciliation has them; what a row does not say is null.

    Args:
        rows: each with `observed` and `reported`, and any other of `side.COLUMNS`.
    """
    always = {"seen": True, "missing": False, "compared": True, "attempt_hi": 0}
    said = [
        {"attempt_lo": number, **always, "gap": int(str(row["reported"])) - int(str(row["observed"])), **row}
        for number, row in enumerate(rows)
    ]
    kinds = {name: _kind(name) for name in COLUMNS}
    return pl.DataFrame([{name: row.get(name) for name in COLUMNS} for row in said], schema=kinds)


def explained_input(rows: pl.DataFrame, lessons: pl.DataFrame = NO_LESSONS) -> list[dict[str, Any]]:
    """The rows with their causes and the residual, in their order."""
    children = frame_of(nothing(CHILDREN))
    shown = explained(frame_of(rows), Direction.INPUT, frame_of(lessons), children)
    return collected(shown).sort("attempt_lo").rows(named=True)


def causes_in(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """What each cause explains of the rows together, without its sign; only those that explain anything."""
    out: dict[str, int] = {}
    for row in rows:
        for code in _CODES:
            if row[f"tokens_{code}"] is not None:
                out[code] = out.get(code, 0) + row[f"tokens_{code}"]
    return {code: abs(tokens) for code, tokens in out.items()}


_CODES = tuple(
    cause.code for structural in (True, False) for cause in causes_of(Direction.INPUT, structural=structural)
)


def _kind(name: str) -> pl.DataType:
    """The type of a column of a comparison."""
    if name in EVIDENCE:
        return _EVIDENCE[EVIDENCE[name]]
    return _SITUATION.get(name) or polars_schema("reconciled").get(name) or pl.Int64()
