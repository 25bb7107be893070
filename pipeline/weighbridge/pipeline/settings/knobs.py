"""What can be set: one line per knob, in one table. `resolve` says where the values come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

from weighbridge.pipeline.settings.kinds import (
    ENGINE,
    LEVEL,
    LINE,
    LOCATION,
    MAYBE_PATH,
    PATH,
    PATHS,
    SOME,
    VARIABLE,
    WHOLE,
    WORDS,
    ZONE,
    table,
)
from weighbridge.pipeline.settings.shape import Kind
from weighbridge.pipeline.settings.sources import SOURCES
from weighbridge.pipeline.settings.tables import ALERTS, BASELINE, CLOSE, LATENESS, MATERIAL, RETENTION

PREFIX = "WEIGHBRIDGE_"


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
    contracts: tuple[Path, ...] = field(
        metadata=_knob(PATHS, [], "contracts with providers, or folders of them: what bills are held against")
    )
    allocation: Path | None = field(
        metadata=_knob(MAYBE_PATH, "", "file that says which team bears what; `allocate` reads it")
    )
    reports: Path = field(metadata=_knob(PATH, "reports", "folder that reports are written to"))
    title: str = field(metadata=_knob(LINE, "Token and cost report", "title of the report"))
    timezone: str = field(
        metadata=_knob(ZONE, "UTC", "time zone of days and months in reports; the lake itself is in UTC")
    )
    log_level: str = field(
        metadata=_knob(LEVEL, "warning", "what the log on standard error tells: debug, info, warning or error")
    )
    engine: str = field(
        metadata=_knob(ENGINE, "polars", "what computes reconciliations: polars, duckdb or spark, with the same digits")
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
    lateness: Mapping[str, Any] = field(
        metadata=_knob(
            table(LATENESS), {}, "until when what is missing may still come: until then amounts are provisional"
        )
    )
    quarantine_rows: int = field(
        metadata=_knob(
            SOME,
            1_000,
            "how many rows that break one rule on one day are held in quarantine by place; all are counted",
        )
    )
    shared_grace_days: int = field(
        metadata=_knob(
            WHOLE,
            2,
            "how many whole days, by the calendar, must have passed after a day before the shared edition has it",
        )
    )
    clock_days: int = field(
        metadata=_knob(
            SOME, 7, "retention and erasure refuse a clock further ahead of everything known here than this, in days"
        )
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
    sources: Sequence[Mapping[str, Any]] = field(
        metadata=_knob(SOURCES, [], "what a night fetches itself: tables [[sources]] at the end of the file")
    )
    closes: Path = field(metadata=_knob(PATH, "closes", "folder that closed months are kept in"))
    close: Mapping[str, Any] = field(metadata=_knob(table(CLOSE), {}, "when a month may be closed"))
    material: Mapping[str, Any] = field(metadata=_knob(table(MATERIAL), {}, "which findings matter"))
    retention: Mapping[str, Any] = field(
        metadata=_knob(table(RETENTION), {}, "how many days each class of data is kept")
    )
    baseline: Mapping[str, Any] = field(
        metadata=_knob(table(BASELINE), {}, "how baselines are made, and what requests of a task are declared to take")
    )
    alerts: Mapping[str, Any] = field(metadata=_knob(table(ALERTS), {}, "where news of baselines go"))

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
