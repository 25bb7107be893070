"""Plans: how one finish becomes one store.

A plan belongs to one pair of (counts an adapter can state, shape of the usage object). Its `store` is generated once:
it checks that the usage object still has the shape, reads the allow-listed numbers and packs everything with one
`Struct.pack_into`, commit word last. A usage object of another shape raises inside, and the slow path learns it.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from weighbridge.capture.layout import COMMIT, HEAD, WORDS
from weighbridge.schemas import leaves

Store = Callable[[Any, int, Sequence[int], Sequence[int], Any, int], None]
STORED_LEAVES: Final = WORDS - len(HEAD)
LONGEST_KEY: Final = 256
_REAL: Final = {float}


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
        store: `store(buffer, offset, head, counts, usage, commit)`.
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
    words = len(HEAD) + len(counts)
    kinds = "".join(reader.kinds)
    pad = COMMIT - 8 * (words + len(kinds))
    form = f"<{words}q{kinds}{pad}xq"
    names = [f"v{index}" for index in range(len(kinds))]
    lines = [*reader.lines, *(f"{name} = {value}" for name, value in zip(names, reader.values, strict=True))]
    # Struct takes a bool for an integer and an integer for a float; a reading would not. `is` is the cheapest test.
    integers = [name for name, kind in zip(names, kinds, strict=True) if kind == "q"]
    reals = [name for name, kind in zip(names, kinds, strict=True) if kind == "d"]
    if integers:
        lines.append(f"if {' or '.join(f'{n} is True or {n} is False' for n in integers)}: raise ShapeError")
    if reals:
        lines.append(f"if set(map(type, ({', '.join(reals)},))) != real: raise ShapeError")
        lines.append(f"if not isfinite({' + '.join(reals)}): raise ShapeError")
    lines.append(f"pack(buffer, offset, *head, *counts, {''.join(name + ', ' for name in names)}commit)")
    source = "def store(buffer, offset, head, counts, u, commit):\n " + "\n ".join(lines) + "\n"
    return Plan(number, tuple(counts), tuple(reader.paths), kinds, reader.constants, _compiled(source, form))


@functools.lru_cache(maxsize=256)
def _compiled(source: str, form: str) -> Store:
    """The function of a plan. Bindings share it: CPython makes code fast only after it has run a few times."""
    space: dict[str, Any] = {
        "pack": struct.Struct(form).pack_into, "ShapeError": ShapeError, "real": _REAL,
        "isfinite": math.isfinite,
    }  # fmt: skip
    exec(compile(source, "<plan>", "exec"), space)  # noqa: S102 - built from our own allow-list only
    store: Store = space["store"]
    return store


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
        if not isinstance(value, dict):
            raise ShapeError("a bare value; it is read off the path")
        if len(value) > STORED_LEAVES:
            raise ShapeError("more keys than a slot holds leaves")
        self.lines.append(f"if len({name}) != {len(value)}: raise ShapeError")
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
        elif isinstance(item, int) and not isinstance(item, bool):
            self._store(source, path, "q")
        elif isinstance(item, float) and math.isfinite(item) and inner in leaves.MEASURE_KEYS:
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
            if not isinstance(item, dict):
                raise ShapeError("a list of bare values; it is read off the path")
            if len(item) > STORED_LEAVES:
                raise ShapeError("more keys than a slot holds leaves")
            label, discriminator = leaves.label_of(item, index, seen)
            element = f"{name}_{index}"
            self.lines += [f"{element} = {name}[{index}]", f"if len({element}) != {len(item)}: raise ShapeError"]
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
