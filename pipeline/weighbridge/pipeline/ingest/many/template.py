"""What all lines of one form have in common, worked out once from one of them: a template.

One line is parsed strictly, with a number of its own in the place of each whole number; where those turn up among the
leaves, the numbers of the other lines belong. A form whose meaning depends on a number (an element that is named by
one, an error that is a number) has no template: such lines are read one by one.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

from weighbridge.pipeline.ingest.dialect import Role
from weighbridge.pipeline.ingest.dialects import dialect_for
from weighbridge.pipeline.ingest.json_lines import parse
from weighbridge.pipeline.ingest.many.runs import runs_of
from weighbridge.pipeline.ingest.parts import Part, parts_of
from weighbridge.pipeline.ingest.reading import day_of, named
from weighbridge.pipeline.ingest.recorded import FLAVOR

# Beyond any run of digits that is read as a number here, and within 64 bits.
_MARK = 2 * 10**18
_DIGITS = len(str(_MARK))
_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"|(-?)(\d+)((?:\.\d+)?(?:[eE][+-]?\d+)?)', re.DOTALL)
# What a record may hold beside its answer, and is then read with it; and the sign that it is in other words.
_BESIDE = ("context", "headers", "events", "at")
# Keys whose value decides how the rest is read.
_DECIDING = frozenset({"error", "status", "type", "modality", "ttl"})


@dataclass(frozen=True, slots=True)
class Tokens:
    """What the runs of digits of a line are.

    Attributes:
        text: runs inside strings, which lines of one form have in common.
        whole: runs that are whole numbers.
        fraction: runs that follow a point or an exponent, or stand before one.
        exponents: of `fraction`, those after an `e`.
        leading: of `whole` and `fraction`, those that begin a number.
        negative: the signs of `whole`.
        literal: numbers that are no runs, for what stands around them, and stay as they are.
        marked: the line with a number of its own in the place of each whole one, with its sign.
    """

    text: list[int]
    whole: list[int]
    fraction: list[int]
    exponents: list[int]
    leading: list[int]
    negative: list[bool]
    literal: list[int]
    marked: bytes


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """How every line of one form is read.

    Attributes:
        tokens: what its runs of digits are.
        provider, api, model, day: as the lines name them.
        part: the one part of the answer; the integers in it that are marks are replaced.
        counted: leaves of the part that are numbers which differ from line to line.
        runs: per counted leaf the run that is its number.
        negative: per counted leaf, whether its number has a sign.
    """

    tokens: Tokens
    provider: str | None
    api: str | None
    model: str | None
    day: date | None
    part: Part
    counted: tuple[int, ...]
    runs: tuple[int, ...]
    negative: tuple[bool, ...]


def tokens_of(line: bytes) -> Tokens:
    """What the runs of digits of a line are, in their order; of those that may be numbers."""
    out = Tokens([], [], [], [], [], [], [], b"")
    pieces: list[bytes] = []
    runs = [run.start() for run in runs_of(line)]
    end = 0
    for token in _TOKENS.finditer(line):
        sign, digits, rest = token.groups()
        within = range(bisect_left(runs, token.start()), bisect_left(runs, token.end()))
        if digits is None:
            out.text.extend(within)
        elif not within:
            out.literal.append(int(digits) if len(digits) <= _DIGITS else 0)
        else:
            out.leading.extend([within[0]] if runs[within[0]] == token.start(2) else [])
            if rest:
                out.fraction.extend(within)
                out.exponents.extend([within[-1]] if b"e" in rest.lower() else [])
            else:
                out.whole.append(within[0])
                out.negative.append(bool(sign))
                pieces += [line[end : token.start(2)], b"%d" % (_MARK + within[0])]
                end = token.end(2)
    return replace(out, marked=b"".join((*pieces, line[end:])))


def template_of(line: bytes) -> Template | None:
    """The template of lines of this form, or null where they have to be read one by one."""
    tokens = tokens_of(line)
    # A number that is left as it is must be told from the marks.
    if any(_MARK <= number <= 2 * _MARK for number in tokens.literal):
        return None
    record, reason = parse(tokens.marked)
    if record is None or reason is not None or not _plain(record):
        return None
    provider, api, model = (named(record.get(name)) for name in ("provider", "api", "model"))
    parts = parts_of(api or "", usage=record.get("usage"), response=record.get("response"), provider=provider)
    part = parts[0]
    flat = part.flattened
    if len(parts) > 1 or flat.refusals or flat.integral_floats or _counts_only(provider, api):
        return None
    places = {
        (-1 if negative else 1) * (_MARK + run): run
        for run, negative in zip(tokens.whole, tokens.negative, strict=True)
    }
    found = [
        (at, run, leaf.integer < 0)
        for at, leaf in enumerate(flat.leaves)
        if leaf.integer is not None and (run := places.get(leaf.integer)) is not None
    ]
    counted, runs, signs = zip(*found, strict=True) if found else ((), (), ())
    return Template(tokens, provider, api, model, day_of(record.get("day")), part, counted, runs, signs)


def _plain(record: Mapping[str, object]) -> bool:
    """Whether a record is one answer that is told by one object, and no number in it decides how it is read."""
    told = [value for name in ("usage", "response") if (value := record.get(name)) is not None]
    if len(told) != 1 or FLAVOR in record or any(record.get(name) is not None for name in _BESIDE):
        return False
    return isinstance(told[0], Mapping) and not _decides(told[0])


def _decides(value: object) -> bool:
    if isinstance(value, Mapping):
        return any((name in _DECIDING and _is_number(item)) or _decides(item) for name, item in value.items())
    return isinstance(value, Sequence) and not isinstance(value, str) and any(map(_decides, value))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, Decimal)) and not isinstance(value, bool)


def _counts_only(provider: str | None, api: str | None) -> bool:
    """Whether the numbers are those of a prompt that was not served; they stand beside a reading, not in it."""
    dialect = dialect_for(provider, api)
    return dialect is not None and Role.WOULD_BE_INPUT in dialect.roles.values()
