"""A mapping file: what the columns of someone else's table mean.

[source]
name = "acme-gateway"            # the system that wrote it; part of every record's identity
provider = "openai"              # where no column says so; likewise model, task, tenant
api = "declared"                 # or a real one, such as openai_chat, where the leaves have its names
separator = ","                  # of CSV; quote = "\\"" and nulls = ["", "NULL"] too

[columns]                        # our column = their column
provider_response_id = "id"      # identifiers: attempt_id, record_id, client_request_id, span_id, trace_id
time = "started"
model = "model_name"
tenant = "team"                  # becomes a pseudonym
input_recounted = "our_count"    # any number, flag or enumeration of the table `attempt`

[time]
format = "%m/%d/%y %H:%M"        # or iso (the default), epoch_s, epoch_ms, epoch_us
zone = "Europe/Berlin"           # of times that name none; UTC by default

[leaves]                         # path of a usage leaf = their column
"usage.input_total" = "prompt"   # api declared: usage. and input_total, output_total, total or a token class
"usage.output_total" = "completion"

[constants]                      # path of a usage leaf = its count in every row with usage
"usage.cache_read" = 0           # nothing was ever cached here
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import polars as pl

from weighbridge.pipeline.ingest.leaf_paths import DECLARED_PATHS, is_count, is_leaf_path
from weighbridge.pipeline.ingest.moments import EPOCHS, ISO, moments
from weighbridge.pipeline.ingest.tabular import NULLS, Layout
from weighbridge.schemas.enumerations import ForeignIdKind
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import NAME
from weighbridge.schemas.leaves import KEYS
from weighbridge.schemas.table import Column
from weighbridge.schemas.tables import ATTEMPT

DECLARED = "declared"
# Columns of `attempt` that identify it or say where it came from; they are made here, never mapped.
_OURS = frozenset(
    "attempt_hi attempt_lo request_hi request_lo day source scope tenant_key_id subject_bucket arrived_at undated "
    "segment segment_row revision strategy_id".split()
)
_NAMED = frozenset("provider api model_requested model_served tenant task route".split())
FIGURES: Mapping[str, Column] = {
    column.name: column for column in ATTEMPT.columns if column.name not in _OURS and column.name not in _NAMED
}
IDS = ("attempt_id", *(str(kind) for kind in ForeignIdKind))
COLUMNS: tuple[str, ...] = (*IDS, "time", "model", *sorted(_NAMED), *FIGURES)
_SOURCE = ("name", "provider", "api", "model", "task", "tenant", "separator", "quote", "nulls")
_TIME = ("format", "zone")
_SECTIONS = ("source", "columns", "time", "leaves", "constants")


@dataclass(frozen=True, slots=True)
class TableMapping:
    """What the columns of a table mean.

    Attributes:
        name: the source of its rows.
        provider, api, model, task, tenant: where no column says so.
        columns: our column -> their column.
        leaves: path of a usage leaf -> their column.
        constants: path of a usage leaf -> its count in every row that has another leaf.
        time_format, zone: how times are written.
        layout: how the file is written.
    """

    name: str
    leaves: Mapping[str, str]
    columns: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, int] = field(default_factory=dict)
    provider: str | None = None
    api: str = DECLARED
    model: str | None = None
    task: str | None = None
    tenant: str | None = None
    time_format: str = ISO
    zone: str = "UTC"
    layout: Layout = field(default_factory=Layout)

    @property
    def wanted(self) -> list[str]:
        """Their columns, each once."""
        return list(dict.fromkeys([*self.columns.values(), *self.leaves.values()]))


def load_mapping(path: Path) -> TableMapping:
    """The mapping of a file.

    Raises:
        ConfigError: it is no TOML, has an unknown key (the nearest one is named) or a value that cannot be used.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"the mapping file {path} cannot be read: {error}. Correct it, or name another.") from error
    _known(path, "section", content, _SECTIONS)
    sections = {name: _section(path, content, name) for name in _SECTIONS}
    source, columns, time = sections["source"], sections["columns"], sections["time"]
    _known(path, "key of [source]", source, _SOURCE)
    _known(path, "key of [columns]", columns, COLUMNS)
    _known(path, "key of [time]", time, _TIME)
    leaves = _texts(path, "leaves", sections["leaves"])
    mapping = TableMapping(
        name=_name(path, source, "name") or _missing(path),
        provider=_name(path, source, "provider"),
        api=_name(path, source, "api") or DECLARED,
        model=_name(path, source, "model"),
        task=_name(path, source, "task"),
        tenant=_text(path, source, "tenant"),
        columns=_texts(path, "columns", columns),
        leaves=leaves,
        constants=_constants(path, sections["constants"], leaves),
        time_format=_text(path, time, "format") or ISO,
        zone=_text(path, time, "zone") or "UTC",
        layout=_layout(path, source),
    )
    if not mapping.wanted:
        raise ConfigError(f"{path} names no column of the table; give at least one in [leaves] or [columns]")
    _check_leaves(path, mapping)
    _check_time(path, mapping)
    return mapping


def _missing(path: Path) -> str:
    raise ConfigError(
        f'{path}: [source] needs a name, such as name = "acme-gateway": it says which system wrote the file'
    )


def _section(path: Path, content: Mapping[str, object], name: str) -> dict[str, object]:
    section = content.get(name, {})
    if not isinstance(section, dict):
        raise ConfigError(f"{path}: {name} must be a section, [{name}] on a line of its own")
    return section


def _known(path: Path, what: str, found: Collection[str], allowed: Collection[str]) -> None:
    for name in found:
        if name not in allowed:
            near = difflib.get_close_matches(name, allowed, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ConfigError(f"{path}: {name!r} is no {what}; {hint}allowed are {', '.join(allowed)}")


def _text(path: Path, section: Mapping[str, object], name: str) -> str | None:
    value = section.get(name)
    if value is not None and not isinstance(value, str):
        raise ConfigError(f'{path}: {name} must be text in quotes, as in {name} = "..."')
    return value


def _texts(path: Path, what: str, section: Mapping[str, object]) -> dict[str, str]:
    for name in section:
        if isinstance(section[name], dict):
            raise ConfigError(f'{path}: write the key in quotes, as in "{name}.<...>" = "their column"')
    texts = {name: _text(path, section, name) for name in section}
    empty = [name for name, text in texts.items() if not text]
    if empty:
        raise ConfigError(f"{path}: [{what}] names no column for {', '.join(empty)}")
    return {name: text for name, text in texts.items() if text}


def _constants(path: Path, section: Mapping[str, object], leaves: Collection[str]) -> dict[str, int]:
    """Counts that are the same in every row: only what a person knows of the source, so never beside a column of it."""
    found: dict[str, int] = {}
    for leaf, value in section.items():
        if isinstance(value, dict):
            raise ConfigError(f'{path}: write the key in quotes, as in "{leaf}.<...>" = 0')
        if leaf in leaves:
            raise ConfigError(f"{path}: {leaf!r} stands in [leaves] and in [constants]; leave one of them out")
        counts = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
        if not isinstance(value, int) or not counts or (is_leaf_path(leaf) and not is_count(leaf)):
            raise ConfigError(f'{path}: a constant is a count of tokens, as in "usage.cache_read" = 0; {leaf!r} is not')
        found[leaf] = value
    if found and not leaves:
        raise ConfigError(f"{path}: [constants] holds of rows with usage; name the columns of their usage in [leaves]")
    return found


def _name(path: Path, section: Mapping[str, object], name: str) -> str | None:
    value = _text(path, section, name)
    if value is not None and not NAME.fullmatch(value):
        raise ConfigError(f"{path}: {name} must be a name: letters, digits and ._:/@-, at most 128, without blanks")
    return value


def _layout(path: Path, source: Mapping[str, object]) -> Layout:
    separator = _text(path, source, "separator")
    quote = _text(path, source, "quote")
    nulls = source.get("nulls", list(NULLS))
    if not isinstance(nulls, list) or not all(isinstance(null, str) for null in nulls):
        raise ConfigError(f'{path}: nulls must be a list of texts, as in nulls = ["", "NULL"]')
    if (separator is not None and len(separator.encode()) != 1) or (quote is not None and len(quote.encode()) > 1):
        raise ConfigError(f"{path}: separator and quote must be one character each; quote may be empty")
    return Layout("," if separator is None else separator, '"' if quote is None else quote, tuple(nulls))


def _check_leaves(path: Path, mapping: TableMapping) -> None:
    for leaf in (*mapping.leaves, *mapping.constants):
        fits = leaf in DECLARED_PATHS if mapping.api == DECLARED else is_leaf_path(leaf) and leaf not in DECLARED_PATHS
        if not fits:
            allowed = sorted(DECLARED_PATHS) if mapping.api == DECLARED else sorted(f"usage.{key}" for key in KEYS)
            near = difflib.get_close_matches(leaf, allowed, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            told = ", ".join(allowed) if mapping.api == DECLARED else "the paths of the provider's own usage object"
            raise ConfigError(f"{path}: {leaf!r} is no leaf of api {mapping.api}; {hint}allowed are {told}")


def _check_time(path: Path, mapping: TableMapping) -> None:
    try:
        ZoneInfo(mapping.zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigError(f"{path}: zone {mapping.zone!r} is no IANA time zone, such as UTC or Europe/Berlin") from None
    if mapping.time_format == ISO or mapping.time_format in EPOCHS:
        return
    moment = pl.Series([datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)], dtype=pl.Datetime("us", "UTC"))
    try:
        read = moments(moment.dt.strftime(mapping.time_format), mapping.time_format, mapping.zone).values[0]
    except pl.exceptions.PolarsError:
        read = None
    if read is None:
        raise ConfigError(
            f"{path}: {mapping.time_format!r} is no time format; iso, {', '.join(EPOCHS)} and strptime formats such as "
            "%m/%d/%y %H:%M are allowed"
        )
