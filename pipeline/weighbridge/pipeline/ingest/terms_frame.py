"""What usage reports say beside their counts, for many at once: the rules of `terms`, as columns.

Few shapes of reports say any of it, so only those are looked into, and each text and fee that they have is one
expression.
"""

from __future__ import annotations

import polars as pl

from weighbridge.pipeline.ingest.terms import (
    BATCH,
    BATCH_APIS,
    CHARGES,
    DEFAULT,
    FAST,
    FEES,
    NO_REGION,
    NO_TIER,
    REGION_LEAF,
    SIZE_LEAF,
    SIZES,
    SPEED_LEAF,
    TIER_LEAVES,
    TIERS,
    USD,
    names_of,
    sums_apart,
)
from weighbridge.pipeline.lake import polars_schema
from weighbridge.schemas.enumerations import FeeKind

COLUMNS = ("service_tier", "batch", "region", "fee_kinds", "fee_counts", "charged", "charged_currency")
_SCHEMA = {name: polars_schema("reading")[name] for name in COLUMNS}
_TEXTS = (*TIER_LEAVES, SPEED_LEAF, REGION_LEAF, SIZE_LEAF)
_MONEY = pl.Decimal(38, 18)
_WIDE = pl.Decimal(38, 0)


def told(parts: pl.DataFrame) -> pl.DataFrame:
    """`report_id` and `COLUMNS` of the reports that say anything beside their counts.

    Args:
        parts: report_id, api, leaf_shape, leaf_integers, leaf_texts; the parts of a report in their order.
    """
    shapes = parts["leaf_shape"].unique()
    speaking = [shape for shape in shapes if names_of(shape)]
    batches = pl.col("api").is_in(list(BATCH_APIS)).fill_null(value=False)
    asked = parts.filter(pl.col("leaf_shape").is_in(speaking) | batches)
    if asked.is_empty():
        return pl.DataFrame(schema={"report_id": parts.schema["report_id"], **_SCHEMA})
    cut = asked.with_row_index("_at").partition_by("leaf_shape", maintain_order=True)
    leaves = pl.concat([_leaves(rows) for rows in cut], how="diagonal").sort("_at")
    last = [pl.col(name).drop_nulls().last() for name in leaves.columns if name not in {"_at", "report_id", "api"}]
    return _said(leaves.group_by("report_id", maintain_order=True).agg(pl.col("api").first(), *last))


def _leaves(rows: pl.DataFrame) -> pl.DataFrame:
    """The leaves that parts of one shape have, a column each: texts by name, integers of fees, amounts of charges."""
    columns = []
    for name, position in names_of(str(rows["leaf_shape"][0])).items():
        text = pl.col("leaf_texts").list.get(position, null_on_oob=True)
        integer = pl.col("leaf_integers").list.get(position, null_on_oob=True)
        if name in FEES:
            columns.append(integer.alias(name))
        elif name in CHARGES:
            columns.append(_amount(text, integer, CHARGES[name]).alias(name))
        else:
            columns.append(text.alias(name))
    return rows.select("_at", "report_id", "api", *columns)


def _amount(text: pl.Expr, integer: pl.Expr, units: int) -> pl.Expr:
    """The amount as digits, exactly; null where a column of money cannot hold it."""
    amount = pl.coalesce(text, integer.cast(pl.String))
    digits = amount.cast(_MONEY, strict=False)
    # A text of more places than a column has is cut off in casting: it is not what was said.
    places = amount.str.extract(r"\.(\d+?)0*$").str.len_chars().fill_null(0)
    exact = pl.when(places <= 18).then(digits)
    return exact if units == 1 else (exact / pl.lit(units).cast(_WIDE)).cast(_MONEY)


def _said(reports: pl.DataFrame) -> pl.DataFrame:
    held = set(reports.columns)
    texts = {name: pl.col(name) if name in held else pl.lit(None, dtype=pl.String) for name in _TEXTS}
    named = (pl.when(~texts[name].is_in([*NO_TIER, ""])).then(texts[name]) for name in TIER_LEAVES)
    tier = pl.coalesce(*named).replace(dict(TIERS))
    batch = (tier == BATCH) | pl.col("api").is_in(list(BATCH_APIS))
    charges = [pl.col(name) for name in CHARGES if name in held]
    of_kinds: dict[str, list[pl.Expr]] = {}
    for name, kind in FEES.items():
        if name in held:
            of_kinds.setdefault(str(kind), []).append(pl.col(name))
    of_each = {kind: pl.coalesce(names) for kind, names in of_kinds.items()}
    for size, kind in SIZES.items():
        of_each[str(kind)] = pl.when(texts[SIZE_LEAF] == size).then(pl.lit(1, dtype=pl.Int64))
    fees = reports.with_columns(expression.alias(kind) for kind, expression in of_each.items()).select(list(of_each))
    fees = fees.with_columns(pl.when(pl.col(kind) != 0).then(kind).alias(kind) for kind in fees.columns)
    apart = [kind for kind in fees.columns if kind in sums_apart()]
    if FeeKind.SERVER_TOOL in fees.columns and apart:
        none = pl.all_horizontal(pl.col(kind).is_null() for kind in apart)
        fees = fees.with_columns(pl.when(none).then(FeeKind.SERVER_TOOL).alias(FeeKind.SERVER_TOOL))
    kinds = sorted(fees.columns)
    used = pl.concat_list(pl.when(pl.col(kind).is_not_null()).then(pl.lit(kind)) for kind in kinds).list.drop_nulls()
    often = pl.concat_list(pl.col(kind) for kind in kinds).list.drop_nulls()
    lists = fees.select(fee_kinds=used, fee_counts=often)
    some = pl.col("fee_kinds").list.len() > 0
    lists = lists.with_columns(pl.when(some).then(name).alias(name) for name in lists.columns)
    charged = pl.coalesce(charges) if charges else pl.lit(None, dtype=_MONEY)
    own = reports.select(
        "report_id",
        service_tier=pl.when(texts[SPEED_LEAF] == FAST)
        .then(pl.lit(FAST))
        .otherwise(pl.when(tier == BATCH).then(pl.lit(DEFAULT)).otherwise(tier)),
        batch=pl.when(batch).then(pl.lit(value=True)),
        region=pl.when(~texts[REGION_LEAF].is_in(list(NO_REGION))).then(texts[REGION_LEAF]),
        charged=charged,
        charged_currency=pl.when(charged.is_not_null()).then(pl.lit(USD)),
    )
    whole = pl.concat([own, lists], how="horizontal")
    return whole.select("report_id", *(pl.col(name).cast(kind) for name, kind in _SCHEMA.items()))
