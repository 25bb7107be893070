"""Presses of kvpress as strategies of a run, where the runner's environment has that library.

The press works on the cache of the run, whose layers go on counting positions when entries leave them, so that later
tokens stand where they stand in the sequence. What it evicts is followed by the adapter of kvpress.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from weighbridge.schemas.errors import ConfigError

if TYPE_CHECKING:
    from weighbridge.capture.comparison.setting import Setting
    from weighbridge.schemas.strategy import Strategy

PRESS: Final = "press"
# Presses that take entries out of the cache after prefill, by parameters that are numbers. Those that mask work through
# the kernels of the framework, which a run does not use; others need a press inside, or weights that are not here.
PRESSES: Final = (
    "ExpectedAttentionPress", "KeyDiffPress", "KnormPress", "LagKVPress", "PyramidKVPress", "RandomPress",
    "SnapKVPress", "StreamingLLMPress", "TOVAPress",
)  # fmt: skip
Value = int | float | bool


def checked(where: str, given: Mapping[str, Any]) -> tuple[str, dict[str, Value]]:
    """The press of a strategy and its parameters.

    Args:
        where: names the strategy.
        given: `press`, and parameters by the names the press has for them.

    Raises:
        ConfigError: a press or parameter that is not known or out of range, or kvpress is not here.
    """
    name = given[PRESS]
    if name not in PRESSES:
        raise ConfigError(f"{where}: {PRESS} must be one of {', '.join(PRESSES)}")
    parameters = {key: value for key, value in given.items() if key != PRESS}
    odd = sorted(key for key, value in parameters.items() if not isinstance(value, Value))
    if odd:
        raise ConfigError(f"{where}: {odd[0]!r} is no number; parameters of a press are numbers")
    ratio = parameters.get("compression_ratio")
    if ratio is not None and (isinstance(ratio, bool) or not 0 < ratio < 1):
        raise ConfigError(f"{where}: compression_ratio is {ratio}; give a share between 0 and 1")
    if importlib.util.find_spec("kvpress") is None:
        raise ConfigError(
            f"{where}: the environment of the runner has no kvpress; `./setup.sh install-kvpress` makes one: name it "
            "as packages (or another interpreter as python) in the file"
        )
    able = sorted(each.name for each in dataclasses.fields(_class(name)) if each.init)
    unknown = sorted(set(parameters) - set(able))
    if unknown:
        raise ConfigError(f"{where}: {name} has no parameter {unknown[0]!r}; it has {', '.join(able)}")
    try:
        _class(name)(**parameters)
    except (TypeError, ValueError, AssertionError) as error:
        raise ConfigError(f"{where}: {name} does not take these parameters ({type(error).__name__})") from None
    return name, parameters


def _class(name: str) -> Any:
    return getattr(importlib.import_module("kvpress"), name)


@contextmanager
def pressing(model: Any, setting: Setting) -> Iterator[list[Any]]:
    """Put the press of a strategy on a model, if it has one; the traces of what it did, once it is done."""
    traces: list[Any] = []
    if setting.press is None:
        yield traces
        return
    from weighbridge.capture.adapters import kvpress as adapter  # noqa: PLC0415 - only where it is used

    press = _class(setting.press)(**setting.press_parameters)
    with adapter.install(press) as watched, press(model):
        yield traces
        traces += watched.traces


def strategy(setting: Setting, revision: str | None, layers: int, query_heads: int, kv_heads: int) -> Strategy:
    """The row of a press in the table `strategy`, as the adapter of kvpress names it."""
    from weighbridge.capture.adapters import kvpress as adapter  # noqa: PLC0415 - only where it is used

    assert setting.press is not None
    made = adapter.strategy(_class(setting.press)(**setting.press_parameters), None, model_revision=revision)
    return dataclasses.replace(made, layers=layers, query_heads=query_heads, kv_heads=kv_heads)
