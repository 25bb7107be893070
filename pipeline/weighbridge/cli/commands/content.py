"""`weighbridge content`: token ids, packed smaller or measured. Ids are decrypted in memory and never shown."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Annotated

import typer

from weighbridge.cli.command import WEIGH, Command
from weighbridge.cli.exits import CLEAN, FINDINGS
from weighbridge.cli.options import AsJson, Config, LogLevel, Month, Since, Until, check_range
from weighbridge.cli.output import write_json, write_line, write_table
from weighbridge.cli.session import home_of
from weighbridge.cli.tables import packed_of, write_packed
from weighbridge.schemas.errors import ConfigError

if TYPE_CHECKING:
    from weighbridge.pipeline.content.blocks import Reader
    from weighbridge.pipeline.run.home import Home

content = typer.Typer(
    no_args_is_help=True, help="Token ids: pack them smaller, or measure them. No id is ever shown, written or logged."
)

Keys = Annotated[
    str | None,
    typer.Option("--content-keys", metavar="DIR", help="Folder with the keys of token ids. Default: of the settings."),
]


@content.command("recompress")
def recompress(
    ctx: typer.Context,
    month: Month = None,
    since: Since = None,
    until: Until = None,
    content_keys: Keys = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Pack the small blocks of each day into larger ones, under the same keys.

    Safe to kill and to run again: a day is written anew in one commit, or not at all. Exit 1 where a block is damaged;
    blocks whose key was destroyed are left as they are.
    """
    from weighbridge.pipeline.content.blocks import TABLE
    from weighbridge.pipeline.content.recompress import recompress as pack

    check_range(since, until)
    home = home_of(ctx, config, log_level, given(content_keys))
    keys = reader_of(home)
    lake = home.lake()
    days = [day for day in lake.days(TABLE) if _within(day, month, since, until)]
    done = pack(lake, keys, days)
    lake.compact(TABLE)
    if as_json:
        write_json(packed_of(done))
    else:
        write_packed(done)
    return FINDINGS if done.unsound else CLEAN


@content.command("metrics")
def metrics(
    ctx: typer.Context,
    month: Month = None,
    since: Since = None,
    until: Until = None,
    each: Annotated[bool, typer.Option("--each", help="One line per attempt, child and stream.")] = False,
    content_keys: Keys = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Measure token ids: how many, how many distinct, how many 4-grams repeat, as many as the engine counted or not.

    Only numbers leave this verb. Exit 1 where there are not as many ids as the engine counted.
    """
    import polars as pl

    from weighbridge.pipeline.content.metrics import run_metrics, summed
    from weighbridge.schemas.identity import AttemptKey

    check_range(since, until)
    home = home_of(ctx, config, log_level, given(content_keys))
    keys = reader_of(home)
    found = run_metrics(home.lake(), keys, first=since, last=until)
    if month is not None:
        found = found.filter(pl.col("day").dt.strftime("%Y-%m") == month)
    unmet = not found.filter(~pl.col("met")).is_empty()
    if each:
        rows = [
            {"attempt": AttemptKey(row.pop("attempt_hi"), row.pop("attempt_lo")).to_hex(), **row}
            for row in found.to_dicts()
        ]
    else:
        rows = summed(found).to_dicts()
    if as_json:
        write_json(rows)
    else:
        names = list(rows[0]) if rows else ["source", "stream", "ids"]
        write_table(names, [[row[name] for name in names] for row in rows])
        if unmet:
            write_line("\nThere are not as many ids as the engine counted.\nNext: weighbridge content metrics --each")
    return FINDINGS if unmet else CLEAN


def given(content_keys: str | None) -> dict[str, object]:
    """A folder that is named on the command line goes before whatever the settings name."""
    if content_keys is None:
        return {}
    return {"content_keys": content_keys, "content_key_command": [], "content_key_variable": ""}


def reader_of(home: Home) -> Reader:
    from weighbridge.pipeline.content.provider import key_provider

    keys = key_provider(home.settings)
    if keys is None:
        raise ConfigError(
            "no keys of token ids are named; set content_keys to the folder the agent writes them to, or "
            "content_key_command to the command that asks a key service, or give --content-keys DIR"
        )
    return keys


def _within(day: date, month: str | None, since: date | None, until: date | None) -> bool:
    return (
        (month is None or f"{day:%Y-%m}" == month)
        and (since is None or day >= since)
        and (until is None or day <= until)
    )


COMMAND = Command("content", content, WEIGH, order=5)
