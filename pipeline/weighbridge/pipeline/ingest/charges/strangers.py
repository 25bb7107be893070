"""Cost pages that name no organization: a later fetch of the same bill, or the bill of somebody else?

A line of a cost page is known by what it is about. The same day and line item fetched again is a revision, and the last
one counts; the same day and line item of another organization is another line. Where a page names neither organization
nor project, nothing in it tells the two apart, except what they come to: a later fetch repeats most of the days that
were over, and of the newest one it has more. A file of which hardly a line does is refused, so that no bill is taken
for a revision of another one and leaves the sums; nothing is guessed.

    in the lake   1 April 0.06   2 April 0.11   3 April 0.02
    this file     1 April 0.06   2 April 0.11   3 April 0.09    a later fetch: what was over is the same
    this file     1 April 7.41   2 April 6.90   3 April 8.03    refused: whose it is has to be said
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from weighbridge.pipeline.ingest.door import Admitted
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.errors import ContractError

# The importer whose files may name nobody; all others have accounts, or a mapping that can name one.
IMPORTER = "cost_pages"
# Of lines that were over before, at least one in so many is the same in a later fetch.
ONE_IN = 10
_LINE = ("provider", "invoice_id", "line_id")
_READ = (*_LINE, "account", "period_end", "amount", "revision")


def refuse_strangers(files: Sequence[Admitted], lake: Lake) -> None:
    """See that no file takes the place of lines of another organization.

    Args:
        files: those of a call that were not taken in before, in its order.
        lake: what was taken in; its lock is held.

    Raises:
        ContractError: names the first file that seems to be somebody else's, and what to say. Nothing was written.
    """
    own = [file for file in files if file.importer.name == IMPORTER and not file.empty]
    if not own:
        return
    known = _last(lake.scan("invoice_line", columns=list(_READ)).filter(pl.col("account").is_null()).collect())
    for file in own:
        staged = file.importer.read(file.source, file.heading).tables.get("invoice_line")
        if staged is None:
            continue
        told = staged.with_columns(revision=pl.lit(0, pl.Int32)).select(pl.col(n).cast(known.schema[n]) for n in _READ)
        told = told.filter(pl.col("account").is_null())
        if _is_strange(known, told):
            raise ContractError(
                f"{file.source.path} charges the same days and line items as a bill that was taken in, with other "
                "amounts, and names no organization. If it is the bill of another organization, take it in with "
                "`weighbridge invoice import --account NAME`, any name that tells the two apart; if it is a later "
                "fetch of the same one, with `--revision`. Nothing was written."
            )
        known = _last(pl.concat([known, told.with_columns(revision=pl.lit(2**31 - 1, known.schema["revision"]))]))


def _last(lines: pl.DataFrame) -> pl.DataFrame:
    return lines.sort("revision", maintain_order=True).unique(list(_LINE), keep="last", maintain_order=True)


def _is_strange(known: pl.DataFrame, told: pl.DataFrame) -> bool:
    """Whether lines of the same identity come to what no later fetch of the same bill would."""
    both = known.join(told, on=list(_LINE), how="inner", suffix="_told")
    both = both.filter((pl.col("amount") != 0) | (pl.col("amount_told") != 0))
    if both.is_empty():
        return False
    same = pl.col("amount").eq_missing(pl.col("amount_told"))
    newest = known.join(both.select("provider", "invoice_id").unique(), on=["provider", "invoice_id"], how="semi")
    over = both.filter(pl.col("period_end") < newest["period_end"].max())
    if over.height:
        return int(over.select(same.sum()).item()) * ONE_IN < over.height
    return bool(both.select((pl.col("amount_told") < pl.col("amount")).fill_null(value=False).any()).item())
