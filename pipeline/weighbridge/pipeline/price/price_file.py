"""A file of prices: TOML in, rows out. docs/price-book.md describes the format.

The file is configuration, so whatever is wrong with it is a `ConfigError` that names the file, the row and the key,
and nothing of it is used.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

from weighbridge.pipeline.price import keys
from weighbridge.pipeline.price.row import Match, PriceRow
from weighbridge.schemas.enumerations import Modality
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.tables import CURRENCY, NAME

FORMAT = 1
FILE_KEYS = ("format", "provider", "currency", "source", "checked_on", "rows")
ROW_KEYS = (
    "match",
    "models",
    "valid_from",
    "valid_to",
    "currency",
    "source",
    "checked_on",
    "modalities",
    "up_to_input_tokens",
    "prices",
)
# The shape of what comes later is decided. A row that has one of these is another price than the same row without
# it, so this version refuses it rather than reading past it.
RESERVED = {
    "when": "the terms the row is for (service tier, batch, region)",
    "above": "prices above a length of input",
    "fees": "charges that are not per token",
}
_MISSING = object()


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in which file something stands."""

    file: Path
    row: str = ""

    def __str__(self) -> str:
        return f"{self.file.name}, {self.row}" if self.row else self.file.name

    def wrong(self, what: str) -> NoReturn:
        raise ConfigError(f"price file {self}: {what}")

    def keys(self, table: Mapping[str, Any], allowed: Collection[str]) -> None:
        """Every key of `table` is one of `allowed`."""
        for key in table:
            if key in RESERVED and allowed is ROW_KEYS:
                self.wrong(
                    f"{key!r} ({RESERVED[key]}) is not applied by this version, and the row would be priced wrongly "
                    "without it; take the row out, or upgrade weighbridge"
                )
            if key not in allowed:
                near = difflib.get_close_matches(key, allowed, n=1, cutoff=0.0)
                self.wrong(f"unknown key {key!r}; the nearest valid one is {near[0]!r}, of {', '.join(allowed)}")

    def get(self, table: Mapping[str, Any], key: str, kind: type, default: object = _MISSING) -> Any:
        """The value of `key`, which is of exactly this type."""
        value = table.get(key, default)
        if value is _MISSING:
            self.wrong(f"{key!r} is missing")
        if value is not default and type(value) is not kind:
            named = {date: "a date such as 2026-01-31", str: "a text in quotes", int: "a whole number"}
            self.wrong(f"{key!r} is a {type(value).__name__}; {named.get(kind, f'a {kind.__name__}')} is expected")
        return value


def read_prices(path: Path) -> list[PriceRow]:
    """The rows of one file, one for each model it names.

    Raises:
        ConfigError: the file cannot be read or used as written; the message says where and what to do.
    """
    place = _Place(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        place.wrong(f"cannot be read ({error.strerror}); check the path and its permissions")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        place.wrong(f"is not TOML: {error}; mend that line")
    place.keys(content, FILE_KEYS)
    version = place.get(content, "format", int, FORMAT)
    if version != FORMAT:
        place.wrong(f"format is {version}, this version reads {FORMAT}; upgrade weighbridge to use it")
    rows = place.get(content, "rows", list)
    return [row for number, table in enumerate(rows, 1) for row in _rows(path, content, number, table)]


def _rows(path: Path, content: Mapping[str, Any], number: int, table: object) -> list[PriceRow]:
    place = _Place(path, f"row {number}")
    if not isinstance(table, dict):
        place.wrong("is not a table; write [[rows]] before each row")
    models = _models(place, table)
    place = _Place(path, f"row {number} ({models[0]})")
    place.keys(table, ROW_KEYS)
    shared = _shared(place, content, table)
    match = _match(place, table, models)
    return [PriceRow(model=model, match=match, where=str(place), **shared) for model in models]


def _models(place: _Place, table: Mapping[str, Any]) -> list[str]:
    models = place.get(table, "models", list)
    if not models or not all(isinstance(model, str) and model for model in models):
        place.wrong("'models' is a list of at least one text that is not empty")
    if len(set(models)) < len(models):
        place.wrong("'models' names one twice")
    return list(models)


def _match(place: _Place, table: Mapping[str, Any], models: list[str]) -> Match:
    word = place.get(table, "match", str, Match.EQUALS)
    if word not in set(Match):
        place.wrong(f"'match' is {word!r}; it is one of {', '.join(Match)}")
    if word == Match.PATTERN:
        for model in models:
            try:
                re.compile(model)
            except re.error as error:
                place.wrong(f"{model!r} is no regular expression: {error}")
    return Match(word)


def _shared(place: _Place, content: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    either = {**{key: content[key] for key in ("currency", "source", "checked_on") if key in content}, **table}
    valid_from, valid_to = _day(place, table, "valid_from"), _day(place, table, "valid_to")
    if valid_from and valid_to and valid_to <= valid_from:
        place.wrong(f"'valid_to' {valid_to} is the first day after the row; it is not after 'valid_from' {valid_from}")
    limit = place.get(table, "up_to_input_tokens", int, None)
    if limit is not None and limit < 0:
        place.wrong("'up_to_input_tokens' is below zero")
    return {
        "provider": _pattern(place, content, "provider", NAME),
        "currency": _pattern(place, either, "currency", CURRENCY),
        "origin": place.get(either, "source", str),
        "checked_on": _day(place, either, "checked_on"),
        "valid_from": valid_from,
        "valid_to": valid_to,
        "up_to_input_tokens": limit,
        "prices": _prices(place, table),
    }


def _day(place: _Place, table: Mapping[str, Any], key: str) -> date | None:
    value = place.get(table, key, date, None)
    if isinstance(value, datetime):
        place.wrong(f"{key!r} is a time; a date such as 2026-01-31 is expected")
    return value if isinstance(value, date) else None


def _pattern(place: _Place, table: Mapping[str, Any], key: str, pattern: str) -> str:
    value = str(place.get(table, key, str))
    if not re.fullmatch(pattern, value):
        place.wrong(f"{key!r} is {value!r}; it must match {pattern}")
    return value


def _prices(place: _Place, table: Mapping[str, Any]) -> dict[keys.PriceKey, Decimal]:
    written = place.get(table, "prices", dict)
    place.keys(written, keys.KEYS)
    found: dict[str, Decimal] = {}
    for key, text in written.items():
        try:
            found[key] = keys.price(text)
        except (TypeError, ValueError) as error:
            place.wrong(f"price {key!r} {error}")
    if not found:
        place.wrong("'prices' has no price; leave the row out where none is known")
    modalities = place.get(table, "modalities", list, [])
    known = [str(modality) for modality in Modality]
    if unknown := [word for word in modalities if word not in known]:
        place.wrong(f"'modalities' has {unknown[0]!r}; it lists {', '.join(known)}")
    return keys.expand(found, [Modality(word) for word in modalities if word != Modality.TEXT])
