"""Ids by their first digits."""

from __future__ import annotations

import re
from collections.abc import Iterable

from weighbridge.schemas.errors import ConfigError

LEAST = 8
SHOWN = 10
_DIGITS = re.compile(rf"[0-9a-f]{{{LEAST},64}}")


def digits_of(text: str) -> str:
    """The hexadecimal digits of an id or of the beginning of one; a UUID may keep its hyphens.

    Raises:
        ConfigError: there are fewer than LEAST digits, or other characters.
    """
    digits = digits_if_any(text)
    if digits is None:
        raise ConfigError(f"{text!r} is no id; give its first {LEAST} or more hexadecimal digits")
    return digits


def digits_if_any(text: str) -> str | None:
    """As `digits_of`, but null where it is no beginning of an id."""
    digits = text.strip().lower().replace("-", "")
    return digits if _DIGITS.fullmatch(digits) else None


def one_of(ids: Iterable[str], text: str, what: str) -> str:
    """The one id that begins with these digits.

    Raises:
        ConfigError: none does, or several do; the message names them.
    """
    digits = digits_of(text)
    return the_one([(what, found) for found in ids if found.startswith(digits)], digits, what)[1]


def the_one(found: list[tuple[str, str]], digits: str, what: str) -> tuple[str, str]:
    """The only (kind, id) of a search.

    Raises:
        ConfigError: there is none, or there are several.
    """
    if not found:
        raise ConfigError(f"no {what} has an id that begins with {digits}; `weighbridge findings ls` lists findings")
    if len(found) > 1:
        shown = ", ".join(f"{kind} {each}" for kind, each in found[:SHOWN])
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise ConfigError(f"{digits} is the beginning of several ids: {shown}{more}; give more digits")
    return found[0]
