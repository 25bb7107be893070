"""The example of docs/own-engine.md as it stands there: it proves its adapter, and what is spoilt in it is found."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tests.conftest import ROOT

from weighbridge.capture.adapters.adapter import Installed
from weighbridge.capture.contract import CHECKS, Engine, Outcome, prove
from weighbridge.capture.contract.engine import SCENARIOS
from weighbridge.capture.recorder import Recorder

BLOCK = re.compile(r"^```python\n# (\w+)\.py\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAMES = ("toy_engine", "toy_adapter", "toy_contract")
NOT_OFFERED = {"stop_string", "batch", "speculation"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The modules of the page in a folder that is imported from."""
    found = dict(BLOCK.findall((ROOT / "docs" / "own-engine.md").read_text(encoding="utf-8")))
    assert tuple(found) == NAMES
    for name, text in found.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", ""))))
    yield tmp_path
    for name in NAMES:
        sys.modules.pop(name, None)


def loaded(folder: Path, adapter: str | None = None) -> ModuleType:
    """The contract's module, with the adapter changed."""
    if adapter is not None:
        (folder / "toy_adapter.py").write_text(adapter, encoding="utf-8")
    importlib.invalidate_caches()
    return importlib.import_module("toy_contract")


def test_the_page_proves_its_adapter(folder: Path) -> None:
    report = prove(loaded(folder).Toy())
    assert report.broken == (), report.text()
    assert report.proved
    assert {check.name for check in report.checks if check.outcome is Outcome.NOT_OFFERED} == NOT_OFFERED
    assert [check.name for check in report.checks] == list(CHECKS)


@pytest.mark.system
def test_the_command_of_the_page(folder: Path) -> None:
    loaded(folder)
    done = subprocess.run(
        [sys.executable, "-m", "weighbridge.capture.contract", "toy_contract:Toy"], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.splitlines()[-1].strip()) == (0, "proved"), done.stdout + done.stderr
    wrong = subprocess.run(
        [sys.executable, "-m", "weighbridge.capture.contract", "toy_contract:Nobody"], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert wrong.returncode == 2
    assert "name it as package.module:Name" in wrong.stderr


# The check, what of the adapter is replaced by what, and the code that has to be found.
SPOILT = (
    ("imports", r"import time\n", "import time\nimport toy_engine\n", "import"),
    ("plain", r'"output_computed": computed,', '"output_computed": computed - 1,', "count_wrong"),
    ("plain", r'"output_computed": computed,', "", "count_missing"),
    ("plain", r"attempt\.finish\(\n            outcome", "self.binding.begin().finish(\n            outcome", None),
    ("abort", r"= AttemptStatus\.ABORTED  +#", "= AttemptStatus.SUCCEEDED  #", "status"),
    ("cached", r'"cached_local": answer\.cached', '"cached_local": answer.cached + 1', "count_wrong"),
    ("choices", r"if len\(choices\) > 1:", "if len(choices) > 9:", "children"),
    ("never_raises", r'with Guard\("toy\.begin"\): +#', "if True:  #", "raised"),
    ("same_results", r"return answer\n", "return None if attempt.level == 1 else answer\n", "raised"),
    ("installed_twice", r'raise ConfigError\("this engine.*', "pass", "twice"),
    ("removed", r'put_attribute\(installed, engine, "stream", (.*)\)\n', r"engine.stream = \1\n", "left_behind"),
    ("ids", r"offer\(answer\.prompt, choices\[0\]\)", "offer(answer.prompt, choices[0][1:])", "ids"),
    ("ids", r"            None,\n            follow,", "            None,\n            -1,", "ids_expected"),
    ("losses", r'with Guard\("toy\.finish"\):\n            self', "if attempt.level < 0:\n            self", "losses"),
    ("no_text", r'Context\(framework="toy"', 'Context(framework="toy", model_served="CANARY-7f3a91"', "text"),
)


@pytest.mark.parametrize(("check", "right", "wrong", "code"), SPOILT)
def test_what_is_spoilt_is_found(check: str, right: str, wrong: str, code: str | None, folder: Path) -> None:
    text = (folder / "toy_adapter.py").read_text(encoding="utf-8")
    spoilt, times = re.subn(right, wrong, text)
    assert times == 1
    report = prove(loaded(folder, spoilt).Toy(), (check,))
    if code is None:  # what is written is right, under whatever attempt
        assert report.broken == ()
        return
    assert code in {each.code for each in report.broken}, report.text()
    assert not report.proved


class Nothing(Engine):
    """An engine that offers nothing."""

    def install(self, recorder: Recorder) -> Installed:
        return Installed(supported=True)


def test_an_engine_that_offers_nothing_proves_nothing() -> None:
    report = prove(Nothing(), SCENARIOS)
    assert {check.outcome for check in report.checks} == {Outcome.NOT_OFFERED}
    assert not report.proved
