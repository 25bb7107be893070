"""A mapping file for charges: what the columns of someone else's bill mean.

[source]
name = "acme-reseller"           # the system that wrote it; part of every line's identity
provider = "openai"              # who charges, where no column says so; likewise currency, account, kind
separator = ","                  # of CSV; quote and nulls too

[charges]                        # our column = their column
amount = "net"                   # needed, and start
start = "from"
end = "to"                       # exclusive; left out, a line is of the day it starts on
sku = "article"
line_id = "position"             # where lines have numbers of their own

[time]
format = "%d.%m.%Y"              # or iso (the default), epoch_s, epoch_ms, epoch_us
zone = "Europe/Berlin"           # of times that name none; UTC by default

[skus."GPT-4o input"]            # what a SKU charges, where its words do not say so
kind = "tokens"
token_class = "input_uncached"
model = "gpt-4o"
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from weighbridge.pipeline.ingest.moments import ISO
from weighbridge.pipeline.ingest.tabular import NULLS, Layout
from weighbridge.schemas.enumerations import LineKind, Modality, TokenClass
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import NAME

CHARGES = "charges"
NEEDED = ("amount", "start")
COLUMNS = (
    *("amount", "currency", "start", "end", "category", "kind", "token_class", "modality", "model", "service_tier"),
    *("region", "sku", "words", "account", "project", "api_key", "quantity", "unit", "list_amount"),
    *("contracted_amount", "effective_amount", "pricing_currency", "pricing_amount", "payment_currency"),
    *("payment_amount", "billing_start", "billing_end", "billing_status", "issued_at", "invoice_id", "line_id"),
    *("reference_invoice", "provider"),
)
_SOURCE = ("name", "provider", "currency", "account", "kind", "separator", "quote", "nulls")
_SECTIONS = ("source", CHARGES, "time", "skus")
_SKU = {"kind": LineKind, "token_class": TokenClass, "modality": Modality}


@dataclass(frozen=True, slots=True)
class ChargeMapping:
    """What the columns of a bill mean.

    Attributes:
        name: the source of its lines.
        columns: our column -> their column.
        standing: provider, currency, account and kind where no column says so.
        skus: SKU -> what it charges (kind, token_class, modality, model, service_tier), each as text.
        time_format, zone: how times are written.
        layout: how the file is written.
    """

    name: str
    columns: Mapping[str, str]
    standing: Mapping[str, str] = field(default_factory=dict)
    skus: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    time_format: str = ISO
    zone: str = "UTC"
    layout: Layout = field(default_factory=Layout)


def maps_charges(path: Path) -> bool:
    """Whether a mapping file is one for charges. Never raises: what is wrong with it is said when it is read."""
    try:
        return CHARGES in tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return False


def load_charges(path: Path) -> ChargeMapping:
    """The mapping of a file of charges.

    Raises:
        ConfigError: it is no TOML, has an unknown key (the nearest one is named) or a value that cannot be used.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"the mapping file {path} cannot be read: {error}. Correct it, or name another.") from error
    _known(path, "section", content, _SECTIONS)
    source, columns = _section(path, content, "source"), _section(path, content, CHARGES)
    time, skus = _section(path, content, "time"), _section(path, content, "skus")
    _known(path, "key of [source]", source, _SOURCE)
    _known(path, f"key of [{CHARGES}]", columns, COLUMNS)
    _known(path, "key of [time]", time, ("format", "zone"))
    if missing := [name for name in NEEDED if name not in columns]:
        raise ConfigError(f"{path}: [{CHARGES}] names no column for {', '.join(missing)}; a line cannot be without")
    name = _text(path, source, "name")
    if name is None or not NAME.fullmatch(name):
        raise ConfigError(f'{path}: [source] needs a name without blanks, such as name = "acme-reseller"')
    standing = {key: told for key in ("provider", "currency", "account", "kind") if (told := _text(path, source, key))}
    if "provider" not in standing and "provider" not in columns:
        raise ConfigError(f'{path}: who charges is not told; give provider = "openai" in [source], or a column of it')
    _member(path, "kind", standing.get("kind"), LineKind)
    zone = _text(path, time, "zone") or "UTC"
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigError(f"{path}: zone {zone!r} is no IANA time zone, such as UTC or Europe/Berlin") from None
    return ChargeMapping(
        name=name,
        columns={key: _text(path, columns, key) or "" for key in columns},
        standing=standing,
        skus={told: _sku(path, told, skus) for told in skus},
        time_format=_text(path, time, "format") or ISO,
        zone=zone,
        layout=_layout(path, source),
    )


def _sku(path: Path, told: str, skus: Mapping[str, object]) -> dict[str, str]:
    """What one SKU charges."""
    return sku_table(f"{path}: [skus.{told!r}]", skus[told])


def sku_table(where: str, given: object) -> dict[str, str]:
    """A table of what a SKU charges, checked.

    Raises:
        ConfigError: it is no table, or a key or value of it is unknown.
    """
    if not isinstance(given, dict):
        raise ConfigError(f'{where} must be a table, as in {{ kind = "tokens", token_class = "cache_read" }}')
    _known_at(where, "key", given, (*_SKU, "model", "service_tier"))
    found = {}
    for key, value in given.items():
        if not isinstance(value, str) or not value:
            raise ConfigError(f"{where}: {key} must be text in quotes")
        if key in _SKU and value not in [str(member) for member in _SKU[key]]:
            raise ConfigError(f"{where}: {key} is {value!r}; allowed are {', '.join(_SKU[key])}")
        if key not in _SKU and not re.fullmatch(NAME, value):
            raise ConfigError(f"{where}: {key} must be a name without blanks")
        found[key] = value
    return found


def _member(path: Path, key: str, value: str | None, values: type[LineKind]) -> None:
    if value is not None and value not in [str(member) for member in values]:
        raise ConfigError(f"{path}: {key} is {value!r}; allowed are {', '.join(values)}")


def _section(path: Path, content: Mapping[str, object], name: str) -> dict[str, object]:
    section = content.get(name, {})
    if not isinstance(section, dict):
        raise ConfigError(f"{path}: {name} must be a section, [{name}] on a line of its own")
    return section


def _known(path: Path, what: str, found: Collection[str], allowed: Collection[str]) -> None:
    _known_at(str(path), what, found, allowed)


def _known_at(where: str, what: str, found: Collection[str], allowed: Collection[str]) -> None:
    for name in found:
        if name not in allowed:
            near = difflib.get_close_matches(name, allowed, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise ConfigError(f"{where}: {name!r} is no {what}; {hint}allowed are {', '.join(allowed)}")


def _text(path: Path, section: Mapping[str, object], name: str) -> str | None:
    value = section.get(name)
    if value is not None and not isinstance(value, str):
        raise ConfigError(f'{path}: {name} must be text in quotes, as in {name} = "..."')
    return value or None


def _layout(path: Path, source: Mapping[str, object]) -> Layout:
    separator, quote = _text(path, source, "separator") or ",", source.get("quote", '"')
    nulls = source.get("nulls", list(NULLS))
    if not isinstance(nulls, list) or not all(isinstance(null, str) for null in nulls):
        raise ConfigError(f'{path}: nulls must be a list of texts, as in nulls = ["", "NULL"]')
    if len(separator.encode()) != 1 or not isinstance(quote, str) or len(quote.encode()) > 1:
        raise ConfigError(f"{path}: separator and quote must be one character each; quote may be empty")
    return Layout(separator, quote, tuple(nulls))
