"""JSON Lines, read strictly: one object a line, no key twice, no number changed, bounded in depth and length.

A line that cannot be read comes with the reason and never with its text. Files may be gzip-compressed.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from weighbridge.schemas.enumerations import QuarantineReason
from weighbridge.schemas.errors import ContractError

MAX_LINE = 64 * 2**20  # bytes; a recorded answer with images inside takes a few of them
MAX_NESTING = 200  # tool schemas nest some 30 deep
_GZIP = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BRACKETS = re.compile(rb"[\[\]{}]")
# Any integer with more digits is beyond 2**63 as well; Python need not multiply it out to know.
_MAX_DIGITS = 40
_HUGE: int = 10**_MAX_DIGITS


class Line(NamedTuple):
    """One line that is not blank.

    Attributes:
        number: 0-based line of the file, blank ones counted.
        value: its object, null where it cannot be read.
        reason: why it cannot.
    """

    number: int
    value: dict[str, object] | None
    reason: QuarantineReason | None = None


class _DuplicateKeyError(ValueError):
    """One object names a key twice."""


def read_lines(path: Path, *, max_line: int = MAX_LINE) -> Iterator[Line]:
    """The lines of a file, in order.

    Raises:
        ContractError: the compressed file is damaged.
    """
    with opened(path) as file:
        for number, raw in enumerate(_raw_lines(file, max_line)):
            if raw is None:
                yield Line(number, None, QuarantineReason.TOO_LARGE)
                continue
            text = raw.removeprefix(BOM) if number == 0 else raw
            if text.strip():
                value, reason = parse(text)
                yield Line(number, value, reason)


def parse(raw: bytes) -> tuple[dict[str, object] | None, QuarantineReason | None]:
    """The object of one line, or the reason why there is none. Fractions come as Decimal, digit by digit."""
    value, reason = _decoded(raw)
    if reason is not None:
        return None, reason
    return (value, None) if isinstance(value, dict) else (None, QuarantineReason.NOT_AN_OBJECT)


def parse_list(raw: bytes) -> list[object] | None:
    """The items of a document that is one list; null for anything else, and for what cannot be read."""
    if not raw.lstrip().startswith(b"["):
        return None
    value, _ = _decoded(raw)
    return value if isinstance(value, list) else None


def _decoded(raw: bytes) -> tuple[object, QuarantineReason | None]:
    if _nesting(raw) > MAX_NESTING:
        return None, QuarantineReason.TOO_DEEP
    try:
        return _DECODER.decode(raw.decode()), None
    except _DuplicateKeyError:
        return None, QuarantineReason.DUPLICATE_KEY
    except RecursionError:
        return None, QuarantineReason.TOO_DEEP
    except ValueError:
        return None, QuarantineReason.NOT_JSON


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a file, decompressed where it is compressed.

    Raises:
        ContractError: the compressed file is damaged.
    """
    with path.open("rb") as plain:
        packed = plain.peek(2)[:2] == _GZIP
        try:
            if packed:
                with gzip.open(plain) as file:
                    yield cast("BinaryIO", file)
            else:
                yield plain
        except (EOFError, gzip.BadGzipFile, zlib.error):
            raise ContractError(
                f"{path} is a damaged gzip file: it ends early or its check sum differs. Copy it again from its source."
            ) from None


def _raw_lines(file: BinaryIO, limit: int) -> Iterator[bytes | None]:
    """The lines without their end; null for one that is longer than `limit`, which is passed over unread."""
    while raw := file.readline(limit + 1):
        if len(raw) <= limit or raw.endswith(b"\n"):
            yield raw
            continue
        while raw and not raw.endswith(b"\n"):
            raw = file.readline(limit)
        yield None


def _nesting(raw: bytes) -> int:
    """How deep the brackets of a line nest; exact only where it may exceed the limit, which few lines do."""
    if raw.count(b"[") + raw.count(b"{") <= MAX_NESTING:
        return 0
    depth = deepest = 0
    for bracket in _BRACKETS.findall(_STRINGS.sub(b"", raw)):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise _DuplicateKeyError
    return out


def _integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        return -_HUGE if digits.startswith("-") else _HUGE
    return int(digits)


def _fraction(digits: str) -> Decimal:
    try:
        return Decimal(digits)
    except ArithmeticError:
        return Decimal("Infinity")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=_fraction, parse_int=_integer, parse_constant=Decimal
)
