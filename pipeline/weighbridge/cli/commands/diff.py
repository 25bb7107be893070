"""`weighbridge diff`: why one month comes to another figure than another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weighbridge.cli.command import LOOK, Command
from weighbridge.cli.exits import CLEAN
from weighbridge.cli.options import AsJson, Config, LogLevel, is_month
from weighbridge.cli.output import write_json, write_line, write_table
from weighbridge.cli.session import home_of

if TYPE_CHECKING:
    from weighbridge.pipeline.close.diff import MonthDifference
    from weighbridge.pipeline.close.side import Side

_NOW = "now"
_SHOWN = 15


def diff(
    ctx: typer.Context,
    before: Annotated[str, typer.Argument(metavar="A", help="A closed month, or the folder of a pack.")],
    after: Annotated[
        str, typer.Argument(metavar="B", help="Likewise; or `now`, the month A in the lake as it is; or `now:YYYY-MM`.")
    ],
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Explain the difference of two closed months, or of a closed month and the lake, by exact parts that add up.

    The parts are prices, traffic, mix, rules and data; `docs/closing.md` says what each is.
    """
    from weighbridge.pipeline.close.diff import diff as explain

    first = _side(ctx, before, None, config, log_level)
    found = explain(first, _side(ctx, after, first.period, config, log_level))
    if as_json:
        write_json(_told(found))
    else:
        _write(found)
    return CLEAN


def _side(ctx: typer.Context, text: str, other: str | None, config: Path | None, log_level: str | None) -> Side:
    from weighbridge.pipeline.close.pack import Pack
    from weighbridge.pipeline.close.side import Side
    from weighbridge.pipeline.close.verify import pack_of
    from weighbridge.pipeline.price.book import PriceBook
    from weighbridge.schemas.errors import ConfigError

    word, _, month = text.partition(":")
    if word == _NOW:
        period = month or other
        if period is None or not is_month(period):
            raise ConfigError(f"{text!r} names no month; write now:YYYY-MM, or now as the second of two")
        home = home_of(ctx, config, log_level)
        return Side.of_lake(home.lake(), period, PriceBook.load(home.settings.prices))
    if is_month(text):
        home = home_of(ctx, config, log_level)
        return Side.of_pack(pack_of(home.lake(), home.settings.closes, text))
    return Side.of_pack(Pack(Path(text)))


def _told(found: MonthDifference) -> dict[str, object]:
    about = ("before", "after", "difference", "parts")
    return {
        "before": found.before,
        "after": found.after,
        "money": [{"currency": m.currency, **{name: getattr(m, name) for name in about}} for m in found.money],
        "tokens": [{"class": t.token_class, **{name: getattr(t, name) for name in about}} for t in found.tokens],
        "models": [
            {name: getattr(m, name) for name in ("provider", "model", "currency", "before", "after", "prices")}
            for m in found.models
        ],
        "unpriced": {"before": found.unpriced[0], "after": found.unpriced[1]},
        "notes": found.notes,
    }


def _write(found: MonthDifference) -> None:
    from weighbridge.pipeline.close.parts import NAMES

    write_line(f"{found.before}  ->  {found.after}\n")
    names = ["before", "after", "difference", *NAMES]
    write_table(
        ["amount in", *names], [[m.currency, m.before, m.after, m.difference, *m.parts.values()] for m in found.money]
    )
    write_line()
    rows = [t for t in found.tokens if t.before or t.after]
    write_table(
        ["tokens of", *names], [[t.token_class, t.before, t.after, t.difference, *t.parts.values()] for t in rows]
    )
    write_line()
    write_table(
        ["model", "provider", "currency", "before", "after", "of it prices"],
        [[m.model, m.provider, m.currency, m.before, m.after, m.prices] for m in found.models[:_SHOWN]],
    )
    if any(found.unpriced):
        write_line(f"\nreports of unknown amount: {found.unpriced[0]:,} before, {found.unpriced[1]:,} after")
    for note in found.notes:
        write_line(f"note: {note}")


COMMAND = Command("diff", diff, LOOK, order=3)
