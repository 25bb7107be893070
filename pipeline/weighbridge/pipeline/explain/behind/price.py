"""Behind findings about prices: what was changed, the rows of prices as they are now, and what was priced with them."""

from __future__ import annotations

import polars as pl

from weighbridge.pipeline.explain.about import attempts_between
from weighbridge.pipeline.explain.held import Row
from weighbridge.pipeline.explain.kind import Asked
from weighbridge.pipeline.explain.kinds import price
from weighbridge.pipeline.explain.kinds.attempt import attempts_node
from weighbridge.pipeline.explain.source import SHOWN, Behind, group, subject_of
from weighbridge.pipeline.reconcile.frames import KEY
from weighbridge.pipeline.reconcile.tree.node import Node, leaves
from weighbridge.schemas.enumerations import ConfigKind, FindingOrigin

_CHANGE = ("at", "by", "file", "before", "after", "file_digest")
_REPORT = (*KEY, "source", "child", "report", "revision")


def of_finding(asked: Asked, finding: Row) -> tuple[Node, ...]:
    """The changes of its provider's prices, the rows its reports were priced with, and the largest of its attempts."""
    about = {name: value for name, value in subject_of(finding).items() if name in {"provider", "model"}}
    days = (finding["first_day"], finding["last_day"])
    if None in days:
        return ()
    rows = tuple(price.node(asked, each) for each in _used(asked, finding, about))
    found = (*_changes(asked, about.get("provider")), *group("prices", rows))
    if finding["evidence"]:
        return found
    ids, many = attempts_between(asked.lake, *days, about)
    return (*found, *group("attempts", attempts_node(asked, ids), many))


def _changes(asked: Asked, provider: str | None) -> tuple[Node, ...]:
    """The last values of this provider that became others, before and after; the built-in book tells whole files."""
    if provider is None:
        return ()
    of_row = pl.col("key").str.starts_with(f"{provider} ")
    of_file = pl.col("file").str.ends_with(f"/{provider}.toml")
    rows = (
        asked.lake.scan("change")
        .filter(pl.col("kind") == str(ConfigKind.PRICES), pl.col("before").is_not_null(), of_row | of_file)
        .sort("number", descending=True)
        .collect()
    )
    told = tuple(Node("change", row["key"], leaves(row, _CHANGE)) for row in rows.head(SHOWN).iter_rows(named=True))
    return group("changes", told, rows.height)


def _used(asked: Asked, finding: Row, about: dict[str, str]) -> list[str]:
    """The rows of prices that the reports of its days are priced with, the one with most reports first."""
    span = {"first": finding["first_day"], "last": finding["last_day"]}
    readings = asked.lake.scan("reading", **span).filter(*(pl.col(name) == value for name, value in about.items()))
    priced = asked.lake.scan("priced_amount", **span).filter(pl.col("price_id").is_not_null())
    counted = (
        priced.join(readings.select(_REPORT), on=list(_REPORT), how="semi")
        .group_by("price_id")
        .agg(many=pl.len())
        .sort("many", "price_id", descending=[True, False])
        .head(SHOWN)
    )
    found = counted.collect()["price_id"].to_list()
    held = set(asked.lake.scan("price", columns=["price_id"]).collect()["price_id"])
    return [each for each in found if each in held]


BEHIND = Behind(FindingOrigin.PRICE, of_finding)
