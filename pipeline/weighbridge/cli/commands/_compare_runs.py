"""Verbs of `weighbridge compare` that hold answers together: `run` and `analyse`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weighbridge.cli.commands import _comparison
from weighbridge.cli.commands.content import Keys, given
from weighbridge.cli.exits import CLEAN, FINDINGS
from weighbridge.cli.options import AsJson, Config, LogLevel
from weighbridge.cli.output import counted, write_json, write_line, write_notice
from weighbridge.cli.session import begin, home_of, user_name
from weighbridge.schemas.enumerations import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weighbridge.pipeline.compare.gate import Gate
    from weighbridge.pipeline.run.comparing import Chosen
    from weighbridge.pipeline.run.home import Home
    from weighbridge.schemas.finding import Finding

DEMO = Path("out/compare")


def _currency(text: str) -> str:
    if not re.fullmatch(r"[A-Z]{3}", text):
        raise typer.BadParameter(f"{text!r} is no ISO 4217 code; write three capital letters, such as USD")
    return text


Margins = Annotated[
    list[str] | None,
    typer.Option("--margin", metavar="MEASURE=LOSS", help="What decides, and the loss you tolerate. May be repeated."),
]
Pairs = Annotated[int, typer.Option("--pairs", min=2, help="Fewer pairs are never judged.")]
Resource = Annotated[
    str | None,
    typer.Option("--by", metavar="NAME", help="Rank by attended, kv_bytes, kv_entries, forward, seconds or money."),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Of the resampling.")]
Hour = Annotated[
    str | None, typer.Option("--hour", metavar="AMOUNT", help="What an hour of the machine costs, to tell money.")
]
Currency = Annotated[str, typer.Option("--currency", parser=_currency, metavar="CODE", help="Of that amount.")]


def run(
    ctx: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="What to run: model, prompts, strategies, what decides.")
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="A tiny random model, in an installation of its own.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="New folder of the run; of --demo, of its installation.")
    ] = None,
    content_keys: Keys = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Run every strategy of a file on every prompt, the baseline twice, and compare what came of it.

    The model is local; it runs in a process of its own, under the agent, which takes ids and state events encrypted
    with the keys of the installation. Exit 1 where a finding is at least a warning.
    """
    from weighbridge.pipeline.compare.plan import read_plan
    from weighbridge.pipeline.compare.power import beforehand
    from weighbridge.pipeline.run.comparing import chosen, demonstration, run_comparison
    from weighbridge.schemas.errors import ConfigError

    begin(ctx, config, log_level)
    if demo == (file is not None):
        raise ConfigError("give a file that says what to run, or --demo, and one of the two")
    if file is None:
        home, plan = demonstration(out or DEMO)
    else:
        home, plan = home_of(ctx, config, log_level, given(content_keys)), read_plan(file)
    if (short := beforehand(plan.gate, len(plan.prompts), len(plan.strategies))) is not None:
        write_notice(short)
    folder = run_comparison(home, plan, None if file is None else out)
    held = chosen(str(folder), None, home)
    options = Options(gate=plan.gate, by=plan.by, hour=plan.hour, currency=plan.currency)
    return _told(held, options, home, as_json=as_json, where=folder)


def analyse(
    ctx: typer.Context,
    first: Annotated[
        str, typer.Argument(metavar="A", help="A run folder or JSON lines of answers; A#NAME: one of it.")
    ],
    second: Annotated[
        str | None, typer.Argument(metavar="B", help="What is held against it. Default: the other strategies of A.")
    ] = None,
    margin: Margins = None,
    pairs: Pairs = 30,
    by: Resource = None,
    seed: Seed = 0,
    hour: Hour = None,
    currency: Currency = "USD",
    lake: Annotated[bool, typer.Option("--lake", help="Keep it in the installation, with what it recommends.")] = False,
    content_keys: Keys = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Hold the answers of strategies against those of a baseline, id by id.

    A is a run folder of `compare run`, or a file with one answer a line (`pair`, `strategy`, `output_ids`). Exit 1
    where a finding is at least a warning. No id and no text is shown.
    """
    from weighbridge.pipeline.run.comparing import chosen

    begin(ctx, config, log_level)
    runs = any(Path(source.partition("#")[0]).is_dir() for source in (first, second) if source)
    home = home_of(ctx, config, log_level, given(content_keys)) if lake or runs else None
    options = Options(gate=_gate(margin, pairs, seed), by=by, hour=_amount(hour), currency=currency)
    return _told(chosen(first, second, home), options, home if lake else None, as_json=as_json)


@dataclass(frozen=True, slots=True)
class Options:
    """How answers are held together."""

    gate: Gate
    by: str | None
    hour: Decimal | None
    currency: str


def _told(held: Chosen, options: Options, home: Home | None, *, as_json: bool, where: Path | None = None) -> int:
    """Compare, keep it where there is an installation, and print it."""
    from weighbridge.pipeline.compare.comparison import compare as hold
    from weighbridge.pipeline.compare.found import findings
    from weighbridge.pipeline.compare.record import record
    from weighbridge.pipeline.compare.told import evicted, told

    found = hold(held.off, held.on, options.gate, resource=options.by, hour=options.hour)
    now = datetime.now(tz=UTC)
    lost = held.forgotten
    kept = None
    if home is not None:
        kept = record(
            home.lake(), found, now, user_name(), forgotten=lost, visible=held.visible, currency=options.currency
        )
        found = kept.found
    noted = findings(found, now.date(), lost, held.visible) if kept is None else list(kept.findings)
    refused = {} if kept is None else kept.refused
    gone = evicted(held.visible, held.shared)
    if as_json:
        number = None if kept is None else kept.comparison_id
        write_json(
            {
                **told(found),
                "refused": [
                    {"strategy": name, "by": each.changed_by, "at": each.changed_at, "reason": each.reason}
                    for name, each in refused.items()
                ],
                "evicted": gone,
                "traces_shut": held.shut,
                "findings": _noted(noted),
                "comparison": number,
                "run": where,
            }
        )
    else:
        _comparison.write(found, noted, refused)
        _comparison.write_evicted(gone)
        if held.shut:
            write_line(
                f"\n{counted(held.shut, 'trace')} cannot be opened: their key was destroyed, or they are damaged"
            )
        _comparison.write_shared(gone)
        if where is not None:
            write_line(f"\nrun: {where}")
        if kept is not None:
            write_line(f"kept as {kept.comparison_id[:8]}: weighbridge compare show --config {home and home.root}")
    return _code(noted)


def _gate(margin: list[str] | None, pairs: int, seed: int) -> Gate:
    from weighbridge.pipeline.compare.gate import Gate

    margins: dict[str, float] = {}
    for text in margin or ():
        name, equals, loss = text.partition("=")
        try:
            margins[name] = float(loss)
        except ValueError:
            equals = ""
        if not equals:
            raise typer.BadParameter(f"{text!r} is no margin; write it as MEASURE=LOSS, such as similarity=0.02")
    return Gate(margins=margins, pairs=pairs, seed=seed)


def _amount(text: str | None) -> Decimal | None:
    if text is None:
        return None
    from weighbridge.pipeline.compare.plan import MOST_HOUR

    try:
        amount = Decimal(text)
    except InvalidOperation:
        raise typer.BadParameter(f"{text!r} is no amount; write it as 2.50") from None
    if not amount.is_finite() or not 0 <= amount <= MOST_HOUR:
        raise typer.BadParameter(f"{text!r} is no price of an hour; give an amount from 0 to {MOST_HOUR}")
    return amount


def _noted(found: Sequence[Finding]) -> list[dict[str, object]]:
    return [
        {
            "code": each.code,
            "severity": each.severity,
            "subject": dict(each.subject),
            "answers": each.rows,
            "cause": each.cause,
            "cure": each.cure,
        }
        for each in found
    ]


def _code(found: Sequence[Finding]) -> int:
    return FINDINGS if any(each.severity in {Severity.WARNING, Severity.ERROR} for each in found) else CLEAN
