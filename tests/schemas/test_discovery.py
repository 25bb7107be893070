"""A growing folder finds its members by what they declare."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from weighbridge.schemas import errors
from weighbridge.schemas.discovery import declared


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    root = tmp_path / "growing_folder"
    root.mkdir()
    (root / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield importlib.import_module("growing_folder")
    for name in [name for name in sys.modules if name.startswith("growing_folder")]:
        del sys.modules[name]


def write(folder: ModuleType, name: str, text: str) -> None:
    (Path(folder.__path__[0]) / f"{name}.py").write_text(text)
    importlib.invalidate_caches()


def test_members_are_found_in_alphabetical_order_without_a_registry(folder: ModuleType) -> None:
    write(folder, "zebra", "MEMBER = 'z'")
    write(folder, "ant", "MEMBER = 'a'")
    write(folder, "_shared", "raise RuntimeError('modules with an underscore are not members')")
    assert list(declared(folder, "MEMBER", str).items()) == [("ant", "a"), ("zebra", "z")]


def test_a_module_that_declares_nothing_is_named(folder: ModuleType) -> None:
    write(folder, "mute", "OTHER = 1")
    with pytest.raises(
        TypeError, match=r"growing_folder\.mute declares MEMBER = None; every module .* declares one str"
    ):
        declared(folder, "MEMBER", str)


def test_a_member_of_another_kind_is_refused(folder: ModuleType) -> None:
    write(folder, "wrong", "MEMBER = 3")
    with pytest.raises(TypeError, match=r"declares MEMBER = 3"):
        declared(folder, "MEMBER", str)


def test_errors_say_whether_trying_again_can_help() -> None:
    assert issubclass(errors.LakeBusyError, (errors.LakeError, errors.Transient))
    assert not issubclass(errors.LakeBusyError, errors.Terminal)
    for terminal in (errors.ConfigError, errors.ContractError):
        assert issubclass(terminal, errors.Terminal)
        assert issubclass(terminal, errors.WeighbridgeError)
