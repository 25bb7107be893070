"""Hooks on any model: shapes, numbers and places, never a tensor; taken out again, and not put in twice."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from weighbridge.capture.adapters.modules import ModuleTrace, trace_modules
from weighbridge.schemas.enumerations import Operation
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.trace import Trace


@pytest.fixture
def model(frameworks: tuple[Any, Any]) -> Any:
    """Three layers, of which the last two get the tokens the first one kept: none of transformers' business."""
    torch, _ = frameworks

    class Layer(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, hidden: Any, *, kept: Any = None, scale: float = 1.0, word_ids: Any = None) -> Any:
            hidden = hidden if kept is None else hidden[:, kept]
            return self.linear(hidden) * scale

    class Pruned(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList([Layer() for _ in range(3)])

        def forward(self, hidden: Any) -> Any:
            hidden = self.layers[0](hidden, scale=0.5)
            hidden = self.layers[1](hidden, kept=torch.tensor([5, 0, 3]), word_ids=torch.tensor([1, 2]))
            return self.layers[2](hidden)

    return Pruned()


def hooks(model: Any) -> int:
    return sum(len(module._forward_hooks) for module in model.modules())


@pytest.fixture
def lines() -> list[str]:
    return []


def test_what_reached_which_layer(model: Any, frameworks: tuple[Any, Any], lines: list[str]) -> None:
    torch, _ = frameworks
    plain = model(torch.ones(1, 6, 4))
    with trace_modules(model, tell=lines.append) as traced:
        assert torch.equal(model(torch.ones(1, 6, 4)), plain)
        model(torch.ones(1, 8, 4))
    assert traced.names == ["layers.0", "layers.1", "layers.2"]
    first, second, third = traced.passes[:3]
    assert first.shapes == {"0": (1, 6, 4), "out": (1, 6, 4)}
    assert first.numbers == {"scale": 0.5}
    assert second.shapes["kept"] == (3,)
    assert second.indices == {"kept": (5, 0, 3)}, "ids are left out"
    assert third.shapes["0"] == (1, 3, 4)
    trace = Trace()
    traced.add_to(trace)
    told = [(e.layer_lo, e.step, e.op, e.n_members, e.n_universe) for e in trace.events]
    assert told == [
        (0, 0, Operation.RUN, 6, 6), (1, 0, Operation.RUN, 6, 6), (2, 0, Operation.RUN, 3, 6),
        (2, 0, Operation.SKIP, 3, 6), (0, 1, Operation.RUN, 8, 8), (1, 1, Operation.RUN, 8, 8),
        (2, 1, Operation.RUN, 3, 8), (2, 1, Operation.SKIP, 5, 8),
    ]  # fmt: skip
    (line,) = lines
    assert line.startswith("trace_modules: 6 calls of 3 modules noted in ")
    assert line.endswith(" KiB at the peak")


def test_no_tensor_is_held(model: Any, frameworks: tuple[Any, Any], lines: list[str]) -> None:
    torch, _ = frameworks
    hidden = torch.ones(1, 6, 4)
    held = weakref.ref(hidden)
    with trace_modules(model, tell=lines.append) as traced:
        model(hidden)
        del hidden
        gc.collect()
        assert held() is None
        assert len(traced.passes) == 3
        kinds = {
            type(value) for each in traced.passes for part in (each.shapes, each.indices) for value in part.values()
        }
        assert kinds == {tuple}


def test_a_second_call_adds_no_hook_and_removal_leaves_none(model: Any, lines: list[str]) -> None:
    with trace_modules(model, tell=lines.append) as traced:
        assert hooks(model) == 3
        assert trace_modules(model, layers=["layers.0"]) is traced
        assert hooks(model) == 3
    assert hooks(model) == 0
    with trace_modules(model, layers=["layers.[12]"], tell=None) as other:
        assert (hooks(model), other.names) == (2, ["layers.1", "layers.2"])
    assert (hooks(model), len(lines)) == (0, 1)


def test_every_other_call_is_noted(model: Any, frameworks: tuple[Any, Any]) -> None:
    torch, _ = frameworks
    with trace_modules(model, every=2, tell=None) as traced:
        for _ in range(5):
            model(torch.ones(1, 6, 4))
    assert [each.step for each in traced.passes if each.layer == 0] == [0, 2, 4]


def test_what_cannot_be_watched_says_what_can(model: Any) -> None:
    with pytest.raises(ConfigError, match=r"there are layers, layers\.0"):
        trace_modules(model, layers=["nothing.*"])
    with pytest.raises(ConfigError, match="1 notes each call"):
        trace_modules(model, every=0)
    assert hooks(model) == 0


def test_what_is_kept_is_bounded(model: Any, frameworks: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    torch, _ = frameworks
    monkeypatch.setattr("weighbridge.capture.adapters.modules._BOUND", 4)
    with trace_modules(model, tell=None) as traced:
        for _ in range(3):
            model(torch.ones(1, 6, 4))
    assert isinstance(traced, ModuleTrace)
    assert (len(traced.passes), traced.left_out) == (4, 5)
