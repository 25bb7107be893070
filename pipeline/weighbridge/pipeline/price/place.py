"""Where in which price file something stands, for messages that say so."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, NoReturn

from weighbridge.schemas.errors import ConfigError

_MISSING = object()


@dataclass(frozen=True, slots=True)
class Place:
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
            if key not in allowed:
                near = difflib.get_close_matches(key, allowed, n=1, cutoff=0.0)
                self.wrong(f"unknown key {key!r}; the nearest valid one is {near[0]!r}, of {', '.join(allowed)}")

    def get(self, table: Mapping[str, Any], key: str, kind: type, default: object = _MISSING) -> Any:
        """The value of `key`, which is of exactly this type."""
        value = table.get(key, default)
        if value is _MISSING:
            self.wrong(f"{key!r} is missing")
        if value is not default and type(value) is not kind:
            named = {
                date: "a date such as 2026-01-31",
                str: "a text in quotes",
                int: "a whole number",
                bool: "true or false",
            }
            self.wrong(f"{key!r} is a {type(value).__name__}; {named.get(kind, f'a {kind.__name__}')} is expected")
        return value
