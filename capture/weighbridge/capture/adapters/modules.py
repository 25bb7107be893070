"""Any PyTorch model, at level 3: what reached which of its modules.

    with trace_modules(model, layers=["encoder.*"], every=1) as traced:
        model(...)
    traced.passes            # shapes, numbers and index sets, per call of a module
    traced.add_to(Trace())   # as state events: how many positions each layer computed

Hooks with keyword arguments note the shapes of tensors, numbers, and small sets of indices (whole numbers of one axis)
that a module gets and gives; never a tensor, and of text nothing. They are removed on exit, and a second call for the
same model adds none. What it cost is printed on exit. Inside a call that the adapter of transformers watches they note
only where its attempt is at level 3, and become part of its trace.

A layer that is left out shows as a pass that is missing, one that gets fewer positions than the first layer of its
pass as SKIP. Run with torch 2.13.
"""

from __future__ import annotations

import fnmatch
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from weighbridge.capture.adapters._generate_call import current
from weighbridge.capture.adapters.adapter import Adapter, Installed
from weighbridge.capture.guard import Guard
from weighbridge.schemas.enumerations import Axis, Operation, Phase
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.strategy import Strategy
from weighbridge.schemas.trace import Trace

_WHOLE: Final = 3
_BOUND: Final = 1 << 16  # calls of modules that are kept
_INDICES: Final = 4096  # the largest set that is kept
_DEPTH: Final = 3
_living: Final[weakref.WeakKeyDictionary[Any, ModuleTrace]] = weakref.WeakKeyDictionary()

Number = int | float | bool


@dataclass(frozen=True, slots=True)
class Pass:
    """One call of one module. It never holds a tensor.

    Attributes:
        layer: its place among the modules that are watched.
        step: how often it was called before.
        shapes: of the tensors it got (by name or place) and gave (`out.0`, ...).
        numbers: it got.
        indices: sets of places (distinct whole numbers below the longest axis of the call) it got or gave.
    """

    layer: int
    step: int
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    numbers: dict[str, Number] = field(default_factory=dict)
    indices: dict[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def positions(self) -> int | None:
        """Positions of its first tensor with at least three axes (batch x positions x channels), if it has one."""
        return next((shape[1] for shape in self.shapes.values() if len(shape) >= 3), None)


class ModuleTrace(Installed):
    """The hooks of one model, and what they noted.

    Attributes:
        names: of the modules that are watched, in the model's order.
        passes: in the order of calls.
        left_out: calls beyond the bound.
        spent_ns: time in hooks.
        strategy: none; a model's own is not known here.
    """

    def __init__(self, names: list[str], every: int, tell: Callable[[str], object] | None) -> None:
        super().__init__(supported=True)
        self.names = names
        self.passes: list[Pass] = []
        self.left_out = 0
        self.spent_ns = 0
        self.strategy: Strategy | None = None
        self._every = every
        self._tell = tell
        self._calls = [0] * len(names)

    def __enter__(self) -> ModuleTrace:
        return self

    def remove(self) -> None:
        """Take the hooks out, and say what they cost."""
        had = bool(self._undo)
        super().remove()
        if had and self._tell is not None:
            self._tell(self.cost())

    def cost(self) -> str:
        """What it took, in one line."""
        return (
            f"trace_modules: {len(self.passes):,} calls of {len(self.names)} modules noted in "
            f"{self.spent_ns / 1e6:,.1f} ms, {self.held_bytes / 1024:,.0f} KiB at the peak"
        )

    @property
    def held_bytes(self) -> int:
        """What is kept; it only grows, so it is the peak."""
        return sum(
            sys.getsizeof(each.shapes) + sys.getsizeof(each.numbers) + sys.getsizeof(each.indices) + 128
            + 96 * len(each.shapes) + sum(36 * len(values) for values in each.indices.values())
            for each in self.passes
        )  # fmt: skip

    def counts(self, _: int = 0) -> dict[str, int]:
        """No counts of level 1 follow from shapes."""
        return {}

    def add_to(self, trace: Trace, _: int = 0) -> None:
        """RUN and SKIP per module and step: positions it computed, of those the first module of that step got."""
        trace.strategy_id = None
        first: dict[int, int] = {}
        for each in self.passes:
            if each.positions is not None:
                first.setdefault(each.step, each.positions)
        for each in self.passes:
            computed = each.positions
            if computed is None:
                continue
            universe = max(first[each.step], computed)
            for op, members in ((Operation.RUN, computed), (Operation.SKIP, universe - computed)):
                if members:
                    trace.count(
                        Axis.COMPUTE, op, members, universe, layers=(each.layer, each.layer), step=each.step,
                        phase=Phase.DECODE if each.step else Phase.PREFILL,
                    )  # fmt: skip

    def note(self, layer: int, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        """A module was called."""
        began = time.perf_counter_ns()
        step, self._calls[layer] = self._calls[layer], self._calls[layer] + 1
        call = current.get()
        wanted = call is None or (not call.ignored and call.attempt.level >= _WHOLE)
        if not wanted or step % self._every:
            return
        if len(self.passes) >= _BOUND:
            self.left_out += 1
            return
        if call is not None and self not in call.told:
            call.told.append(self)
        noted = Pass(layer, step)
        for name, value in (*enumerate(args), *kwargs.items()):
            _note(noted, str(name), value, _DEPTH)
        _note(noted, "out", output, _DEPTH)
        _keep_places(noted)
        self.passes.append(noted)
        self.spent_ns += time.perf_counter_ns() - began


def _note(noted: Pass, name: str, value: Any, depth: int) -> None:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        shape = tuple(int(size) for size in value.shape)
        noted.shapes[name] = shape
        whole = not value.is_floating_point() and not value.is_complex() and str(value.dtype) != "torch.bool"
        if whole and len(shape) == 1 and shape[0] <= _INDICES:
            noted.indices[name] = tuple(value.tolist())
    elif isinstance(value, bool | int | float):
        noted.numbers[name] = value
    elif depth and isinstance(value, tuple | list):
        for place, each in enumerate(value):
            _note(noted, f"{name}.{place}", each, depth - 1)
    elif depth and isinstance(value, dict):
        for key, each in value.items():
            _note(noted, f"{name}.{key}", each, depth - 1)


def _keep_places(noted: Pass) -> None:
    """Leave out whole numbers that are no set of places: a word's ids have no business here."""
    widest = max((size for shape in noted.shapes.values() for size in shape), default=0)
    for name, values in list(noted.indices.items()):
        told = len(set(values)) == len(values) and all(0 <= value < widest for value in values)
        if not told or "ids" in name or "token" in name:
            del noted.indices[name]


def trace_modules(
    model: Any,
    *,
    layers: Iterable[str] | None = None,
    every: int = 1,
    tell: Callable[[str], object] | None = print,
) -> ModuleTrace:
    """Watch modules of a model until the answer is removed or its `with` block ends.

    Args:
        model: a `torch.nn.Module`.
        layers: patterns of module names (`model.layers.*`); without any, the members of its lists of modules.
        every: note each so many-th call of a module.
        tell: is given one line about what it cost; None says nothing.

    Returns:
        What is noted; for a model that is watched already, what watches it.

    Raises:
        ConfigError: no module has such a name, or `every` is below 1.
    """
    known = _living.get(model)
    if known is not None and known._undo:  # noqa: SLF001 - our own
        return known
    if every < 1:
        raise ConfigError(f"every={every}; 1 notes each call, 2 every other one")
    chosen = list(_chosen(model, layers))
    if not chosen:
        some = ", ".join(name for name, _ in list(model.named_modules())[1:6])
        raise ConfigError(f"no module has such a name; there are {some}, ... (see model.named_modules())")
    traced = ModuleTrace([name for name, _ in chosen], every, tell)
    for place, (_, module) in enumerate(chosen):
        traced.undo(module.register_forward_hook(_hook(traced, place), with_kwargs=True).remove)
    _living[model] = traced
    return traced


def _hook(traced: ModuleTrace, place: int) -> Callable[..., None]:
    def hook(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        with Guard("modules.note"):
            traced.note(place, args, kwargs, output)

    return hook


def _chosen(model: Any, layers: Iterable[str] | None) -> Iterator[tuple[str, Any]]:
    patterns = None if layers is None else list(layers)
    lists = {name for name, module in model.named_modules() if type(module).__name__ == "ModuleList"}
    for name, module in model.named_modules():
        if patterns is None:
            if name.rpartition(".")[0] in lists:
                yield name, module
        elif any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            yield name, module


ADAPTER: Final = Adapter(name="modules", framework="torch", first="2.13", below="2.14", install=trace_modules)
