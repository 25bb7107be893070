"""Usage pages as their side: what the provider counted in a period, by class, in whatever grouping its pages have.

Pages grouped otherwise are sums of the same calls, so of several groupings only one is compared: the one that names
most of what can be compared, and of equals the one with the most rows. A page with an unknown split of its input, or
output, is compared by direction.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from weighbridge.pipeline.invoice.cells import BATCH, Key
from weighbridge.pipeline.invoice.contract import Contract
from weighbridge.pipeline.invoice.ledger import Ledger
from weighbridge.pipeline.invoice.theirs.lines import CHARGES, tenants_of
from weighbridge.pipeline.invoice.zones import month_of
from weighbridge.pipeline.lake.records import Records
from weighbridge.schemas.enumerations import ChargeCategory, LineKind, TokenClass, Verdict
from weighbridge.schemas.lattice import INPUT_CLASSES, OUTPUT_CLASSES

_COMPARED = ("model", "project_id", "workspace_id", "api_key_id")


def latest_pages(lake: Records) -> pl.DataFrame:
    """The last revision of every result of a page that can be read."""
    return _last(lake).filter(pl.col("verdict") != str(Verdict.CONTRADICTORY)).collect()


def contradictory_pages(lake: Records) -> pl.DataFrame:
    """The last revision of every result of a page that contradicts itself: it is compared with nothing."""
    return _last(lake).filter(pl.col("verdict") == str(Verdict.CONTRADICTORY)).collect()


def _last(lake: Records) -> pl.LazyFrame:
    rows = lake.scan("usage_period").sort("revision")
    return rows.unique(["cell_hi", "cell_lo", "source"], keep="last", maintain_order=True)


def groupings(pages: pl.DataFrame, provider: str) -> list[tuple[str, ...]]:
    """The groupings of a provider's pages, the one that is compared first."""
    own = pages.filter(pl.col("provider") == provider).with_columns(by=pl.col("grouped_by").list.join(","))
    counted = own.group_by("by").len().rows()
    named = [(tuple(filter(None, by.split(","))), rows) for by, rows in counted]
    ordered = sorted(named, key=lambda each: (-sum(name in _COMPARED for name in each[0]), -each[1], each[0]))
    return [by for by, _ in ordered]


def page_charges(pages: pl.DataFrame, contract: Contract, key: bytes | None, by: Sequence[str]) -> pl.DataFrame:
    """The results of one grouping as `CHARGES`: one line per class, of tokens alone."""
    own = pages.filter(pl.col("provider") == contract.provider, pl.col("grouped_by").list.join(",") == ",".join(by))
    tenants = tenants_of(contract, key)
    split = all(own[str(name)].null_count() == 0 for name in (*INPUT_CLASSES, *OUTPUT_CLASSES))
    lines = [line for row in own.iter_rows(named=True) for line in _lines(row, contract, tenants, split=split)]
    return pl.DataFrame(lines, schema=CHARGES, infer_schema_length=None)


def _lines(
    row: Mapping[str, Any], contract: Contract, tenants: Mapping[str, str], *, split: bool
) -> list[dict[str, Any]]:
    about = {
        "kind": str(LineKind.TOKENS),
        "model": contract.models.get(row["model"], row["model"]),
        "tenant": tenants.get(row["api_key"] or "") or tenants.get(row["project"] or ""),
        "service_tier": BATCH if row["batch"] else row["service_tier"],
        "start": row["period_start"],
        "end": row["period_end"],
        "open": row["provisional"],
        "closed": False,
        "unmapped": False,
        "category": str(ChargeCategory.USAGE),
        "month": month_of(row["period_start"], contract.zone),
        "segment": row["segment"],
    }
    if split:
        counts = {str(name): row[str(name)] for name in (*INPUT_CLASSES, *OUTPUT_CLASSES)}
        counts = {name: count for name, count in counts.items() if count}
        counts = counts or {str(TokenClass.INPUT_UNCACHED): 0}
    else:
        whole = {TokenClass.INPUT_UNCACHED: row["input_total"], TokenClass.OUTPUT_VISIBLE: row["output_total"]}
        counts = {str(name): count for name, count in whole.items()}
    return [{**about, "token_class": name, "tokens": count} for name, count in counts.items()]


def counted(pages: pl.DataFrame, ledger: Ledger) -> dict[Key, int]:
    """Cell -> the tokens pages count in it, of cells that whole pages lie in and of which every count is known."""
    found: dict[Key, int | None] = {}
    starts = [start for start, _ in ledger.spans]
    for row in pages.iter_rows(named=True):
        place = bisect_right(starts, row["start"]) - 1
        span = ledger.spans[place] if place >= 0 and row["end"] <= ledger.spans[place][1] else None
        model = row["model"] if "model" in ledger.grouping.named else None
        finer = [name for name, models in ledger.grouping.fine.items() if model in models and row[name] is None]
        # Pages that do not tell what a cell is about count more than the cell, and no page is of one modality.
        if span is None or ("model" in ledger.grouping.named and model is None) or finer:
            continue
        told = {**row, "token_class": ledger.grouping.folded.get(row["token_class"])}
        key = ledger.grouping.of_line(told, span)
        before = found.get(key, 0)
        found[key] = None if before is None or row["tokens"] is None else before + row["tokens"]
    return {key: tokens for key, tokens in found.items() if tokens is not None}
