"""`weighbridge prices`: what the price book says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, date, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weighbridge.cli.command import LOOK, Command
from weighbridge.cli.exits import CLEAN, FINDINGS
from weighbridge.cli.options import AsJson, Config, LogLevel, is_month, parse_day
from weighbridge.cli.output import counted, shown, write_json, write_line, write_table
from weighbridge.cli.session import home_of, settings_of

if TYPE_CHECKING:
    from weighbridge.pipeline.price.book import PriceBook
    from weighbridge.pipeline.price.row import PriceRow
    from weighbridge.schemas.finding import Finding

_WHOLE = ("shipped", "book")  # what says of every model whether it has a price
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
    names = ["provider", "match", "model", "from", "to", "terms", "per million", "currency", "checked", "origin"]
    write_table(names, [_cells(row) for row in rows])
    write_line(f"\n{counted(len(rows), 'row')}")
    return CLEAN


class OtherFormat(StrEnum):
    """Whose book is taken over."""

    LITELLM = "litellm"
    GENAI_PRICES = "genai-prices"


@prices.command("diff")
def diff(
    ctx: typer.Context,
    before: Annotated[str, typer.Argument(metavar="A", help="A price file or folder, `shipped`, `book`, or a day.")],
    after: Annotated[str, typer.Argument(metavar="B", help="Likewise. `book` is the one in force, with your files.")],
    month: Annotated[
        str | None, typer.Option("--lake", metavar="YYYY-MM", help="Also: what B changes on the amounts of this month.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Models that only one of both has, too, row by row.")] = False,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Show what is different between two price books, price by price; exit 1 where anything is.

    Models that only one of both has are counted, and compared with --all only: a file of a few says nothing of others,
    so with --lake a model it does not name has no price missing either.
    Between two days of one book all are shown.
    With --lake the differences of a month's amounts are findings of that month; no amount is changed by them.
    """
    from weighbridge.pipeline.price.difference import Change, claimed_by_both, differences, rows_on
    from weighbridge.pipeline.price.repriced import write_repriced
    from weighbridge.schemas.errors import ConfigError

    if month is not None and not is_month(month):
        raise ConfigError(f"--lake {month!r} is no month; write it as YYYY-MM")

    def own() -> Sequence[Path]:
        return settings_of(ctx, config, log_level).prices

    (one, since), (other, until) = (_side(text, own) for text in (before, after))
    dated = since is None and until is None
    # The book in force says the same of every model on both days: one that has no price any more is different.
    every = every or (since is not None and until is not None)
    rows, others = rows_on(one.rows, since), rows_on(other.rows, until)
    found = differences(rows, others, dated=dated)
    shared, unclaimed = claimed_by_both(found, rows, others)
    found = found if every else shared
    findings: list[Finding] = []
    if month is not None:
        books = [_on(book, day) for book, day in ((one, since), (other, until))]
        partial = not every and after not in _WHOLE and until is None
        findings = write_repriced(home_of(ctx, config, log_level).lake(), month, *books, partial=partial)
    if as_json:
        changes = [{"code": each.code, **each.subject, "rows": each.rows, "amount": each.amount} for each in findings]
        write_json(
            {
                "differences": [asdict(each) for each in found],
                "only_one_has": [each._asdict() for each in unclaimed],
                "findings": changes,
            }
        )
    else:
        names = ["change", "provider", "model", "terms", "from", "price", "A", "B", "%"]
        cells: list[list[object]] = [
            [str(d.change), d.provider, d.model, d.terms, d.valid_from, d.item, d.before, d.after, d.percent]
            for d in found
        ]
        write_table(names, cells)
        write_line(f"\n{counted(len(found), 'difference')}")
        for only in () if every else unclaimed:
            one_of = f"A ({before})" if only.change is Change.REMOVED else f"B ({after})"
            write_line(f"only {one_of} has {counted(only.models, 'model')} of {only.provider}: --all")
        for each in findings:
            parts = [*each.subject.values(), counted(each.rows, "report")]
            parts += [] if each.amount is None else [f"{shown(each.amount)} {each.currency}"]
            write_line(f"{each.code}: {', '.join(parts)}")
    return FINDINGS if found or findings else CLEAN


def _side(text: str, own: Callable[[], Sequence[Path]]) -> tuple[PriceBook, date | None]:
    """A book, and the day it is looked at on; null for all of it. Only the one in force needs an installation."""
    from weighbridge.pipeline.price.book import PriceBook
    from weighbridge.pipeline.price.price_file import files_of, read_prices

    if text == "shipped":
        return PriceBook.load(), None
    if text == "book":
        return PriceBook.load(own()), None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return PriceBook([[row for file in files_of(Path(text)) for row in read_prices(file)]]), None
    return PriceBook.load(own()), day


def _on(book: PriceBook, day: date | None) -> PriceBook:
    """The book as it is on that day, for every day."""
    from dataclasses import replace

    from weighbridge.pipeline.price.book import PriceBook

    if day is None:
        return book
    layers = [[row for row in layer if row.holds_on(day)] for layer in book.layers]
    return PriceBook([[replace(row, valid_from=None, valid_to=None) for row in layer] for layer in layers])


@prices.command("import")
def take_over(
    whose: Annotated[OtherFormat, typer.Argument(metavar="litellm|genai-prices", help="Whose book it is.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Its JSON file, as it is published.")],
    provider: Annotated[str | None, typer.Option("--provider", help="Only this provider.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Folder for one price file a provider.")] = None,
    as_json: AsJson = False,
) -> int:
    """Write price files from another open book; whatever is left out is listed with its reason, and exit 1 says so."""
    from weighbridge.pipeline.price.other_books import genai_prices, litellm
    from weighbridge.schemas.errors import ConfigError

    book = (litellm if whose is OtherFormat.LITELLM else genai_prices)(file)
    chosen = [name for name in sorted(book.rows) if provider in {None, name}]
    if not chosen:
        raise ConfigError(f"{file} has no prices of {provider}; it has {', '.join(sorted(book.rows)[:20])}")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        for name in chosen:
            (out / f"{name}.toml").write_text(book.toml(name, f"{whose}, {file.name}"), encoding="utf-8")
    left = [each for each in book.left_out if provider is None or each[0].startswith(f"{provider}/")]
    if as_json:
        told = [{"model": model, "what": what, "why": why} for model, what, why in left]
        write_json({"rows": {name: len(book.rows[name]) for name in chosen}, "left_out": told})
        return FINDINGS if left else CLEAN
    if out is None:
        for name in chosen:
            write_line(book.toml(name, f"{whose}, {file.name}"))
    write_table(["left out", "what", "why"], [list(each) for each in left])
    write_line(f"\n{counted(sum(len(book.rows[name]) for name in chosen), 'row')}, {len(left)} left out")
    return FINDINGS if left else CLEAN


def _told(row: PriceRow) -> dict[str, object]:
    return {
        "price_id": row.price_id,
        "provider": row.provider,
        "match": row.match,
        "model": row.model,
        "valid_from": row.valid_from,
        "valid_to": row.valid_to,
        "up_to_input_tokens": row.up_to_input_tokens,
        "terms": str(row.terms) or None,
        "above": [
            {"input_tokens": tier.above, "rule": tier.rule, "counts": tier.counts}
            | {"per_million": {_cell(*cell): price for cell, price in tier.prices.items()}}
            for tier in row.above
        ],
        "fees": {str(kind): price for kind, price in row.fees.items()},
        "currency": row.currency,
        "per_million": {_cell(*cell): price for cell, price in row.prices.items()},
        "origin": row.origin,
        "checked_on": row.checked_on,
    }


def _cells(row: PriceRow) -> list[object]:
    told = "  ".join(f"{_cell(*cell)} {price}" for cell, price in row.prices.items())
    for tier in row.above:
        told += "".join(f"  {_cell(*cell)} above {tier.above} {price}" for cell, price in tier.prices.items())
    told += "".join(f"  fee {kind} {price}" for kind, price in row.fees.items())
    return [
        row.provider,
        str(row.match),
        row.model,
        row.valid_from,
        row.valid_to,
        str(row.terms),
        told,
        row.currency,
        row.checked_on,
        row.origin,
    ]


def _cell(token_class: str, modality: str) -> str:
    return str(token_class) if modality == "text" else f"{token_class}_{modality}"


COMMAND = Command("prices", prices, LOOK, order=4)
