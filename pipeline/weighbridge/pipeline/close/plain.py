"""Documents of a pack: JSON with one spelling, so that equal content has equal bytes; money as decimal text."""

from __future__ import annotations

import hashlib
import json
from decimal import Decimal
from pathlib import Path

from weighbridge.schemas.errors import ContractError


class DamagedError(ContractError):
    """Something of a close pack cannot be read as what it has to be; the message names it."""


def document(content: object) -> bytes:
    """The bytes of a document: keys in order, ASCII, one blank a level. It has no binary fractions.

    Raises:
        TypeError: the content has values JSON does not have.
    """
    return (json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def parsed(raw: bytes, where: str) -> dict[str, object]:
    """The object whose document is exactly `raw`.

    Raises:
        DamagedError: it is no document, or is spelled otherwise than `document` does.
    """
    try:
        content = json.loads(raw)
        same = isinstance(content, dict) and document(content) == raw
    except (ValueError, TypeError, RecursionError):
        same = False
    if not same:
        raise DamagedError(f"{where} is no document of a close: it cannot be read, or is not spelled as one")
    found: dict[str, object] = content
    return found


def sha256(raw: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(raw).hexdigest()


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_of(amount: Decimal) -> str:
    """An exact amount as text: no exponent, no trailing zeros, no minus before a zero."""
    digits = format(amount, "f")
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    return "0" if digits in {"-0", ""} else digits
