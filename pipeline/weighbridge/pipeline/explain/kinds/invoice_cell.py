"""A cell of bills: our own priced usage beside what is charged, the causes, their lines or pages, and our attempts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

import polars as pl

from weighbridge.pipeline.explain.about import attempts_between
from weighbridge.pipeline.explain.called import same
from weighbridge.pipeline.explain.held import Held, Row
from weighbridge.pipeline.explain.kind import Asked, Kind
from weighbridge.pipeline.explain.kinds.attempt import attempts_node
from weighbridge.pipeline.explain.source import SHOWN, group
from weighbridge.pipeline.ingest.charges.withdrawn import WITHDRAWN
from weighbridge.pipeline.invoice.cause import all_causes
from weighbridge.pipeline.invoice.compare import TOKENS
from weighbridge.pipeline.invoice.ours.usage import contradictory_calls
from weighbridge.pipeline.invoice.spans import Span
from weighbridge.pipeline.reconcile.found.tally import hexadecimal
from weighbridge.pipeline.reconcile.tree.node import Node, leaves
from weighbridge.schemas.enumerations import ChargeCategory, ChargedBy, LineKind
from weighbridge.schemas.lattice import REPORTED_CLASSES
from weighbridge.schemas.tables import INVOICE_GAP, INVOICE_LINE

# Of calls that contradict themselves so many are named; more are counted.
SHOWN_SPOILED = 50
_CELL = tuple(column.name for column in INVOICE_GAP.columns if column.name not in {"cell", "grouped_by", "segments"})
_BARE = frozenset({"segment", "segment_row", "line_id", "notes"})
_LINE = tuple(column.name for column in INVOICE_LINE.columns if column.name not in _BARE and not column.personal)
_PAGE = (
    *("source", "api", "period_start", "period_end", "model", "service_tier", "batch", "provisional", "requests"),
    *("verdict", "rule", "reason", *REPORTED_CLASSES, "input_total", "output_total", "total"),
)


def find(asked: Asked) -> Iterator[str]:
    """Cells whose id begins so."""
    if asked.digits:
        ids = asked.lake.scan("invoice_gap", columns=["cell"]).filter(pl.col("cell").str.starts_with(asked.digits))
        yield from ids.unique().sort("cell").collect()["cell"]


def node(asked: Asked, held: str) -> Node:
    """The tree behind a cell."""
    return cell_node(asked, asked.lake.scan("invoice_gap").filter(pl.col("cell") == held).collect().row(0, named=True))


def cell_node(asked: Asked, row: Row) -> Node:
    """The tree behind a row of `invoice_gap`."""
    titles = {cause.code: cause.title for cause in all_causes()}
    rows = asked.lake.scan("invoice_cause").filter(pl.col("cell") == row["cell"]).sort("cause").collect()
    causes = tuple(
        Node(
            each["cause"],
            each["amount"],
            (
                *(Node("meaning", titles[each["cause"]]) for _ in (1,) if each["cause"] in titles),
                *leaves(each, ("unit", "confidence", "why")),
                *(Node("alternative", name) for name in each["alternatives"] or ()),
            ),
        )
        for each in rows.iter_rows(named=True)
    )
    theirs = _pages(asked, row) if row["against"] == ChargedBy.USAGE_PAGE else _lines(asked, row)
    grouped = tuple(Node("grouped by", name) for name in row["grouped_by"] or ())
    return Node(
        "invoice cell",
        row["cell"],
        (*leaves(row, _CELL), *grouped, *group("causes", causes), *theirs, *_ours(asked, row)),
    )


def _within(row: Row) -> pl.Expr:
    return pl.col("period_start").lt(row["period_end"]) & pl.col("period_end").gt(row["period_start"])


def _lines(asked: Asked, row: Row) -> tuple[Node, ...]:
    """The last revision of the lines of its files and period; of its model and class, where the lines name them so."""
    frame = asked.lake.scan("invoice_line").filter(
        pl.col("provider") == row["provider"], pl.col("segment").is_in(row["segments"] or []), _within(row)
    )
    rows = frame.sort("revision").collect().unique(["invoice_id", "line_id"], keep="last", maintain_order=True)
    rows = rows.filter(~pl.col("notes").list.contains(WITHDRAWN).fill_null(value=False))
    if row["unit"] != TOKENS:
        rows = rows.filter(pl.col("currency") == row["unit"])
    rows = _of_kind(rows, row["kind"])
    for name in ("model", "token_class", "service_tier", "region"):
        # A bill may call a model otherwise than we do; then all of them are shown rather than none.
        names = _names(asked, row) if name == "model" else [row[name]]
        own = rows.filter(pl.col(name).is_in(names)) if row[name] is not None else rows
        rows = rows if own.is_empty() else own
    ranked = rows.sort(
        pl.col("amount").abs(), "invoice_id", "line_id", descending=[True, False, False], nulls_last=True
    )
    files = Held(asked.lake, [])
    told = tuple(line_node(files, each) for each in ranked.head(SHOWN).iter_rows(named=True))
    return group("lines of the bill", told, rows.height)


def _of_kind(rows: pl.DataFrame, kind: str | None) -> pl.DataFrame:
    """The lines of a kind. A line may say no kind where the contract tells what its SKU charges."""
    untold = rows.filter(pl.col("kind").is_null())
    match kind:
        case LineKind.OTHER_SERVICE:
            use = rows.filter(pl.col("kind").is_in([str(LineKind.TOKENS), str(LineKind.TOOL_FEE)]))["service"]
            other = pl.col("service").is_not_null() & ~pl.col("service").is_in(use.drop_nulls().implode())
            storage = (pl.col("kind") == str(LineKind.STORAGE)).fill_null(value=True)
            return rows.filter(other, storage, pl.col("category") == str(ChargeCategory.USAGE))
        case LineKind.TOOL_FEE:
            own = rows.filter(pl.col("kind").is_in([str(kind), str(LineKind.REQUEST_FEE)]))
        case _:
            own = rows.filter(*same({"kind": kind}, "kind"))
    return untold if own.is_empty() else own


def line_node(files: Held, row: Row) -> Node:
    """A line of an invoice, by the name it is found by, with file and row."""
    place = files.file(row["segment"], row["segment_row"])
    return Node("line", f"{row['invoice_id']}/{row['line_id']}", (*leaves(row, _LINE), place))


def _pages(asked: Asked, row: Row) -> tuple[Node, ...]:
    """The results of its files and period, of its model where the page is grouped by it, with their raw leaves."""
    first, last = row["period_start"].date() - timedelta(days=1), row["period_end"].date()
    frame = asked.lake.scan("usage_period", first=first, last=last).filter(
        pl.col("provider") == row["provider"], pl.col("segment").is_in(row["segments"] or []), _within(row)
    )
    rows = frame.sort("revision").collect().unique(["cell_hi", "cell_lo", "source"], keep="last", maintain_order=True)
    own = rows.filter(pl.col("model").is_in(_names(asked, row))) if row["model"] is not None else rows
    rows = rows if own.is_empty() else own
    files = Held(asked.lake, [])
    told = []
    for each in (
        rows.sort("total", "cell_lo", descending=[True, False], nulls_last=True).head(SHOWN).iter_rows(named=True)
    ):
        integers, texts = each["leaf_integers"] or [], each["leaf_texts"] or []
        raw = tuple(
            Node(path, texts[place] if integers[place] is None else integers[place])
            for place, path in enumerate((each["leaf_shape"] or "").split())
        )
        place = files.file(each["segment"], each["segment_row"])
        told.append(Node("result of a page", each["period_start"].isoformat(), (*leaves(each, _PAGE), *raw, place)))
    return group("results of pages", tuple(told), rows.height)


def _ours(asked: Asked, row: Row) -> tuple[Node, ...]:
    """Our own attempts of its UTC days, the largest first, down to amounts, prices and raw leaves."""
    about = {name: row[name] for name in ("provider", "model", "tenant", "token_class") if row[name] is not None}
    last = (row["period_end"] - timedelta(microseconds=1)).date()
    ids, many = attempts_between(asked.lake, row["period_start"].date(), last, about, _names(asked, row))
    found = group("attempts of its UTC days", attempts_node(asked, ids), many)
    if not row["contradictory"]:
        return found
    return (*found, *spoiled_node(asked, row["provider"], (row["period_start"], row["period_end"]), row["model"]))


def _names(asked: Asked, row: Row) -> list[str]:
    """What a model is called: by us, and by its provider where the contract says that it calls it otherwise."""
    model, theirs = row["model"], asked.contract(row["provider"]).models
    return [] if model is None else [model, *(name for name, ours in theirs.items() if ours == model)]


def spoiled_node(asked: Asked, provider: str, span: Span, model: str | None) -> tuple[Node, ...]:
    """The calls of a span whose reports contradict themselves, those that may have cost the most first.

    Args:
        asked: what is asked, and where.
        provider: who answered them.
        span: the UTC moments.
        model: our name of the model; null: of any.
    """
    rows = contradictory_calls(asked.lake, provider, span, asked.contract(provider).models).filter(~pl.col("failed"))
    own = rows if model is None else rows.filter(pl.col("named") == model)
    ranked = own.unique(["attempt_hi", "attempt_lo"]).sort(
        "most", "attempt_hi", "attempt_lo", descending=[True, False, False], nulls_last=True
    )
    ids = ranked.head(SHOWN_SPOILED).select(id=hexadecimal())["id"].to_list()
    whole = attempts_node(asked, ids[:SHOWN])
    return group("calls whose reports contradict themselves", (*whole, *_more(ids)), ranked.height)


def _more(ids: Sequence[str]) -> tuple[Node, ...]:
    """Further attempts, by their ids alone."""
    return tuple(Node("attempt", each) for each in ids[SHOWN:])


KIND = Kind("invoice cell", "the first digits of the id of a cell of bills", find, node)
