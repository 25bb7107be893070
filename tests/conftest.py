"""Fixtures shared by all tests."""

from __future__ import annotations

import os
import zlib
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings
from tests.sampling import WHOLE

# How long an example takes says nothing on a machine that is shared.
settings.register_profile("weighbridge", deadline=None, max_examples=40)
settings.register_profile(WHOLE, deadline=None, max_examples=100)
settings.load_profile("weighbridge")

ROOT = Path(__file__).resolve().parent.parent
KEY = bytes(range(32))
_READS = pytest.StashKey[bool]()
_ID = pytest.StashKey[str]()
# Rooms whose tests weigh whole months or nights, and the command line: the plain command runs a sixth of their tests,
# .ci/run a further third, and of tests that take servers, kills or many models half; `make test-full` leaves none out.
# Which they are follows from their names. Those that read recorded data are never left out of .ci/run, and whoever
# names a folder gets all of it.
DEAR = (
    *("audit", "baseline", "close", "conformance", "dispute", "engine", "explain", "reconcile", "retention", "run"),
    *("shared", "validate"),
)
_DEAR = (
    *(f"tests/pipeline/{room}" for room in DEAR),
    "tests/dags",
    "tests/cli",
)
_PARTS = 6
_PLAIN, _SYSTEM = {0}, {0, 1, 2}


def real_folder() -> Path:
    """The folder of recorded data beside the checkout, or the one the environment names."""
    return Path(os.environ.get("WEIGHBRIDGE_REAL", ROOT.parent / "shared" / "real"))


def pytest_configure(config: pytest.Config) -> None:
    """A run that leaves nothing out looks at the whole of each space of cases, and at more examples."""
    if "not system" not in config.getoption("markexpr"):
        settings.load_profile(WHOLE)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Tests that share what a fixture of their module makes go to one worker, so that it is made once."""
    item.stash[_ID] = item.nodeid
    for mark in _left_to(item):
        item.add_marker(mark)
    if isinstance(item, pytest.Function) and item.get_closest_marker("xdist_group") is None:
        made = [fixtures[-1].scope for fixtures in item._fixtureinfo.name2fixturedefs.values()]
        if "module" in made:
            item.add_marker(pytest.mark.xdist_group(item.path.relative_to(ROOT).as_posix().replace("/", ".")))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Write the group of a test into its id, as pytest-xdist 3.8 does where pytest 9.2 no longer looks for it.

    Without this all groups are ignored, in silence.
    """
    for item in items:
        mark = item.get_closest_marker("xdist_group")
        if mark and getattr(config.option, "loadgroup", False) and not item.nodeid.endswith(f"@{mark.args[0]}"):
            item._id = item.id.parse(f"{item.nodeid}@{mark.args[0]}")


def _left_to(item: pytest.Item) -> tuple[pytest.MarkDecorator, ...]:
    """Marks of the runs a test is left to, where none was asked for a folder by its name."""
    named = any((ROOT / arg.split("::")[0]).resolve() not in {ROOT, ROOT / "tests"} for arg in item.config.args)
    system = item.get_closest_marker("system") is not None or item.nodeid.startswith("tests/dags")
    dear = item.nodeid.startswith(_DEAR)
    if named or item.get_closest_marker("spark") is not None or not (system or dear):
        return ()
    part = zlib.crc32(item.nodeid.encode()) % _PARTS
    if not system and part in _PLAIN:
        return ()
    sampled = part in _SYSTEM or item.get_closest_marker("real") is not None
    return (pytest.mark.system,) if sampled else (pytest.mark.system, pytest.mark.slow)


@pytest.fixture
def shared_real(request: pytest.FixtureRequest) -> Path:
    """The recorded data; the test is skipped, with a message, where it is absent."""
    folder = real_folder()
    if not (folder / "README.md").is_file():
        pytest.skip("the shared folder of recorded data is not beside this checkout")
    request.node.stash[_READS] = True
    return folder


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note in the marker file which tests read recorded data and passed: one that skips afterwards did not."""
    report = yield
    marker = os.environ.get("WEIGHBRIDGE_REAL_MARKER")
    if marker and report.when == "call" and report.passed and item.stash.get(_READS, False):
        with Path(marker).open("a", encoding="utf-8") as file:
            file.write(item.stash[_ID] + "\n")
    return report


@pytest.fixture
def key() -> bytes:
    """A pseudonym key that is the same in every test."""
    return KEY
