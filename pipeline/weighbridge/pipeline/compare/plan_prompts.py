"""The prompts of a plan: tables in it, or a file of JSON lines beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from weighbridge.schemas.enumerations import Origin
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import NAME

_SHORT: Final = {"text": Origin.USER, "ids": Origin.USER}
_PROMPT: Final = ("pair", "cluster", "parts", "system", *_SHORT, "expected", "expected_ids")


def prompts_of(content: Mapping[str, Any], path: Path) -> list[Mapping[str, Any]]:
    """The prompts of a plan, in order.

    Args:
        content: of the plan, which names a file or holds tables.
        path: of the plan.

    Raises:
        ConfigError: names what is wrong, what is allowed and where; never a word of a prompt.
    """
    inline, named = content.get("prompt"), content.get("prompts")
    if (inline is None) == (named is None):
        raise ConfigError(f"{path}: give prompts as a file of JSON lines, or [[prompt]] tables, and one of the two")
    if named is None:
        given = [(each, f"{path}: prompt {number}") for number, each in enumerate(_list(inline, path), start=1)]
    else:
        place = beside(path, str(named))
        try:
            lines = place.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{place} cannot be read as prompts ({type(error).__name__}); name JSON lines") from None
        given = [(_line(raw, f"{place}, line {number}"), f"{place}, line {number}")
                 for number, raw in enumerate(lines, start=1) if raw.strip()]  # fmt: skip
    out: list[Mapping[str, Any]] = [
        _prompt(each, f"p{number}", where) for number, (each, where) in enumerate(given, start=1)
    ]
    names = [prompt["pair"] for prompt in out]
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice or not out:
        raise ConfigError(
            f"{path}: {f'two prompts are called {twice[0]}' if twice else 'there is no prompt'}; name each once"
        )
    return out


def _list(value: object, path: Path) -> list[Any]:
    if not isinstance(value, list):
        raise ConfigError(f"{path}: prompt must be [[prompt]] tables")
    return value


def _line(raw: str, where: str) -> object:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        raise ConfigError(f"{where} is not JSON; write one prompt a line") from None


def _prompt(given: object, default: str, where: str) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise ConfigError(f"{where} is no table; give text or ids, or parts")
    check_names(given, _PROMPT, where)
    pair, cluster = given.get("pair", default), given.get("cluster")
    for name, value in (("pair", pair), ("cluster", cluster)):
        if value is not None and (not isinstance(value, str) or not NAME.fullmatch(value)):
            raise ConfigError(f"{where}: {name} must match {NAME.pattern}")
    told = given.get("parts", [])
    if not isinstance(told, list):
        raise ConfigError(f"{where}: parts is no list; a part is [origin, text or ids]")
    parts = list(told)
    if "system" in given:
        parts.insert(0, [str(Origin.SYSTEM), given["system"]])
    parts += [[str(origin), given[name]] for name, origin in _SHORT.items() if name in given]
    for part in parts:
        if not isinstance(part, list) or len(part) != 2 or part[0] not in list(Origin) or not _words(part[1]):
            raise ConfigError(f"{where}: a part is [origin, text or ids]; origins are {', '.join(Origin)}")
    expected = given.get("expected_ids")
    if (expected is not None and not _ids(expected)) or not isinstance(given.get("expected", ""), str):
        raise ConfigError(f"{where}: expected is a text, expected_ids a list of token ids")
    return {
        "pair": pair,
        "cluster": cluster,
        "parts": parts,
        "expected": given.get("expected"),
        "expected_ids": expected,
    }


def _words(value: object) -> bool:
    return isinstance(value, str) or _ids(value)


def _ids(value: object) -> bool:
    return isinstance(value, list) and all(type(each) is int and each >= 0 for each in value)


def check_names(given: Mapping[str, Any], allowed: Sequence[str], where: str) -> None:
    """Refuse names that mean nothing, as a slip would go unnoticed."""
    unknown = sorted(set(given) - set(allowed))
    if unknown:
        raise ConfigError(f"{where}: there is no {unknown[0]!r}; allowed are {', '.join(allowed)}")


def beside(path: Path, place: str) -> Path:
    """A place in a file is beside that file."""
    return (path.parent / Path(place).expanduser()).absolute()
