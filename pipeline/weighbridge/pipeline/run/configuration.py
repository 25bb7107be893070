"""What an installation is configured with, value by value: settings, prices, mappings. Nothing of it is data.

    weighbridge.toml   close.grace_days                              3
    own.toml           openai equals gpt-4o from 2026-03-01          {"currency": "USD", "prices": {"input": "2.5"}}

A row of prices is known by what it is for, so that one which was moved in its file is the same. What is long stands as
its digest; so does what may be a secret, and that digest is made with the installation's key.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weighbridge.pipeline.price.book import SHIPPED
from weighbridge.pipeline.run.home import Home
from weighbridge.pipeline.settings import FILE
from weighbridge.schemas.enumerations import ConfigKind

LONGEST = 400  # signs of a value that is shown
_BUILT_IN = "built-in"
_ENVIRONMENT = "environment"
# Settings whose values may hold a secret or the name of somebody.
_SECRET = ("alerts.webhook", "sources", "content_key_command")
_OF_ROW = ("provider", "match", "model", "valid_from", "when")
_SHARED = ("currency", "source", "checked_on")


@dataclass(frozen=True, slots=True)
class Document:
    """One file as it is now.

    Attributes:
        kind: what it is part of.
        file: its place below the installation, else its folder and name; not a path of this machine.
        digest: SHA-256 of its bytes.
        values: key -> value, as texts.
    """

    kind: ConfigKind
    file: str
    digest: str
    values: Mapping[str, str]


def configuration(home: Home, mappings: Iterable[Path] = ()) -> list[Document]:
    """Every file an installation is configured with, and these mapping files.

    A file that is not there, or is no TOML, is left out: whoever uses it says so.
    """
    found = [*_settings(home), *_prices(home), *_shipped()]
    of_sources = [source["mapping"] for source in home.settings.sources if source.get("mapping")]
    for path in dict.fromkeys([*map(Path, of_sources), *mappings]):
        found += _document(home, path, ConfigKind.MAPPING, lambda content: dict(_flat(content)))
    return found


def _settings(home: Home) -> Iterator[Document]:
    origins = home.settings.origins
    files = {Path(origin) for origin in origins.values() if Path(origin).is_file()} or {home.root / FILE}
    for path in sorted(files):
        yield from _document(home, path, ConfigKind.SETTINGS, lambda content: dict(_hidden(home, _flat(content))))
    named = [name for name, origin in origins.items() if origin.startswith(_ENVIRONMENT) and "." not in name]
    given = {name: getattr(home.settings, name) for name in named}
    if given:
        # Of a table of settings the environment gives the whole one.
        values = dict(_hidden(home, ((name, _text(_plain(value))) for name, value in sorted(given.items()))))
        yield Document(ConfigKind.SETTINGS, _ENVIRONMENT, _digest(_text(values)), values)


def _prices(home: Home) -> Iterator[Document]:
    for place in home.settings.prices:
        for path in sorted(place.glob("*.toml")) if place.is_dir() else [place]:
            yield from _document(home, path, ConfigKind.PRICES, lambda content: dict(_rows(content)))


def _shipped() -> Iterator[Document]:
    """The built-in book: it changes with the product, a file at a time."""
    for path in sorted(SHIPPED.glob("*.toml")):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        yield Document(ConfigKind.PRICES, f"{_BUILT_IN}/{path.name}", digest, {"file": f"sha256:{digest}"})


def _document(home: Home, path: Path, kind: ConfigKind, read: Any) -> Iterator[Document]:
    try:
        raw = path.read_bytes()
        content = tomllib.loads(raw.decode())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return
    values = {key: _shown(value) for key, value in read(content).items()}
    yield Document(kind, _place(home, path), hashlib.sha256(raw).hexdigest(), values)


def _place(home: Home, path: Path) -> str:
    whole, root = (Path(os.path.normpath(each.absolute())) for each in (path, home.root))
    return whole.relative_to(root).as_posix() if root in whole.parents else f"{whole.parent.name}/{whole.name}"


def _flat(content: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for name, value in content.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", _text(value)


def _rows(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The rows of a file of prices, and what else it says."""
    seen: dict[str, int] = {}
    shared = {name: content[name] for name in _SHARED if name in content}
    rows = content.get("rows")
    for row in rows if isinstance(rows, list) else ():
        models = row.get("models") if isinstance(row, Mapping) else None
        for model in models if isinstance(models, list) else ():
            about = {"provider": content.get("provider"), "match": "equals", **row, "model": model}
            key = " ".join(
                f"from {about[name]}" if name == "valid_from" else _word(about[name])
                for name in _OF_ROW
                if about.get(name) is not None
            )
            seen[key] = seen.get(key, 0) + 1
            rest = {name: value for name, value in row.items() if name not in {*_OF_ROW, "models"}}
            yield key if seen[key] == 1 else f"{key} #{seen[key]}", _text({**shared, **rest})
    yield from _flat({name: value for name, value in content.items() if name not in {"rows", *_SHARED}})


def _word(value: object) -> str:
    return value if isinstance(value, str) else _text(value)


def _hidden(home: Home, values: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for key, value in values:
        secret = any(key == name or key.startswith(f"{name}.") for name in _SECRET) or "://" in value
        yield key, f"keyed:{hmac.new(home.key, value.encode(), hashlib.sha256).hexdigest()}" if secret else value


def _shown(value: str) -> str:
    return value if len(value) <= LONGEST else f"sha256:{_digest(value)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(inner) for inner in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    return value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
