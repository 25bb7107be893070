"""`weighbridge probe`: fixed prompts sent to an endpoint, and the first step at which its weights part."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weighbridge.cli.command import CHECK, Command
from weighbridge.cli.exits import CLEAN, FINDINGS
from weighbridge.cli.options import AsJson, Config, LogLevel
from weighbridge.cli.output import counted, write_json, write_line, write_table
from weighbridge.cli.session import begin, home_of

if TYPE_CHECKING:
    from weighbridge.pipeline.probe.estimate import Estimate
    from weighbridge.pipeline.probe.explain import Parting
    from weighbridge.pipeline.probe.result import ProbeResult


def probe(
    ctx: typer.Context,
    endpoint: Annotated[str, typer.Argument(metavar="ENDPOINT", help="Its address, such as http://127.0.0.1:8000/v1.")],
    model: Annotated[str, typer.Option("--model", metavar="NAME", help="The model, as the endpoint names it.")],
    api: Annotated[str, typer.Option("--api", help="chat, responses, messages or completions.")] = "chat",
    provider: Annotated[
        str | None,
        typer.Option("--provider", metavar="NAME", help="Whose usage it is. Default: by the host, or by the metrics."),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            "--tokenizer",
            metavar="PATH",
            help="Folder of a tokenizer, tokenizer.json, tekken.json, or o200k_base=FILE. Nothing is fetched.",
        ),
    ] = None,
    template: Annotated[
        Path | None,
        typer.Option("--template", metavar="PATH", help="Chat template to count with, in place of the tokenizer's."),
    ] = None,
    metrics: Annotated[
        str | None, typer.Option("--metrics", metavar="URL", help="/metrics of the engine, on the same host.")
    ] = None,
    key_env: Annotated[
        str | None, typer.Option("--key-env", metavar="NAME", help="Environment variable that holds the key.")
    ] = None,
    steps: Annotated[
        str | None, typer.Option("--steps", metavar="NAMES", help="Only these, with commas between them.")
    ] = None,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, max=4096, help="Of one answer.")] = 16,
    repeat: Annotated[int, typer.Option("--repeat", min=1, max=16, help="How often a prompt is sent again.")] = 2,
    most: Annotated[int, typer.Option("--max-requests", min=1, help="More are never sent, retries included.")] = 64,
    timeout: Annotated[float, typer.Option("--timeout", min=0.1, metavar="SECONDS", help="Of one wait.")] = 60.0,
    yes: Annotated[bool, typer.Option("--yes", help="Send them, though the endpoint is another machine's.")] = False,
    lake: Annotated[bool, typer.Option("--lake", help="Keep what was found as findings of the installation.")] = False,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Send fixed prompts to an endpoint, and show the first step at which its counts part, with cause and cure.

    A prompt alone, then more words, special tokens, a system message, tools, history, streams and so on, one at a
    time. Each is weighed by usage, by counting it here (--tokenizer), and by the engine's counters (--metrics).

    Requests and their cost are said before; nothing of the answers is kept. Exit 1 where counts part.
    """
    from weighbridge.pipeline.price.book import PriceBook
    from weighbridge.pipeline.probe.found import keep
    from weighbridge.pipeline.probe.run import Wanted, run

    begin(ctx, config, log_level)
    home = home_of(ctx, config, log_level) if lake else None
    day = datetime.now(tz=UTC).date()
    book = PriceBook.load() if home is None else PriceBook.load(home.settings.prices)
    wanted = Wanted(
        endpoint=endpoint,
        model=model,
        api=api,
        provider=provider,
        tokenizer=tokenizer,
        template=template,
        metrics=metrics,
        key_env=key_env,
        steps=[name.strip() for name in steps.split(",") if name.strip()] if steps else (),
        max_tokens=max_tokens,
        repeat=repeat,
        most=most,
        timeout_s=timeout,
        yes=yes,
    )
    result = run(wanted, book, day, say=_say)
    kept = [] if home is None else keep(home.lake(), result, day)
    if as_json:
        write_json(result.to_dict() | ({} if home is None else {"findings": [one.finding_id for one in kept]}))
    else:
        _write(result)
        if home is not None:
            write_line(f"\n{counted(len(kept), 'finding')} kept in the lake: weighbridge findings ls")
    return FINDINGS if result.verdict == "parts" else CLEAN


def _say(estimate: Estimate) -> None:
    sys.stderr.write(f"weighbridge: {estimate}\n")


def _write(result: ProbeResult) -> None:
    names = ["step", "in: usage", "recount", "engine", "out: usage", "recount", "engine", "ended", "parts"]
    parted: dict[str, list[str]] = {}
    for parting in result.partings:
        parted.setdefault(parting.step, []).append(parting.cause.code)
    rows: list[list[object]] = []
    for row in result.to_dict()["steps"]:
        sides = [row[direction][weight] for direction in ("input", "output") for weight in _WEIGHTS]
        causes = ["other traffic"] * row["disturbed"] + parted.get(row["step"], [])
        rows.append([row["step"], *sides, row["finish"], ", ".join(causes)])
    write_table(names, rows)
    for name, why in result.left_out.items():
        write_line(f"left out: {name}: {why}")
    write_line()
    first = result.first
    if first is None:
        write_line(f"consistent: {_compared(result)}")
        return
    if result.verdict == "consistent":
        write_line(f"consistent: {_compared(result)}; but for conventions, of which the first is at")
    _write_parting(first)
    others = len(result.partings) - 1
    if others:
        write_line(f"{counted(others, 'other')} in the last column; --json tells each with its figures")


# What a weight is held against, in words.
_AGAINST = {
    "recount": "recount",
    "limit": "the limit",
    "engine": "the engine",
    "content": "the first step and the words beyond it",
    "plain": "the same prompt at the first step",
    "growth": "by what the same words weigh elsewhere",
}
_WEIGHTS = ("usage", "recount", "engine")


def _compared(result: ProbeResult) -> str:
    weights = ["usage"] + ["recount"] * (result.tokenizer is not None) + ["engine"] * (result.engine is not None)
    steps = f"in {counted(len(result.seen), 'step')}"
    if len(weights) == 1:
        return f"usage agrees with itself {steps}; nothing else was weighed (--tokenizer, --metrics)"
    return f"{' and '.join(weights)} agree {steps}"


def _write_parting(one: Parting) -> None:
    sure = {"none": "no cause fits", "ambiguous": f"or {', '.join(one.alternatives)}"}.get(str(one.confidence), "")
    off = " and ".join(one.weights)
    figures = "" if one.expected is None else _figures(one)
    write_line(f"{one.step}, {one.direction}: {off} {figures}")
    write_line(f"  cause: {one.cause.code}: {one.cause.title}{f' ({sure})' if sure else ''}")
    write_line(f"  cure:  {one.cause.cure}")


def _figures(one: Parting) -> str:
    said = "nothing" if one.observed is None else f"{one.observed:,}"
    verb = "says" if len(one.weights) == 1 else "say"
    return f"{verb} {said}, {_AGAINST[str(one.against)]} {one.expected:,}, difference {one.difference:+,} tokens"


COMMAND = Command("probe", probe, CHECK, order=1)
