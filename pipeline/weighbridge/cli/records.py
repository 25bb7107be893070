"""Records on the lines of a JSON Lines file, for `read`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

STANDARD_INPUT = Path("-")
MAX_LINE = 64 * 2**20
_LONG = 4_000  # digits; beyond that a number is kept as a decimal, which has no limit of its own


class Line(NamedTuple):
    """One line: its 1-based number, and its object or what is wrong with it. Never its text."""

    number: int
    record: dict[str, object] | None
    trouble: str = ""


class _RepeatedKeyError(ValueError):
    """An object names a key twice, so that readers disagree on what it says."""


def lines_of(path: Path) -> Iterator[Line]:
    """The lines of a file, or of standard input for `-`; blank ones are passed over.

    Raises:
        OSError: the file cannot be read.
    """
    with sys.stdin.buffer if path == STANDARD_INPUT else path.open("rb") as file:
        number = 0
        while raw := file.readline(MAX_LINE + 1):
            number += 1
            if len(raw) > MAX_LINE:
                while raw and not raw.endswith(b"\n"):
                    raw = file.readline(MAX_LINE)
                yield Line(number, None, f"is longer than {MAX_LINE >> 20} MiB")
            elif raw.strip():
                yield _line(number, raw)


def _line(number: int, raw: bytes) -> Line:
    try:
        record = json.loads(raw, parse_float=Decimal, parse_int=_whole, object_pairs_hook=_once)
    except _RepeatedKeyError:
        return Line(number, None, "names a key twice in one object")
    except RecursionError:
        return Line(number, None, "is nested too deeply")
    except (ValueError, ArithmeticError):
        return Line(number, None, "is not JSON")
    if not isinstance(record, dict):
        return Line(number, None, "is not a JSON object")
    return Line(number, record)


def _whole(digits: str) -> int | Decimal:
    return int(digits) if len(digits) < _LONG else Decimal(digits)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    out = dict(pairs)
    if len(out) < len(pairs):
        raise _RepeatedKeyError
    return out
