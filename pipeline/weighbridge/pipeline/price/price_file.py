"""A file of prices: TOML in, rows out. docs/price-book.md describes the format.

The file is configuration, so whatever is wrong with it is a `ConfigError` that names the file, the row and the key,
and nothing of it is used.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

from weighbridge.pipeline.price import keys
from weighbridge.pipeline.price.place import Place
from weighbridge.pipeline.price.row import Match, PriceRow
from weighbridge.pipeline.price.written import factor, fees_of, multiplied, prices_of, terms_of, tiers_of
from weighbridge.schemas.enumerations import Modality
from weighbridge.schemas.tables import CURRENCY, NAME

FORMAT = 1
FILE_KEYS = ("format", "provider", "currency", "source", "checked_on", "fees", "rows")
# What may stand in the file, for every row that has none of its own.
SHARED_KEYS = ("currency", "source", "checked_on", "fees")
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
    "when",
    "above",
    "fees",
    "variants",
)
VARIANT_KEYS = ("when", "times", "prices", "above", "fees", "up_to_input_tokens")


def files_of(path: Path) -> list[Path]:
    """A price file, or the price files of a folder in the order of their names."""
    return sorted(path.glob("*.toml")) if path.is_dir() else [path]


def read_prices(path: Path) -> list[PriceRow]:
    """The rows of one file, one for each model it names.

    Raises:
        ConfigError: the file cannot be read or used as written; the message says where and what to do.
    """
    place = Place(path)
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
    place = Place(path, f"row {number}")
    if not isinstance(table, dict):
        place.wrong("is not a table; write [[rows]] before each row")
    models = _models(place, table)
    place = Place(path, f"row {number} ({models[0]})")
    place.keys(table, ROW_KEYS)
    match = _match(place, table, models)
    found: list[PriceRow] = []
    for where, told in _variants(place, table):
        shared = _shared(where, content, told)
        found += [PriceRow(model=model, match=match, where=str(where), **shared) for model in models]
    return found


def _variants(place: Place, table: Mapping[str, Any]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """The row itself, and the row under each of the terms that it lists."""
    yield place, table
    plain = {key: value for key, value in table.items() if key not in {"variants", "when"}}
    for number, variant in enumerate(place.get(table, "variants", list, []), 1):
        where = Place(place.file, f"{place.row}, variant {number}")
        if not isinstance(variant, dict):
            where.wrong('is not a table such as { when = { batch = true }, times = "0.5" }')
        where.keys(variant, VARIANT_KEYS)
        if ("times" in variant) == ("prices" in variant):
            where.wrong("has one of 'times' (what the prices of the row are multiplied by) and 'prices' (its own)")
        where.get(variant, "when", dict)
        if "times" in variant:
            if "above" in variant:
                where.wrong("'above' beside 'times'; the row's own is multiplied too, so write 'prices' instead")
            yield where, {**plain, **variant}
        else:
            yield where, {**{key: value for key, value in plain.items() if key != "above"}, **variant}


def _models(place: Place, table: Mapping[str, Any]) -> list[str]:
    models = place.get(table, "models", list)
    if not models or not all(isinstance(model, str) and model for model in models):
        place.wrong("'models' is a list of at least one text that is not empty")
    if len(set(models)) < len(models):
        place.wrong("'models' names one twice")
    return list(models)


def _match(place: Place, table: Mapping[str, Any], models: list[str]) -> Match:
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


def _shared(place: Place, content: Mapping[str, Any], table: Mapping[str, Any]) -> dict[str, Any]:
    either = {**{key: content[key] for key in SHARED_KEYS if key in content}, **table}
    valid_from, valid_to = _day(place, table, "valid_from"), _day(place, table, "valid_to")
    if valid_from and valid_to and valid_to <= valid_from:
        place.wrong(f"'valid_to' {valid_to} is the first day after the row; it is not after 'valid_from' {valid_from}")
    modalities = _modalities(place, table)
    times = factor(place, table)
    prices = multiplied(place, keys.expand(prices_of(place, table), modalities), times)
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
        "prices": prices,
        "terms": terms_of(place, table),
        "above": tiers_of(place, table, modalities, prices, times, limit),
        "fees": fees_of(place, either),
    }


def _day(place: Place, table: Mapping[str, Any], key: str) -> date | None:
    value = place.get(table, key, date, None)
    if isinstance(value, datetime):
        place.wrong(f"{key!r} is a time; a date such as 2026-01-31 is expected")
    return value if isinstance(value, date) else None


def _pattern(place: Place, table: Mapping[str, Any], key: str, pattern: str) -> str:
    value = str(place.get(table, key, str))
    if not re.fullmatch(pattern, value):
        place.wrong(f"{key!r} is {value!r}; it must match {pattern}")
    return value


def _modalities(place: Place, table: Mapping[str, Any]) -> list[Modality]:
    modalities = place.get(table, "modalities", list, [])
    known = [str(modality) for modality in Modality]
    if unknown := [word for word in modalities if word not in known]:
        place.wrong(f"'modalities' has {unknown[0]!r}; it lists {', '.join(known)}")
    return [Modality(word) for word in modalities if word != Modality.TEXT]
