"""`weighbridge quarantine`: records that could not be read, and rows that break a rule."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from weighbridge.cli.command import LOOK, Command
from weighbridge.cli.commands._quarantine_rows import (
    NAMES,
    decision_on,
    entries_of,
    file_names,
    key_of,
    of_ids,
    told_of,
)
from weighbridge.cli.commands.ingest import Acks, Day, Importer, Mapping, Model, Provider, Task, Tenant
from weighbridge.cli.exits import CLEAN, FINDINGS
from weighbridge.cli.options import AsJson, Config, LogLevel, Month, Since, Until, check_range
from weighbridge.cli.output import counted, write_json, write_line, write_table
from weighbridge.cli.session import home_of, user_name
from weighbridge.cli.tables import ID_DIGITS
from weighbridge.schemas.enumerations import QuarantineReason
from weighbridge.schemas.errors import ConfigError

quarantine = typer.Typer(no_args_is_help=True, help="Records that could not be read, and rows that break a rule.")

By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who says so. Default: the user of this system.")]
Table = Annotated[str | None, typer.Option("--table", metavar="NAME", help="Only rows of this table.")]
Rule = Annotated[str | None, typer.Option("--rule", metavar="NAME", help="Only rows that break this rule.")]
File = Annotated[
    str | None,
    typer.Option("--file", metavar="DIGEST", help="Only of the file whose digest begins so."),
]


@quarantine.command("ls")
def ls(
    ctx: typer.Context,
    month: Month = None,
    since: Since = None,
    until: Until = None,
    table: Table = None,
    rule: Rule = None,
    reason: Annotated[
        QuarantineReason | None, typer.Option("--reason", metavar="WORD", help="Only for this reason.")
    ] = None,
    file: File = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=0, help="So many are listed; all are counted.")
    ] = 50,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Count what is in quarantine, and list the first; exit 1 where anything is.

    Unread records have a reason, rows of the lake have the rule they break. Their text is kept nowhere.
    """
    check_range(since, until)
    lake = home_of(ctx, config, log_level).lake()
    found = entries_of(lake, month, since, until, table=table, rule=rule, reason=reason, file=file)
    sums = Counter(map(key_of, found))
    files = Counter(key for key, _ in {(key_of(entry), entry.segment) for entry in found})
    names = file_names(lake)
    if as_json:
        counts = [
            {**dict(zip(("table", "rule", "reason", "importer"), key, strict=True)), "records": n, "files": files[key]}
            for key, n in sums.most_common()
        ]
        write_json(
            {"records": len(found), "counts": counts, "entries": [told_of(entry, names) for entry in found[:limit]]}
        )
        return FINDINGS if found else CLEAN
    write_table(
        ["table", "rule", "reason", "importer", "records", "files"],
        [[*key, number, files[key]] for key, number in sums.most_common()],
    )
    if limit and found:
        write_line()
        rows = [
            [entry.entry_id[:ID_DIGITS], *(getattr(entry, n) for n in NAMES), ", ".join(entry.reasons),
             ", ".join(entry.paths), names.get(entry.segment), entry.segment[:ID_DIGITS], entry.line + 1]
            for entry in found[:limit]
        ]  # fmt: skip
        write_table(["id", *NAMES, "reason", "value", "file", "digest", "line"], rows)
    write_line(f"\n{counted(len(found), 'record')} in quarantine, {min(limit, len(found)):,} listed")
    return FINDINGS if found else CLEAN


@quarantine.command("show")
def show(
    ctx: typer.Context,
    entry: Annotated[str, typer.Argument(metavar="ID", help=f"The first {ID_DIGITS} or more digits of its id.")],
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Show one record: why it is held, its file and line, what could be read of it, and what was decided."""
    from weighbridge.pipeline.validate.contract import contract
    from weighbridge.pipeline.validate.quarantine import entries, history

    lake = home_of(ctx, config, log_level).lake()
    held = entries(lake)
    gone = decision_on(lake, held, entry)
    if gone is not None:
        return _show_gone(gone, history(lake, [str(gone["entry_id"])]), as_json=as_json)
    (found,) = of_ids(lake, held, [entry])
    names = file_names(lake)
    says = next((r.says for r in contract(found.table, ()) if r.name == found.rule), None) if found.table else None
    changes = history(lake, [found.entry_id])
    if as_json:
        leaves = dict(found.leaves)
        write_json(told_of(found, names) | {"should": says, "leaves": leaves, "history": changes})
        return CLEAN
    shown = told_of(found, names) | {"should": says}
    write_table(["record", ""], [[key, value] for key, value in shown.items() if value not in (None, [], ())])
    if found.leaves:
        write_line()
        write_table(["leaf", "figure"], [list(leaf) for leaf in found.leaves])
    _write_history(changes)
    what = f" | weighbridge quarantine release {found.entry_id[:ID_DIGITS]} --reason ..." if found.stored else ""
    write_line(f"\nNext: weighbridge quarantine retry FILE{what}")
    return CLEAN


def _show_gone(decision: dict[str, object], changes: list[dict[str, object]], *, as_json: bool) -> int:
    """A record that is not held any more, and what was decided about it."""
    names = {"entry_id": "id", "table_name": "table", "rule": "rule", "segment": "segment", "line": "line"}
    shown = {name: decision[column] for column, name in names.items()}
    shown["line"] = None if shown["line"] is None else int(str(shown["line"])) + 1
    if as_json:
        write_json(shown | {"history": changes})
        return CLEAN
    write_table(["record", ""], [[key, value] for key, value in shown.items() if value is not None])
    _write_history(changes)
    write_line("\nIt is not in quarantine any more.")
    return CLEAN


def _write_history(changes: list[dict[str, object]]) -> None:
    if changes:
        write_line()
        names = ["state", "changed_at", "changed_by", "reason"]
        write_table([n.replace("_", " ") for n in names], [[change[n] for n in names] for change in changes])


@quarantine.command("retry")
def retry(
    ctx: typer.Context,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...", help="The unchanged files, sealed segments, or folders of them.", exists=True
        ),
    ],
    day: Day = None,
    importer: Importer = None,
    mapping: Mapping = None,
    provider: Provider = None,
    model: Model = None,
    tenant: Tenant = None,
    task: Task = None,
    acks: Acks = None,
    by: By = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Read files again of which records are in quarantine: what can be read now is stored, exactly once.

    A file is known by its digest, so it must be unchanged; a mended mapping or a newer version may read what did not
    read before. Nothing else of it is stored again. Exit 1 where records stay in quarantine.
    """
    from weighbridge.pipeline.content.provider import key_provider
    from weighbridge.pipeline.run.rooms import set_prices
    from weighbridge.pipeline.validate.retry import retry as read_again

    home = home_of(ctx, config, log_level, {"acks": acks})
    done = read_again(
        paths,
        home.lake(),
        key=home.key,
        by=by or user_name(),
        now=datetime.now(UTC),
        day=day,
        importer=importer,
        mapping=mapping,
        provider=provider,
        model=model,
        tenant=tenant,
        task=task,
        acks=home.settings.acks,
        keys=key_provider(home.settings, to_open=False),
    )
    set_prices(home, done.days)
    left = sum(file.left for file in done.files)
    names = ("name", "held", "stored", "replaced", "left")
    if as_json:
        files = [{"segment": file.segment} | {n: getattr(file, n) for n in names} for file in done.files]
        write_json({"files": files, "days": done.days})
    else:
        heads = ["file", "could not be read", "stored now", "replaced", "still held"]
        write_table(heads, [[getattr(file, name) for name in names] for file in done.files])
        if done.days:
            write_line("\nNext: weighbridge validate\n      weighbridge reconcile")
    return FINDINGS if left else CLEAN


@quarantine.command("release")
def release(
    ctx: typer.Context,
    reason: Annotated[str, typer.Option("--reason", help="Why the rows may stand; kept in the lake only.")],
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID...]", help="Ids, or a table and rule instead.", show_default=False),
    ] = None,
    month: Month = None,
    since: Since = None,
    until: Until = None,
    table: Table = None,
    rule: Rule = None,
    by: By = None,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Let rows that break a rule stand as they are: they no longer shut the gate, and who said so is kept.

    Either ids, or --table and --rule for all rows that break it on the days for which rows are held. What was never
    read cannot be released.
    """
    from weighbridge.pipeline.validate.quarantine import entries
    from weighbridge.pipeline.validate.quarantine import release as let_stand
    from weighbridge.pipeline.validate.whole import release_rule

    check_range(since, until)
    lake = home_of(ctx, config, log_level).lake()
    if ids and (table or rule or month or since or until):
        raise ConfigError("give ids, or --table and --rule with or without days, and not both")
    if ids:
        chosen = of_ids(lake, entries(lake), ids)
    elif table and rule:
        chosen = entries_of(lake, month, since, until, table=table, rule=rule)
    else:
        raise ConfigError("say which rows: their ids, or --table and --rule; `weighbridge quarantine ls` lists them")
    if not chosen:
        raise ConfigError(
            f"no row of {table} is held for the rule {rule}; `weighbridge quarantine ls` lists what is held"
        )
    decide = let_stand if ids else release_rule
    done = decide(lake, chosen, by=by or user_name(), reason=reason, now=datetime.now(UTC))
    write_line(f"{counted(done, 'row')} may stand\nNext: weighbridge validate")
    return CLEAN


COMMAND = Command("quarantine", quarantine, LOOK, order=1)
