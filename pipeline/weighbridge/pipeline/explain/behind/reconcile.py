"""Behind findings of reconciliation: its causes; and behind its sheets about matches and residuals: attempts."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from weighbridge.pipeline.explain.called import same
from weighbridge.pipeline.explain.kind import Asked
from weighbridge.pipeline.explain.kinds.attempt import attempts_node
from weighbridge.pipeline.explain.source import SHOWN, Behind, group, nothing
from weighbridge.pipeline.reconcile.explain.cause import all_causes
from weighbridge.pipeline.reconcile.found.tally import hexadecimal
from weighbridge.pipeline.reconcile.frames import KEY
from weighbridge.pipeline.reconcile.tree.node import Node
from weighbridge.pipeline.report.view import View, collect
from weighbridge.schemas.enumerations import FindingOrigin

_MATCHES, _RESIDUALS = "matches", "residual_money"
_READ = ("provider", "model", "direction", "matched_by", "observed", "reported", "residual", "residual_currency")


def of_row(asked: Asked, view: View, sheet: str, about: Mapping[str, object]) -> tuple[Node, ...]:
    """The attempts a row counts: by residual, or by tokens, the largest first."""
    known = dict(about) | ({"residual_currency": about["currency"]} if "currency" in about else {})
    rows = view.dated("reconciled", [*KEY, "day", *_READ]).filter(
        *same(known, "provider", "model", "direction", "residual_currency")
    )
    if sheet == _RESIDUALS:
        rows, size = rows.filter(pl.col("residual") != 0), pl.col("residual").cast(pl.Int128).abs()
    else:
        rows = rows.filter(pl.col("matched_by").is_not_null())
        size = pl.max_horizontal("observed", "reported").cast(pl.Int128)
    # An attempt is met by the worst of both directions.
    counted = rows.group_by(KEY).agg(size=size.max(), matched_by=pl.col("matched_by").max())
    if sheet == _MATCHES:
        counted = counted.filter(*same(known, "matched_by"))
    ranked = collect(counted).sort("size", *KEY, descending=[True, False, False], nulls_last=True)
    ids = ranked.head(SHOWN).select(id=hexadecimal())["id"].to_list()
    return group("attempts", attempts_node(asked, ids), ranked.height)


def titles() -> Mapping[str, str]:
    """What its causes mean."""
    return {cause.code: cause.title for cause in all_causes()}


BEHIND = Behind(FindingOrigin.RECONCILE, nothing, titles, (_MATCHES, _RESIDUALS), of_row)
