"""The distribution: whatever lies in the source roots is in the wheel, and the namespace is never closed."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
ROOTS = ("capture", "schemas", "pipeline", "dags")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS: dict[str, list[str]] = PYPROJECT["project"]["optional-dependencies"]


def packaged() -> set[str]:
    """Every file of the source roots, as it must lie in the wheel."""
    return {
        str(path.relative_to(ROOT / root))
        for root in ROOTS
        for path in (ROOT / root / "weighbridge").rglob("*")
        if path.is_file() and not any(part.startswith((".", "__pycache__")) for part in path.relative_to(ROOT).parts)
    }


def hatch(*arguments: str, at: Path = ROOT) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", *arguments], cwd=at, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the source distribution of the checkout."""
    out = tmp_path_factory.mktemp("dist")
    hatch("build", "-d", str(out))
    (wheel,), (source,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, source


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_holds_every_file_of_the_source_roots(built: tuple[Path, Path]) -> None:
    inside = {name for name in contents(built[0]) if name.startswith("weighbridge/")}
    assert inside == packaged()
    assert {Path(name).suffix for name in inside} >= {".py", ".typed", ".toml"}


def test_the_wheel_can_be_built_from_the_source_distribution(built: tuple[Path, Path], tmp_path: Path) -> None:
    wheel, source = built
    subprocess.run(["tar", "-xzf", str(source), "-C", str(tmp_path)], check=True)
    (folder,) = tmp_path.iterdir()
    hatch("build", "-t", "wheel", "-d", str(tmp_path / "again"), at=folder)
    (again,) = (tmp_path / "again").glob("*.whl")
    assert contents(again) == contents(wheel)


def test_the_source_distribution_holds_what_the_readme_names(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[1]) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE",
        "NOTICE",
        "Makefile",
        "setup.sh",
        ".ci/run",
        "constraints.txt",
        "schemas/vocabulary.json",
        "tests/conftest.py",
        "tests/schemas/frozen_v1.json",
    } <= inside
    assert not [name for name in inside if "__pycache__" in name or name.startswith((".venv", "shared"))]


def test_a_serving_process_installs_pyarrow_and_nothing_else(built: tuple[Path, Path]) -> None:
    (metadata,) = (raw for name, raw in contents(built[0]).items() if name.endswith(".dist-info/METADATA"))
    message = Parser().parsestr(metadata.decode())
    base = [Requirement(text) for text in message.get_all("Requires-Dist", []) if "extra ==" not in text]
    assert [requirement.name for requirement in base] == ["pyarrow"]
    assert set(message.get_all("Provides-Extra", [])) == {*EXTRAS}
    assert message["License-Expression"] == "Apache-2.0"


def test_each_package_is_typed_and_the_namespace_stays_open() -> None:
    """One stray `__init__.py` in one source root would hide the packages of the others."""
    packages = {path.parent for root in ROOTS for path in (ROOT / root / "weighbridge").glob("*/__init__.py")}
    assert {path.name for path in packages} >= {"capture", "schemas", "pipeline", "cli"}
    for package in packages:
        assert (package / "py.typed").is_file(), package
    assert [path for root in ROOTS for path in (ROOT / root).glob("weighbridge/__init__.py")] == []
    assert not list(ROOT.glob("*/__init__.py"))


def test_every_folder_with_modules_is_a_package() -> None:
    for root in ROOTS:
        for module in (ROOT / root / "weighbridge").glob("*/**/*.py"):
            assert (module.parent / "__init__.py").is_file(), module.parent


def test_an_editable_install_names_all_four_source_roots(tmp_path: Path) -> None:
    code = "import sys, hatchling.build; hatchling.build.build_editable(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    (lines,) = (raw.decode().splitlines() for name, raw in contents(wheel).items() if name.endswith(".pth"))
    assert sorted(lines) == sorted(str(ROOT / root) for root in ROOTS)


def test_the_lock_pins_every_requirement_of_every_extra() -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line) for line in lines)
    pins = dict(line.split("==") for line in lines)
    assert len(pins) == len(lines)
    assert pins["torch"] == "2.13.0"
    direct = [PYPROJECT["project"]["dependencies"], PYPROJECT["build-system"]["requires"], *EXTRAS.values()]
    for text in (text for items in direct for text in items):
        requirement = Requirement(text)
        if requirement.name != "weighbridge":
            assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), text


def test_torch_comes_only_with_the_models_extra_and_only_at_its_pin() -> None:
    """An unpinned torch is gigabytes of accelerator libraries of whatever version is new."""
    assert not any("torch" in text for name, items in EXTRAS.items() if name != "models" for text in items)
    assert "models" not in "".join(EXTRAS["all"])
    assert "torch==" in (ROOT / "constraints.txt").read_text(encoding="utf-8")
    installing = [
        line
        for script in ("setup.sh", "Makefile", ".ci/run")
        for line in (ROOT / script).read_text(encoding="utf-8").splitlines()
        if "pip install" in line and not line.lstrip().startswith("#")
    ]
    assert installing
    # Without what a package needs, none comes along; an environment of its own pins it by itself.
    assert all(any(safe in line for safe in ("-c constraints.txt", "--no-deps", "torch==")) for line in installing)


def test_the_console_script_points_at_a_function() -> None:
    module, _, name = PYPROJECT["project"]["scripts"]["weighbridge"].partition(":")
    assert callable(getattr(importlib.import_module(module), name))


def test_where_only_the_base_is_installed_the_command_says_what_to_install() -> None:
    """A module set to null in sys.modules is one that cannot be imported."""
    code = "import sys; sys.modules['typer'] = None; from weighbridge.cli.__main__ import run; run()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("weighbridge: the command line needs the package typer")
    assert 'pip install "weighbridge[pipeline,report]"' in done.stderr
