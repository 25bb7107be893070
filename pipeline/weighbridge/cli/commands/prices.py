"""`weighbridge prices`: what the price book says."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from weighbridge.cli.command import LOOK, Command
from weighbridge.cli.exits import CLEAN
from weighbridge.cli.options import AsJson, Config, LogLevel, parse_day
from weighbridge.cli.output import counted, write_json, write_line, write_table
from weighbridge.cli.session import settings_of

if TYPE_CHECKING:
    from weighbridge.pipeline.price.row import PriceRow

prices = typer.Typer(no_args_is_help=True, help="The price book: the shipped one under price files of your own.")


@prices.command("ls")
def ls(
    ctx: typer.Context,
    provider: Annotated[str | None, typer.Option("--provider", help="Only this provider.")] = None,
    model: Annotated[str | None, typer.Option("--model", help="Only the row that prices this model.")] = None,
    day: Annotated[
        date | None, typer.Option("--day", metavar="DAY", parser=parse_day, help="With --model: on this day.")
    ] = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """List prices per million tokens, with their source and the day they were checked."""
    from weighbridge.pipeline.price.book import PriceBook

    book = PriceBook.load(settings_of(ctx, config, log_level).prices)
    rows = [row for row in book.rows if provider in {None, row.provider}]
    if model is not None:
        on = day or datetime.now(UTC).date()
        found = [book.find(name, model, on) for name in sorted({row.provider for row in rows})]
        rows = [row for row in found if row is not None]
    if as_json:
        write_json([_told(row) for row in rows])
        return CLEAN
    names = ["provider", "match", "model", "from", "to", "per million", "currency", "checked", "origin"]
    write_table(names, [_cells(row) for row in rows])
    write_line(f"\n{counted(len(rows), 'row')}")
    return CLEAN


def _told(row: PriceRow) -> dict[str, object]:
    return {
        "price_id": row.price_id,
        "provider": row.provider,
        "match": row.match,
        "model": row.model,
        "valid_from": row.valid_from,
        "valid_to": row.valid_to,
        "up_to_input_tokens": row.up_to_input_tokens,
        "currency": row.currency,
        "per_million": {_cell(*cell): price for cell, price in row.prices.items()},
        "origin": row.origin,
        "checked_on": row.checked_on,
    }


def _cells(row: PriceRow) -> list[object]:
    told = "  ".join(f"{_cell(*cell)} {price}" for cell, price in row.prices.items())
    return [
        row.provider,
        str(row.match),
        row.model,
        row.valid_from,
        row.valid_to,
        told,
        row.currency,
        row.checked_on,
        row.origin,
    ]


def _cell(token_class: str, modality: str) -> str:
    return str(token_class) if modality == "text" else f"{token_class}_{modality}"


COMMAND = Command("prices", prices, LOOK, order=4)
