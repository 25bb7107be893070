"""`weighbridge read`: what usage reports mean, without an installation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weighbridge.cli.command import LOOK, Command
from weighbridge.cli.exits import CLEAN, FINDINGS, USAGE, complain
from weighbridge.cli.options import AsJson, Config, LogLevel
from weighbridge.cli.output import counted, write_json, write_line, write_table
from weighbridge.cli.session import begin
from weighbridge.schemas.enumerations import QuarantineReason, Verdict
from weighbridge.schemas.errors import ConfigError

if TYPE_CHECKING:
    from weighbridge.pipeline import UsageReading

_PIPED, _STANDARD_INPUT = Path("-"), Path("/dev/stdin")
_TROUBLE = {
    QuarantineReason.NOT_JSON: "is not JSON",
    QuarantineReason.NOT_AN_OBJECT: "is not a JSON object",
    QuarantineReason.DUPLICATE_KEY: "names a key twice in one object",
    QuarantineReason.TOO_DEEP: "is nested too deeply",
    QuarantineReason.TOO_LARGE: "is too long",
}
_TOLD = 10  # lines that cannot be read are named, the others counted
_NO_RECORD = "no record could be read; one JSON object a line is expected"
_NO_API = (
    "no line has an `api`, so none can be read: write one into each, as in "
    '{"provider": "openai", "api": "openai_chat", "usage": {...}}'
)
_TOTALS = ("input_total", "output_total", "total")


def read(
    ctx: typer.Context,
    path: Annotated[
        Path, typer.Argument(metavar="FILE.jsonl", help="Records, one JSON object a line; - reads them piped.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE.parquet", help="Write the readings as Parquet: many records, quickly."),
    ] = None,
    as_json: AsJson = False,
    config: Config = None,
    log_level: LogLevel = None,
) -> int:
    """Read usage reports: disjoint counts, totals and a verdict.

    Stores nothing and needs no installation. A record holds provider, api, model and one of usage (object), response
    (body) or events (list); optionally context {ended, local_counts}. Recorded answers as `ingest` takes them
    (api_flavor) are read too. Exit 1 where a line is unreadable or contradictory, 2 where no line can be read or none
    has an `api`.
    """
    begin(ctx, config, log_level)
    if out is not None:
        _check_out(out)
        return _written(path, out, as_json=as_json)
    tally = Tally()
    if as_json:
        for number, read in tally.over(path):
            told = {"error": read} if isinstance(read, str) else read.to_dict()
            write_json({"line": number, **told}, lines=True)
    else:
        _write(list(tally.over(path)))
    for number, trouble in tally.bad[:_TOLD]:
        complain(f"line {number} {trouble}")
    if len(tally.bad) > _TOLD:
        complain(f"and {len(tally.bad) - _TOLD:,} more lines that cannot be read")
    if not as_json:
        write_line(
            f"\n{tally.read} read, {counted(len(tally.bad), 'unreadable line')}, {tally.contradictory} contradictory"
        )
    if not tally.read or tally.nameless == tally.read:
        complain(_NO_API if tally.read else _NO_RECORD)
        return USAGE
    return FINDINGS if tally.bad or tally.contradictory or tally.refused else CLEAN


def _check_out(out: Path) -> None:
    """Refuse a name that would say something else than what is written, and a folder that is not there."""
    if out.suffix != ".parquet":
        raise ConfigError(
            f"--out writes Parquet, so the name has to end with .parquet: {out.with_suffix('.parquet').name}"
        )
    if not out.parent.is_dir():
        raise ConfigError(f"--out {out}: the folder {out.parent} does not exist; make it, or name another")


def _written(path: Path, out: Path, *, as_json: bool) -> int:
    """Readings of a file as Parquet, and what became of its lines."""
    from weighbridge.pipeline.ingest.many.parquet import write_readings

    done = write_readings(_STANDARD_INPUT if path == _PIPED else path, out)
    verdicts, errors = dict(sorted(done.verdicts.items())), dict(sorted(done.errors.items()))
    if as_json:
        write_json({"records": done.records, "readings": done.rows, "verdicts": verdicts, "errors": errors})
    else:
        write_table(["verdict", "readings"], [[verdict, count] for verdict, count in verdicts.items()])
        write_line(f"\n{done.records} read, {counted(sum(errors.values()), 'unreadable line')}, written to {out}")
    for reason, count in errors.items():
        trouble = _TROUBLE[QuarantineReason(reason)]
        complain(f"{counted(count, 'line')}: {trouble}")
    if done.nameless == done.records:
        complain(_NO_API if done.records else _NO_RECORD)
        return USAGE
    return FINDINGS if errors or done.unreadable or done.verdicts[Verdict.CONTRADICTORY] else CLEAN


class Tally:
    """What became of the lines."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.read = self.contradictory = self.refused = self.nameless = 0
        self.bad: list[tuple[int, str]] = []

    def over(self, path: Path) -> Iterator[tuple[int, UsageReading | str]]:
        """The 1-based number of each line that is not blank, with its reading, or what is wrong with it."""
        from weighbridge.pipeline import read_usage
        from weighbridge.pipeline.ingest.json_lines import read_lines

        for line in read_lines(_STANDARD_INPUT if path == _PIPED else path):
            number = line.number + 1
            if line.value is None:
                trouble = _TROUBLE[line.reason or QuarantineReason.NOT_JSON]
                self.bad.append((number, trouble))
                yield number, trouble
                continue
            reading = read_usage(line.value)
            self.read += 1
            self.contradictory += reading.verdict is Verdict.CONTRADICTORY
            self.refused += "unreadable" in reading.flags
            self.nameless += reading.verdict is Verdict.UNKNOWN and not reading.api
            yield number, reading


def _write(found: list[tuple[int, UsageReading | str]]) -> None:
    readings: list[tuple[int | str, UsageReading]] = []
    for number, read in found:
        if not isinstance(read, str):
            # Calls beside the answer have a line each, under the number of their record: 3/1, 3/2.
            readings += [(number, read), *((f"{number}/{n}", child) for n, child in enumerate(read.children, 1))]
    if not readings:
        return
    classes = [
        name for name in readings[0][1].counts if any(reading.counts[name] is not None for _, reading in readings)
    ]
    names = ["line", "provider", "api", "model", *classes, *_TOTALS, "verdict", "flags", "reason"]
    write_table(
        [name.replace("_", " ") for name in names],
        [
            [
                number,
                reading.provider,
                reading.api,
                reading.model,
                *(reading.counts[name] for name in classes),
                *(getattr(reading, name) for name in _TOTALS),
                str(reading.verdict),
                " ".join(reading.flags),
                reading.reason,
            ]
            for number, reading in readings
        ],
    )


COMMAND = Command("read", read, LOOK, order=2)
