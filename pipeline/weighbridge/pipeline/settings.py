"""What can be set: one line per knob, from one TOML file and the environment, resolved once into a frozen value.

    command line  >  environment (WEIGHBRIDGE_...)  >  weighbridge.toml  >  default

Nothing else of the product reads the environment. Paths in the file are relative to the folder of the file. A policy
with structure is a table of the file (`[retention]`), with one line per key here too.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import tomllib
import zoneinfo
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from weighbridge.pipeline.settings_shape import (
    InsideError,
    Kind,
    Line,
    Named,
    Shape,
    json_object,
    nearest,
    type_name,
)
from weighbridge.schemas.enumerations import Severity
from weighbridge.schemas.errors import ConfigError

FILE = "weighbridge.toml"
PREFIX = "WEIGHBRIDGE_"
CONFIG_ENV = "WEIGHBRIDGE_CONFIG"
LOG_LEVELS = ("debug", "info", "warning", "error")
_CENTURY = 36_500
_FEWEST_DAYS, _MOST_DAYS = 7, 366
_MINUTE = 60
# Names of the environment that start like ours and are no knobs: where the file is, what tests and the agent use.
_RESERVED = frozenset(
    {
        *(CONFIG_ENV, "WEIGHBRIDGE_REAL", "WEIGHBRIDGE_REAL_MARKER", "WEIGHBRIDGE_MODELS", "WEIGHBRIDGE_CAPTURE_RAISE"),
        "WEIGHBRIDGE_ROOT_KEY",  # the root key of token ids, where that is how they are kept
    }
)


def _location(value: str, folder: Path) -> str:
    if not value:
        raise ValueError("a folder or an object-store URL such as s3://bucket/lake")
    return value if "://" in value else str((folder / Path(value).expanduser()).absolute())


def _path(value: str, folder: Path) -> Path:
    if not value:
        raise ValueError("a path")
    return (folder / Path(value).expanduser()).absolute()


def _paths(value: str | list[object], folder: Path) -> tuple[Path, ...]:
    items = value.split(os.pathsep) if isinstance(value, str) else value
    if not all(isinstance(item, str) for item in items):
        raise ValueError("a list of paths")
    return tuple(_path(str(item), folder) for item in items if item)


def _maybe_path(value: str, folder: Path) -> Path | None:
    return _path(value, folder) if value else None


def _words(value: str | list[object], _: Path) -> tuple[str, ...]:
    allowed = "a program and its arguments, in the environment quoted as for a shell"
    try:
        items = shlex.split(value) if isinstance(value, str) else value
    except ValueError:
        raise ValueError(allowed) from None
    if not all(isinstance(item, str) and item for item in items):
        raise ValueError(allowed)
    return tuple(map(str, items))


def _variable(value: str, _: Path) -> str:
    if value and not value.isidentifier():
        raise ValueError("the name of an environment variable")
    return value


def _whole(value: int | str, _: Path) -> int:
    text = str(value)
    if isinstance(value, bool) or not text.isascii() or not text.isdigit():
        raise ValueError("a whole number from 0 up")
    return int(text)


def _zone(value: str, _: Path) -> str:
    try:
        zoneinfo.ZoneInfo(value)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError("a time zone of the IANA database, such as UTC or Europe/Berlin") from error
    return value


def _level(value: str, _: Path) -> str:
    if value not in LOG_LEVELS:
        raise ValueError(", ".join(LOG_LEVELS))
    return value


def _line(value: str, _: Path) -> str:
    if not value.strip() or "\n" in value:
        raise ValueError("one line of text")
    return value


def _days(value: int, _: Path) -> int:
    if not 0 <= value <= _CENTURY:
        raise ValueError(f"a number of days from 0 to {_CENTURY}")
    return value


def _codes(value: list[object], _: Path) -> frozenset[str]:
    if not all(isinstance(item, str) and re.fullmatch(r"[a-z][a-z0-9_]{2,47}", item) for item in value):
        raise ValueError("a list of codes of findings, as `weighbridge findings ls` shows them")
    return frozenset(map(str, value))


def _amount(value: str, _: Path) -> Decimal:
    if not re.fullmatch(r"[0-9]{1,18}(\.[0-9]{1,18})?", value):
        raise ValueError('an amount in quotes, such as "0.50"')
    return Decimal(value)


def _rate(value: float, _: Path) -> Fraction:
    if not 0 < value <= 1 / 2:  # which a NaN is not either
        raise ValueError("a share above 0 and not above 0.5")
    return Fraction(str(value))


def _range(value: list[object], _: Path) -> tuple[int, int]:
    low, high = value if len(value) == len(("low", "high")) else (None, None)
    if not (type(low) is int and type(high) is int and 0 <= low <= high):
        raise ValueError("the lowest and the highest whole number of tokens, such as [50, 100]")
    return low, high


def _window(value: int, _: Path) -> int:
    if not _FEWEST_DAYS <= value <= _MOST_DAYS:
        raise ValueError(f"a number of days from {_FEWEST_DAYS} to {_MOST_DAYS}")
    return value


def _few(value: int, _: Path) -> int:
    if not 1 <= value <= _MINUTE:
        raise ValueError(f"a whole number from 1 to {_MINUTE}")
    return value


def _address(value: str, _: Path) -> str:
    if value and not re.fullmatch(r"https?://[^\s/]+(/\S*)?", value):
        raise InsideError("", "is no address that begins with https:// or http:// (not shown: it may hold a secret)")
    return value


def _severity(value: str, _: Path) -> Severity:
    try:
        return Severity(value)
    except ValueError:
        raise ValueError(", ".join(Severity)) from None


def _table(shape: Shape) -> Kind:
    return Kind("a table", (dict,), shape.parse, shape)


LOCATION = Kind("text", (str,), _location)
PATH = Kind("text", (str,), _path)
MAYBE_PATH = Kind("text", (str,), _maybe_path)
WORDS = Kind("a list of texts", (list,), _words)
VARIABLE = Kind("text", (str,), _variable)
PATHS = Kind("a list of texts", (list,), _paths)
WHOLE = Kind("a whole number", (int,), _whole)
ZONE = Kind("text", (str,), _zone)
LEVEL = Kind("text", (str,), _level)
LINE = Kind("text", (str,), _line)
DAYS = Kind("a whole number", (int,), _days)
CODES = Kind("a list of texts", (list,), _codes)
AMOUNT = Kind("text", (str,), _amount)
RATE = Kind("a fraction", (float, int), _rate)
RANGE = Kind("a list of two whole numbers", (list,), _range)
WINDOW = Kind("a whole number", (int,), _window)
FEW = Kind("a whole number", (int,), _few)
ADDRESS = Kind("text", (str,), _address)
SEVERITY = Kind("text", (str,), _severity)

_DAYS_OF_ROWS = (
    Line("billing", DAYS, 3650, "exact counts, usage reports, invoices, amounts, findings"),
    Line("operations", DAYS, 400, "requests and their stages"),
    Line("ids", DAYS, 30, "token ids, and their keys"),
    Line("traces", DAYS, 7, "traces of sparse strategies, and their keys"),
)
_DAYS_OF_SOME = tuple(Line(line.name, DAYS, None, line.doc) for line in _DAYS_OF_ROWS)
RETENTION = Shape(
    lines=(
        Line("reports", DAYS, 3650, "reports and closes"),
        *_DAYS_OF_ROWS,
        Line("spool", DAYS, 7, "sealed segments on this host, from their acknowledgement on"),
    ),
    named=(
        Named("tenants", r"t_[0-9a-f]{16}|unassigned", "a tenant's pseudonym, as reports show it", _DAYS_OF_SOME),
        Named("tasks", r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}", "the name of a task", _DAYS_OF_SOME),
    ),
)


CLOSE = Shape(
    lines=(
        Line("grace_days", DAYS, 3, "how many UTC days after its last one a month stays open for rows that come late"),
        Line("accepts", CODES, [], "codes of findings whose open errors hold no month back"),
        Line("material", AMOUNT, "0", "an open error about less money than this holds no month back, in any currency"),
    )
)

BASELINE = Shape(
    lines=(
        Line("reference_days", WINDOW, 28, "days before a judged one that limits are made of"),
        Line("season_days", WINDOW, 84, "days before a judged one that seasons and days as wholes are learnt from"),
        Line("false_share", RATE, 0.05, "of the cells reported in a day, the share that may be false"),
        Line("request_rate", RATE, 0.01, "how many single requests may lie above their limit"),
        Line("floor", AMOUNT, "1.00", "least cost of what a cell has more than expected in a day, in any currency"),
    ),
    named=(
        Named(
            "tasks",
            r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}",
            "the name of a task",
            (
                Line("input", RANGE, None, "lowest and highest input tokens of one request"),
                Line("output", RANGE, None, "lowest and highest output tokens of one request"),
                Line("tolerance", RATE, None, "how far beyond either end is still within the band"),
            ),
            {
                "short_classification": {"input": [50, 100], "output": [5, 10], "tolerance": 0.10},
                "document_summary": {"input": [1000, 2000], "output": [100, 200], "tolerance": 0.15},
                "code_generation": {"input": [200, 500], "output": [50, 150], "tolerance": 0.20},
                "complex_reasoning": {"input": [500, 1000], "output": [100, 300], "tolerance": 0.25},
            },
        ),
    ),
)
ALERTS = Shape(
    lines=(
        Line("webhook", ADDRESS, "", "address that new findings of baselines are posted to as JSON"),
        Line("timeout_s", FEW, 5, "seconds the receiver has for an answer"),
        Line("attempts", FEW, 3, "how often a post is tried"),
        Line("severity", SEVERITY, "warning", "least severity that is posted: info, notice, warning or error"),
        Line("textfile", MAYBE_PATH, "", "file for the textfile collector of Prometheus, such as weighbridge.prom"),
    )
)


def _knob(kind: Kind, default: object, doc: str) -> dict[str, object]:
    return {"kind": kind, "default": default, "doc": doc}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every knob, resolved. `origins` says where each came from, and each line that is written in a table."""

    lake: str = field(metadata=_knob(LOCATION, "lake", "folder of the lake, or an object-store URL"))
    key_file: Path = field(
        metadata=_knob(
            PATH, "keys/pseudonym.key", "file with the pseudonym key of this installation; keep it at mode 0600"
        )
    )
    prices: tuple[Path, ...] = field(
        metadata=_knob(PATHS, [], "price files of your own; their rows go before the built-in book")
    )
    reports: Path = field(metadata=_knob(PATH, "reports", "folder that reports are written to"))
    title: str = field(metadata=_knob(LINE, "Token and cost report", "title of the report"))
    timezone: str = field(
        metadata=_knob(ZONE, "UTC", "time zone of days and months in reports; the lake itself is in UTC")
    )
    log_level: str = field(
        metadata=_knob(LEVEL, "warning", "what the log on standard error tells: debug, info, warning or error")
    )
    price_age_days: int = field(
        metadata=_knob(WHOLE, 90, "doctor gives notice of prices not compared with their source for longer")
    )
    free_disk_mib: int = field(
        metadata=_knob(WHOLE, 1024, "doctor warns where the lake's disk has less room than this, in MiB")
    )
    acks: Path | None = field(
        metadata=_knob(
            MAYBE_PATH,
            "",
            "folder for the acknowledgements of sealed segments; left empty, they lie beside each segment",
        )
    )
    ids_grace_days: int = field(
        metadata=_knob(WHOLE, 2, "of the newest days of the lake, how many may still get token ids that were announced")
    )
    shared_grace_days: int = field(
        metadata=_knob(WHOLE, 2, "of the newest days of the lake, how many are not yet released to the shared edition")
    )
    content_keys: Path | None = field(
        metadata=_knob(MAYBE_PATH, "", "folder with the keys of token ids; only `content` and `nightly` read it")
    )
    content_key_command: tuple[str, ...] = field(
        metadata=_knob(WORDS, [], "command that asks a key service for the keys of token ids, instead of a folder")
    )
    content_key_variable: str = field(
        metadata=_knob(VARIABLE, "", "environment variable with the root key of token ids, instead of a folder")
    )
    litellm_database_variable: str = field(
        metadata=_knob(
            VARIABLE,
            "LITELLM_DATABASE_URL",
            "environment variable that says how to reach LiteLLM's database, for `ingest`",
        )
    )
    litellm_database_file: Path | None = field(
        metadata=_knob(MAYBE_PATH, "", "file that says it instead; keep it at mode 0600")
    )
    closes: Path = field(metadata=_knob(PATH, "closes", "folder that closed months are kept in"))
    close: Mapping[str, Any] = field(metadata=_knob(_table(CLOSE), {}, "when a month may be closed"))
    retention: Mapping[str, Any] = field(
        metadata=_knob(_table(RETENTION), {}, "how many days each class of data is kept")
    )
    baseline: Mapping[str, Any] = field(
        metadata=_knob(_table(BASELINE), {}, "how baselines are made, and what requests of a task are declared to take")
    )
    alerts: Mapping[str, Any] = field(metadata=_knob(_table(ALERTS), {}, "where news of baselines go"))

    origins: Mapping[str, str] = field(default_factory=dict, compare=False)
    folder: Path = field(default=Path(), compare=False)


@dataclass(frozen=True, slots=True)
class Knob:
    """One line of the table of settings.

    Attributes:
        name: its key in the TOML file, and on the command line where it has an option there.
        env: its name in the environment.
        kind: its type, with the function that checks a value.
        default: as it would be written in the file.
        doc: one sentence.
    """

    name: str
    env: str
    kind: Kind
    default: object
    doc: str


KNOBS: tuple[Knob, ...] = tuple(
    Knob(item.name, PREFIX + item.name.upper(), item.metadata["kind"], item.metadata["default"], item.metadata["doc"])
    for item in fields(Settings)
    if item.default is MISSING and item.default_factory is MISSING
)
_BY_NAME = {knob.name: knob for knob in KNOBS}
_BY_ENV = {knob.env: knob for knob in KNOBS}


def find_config(given: Path | None, env: Mapping[str, str], start: Path | None = None) -> Path:
    """The settings file: the one given, else the one the environment names, else `weighbridge.toml` here or above.

    Raises:
        ConfigError: the named file is not there, or there is none here or in any folder above.
    """
    named = given or (Path(env[CONFIG_ENV]) if env.get(CONFIG_ENV) else None)
    if named is not None:
        path = named / FILE if named.is_dir() else named
        if not path.is_file():
            raise ConfigError(f"there is no settings file {path}; make one with `weighbridge init {path.parent}`")
        return path.absolute()
    here = (start or Path.cwd()).absolute()
    for folder in (here, *here.parents):
        if (folder / FILE).is_file():
            return folder / FILE
    raise ConfigError(
        f"there is no {FILE} in {here} or above it; "
        "make an installation with `weighbridge init DIR` and go there, or name one with --config DIR"
    )


def load(
    config: Path | None = None,
    env: Mapping[str, str] | None = None,
    given: Mapping[str, object] | None = None,
) -> Settings:
    """Resolve every knob.

    Args:
        config: the TOML file, or null for defaults relative to the current folder.
        env: the environment; the process's own where null.
        given: values of the command line, by knob name; null ones are passed over.

    Raises:
        ConfigError: an unknown key (with the nearest valid one), a value of the wrong type or out of range, a file
            that is not TOML.
    """
    env = os.environ if env is None else env
    folder = (config.parent if config else Path.cwd()).absolute()
    values: dict[str, object] = {}
    origins: dict[str, str] = {}

    def take(knob: Knob, raw: object, where: str, origin: str, base: Path, types: tuple[type, ...]) -> None:
        values[knob.name] = _checked(knob, raw, where, base, types)
        for name in [name for name in origins if name.startswith(f"{knob.name}.")]:
            del origins[name]
        origins[knob.name] = origin
        if knob.kind.shape:
            origins.update({f"{knob.name}.{name}": origin for name in _mapping(raw)})

    for knob in KNOBS:
        take(knob, knob.default, knob.name, "default", folder, knob.kind.types)
    for name, raw in (_read(config) if config else {}).items():
        knob = _known(name, _BY_NAME, str(config))
        take(knob, raw, f"{config}: {name}", str(config), folder, knob.kind.types)
    for name, text in sorted(env.items()):
        if name.startswith(PREFIX) and name not in _RESERVED:
            take(_known(name, _BY_ENV, "environment"), text, name, f"environment {name}", Path.cwd(), (str,))
    for name, raw in (given or {}).items():
        if raw is not None:
            knob, option = _known(name, _BY_NAME, "command line"), "--" + name.replace("_", "-")
            take(knob, raw, option, f"option {option}", Path.cwd(), (str, *knob.kind.types))
    return Settings(**values, origins=origins, folder=folder)  # type: ignore[arg-type]


def _read(config: Path) -> dict[str, object]:
    try:
        return tomllib.loads(config.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"there is no settings file {config}; make one with `weighbridge init`") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{config} is not TOML: {error}; correct that line") from error


def _known(name: str, table: Mapping[str, Knob], where: str) -> Knob:
    if name in table:
        return table[name]
    raise ConfigError(f"{where}: unknown setting {name!r}; {nearest(name, table)}")


def _mapping(raw: object) -> Mapping[str, object]:
    return json_object(raw) if isinstance(raw, str) else raw if isinstance(raw, Mapping) else {}


def _checked(knob: Knob, raw: object, where: str, folder: Path, types: tuple[type, ...]) -> object:
    if not isinstance(raw, types) or isinstance(raw, bool):
        raise ConfigError(f"{where} is {type_name(raw)}; {knob.kind.name} is expected: {knob.doc}")
    try:
        return knob.kind.parse(raw, folder)
    except InsideError as error:
        raise ConfigError(f"{where}{'.' if error.at else ''}{error.at} {error}") from error
    except ValueError as error:
        raise ConfigError(f"{where} is {raw!r}; allowed is {error}") from error


def document(given: Mapping[str, object] | None = None) -> str:
    """The text of a settings file that names every knob, with its sentence, environment name and default.

    Args:
        given: knob name -> value to be written; the others stay commented out at their default.
    """
    lines = ["# Settings of Weighbridge. A commented line shows the default; the environment goes before this file."]
    for knob in sorted(KNOBS, key=lambda knob: knob.kind.shape is not None):  # what follows a table's head is in it
        chosen = (given or {}).get(knob.name)
        lines += ["", f"# {knob.doc}"]
        if knob.kind.shape:
            lines.append(f"# environment: {knob.env}, one JSON object in place of the whole table")
            lines += _document_table(f"{knob.name}", knob.kind.shape, _mapping(chosen))
        else:
            lines.append(f"# environment: {knob.env}")
            lines.append(_document_line(knob.name, knob.default, chosen))
    return "\n".join(lines) + "\n"


def _document_table(head: str, shape: Shape, chosen: Mapping[str, object]) -> Iterator[str]:
    yield f"{'' if chosen else '# '}[{head}]"
    for line in shape.lines:
        yield f"{_document_line(line.name, line.default, chosen.get(line.name))}  # {line.doc}"
    for named in shape.named:
        tables = _mapping(chosen.get(named.name))
        for name in dict.fromkeys((*named.default, *tables)):
            written = _mapping(tables.get(name))
            yield f"{'' if written else '# '}[{head}.{named.name}.{json.dumps(name)}]"
            for key, value in {**named.default.get(name, {}), **written}.items():
                yield _document_line(key, value, written.get(key))
        keys = ", ".join(line.name for line in named.lines)
        yield f"# Each [{head}.{named.name}.NAME] may have {keys}; NAME is {named.means}."


def _document_line(name: str, default: object, chosen: object) -> str:
    value = json.dumps(default if chosen is None else chosen, ensure_ascii=False)
    return f"{'# ' if chosen is None else ''}{name} = {value}"
