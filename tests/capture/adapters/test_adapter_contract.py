"""What holds for every adapter: nothing of its framework is loaded at import, and it says what it was run with."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from weighbridge.capture.adapters.adapter import Adapter, Installed, adapters, put_attribute
from weighbridge.capture.recorder import Recorder

MEMBERS = adapters()
FRAMEWORKS = {"torch", "transformers", "httpx", "starlette", "fastapi", "openai", "anthropic", "tokenizers"}


def test_the_folder_holds_what_is_expected() -> None:
    assert {"transformers"} <= set(MEMBERS)


@pytest.mark.parametrize("name", MEMBERS)
def test_an_import_loads_no_framework(name: str) -> None:
    code = (
        f"import weighbridge.capture.adapters.{name}, sys, json; "
        "print(json.dumps(sorted({each.partition('.')[0] for each in sys.modules})))"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert not set(json.loads(done.stdout)) & FRAMEWORKS


@pytest.mark.parametrize("adapter", MEMBERS.values(), ids=lambda adapter: adapter.name)
def test_an_adapter_names_its_versions(adapter: Adapter, recorder: Recorder) -> None:
    assert MEMBERS[adapter.name] is adapter
    assert adapter.supports(adapter.first)
    assert not adapter.supports(adapter.below)
    assert not adapter.supports("0.0.1")
    assert not adapter.supports("9999")
    assert adapter.admit(recorder, adapter.first)
    assert recorder.losses.snapshot() == {}
    assert not adapter.admit(recorder, "9999.1")
    assert recorder.losses.snapshot() == {"unsupported_version": 0}
    assert recorder.losses.total == 0


def test_versions_are_compared_as_numbers() -> None:
    adapter = Adapter(name="x", framework="no-such-distribution", first="5.2", below="5.25", install=Installed)
    assert [adapter.supports(version) for version in ("5.1.9", "5.2", "5.2.0", "5.10.dev0", "5.24.9", "5.25", "6")] == [
        False, True, True, True, True, False, False,
    ]  # fmt: skip
    assert adapter.version() is None
    assert not adapter.supports(None)


def test_removal_restores_what_was_there_and_leaves_what_came_later() -> None:
    target = SimpleNamespace(kept=1)
    with Installed(supported=True) as installed:
        put_attribute(installed, target, "kept", 2)
        put_attribute(installed, target, "new", 3)
        assert vars(target) == {"kept": 2, "new": 3}
    assert vars(target) == {"kept": 1}
    installed.remove()
    again = Installed(supported=True)
    put_attribute(again, target, "kept", 2)
    target.kept = 7
    again.remove()
    assert target.kept == 7
