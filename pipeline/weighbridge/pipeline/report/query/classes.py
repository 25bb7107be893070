"""What kind of tokens they were: class by class, model by model, modality by modality, and what each class cost."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from weighbridge.pipeline.report.exact import ratio, tokens
from weighbridge.pipeline.report.facts import CELLS, CLASSES, amounts, currencies, in_currency, readable, readings
from weighbridge.pipeline.report.sheet import Column, Kind, Row, Sheet
from weighbridge.pipeline.report.view import View, collect
from weighbridge.pipeline.report.words import CLASS_WORDS
from weighbridge.schemas.lattice import CROSSED_CELLS, INPUT_CLASSES, OUTPUT_CLASSES

_INPUT = tuple(str(name) for name in INPUT_CLASSES)
_OUTPUT = tuple(str(name) for name in OUTPUT_CLASSES)
REST = "class_not_told"
SHORT_WORDS = ("Uncached", "Cache read", "Write 5 min", "Write 1 h", "Write, unknown", "Visible", "Reasoning")

BY_MODEL = (
    Column("model", "Model"),
    Column("provider", "Provider"),
    Column("reports", "Reports", Kind.COUNT, adds=True),
    *(
        Column(name, label, Kind.COUNT, adds=True, sparse="write" in name)
        for name, label in zip(CLASSES, SHORT_WORDS, strict=True)
    ),
    Column("input_split_unknown", "Input, split unknown", Kind.COUNT, adds=True, sparse=True),
    Column("output_split_unknown", "Output, split unknown", Kind.COUNT, adds=True, sparse=True),
    Column("cache_hit_share", "Cache hits", Kind.SHARE),
    Column("reasoning_share", "Reasoning", Kind.SHARE),
)
MONEY = (
    Column("currency", "Currency"),
    Column("token_class", "Class", Kind.CODE),
    Column("meaning", "What it is"),
    Column("amount", "Amount", Kind.MONEY, currency_in="currency"),
    Column("share", "Share", Kind.SHARE),
)
MODALITIES = (
    Column("token_class", "Class", Kind.CODE),
    Column("modality", "Modality"),
    Column("tokens", "Tokens", Kind.COUNT),
    Column("reports_known", "Reports that say", Kind.COUNT),
)


def by_model(view: View) -> pl.DataFrame:
    """Sums of the readable reports by provider and model."""
    wanted = ("provider", "model", "verdict", *CLASSES, *CELLS, "input_total", "output_total")
    frame = readings(view, wanted).filter(readable())
    grouped = frame.with_columns(
        **_split("input", _INPUT),
        **_split("output", _OUTPUT),
        provider=pl.col("provider").fill_null("unknown"),
        model=pl.col("model").fill_null("unknown"),
    ).group_by("provider", "model")
    names = (*CLASSES, *CELLS, *(f"{side}_{part}" for side in ("input", "output") for part in _PARTS))
    known = (pl.col(name).count().cast(pl.Int64).alias(f"{name}_known") for name in CELLS)
    return collect(grouped.agg(pl.len().cast(pl.Int64).alias("reports"), *(tokens(name) for name in names), *known))


_PARTS = ("whole", "first", "split_unknown")


def _split(side: str, classes: Sequence[str]) -> dict[str, pl.Expr]:
    """What part of a direction's total its classes tell; where they tell all of it, the base of a share."""
    told = pl.sum_horizontal(pl.col(name).fill_null(0) for name in classes)
    total = pl.col(f"{side}_total")
    bearing = pl.col("cache_read" if side == "input" else "reasoning").fill_null(0)
    return {
        f"{side}_whole": pl.when(told == total).then(total),
        f"{side}_first": pl.when(told == total).then(bearing),
        f"{side}_split_unknown": total - told,
    }


def token_classes(view: View) -> Sheet:
    """Tokens of each class by model, with the share of cache hits and of reasoning."""
    frame = view.get(by_model)
    names = ("reports", *CLASSES, *(f"{side}_{part}" for side in ("input", "output") for part in _PARTS))
    size = pl.sum_horizontal(pl.col(name).fill_null(0) for name in (*CLASSES, "input_split_unknown"))
    ranked = frame.sort(size, "model", "provider", descending=[True, False, False])
    whole = frame.select(tokens(name) for name in names).row(0, named=True)
    return Sheet(
        name="token_classes",
        title="Tokens by class and model",
        columns=BY_MODEL,
        rows=tuple(_row(values) for values in ranked.iter_rows(named=True)),
        total=_row({**whole, "model": "All", "provider": ""}) if ranked.height else None,
        unit="reported tokens",
        sources=("reading",),
        empty="No usage report of this period can be read.",
        note="Classes are disjoint. A share is taken over reports that tell every class of the direction.",
        shown=12,
    )


def _row(values: dict[str, object]) -> Row:
    derived = {
        "cache_hit_share": ratio(values["input_first"], values["input_whole"]),
        "reasoning_share": ratio(values["output_first"], values["output_whole"]),
    }
    return tuple({**values, **derived}[column.name] for column in BY_MODEL)  # type: ignore[misc]


def class_money(view: View) -> Sheet:
    """What each class cost. Where a price is the same for all classes of a direction, their split need not be known:
    such an amount belongs to no class, and stands in a row of its own."""
    found = view.get(currencies)
    parts = [f"amount_{name}" for name in CLASSES]
    told = pl.all_horizontal(pl.col(name).is_not_null() for name in parts)
    rest = pl.when(~told).then(pl.col("amount") - pl.sum_horizontal(pl.col(name).fill_null(0) for name in parts))
    sums = [
        in_currency(column, currency).alias(f"{currency} {column}")
        for currency in found
        for column in (*parts, REST, "amount")
    ]
    frame = collect(amounts(view, ("amount", *parts)).with_columns(rest.alias(REST)).select(*sums))
    values = frame.row(0, named=True) if frame.width else {}
    rows = [
        (currency, name, CLASS_WORDS.get(name, "Class not told"), part, ratio(part, values[f"{currency} amount"]))
        for currency in found
        for name, column in (*zip(CLASSES, parts, strict=True), (REST, REST))
        for part in [values[f"{currency} {column}"]]
        if part is not None and (part or name != REST)
    ]
    return Sheet(
        name="class_money",
        title="Money by class",
        columns=MONEY,
        rows=tuple(rows),
        sources=("priced_amount",),
        empty="Nothing in this period is priced.",
        shown=24,
    )


def modalities(view: View) -> Sheet:
    """Tokens that are not text, where reports say so; they are inside their class."""
    frame = view.get(by_model)
    sums = frame.select(*(tokens(name) for name in CELLS), *(pl.col(f"{name}_known").sum() for name in CELLS))
    values = sums.row(0, named=True)
    rows = tuple(
        (str(cell.token_class), str(cell.modality), values[cell.name], values[f"{cell.name}_known"])
        for cell in CROSSED_CELLS
        if values[f"{cell.name}_known"]
    )
    return Sheet(
        name="modalities",
        title="Tokens by modality",
        columns=MODALITIES,
        rows=rows,
        unit="reported tokens, each inside its class",
        sources=("reading",),
        empty="No report of this period splits out audio, image or video.",
    )
