"""Lines without the texts that nothing reads: of a string that is a value, what stands between its quotes.

Whole answers differ in their texts, so none is of the form of another; without them they are. A text is left out only
where leaving it out cannot change how the line is read: it is valid JSON, and its key is none whose text is looked at.

    {"id": "chatcmpl-a7", "model": "gpt-5", "text": "He said \\"no\\"."}
    {"id": "", "model": "gpt-5", "text": ""}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np

from weighbridge.pipeline.ingest.many.places import Bits, Codes, Ints, Raw, sparse, table, without
from weighbridge.schemas.leaves import ENUMERATED, MEASURE_KEYS

# Keys whose text is read: of a record, of a body, and of what stands inside usage.
READ = frozenset({"provider", "api", "model", "day", "at", "status", "type", "error"})
READ |= frozenset(ENUMERATED) | MEASURE_KEYS
_QUOTE, _ESCAPE, _COLON, _SPACE, _NEWLINE, _RETURN = b'"\\: \n\r'
_AFTER_VALUE, _AFTER_ESCAPE, _HEX = table(b",}]"), table(b'"\\/bfnrtu'), table(b"0123456789abcdefABCDEF")
# Between a key and its value stand a colon and at most one space.
_APART = 4
_DIGITS_OF_ESCAPE = 4
_BEYOND_ASCII = 128


def _marks(first: Codes | int, last: Codes | int, length: Ints | int) -> Ints:
    """A number for a key, by which those that are read are told from most others."""
    return np.asarray(length, np.int64) & 31 | np.asarray(first, np.int64) << 5 | np.asarray(last, np.int64) << 13


def _read() -> Bits:
    table = np.zeros(1 << 21, np.bool_)
    for name in READ:
        table[_marks(ord(name[0]), ord(name[-1]), len(name))] = True
    return table


_READ = _read()


class _Bare(NamedTuple):
    """Some lines without texts, the numbers of the odd ones, and how many lines they are."""

    raw: Raw
    odd: Ints
    many: int


def bare_of_texts(chunks: Sequence[Raw], longest: int) -> tuple[list[Raw], Ints]:
    """Lines without the texts that nothing reads, and the numbers of those that have to be read as they stand.

    Args:
        chunks: whole lines, each with its end.
        longest: a line that has more bytes is odd.
    """
    bare: list[Raw] = []
    odd: list[Ints] = []
    first = 0
    for chunk in chunks:
        some = _bare(chunk, longest)
        bare.append(some.raw)
        odd.append(some.odd + first)
        first += some.many
    return bare, np.concatenate(odd)


def _bare(raw: Raw, longest: int) -> _Bare:
    codes = np.frombuffer(raw, np.uint8)
    special = sparse((codes < _SPACE) | (codes == _ESCAPE))
    escaping = codes[special] == _ESCAPE
    controls, escapes = special[~escaping], special[escaping]
    newline = codes[controls] == _NEWLINE
    begins = np.concatenate([np.zeros(1, np.int64), controls[newline] + 1])
    many = len(begins) - 1
    try:
        codes.max(initial=0) < _BEYOND_ASCII or str(raw, "utf-8")
    except UnicodeDecodeError:
        return _Bare(raw, np.arange(many), many)
    quotes = np.flatnonzero(codes == _QUOTE)
    odd = [_controls(codes, controls[~newline])]
    if escapes.size:
        escapes = _escaping(escapes)
        quotes = _unescaped(codes, quotes, escapes)
        odd.append(escapes[~_valid(codes, escapes)])
    in_line = np.diff(np.searchsorted(quotes, begins))
    unclosed = np.flatnonzero(in_line & 1)
    if unclosed.size:
        quotes = quotes[np.repeat(in_line & 1 == 0, in_line)]
    opens, closes = quotes[::2], quotes[1::2]
    if escapes.size:
        odd.append(_in_keys(codes, opens, closes, escapes))
    at = _unread(codes, opens, closes)
    lines = np.searchsorted(begins, np.concatenate(odd), "right") - 1
    too_long = np.flatnonzero(np.diff(begins) > longest + 1)
    return _Bare(without(raw, opens[at] + 1, closes[at]), np.unique(np.concatenate([lines, unclosed, too_long])), many)


def _controls(codes: Codes, found: Ints) -> Ints:
    """Control characters but newlines, which no string may hold as they are; what belongs to a newline is none."""
    return found[(codes[found] != _RETURN) | (codes[found + 1] != _NEWLINE)] if found.size else found


def _escaping(found: Ints) -> Ints:
    """Of backslashes those that escape what follows: in a row of them, every other one."""
    begins = np.concatenate([np.ones(1, np.bool_), found[1:] != found[:-1] + 1])
    if begins.all():
        return found
    index = np.arange(found.size)
    since = index - np.maximum.accumulate(np.where(begins, index, 0))
    return cast("Ints", found[since & 1 == 0])


def _unescaped(codes: Codes, quotes: Ints, escapes: Ints) -> Ints:
    escaped = escapes[codes[escapes + 1] == _QUOTE] + 1
    if not escaped.size:
        return quotes
    kept = np.ones(quotes.size, np.bool_)
    kept[np.searchsorted(quotes, escaped)] = False
    return quotes[kept]


def _valid(codes: Codes, escapes: Ints) -> Bits:
    """Whether what follows a backslash is an escape of JSON."""
    after = codes[escapes + 1]
    valid = _AFTER_ESCAPE[after]
    by_number = np.flatnonzero(after == ord("u"))
    for nth in range(2, 2 + _DIGITS_OF_ESCAPE if by_number.size else 0):
        valid[by_number] &= _HEX[codes[np.minimum(escapes[by_number] + nth, codes.size - 1)]]
    return valid


def _in_keys(codes: Codes, opens: Ints, closes: Ints, escapes: Ints) -> Ints:
    """Characters of keys that are written by their number: a key may be one that is read in disguise."""
    found = escapes[codes[escapes + 1] == ord("u")]
    string = np.searchsorted(opens, found, "right") - 1
    return cast("Ints", found[~_AFTER_VALUE[codes[closes[string] + 1]]]) if found.size and opens.size else found


def _unread(codes: Codes, opens: Ints, closes: Ints) -> Ints:
    """Which strings are values of keys whose text is not read. The string before such a one is its key."""
    between = opens[1:] - closes[:-1]
    at = np.flatnonzero((between > 1) & (between < _APART) & (closes[1:] - opens[1:] > 1)) + 1
    end = closes[at - 1]
    before = codes[opens[at] - 1]
    valued = (codes[end + 1] == _COLON) & ((before == _COLON) | (before == _SPACE))
    if not valued.all():
        at, end = at[valued], end[valued]
    begin = opens[at - 1]
    marks = _marks(codes[begin + 1], codes[end - 1], end - begin - 1)
    return at[~_READ[marks]]
