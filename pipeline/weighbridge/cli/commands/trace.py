"""`weighbridge trace`: the path of the tokens of one attempt."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weighbridge.cli.command import LOOK, Command
from weighbridge.cli.commands.content import Keys, given, reader_of
from weighbridge.cli.exits import CLEAN, FINDINGS
from weighbridge.cli.options import AsJson, Config, LogLevel
from weighbridge.cli.output import shown, write_json, write_line, write_table
from weighbridge.cli.session import home_of
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import AttemptKey

if TYPE_CHECKING:
    from weighbridge.pipeline.content.path import Path, Ranges
    from weighbridge.pipeline.lake import Lake

_COUNTS = (
    *("input_computed", "output_computed", "drafted", "accepted", "rejected", "bonus", "attended", "attended_dense"),
    *("kv_appended", "kv_evicted", "kv_merged", "kv_kept"),
)
_RANGES = 12  # that a line shows


def trace(
    ctx: typer.Context,
    attempt: Annotated[str, typer.Argument(metavar="ATTEMPT", help="Its id, or the first 8 or more digits of it.")],
    counts: Annotated[
        bool, typer.Option("--counts", help="Only counts of level 1: no key, no id, no position.")
    ] = False,
    content_keys: Keys = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Show the path of an attempt's tokens: input ids, output ids, and what was skipped, evicted, merged, drafted.

    It decrypts, so that it was opened, by whom and when is written into the log of changes first (`weighbridge changes
    --kind access`), the attempt by the hash that receipts know it by. With --counts nothing is decrypted and nothing
    written. Positions count from 0; one that something was merged into has no token id. Exit 1 where ids or a trace do
    not open.
    """
    home = home_of(ctx, config, log_level, given(content_keys))
    lake = home.lake()
    # Who may see counts may not see what lies in the domain of content, so nothing there is looked at for them.
    key = _found(lake, attempt, ("attempt",) if counts else ("attempt", "token_run", "state_event"))
    summary = _summary(lake, key)
    if counts:
        told: dict[str, Any] = {"attempt": key.to_hex(), "sources": summary}
        if as_json:
            write_json(told)
        else:
            _write_counts(told)
        return CLEAN
    keys = reader_of(home)

    from weighbridge.pipeline.content.ids import id_runs
    from weighbridge.pipeline.content.path import path_of
    from weighbridge.pipeline.content.traces import open_traces, strategies
    from weighbridge.pipeline.run.changes import note_access

    noted = note_access(home, datetime.now(tz=UTC), "trace", key)
    names = strategies(lake)
    runs, traces = id_runs(lake, keys, key), open_traces(lake, keys, key)
    paths = [(each, path_of(each.events)) for each in traces]
    told = {
        "attempt": key.to_hex(),
        "noted_as": noted,
        "sources": summary,
        "ids": [asdict(run) for run in runs],
        "traces": [
            {
                "source": each.source,
                "child": each.child,
                "shut": each.shut,
                "strategies": [
                    {"name": names[id_].name, **names[id_].parameters} if id_ in names else {"strategy_id": id_}
                    for id_ in dict.fromkeys(event.strategy_id for event in each.events)
                    if id_ is not None
                ],
                "events": len(each.events),
                **asdict(path),
            }
            for each, path in paths
        ],
    }
    if as_json:
        write_json(told)
    else:
        _write(told, [path for _, path in paths])
    shut = any(run.shut for run in runs) or any(each.shut for each in traces)
    return FINDINGS if shut else CLEAN


def _found(lake: Lake, digits: str, tables: tuple[str, ...]) -> AttemptKey:
    """The attempt whose id begins so.

    Raises:
        ConfigError: there is none, or there are several.
    """
    from weighbridge.pipeline.explain.kinds.attempt import begins_with

    text = digits.strip().lower()
    if not 8 <= len(text) <= 32 or set(text) - set("0123456789abcdef"):
        raise ConfigError(
            f"{shown(digits)!r} is no id of an attempt: 8 to 32 hexadecimal digits, as `explain` shows them"
        )
    keys = {
        AttemptKey(*row)
        for table in tables
        for row in lake.scan(table, columns=["attempt_hi", "attempt_lo"])
        .filter(begins_with(text))
        .unique()
        .collect()
        .rows()
    }
    if len(keys) != 1:
        some = ", ".join(sorted(key.to_hex() for key in keys)[:4])
        raise ConfigError(
            f"{len(keys)} attempts have an id that begins with {text}{f' ({some})' if some else ''}; give more "
            "digits (ids of one time begin alike: 16 tell them apart), or look for it with `weighbridge explain`"
        )
    return keys.pop()


def _summary(lake: Lake, key: AttemptKey) -> list[dict[str, Any]]:
    """What level 1 tells, by source."""
    import polars as pl

    of_it = (pl.col("attempt_lo") == key.lo) & (pl.col("attempt_hi") == key.hi)
    names = ["source", "level", "model_served", "strategy_id", *_COUNTS]
    rows = lake.scan("attempt").filter(of_it).sort("source", "revision").select(names).collect().to_dicts()
    return list({row["source"]: row for row in rows}.values())


def _write_counts(told: dict[str, Any]) -> None:
    write_line(f"attempt {told['attempt']}")
    names = ("source", "level", *_COUNTS)
    write_table(names, [[row[name] for name in names] for row in told["sources"]])


def _write(told: dict[str, Any], paths: list[Path]) -> None:
    _write_counts(told)
    write_line(f"that you looked is written down: trace {told['noted_as']}")
    for run in told["ids"]:
        about = f"\n{run['source']} {run['stream']} ids from {run['start']}" + (
            f", child {run['child']}" if run["child"] else ""
        )
        write_line(f"{about}: " + (f"shut ({run['shut']})" if run["shut"] else " ".join(map(str, run["ids"]))))
    if not told["ids"]:
        write_line("\nno ids: its level was below 2, or they are past their time or erased")
    for each, path in zip(told["traces"], paths, strict=True):
        names = ", ".join(str(one.get("name", one.get("strategy_id"))) for one in each["strategies"]) or "no strategy"
        write_line(f"\n{each['source']}, child {each['child']}: {each['events']} state events, {names}")
        if each["shut"]:
            write_line(f"shut ({each['shut']})")
        for space, gone, universe in path.dropped:
            write_line(f"left out before the model: {gone:,} of {universe:,} ({space})")
        _write_groups(path)
        for one in path.counted:
            layers = "all layers" if one.layers is None else f"layers {one.layers[0]}-{one.layers[1]}"
            write_line(f"{layers}, step {one.step}, {one.op}: {one.members:,} of {one.universe:,}")
        if path.steps:
            write_line("")
            names_ = ("step", "drafted", "accepted", "rejected", "bonus")
            write_table(names_, [[getattr(step, name) for name in names_] for step in path.steps])
        if path.contradictions:
            write_line(f"{path.contradictions:,} entries went without being there, or came though they were")
    if not told["traces"]:
        write_line("\nno trace: its level was below 2, no adapter told one, or it is past its time or erased")


def _write_groups(path: Path) -> None:
    if not path.groups:
        return
    names = ("layers", "heads", "written", "kept", "evicted", "merged", "masked", "skipped")
    lines = []
    for group in path.groups:
        layers = "all" if group.first < 0 else f"{group.first}-{group.last}"
        values = [group.written, group.kept, group.evicted, group.merged, group.masked, group.skipped]
        lines.append([layers, group.heads, *(None if group.unknown else value for value in values[:5]), values[5]])
    write_table(names, lines)
    for group, line in zip(path.groups, lines, strict=True):
        for what, ranges in (
            ("evicted in every head", group.evicted_everywhere),
            ("evicted in some", group.evicted_somewhere),
            ("masked in some", group.masked_somewhere),
            ("merged from", group.merged_from),
            ("merged into (no token id)", group.merged_into),
        ):
            if ranges:
                write_line(f"layers {line[0]}, {what}: {_text(ranges)}")


def _text(ranges: Ranges) -> str:
    some = ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges[:_RANGES])
    total = sum(high - low + 1 for low, high in ranges)
    return f"{some}{', ...' if len(ranges) > _RANGES else ''} ({total:,} positions)"


COMMAND = Command("trace", trace, LOOK, order=2)
