"""Plans: how one finish becomes one store.

A plan belongs to one pair of (counts an adapter can state, shape of the usage object). Its `store` is generated once:
it checks that the usage object still has the shape, reads the allow-listed numbers and stores word after word through
a memoryview of 64-bit integers, the commit word last. A usage object of another shape raises inside, and the slow path
learns it.

Why not `struct`: it lives in a library of its own, whose code a model step has driven out of the caches of the core;
its first call costs more than forty stores through a memoryview, which the interpreter has at hand.
"""

from __future__ import annotations

import array
import functools
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, Protocol

from weighbridge.capture.layout import HEAD, SLOT, WORDS
from weighbridge.schemas import leaves

Store = Callable[["Words", int, Sequence[int], Sequence[int], Any], None]
STORED_LEAVES: Final = WORDS - len(HEAD)
LONGEST_KEY: Final = 256
_REAL: Final = {float}
BIG_ENDIAN: Final = sys.byteorder == "big"


class Words(Protocol):
    """Memory that slots are stored in, seen as 64-bit integers and as doubles of the same bytes."""

    words: memoryview[int]
    reals: memoryview[float]


class Scratch:
    """A slot of its own, to render a record in before there is a place for it."""

    __slots__ = ("raw", "reals", "words")

    def __init__(self) -> None:
        self.raw = bytearray(SLOT)
        self.words = memoryview(self.raw).cast("q")
        self.reals = memoryview(self.raw).cast("d")

    def clear(self) -> None:
        """Zero it."""
        self.raw[:] = bytes(SLOT)

    def slot(self) -> bytes:
        """Its bytes as they stand in a file, little-endian; a memoryview has the order of the machine."""
        words = array.array("q", self.raw)
        if BIG_ENDIAN:
            words.byteswap()
        return words.tobytes()


class ShapeError(Exception):
    """The usage object is not of the shape this plan was made for."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One compiled way to write an attempt.

    Attributes:
        number: its dictionary id, part of every slot it writes.
        counts: names of the integers the caller passes after the head, in order.
        paths: leaf paths, in the order they are stored.
        kinds: per leaf "q" (integer) or "d" (measure, stored as a double).
        constants: enumerated leaves: path -> text; a usage object with another value is of another shape.
        store: `store(journal, offset, head, counts, usage)`; the commit word is the offset. What was stored before it
            raises is not committed.
    """

    number: int
    counts: tuple[str, ...]
    paths: tuple[str, ...]
    kinds: str
    constants: Mapping[str, str]
    store: Store = field(repr=False)

    @property
    def bare(self) -> bool:
        """Whether it is the plan of an answer without usage."""
        return not self.paths and not self.constants

    def describe(self) -> dict[str, object]:
        """The dictionary entry that lets a reader decode the slots of this plan."""
        return {
            "counts": list(self.counts),
            "paths": list(self.paths),
            "kinds": self.kinds,
            "constants": dict(self.constants),
        }


def compile_plan(number: int, counts: Sequence[str], usage: object, key: bytes, root: str = "usage") -> Plan:
    """Make the plan for `usage` (an object as parsed from JSON, or None) beside the named counts.

    Raises:
        ShapeError: the object has leaves that no plan can store (unreadable numbers, too many); the caller then writes
            its leaves as a usage record of its own.
    """
    reader = _Reader(key)
    if usage is None:
        reader.lines.append("if u is not None: raise ShapeError")
    else:
        reader.walk(usage, "u", root, 1)
    if len(reader.values) + len(counts) > STORED_LEAVES:
        raise ShapeError(f"{len(reader.values)} leaves and {len(counts)} counts; a slot holds {STORED_LEAVES}")
    kinds = "".join(reader.kinds)
    names = [f"v{index}" for index in range(len(kinds))]
    lines = [*reader.lines, *(f"{name} = {value}" for name, value in zip(names, reader.values, strict=True))]
    # A bool would be stored as an integer and an integer as a float; a reading would not. `is` is the cheapest test.
    integers = [name for name, kind in zip(names, kinds, strict=True) if kind == "q"]
    reals = [name for name, kind in zip(names, kinds, strict=True) if kind == "d"]
    if integers:
        lines.append(f"if {' or '.join(f'{n} is True or {n} is False' for n in integers)}: raise ShapeError")
    if reals:
        lines.append(f"if set(map(type, ({', '.join(reals)},))) != real: raise ShapeError")
        lines.append(f"if not isfinite({' + '.join(reals)}): raise ShapeError")
    lines += _stores(len(counts), names, kinds)
    source = "def store(journal, offset, head, counts, u):\n " + "\n ".join(lines) + "\n"
    return Plan(number, tuple(counts), tuple(reader.paths), kinds, reader.constants, _compiled(source))


def _stores(counts: int, leaf_names: Sequence[str], kinds: str) -> list[str]:
    """The lines that store one slot. A head or counts of another length fail to unpack, a number too large to store."""
    head = [f"h{index}" for index in range(len(HEAD))]
    stated = [f"c{index}" for index in range(counts)]
    lines = [
        f"{', '.join(head)}, = head",
        f"{', '.join(stated)}, = counts" if stated else "if counts: raise ShapeError",
    ]
    lines += ["at = offset >> 3", f"words = journal.words[at:at + {WORDS + 1}]"]
    if "d" in kinds:
        lines.append(f"reals = journal.reals[at:at + {WORDS + 1}]")
    lines += [f"words[{at}] = {name}" for at, name in enumerate((*head, *stated))]
    for at, (name, kind) in enumerate(zip(leaf_names, kinds, strict=True), len(head) + len(stated)):
        lines.append(f"{'words' if kind == 'q' else 'reals'}[{at}] = {name}")
    return [*lines, f"words[{WORDS}] = offset"]


@functools.lru_cache(maxsize=256)
def _compiled(source: str) -> Store:
    """The function of a plan. Bindings share it: CPython makes code fast only after it has run a few times."""
    space: dict[str, Any] = {"ShapeError": ShapeError, "real": _REAL, "isfinite": math.isfinite}
    exec(compile(source, "<plan>", "exec"), space)  # noqa: S102 - built from our own allow-list only
    store: Store = space["store"]
    return store


def _shape(name: str, value: dict[str, object]) -> str:
    """The line that holds a dict to its size. A `Counter` would answer 0 for a count that nobody reported."""
    return f"if type({name}) is not dict or len({name}) != {len(value)}: raise ShapeError"


def _sound_key(inner: object) -> None:
    """Only a plain string may stand in the source: a subclass could bring a `__repr__` of its own."""
    if type(inner) is not str or len(inner) > LONGEST_KEY:
        raise ShapeError("a key that is no plain, short string")


class _Reader:
    """Writes the lines that read one shape. Keys enter the source only through `repr`."""

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.lines: list[str] = []
        self.values: list[str] = []
        self.paths: list[str] = []
        self.kinds: list[str] = []
        self.constants: dict[str, str] = {}
        self._names = 0

    def walk(self, value: object, name: str, path: str, depth: int) -> None:
        """Read the object that the variable `name` holds."""
        if depth > leaves.MAX_DEPTH:
            raise ShapeError("deeper than a usage object may be")
        if type(value) is not dict:
            raise ShapeError("a bare value, or a dict that may answer for keys it has not; it is read off the path")
        if len(value) > STORED_LEAVES:
            raise ShapeError("more keys than a slot holds leaves")
        self.lines.append(_shape(name, value))
        for inner, item in value.items():
            _sound_key(inner)
            shown = inner if inner in leaves.KEYS else leaves.hashed_key(self.key, inner)
            self._value(item, f"{name}[{inner!r}]", inner, f"{path}.{shown}", depth)

    def _value(self, item: object, source: str, inner: str, path: str, depth: int) -> None:
        if item is None:
            self.lines.append(f"if {source} is not None: raise ShapeError")
        elif isinstance(item, dict):
            self._names += 1
            name = f"d{self._names}"
            self.lines.append(f"{name} = {source}")
            self.walk(item, name, path, depth + 1)
        elif isinstance(item, list):
            self._list(item, source, path, depth)
        elif isinstance(item, str):
            self._text(item, source, inner, path)
        elif isinstance(item, int) and not isinstance(item, bool) and leaves.INT64_MIN <= item <= leaves.INT64_MAX:
            self._store(source, path, "q")
        elif type(item) is float and math.isfinite(item) and inner in leaves.MEASURE_KEYS:
            self._store(source, path, "d")
        else:
            raise ShapeError("a value that is no plain count or measure; it is read off the path")

    def _list(self, items: list[object], source: str, path: str, depth: int) -> None:
        if len(items) > leaves.MAX_LIST:
            raise ShapeError("a list too long for a usage object")
        self._names += 1
        name = f"l{self._names}"
        self.lines += [f"{name} = {source}", f"if len({name}) != {len(items)}: raise ShapeError"]
        seen: dict[str, int] = {}
        for index, item in enumerate(items):
            if type(item) is not dict:
                raise ShapeError("a list of bare values; it is read off the path")
            if len(item) > STORED_LEAVES:
                raise ShapeError("more keys than a slot holds leaves")
            label, discriminator = leaves.label_of(item, index, seen)
            if discriminator is None and not label.isdigit():
                raise ShapeError("a label that is a number; it is read off the path")
            element = f"{name}_{index}"
            self.lines += [f"{element} = {name}[{index}]", _shape(element, item)]
            for inner, value in item.items():
                _sound_key(inner)
                if inner == discriminator:
                    if type(value) is not str:
                        raise ShapeError("a label that is no plain string")
                    self.lines.append(f"if {element}[{inner!r}] != {value!r}: raise ShapeError")
                else:
                    shown = inner if inner in leaves.KEYS else leaves.hashed_key(self.key, str(inner))
                    self._value(value, f"{element}[{inner!r}]", str(inner), f"{path}[{label}].{shown}", depth + 1)

    def _text(self, item: str, source: str, inner: str, path: str) -> None:
        flat = leaves.flatten({inner: item}, self.key, "x")
        if flat.refusals or (inner in leaves.MEASURE_KEYS and flat.leaves):
            raise ShapeError("a number written as text; it is read off the path")
        if flat.leaves:
            if type(item) is not str:
                raise ShapeError("text that is no plain string")
            self.lines.append(f"if {source} != {item!r}: raise ShapeError")
            self.constants[path] = flat.leaves[0].text or ""
        else:
            # A free string is never compared and never stored, only its presence is part of the shape.
            self.lines.append(f"{source}")

    def _store(self, source: str, path: str, kind: str) -> None:
        self.values.append(source)
        self.paths.append(path)
        self.kinds.append(kind)


def measure_text(value: float) -> str:
    """A measure read back from its double: the shortest decimal that is the same number."""
    return format(Decimal(repr(value)), "f")
