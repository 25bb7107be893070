"""Where the report comes from: versions, tables with digests, and the price rows that were used."""

from __future__ import annotations

from importlib import metadata

import polars as pl

from weighbridge.pipeline.report.facts import CLASSES, amounts
from weighbridge.pipeline.report.query.classes import SHORT_WORDS
from weighbridge.pipeline.report.query.findings import held
from weighbridge.pipeline.report.query.quality import segments
from weighbridge.pipeline.report.sheet import Column, Kind, Row, Sheet, rows_of
from weighbridge.pipeline.report.view import View, collect
from weighbridge.schemas import canonical
from weighbridge.schemas.enumerations import Modality
from weighbridge.schemas.tables import TABLES
from weighbridge.schemas.version import SCHEMA_VERSION

# A canonical digest takes some microseconds a row and column; larger tables are pinned by the digests of their files.
DIGEST_ROWS = 10_000
DAILY = ("attempt", "reading", "priced_amount", "reconciled", "gap_cause", "quarantine", "gap")

ABOUT = (Column("fact", "Fact"), Column("value", "Value"))
READ = (
    Column("table", "Table", Kind.CODE),
    Column("holds", "What it holds"),
    Column("rows", "Rows read", Kind.COUNT),
    Column("digest", "Digest of these rows", Kind.CODE, short=24),
)
PRICES = (
    Column("model", "Model", Kind.CODE),
    Column("match", "Match"),
    Column("provider", "Provider"),
    Column("token_class", "Class", Kind.CODE),
    Column("modality", "Modality"),
    Column("per_million", "Per million", Kind.MONEY, currency_in="currency"),
    Column("currency", "Currency"),
    Column("valid_from", "From", Kind.DAY),
    Column("valid_to", "Until before", Kind.DAY),
    Column("origin", "Read from"),
    Column("checked_on", "Checked on", Kind.DAY),
    Column("price_id", "Price row", Kind.CODE, short=8),
)
_OF_THE_ROW = ("model", "match", "provider", "currency", "valid_from", "valid_to", "origin", "checked_on")
PRICE_ROWS = (
    Column("model", "Model"),
    Column("match", "Match", page=False),
    Column("provider", "Provider"),
    Column("currency", "Currency"),
    *(
        Column(name, label, Kind.MONEY, currency_in="currency", page="unknown" not in name)
        for name, label in zip(CLASSES, SHORT_WORDS, strict=True)
    ),
    Column("other_modalities", "Other prices", Kind.COUNT, sparse=True),
    Column("valid_from", "From", Kind.DAY),
    Column("valid_to", "Until before", Kind.DAY),
    Column("origin", "Read from"),
    Column("checked_on", "Checked on", Kind.DAY),
    Column("price_id", "Price row", Kind.CODE, page=False),
)


def about(view: View) -> Sheet:
    """What made the report, of what, and how to read the files beside it."""
    period = view.period
    rows: list[Row] = [
        ("Product", f"weighbridge {metadata.version('weighbridge')}"),
        ("Vocabulary", f"schema version {SCHEMA_VERSION}"),
        ("Period", period.label),
        ("First day", period.first.isoformat()),
        ("Last day", period.last.isoformat()),
        ("Time zone", period.zone),
        ("Edition", "billing: exact figures, tenants under pseudonyms; for the circle that may see invoices"),
        ("Data", "simulated by the product itself" if view.simulated else "recorded"),
        ("Empty cells", "in the CSV files an empty cell is unknown, or has no meaning in its row; it is never zero"),
        ("Exact amounts", "in the CSV files, and as text in the workbook; rounded half-even wherever they are shown"),
    ]
    return Sheet(
        name="about",
        title="This report",
        columns=ABOUT,
        rows=tuple(rows),
        sources=(),
        empty="",
        dated=False,
    )


def tables_read(view: View) -> Sheet:
    """The rows this report was made from, table by table."""
    rows = [_account(name, view.read(name, TABLES[name].names)) for name in DAILY]
    files = pl.LazyFrame({"segment": view.get(segments).cells("segment")}, schema={"segment": pl.String})
    found = view.get(held).lazy().select("finding_id")
    used = view.get(prices_used_ids).lazy()
    rows += [
        _account("segment", view.whole("segment").join(files, on="segment", how="semi")),
        _account("price", view.whole("price").join(used, on="price_id", how="semi")),
        _account("finding", view.whole("finding").join(found, on="finding_id", how="semi")),
        _account("finding_status", view.whole("finding_status").join(found, on="finding_id", how="semi")),
    ]
    return Sheet(
        name="tables_read",
        title="Tables this report was made from",
        columns=READ,
        rows=tuple(rows),
        sources=tuple(str(row[0]) for row in rows),
        empty="No tables.",
        note=f"A digest is the SHA-256 of the rows in canonical form, whatever their order. Above {DIGEST_ROWS:,} rows "
        "none is made here; there the digests of the files pin the evidence.",
    )


def _account(name: str, frame: pl.LazyFrame) -> Row:
    table = TABLES[name]
    count: int = collect(frame.select(pl.len())).item()
    digest = None
    if count <= DIGEST_ROWS:
        rows = collect(frame.select(table.names)).to_arrow(compat_level=pl.CompatLevel.oldest())
        digest = canonical.digest(canonical.rows(table, rows))
    return (name, table.doc, count, digest)


def prices_used_ids(view: View) -> pl.DataFrame:
    """The ids of the price rows that amounts of the period rest on."""
    return collect(amounts(view, ("price_id",)).select("price_id").drop_nulls().unique())


def used_prices(view: View) -> pl.DataFrame:
    """The prices amounts of the period rest on: every class and modality of each price row that was used."""
    used = view.get(prices_used_ids).lazy()
    frame = collect(view.whole("price").join(used, on="price_id", how="semi"))
    return frame.sort("provider", "model", "price_id", "token_class", "modality")


def prices_used(view: View) -> Sheet:
    """Every price an amount of the period rests on; in the files only, for the page shows `price_rows`."""
    return Sheet(
        name="prices_used",
        title="Prices used, by class and modality",
        columns=PRICES,
        rows=rows_of(view.get(used_prices), PRICES),
        unit="per million tokens",
        sources=("price", "priced_amount"),
        empty="No price was used.",
        dated=False,
        page=False,
    )


def price_rows(view: View) -> Sheet:
    """One row per price row that was used: its prices for text by class, how long it holds, and its origin."""
    frame = view.get(used_prices)
    text = pl.col("modality") == str(Modality.TEXT)
    prices = {name: pl.col("per_million").filter(text & (pl.col("token_class") == name)).first() for name in CLASSES}
    wide = frame.group_by("price_id", maintain_order=True).agg(
        *(pl.col(name).first() for name in _OF_THE_ROW),
        (~text).sum().cast(pl.Int64).alias("other_modalities"),
        **prices,
    )
    return Sheet(
        name="price_rows",
        title="Prices used",
        columns=PRICE_ROWS,
        rows=rows_of(wide, PRICE_ROWS),
        unit="per million tokens of text",
        sources=("price", "priced_amount"),
        empty="No price was used.",
        note="An unknown first day: the price is taken to hold from the beginning. Prices of audio, image and video "
        "stand in the files.",
        shown=40,
        dated=False,
    )
