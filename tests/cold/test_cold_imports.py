"""What an import brings with it. A serving process pays for pyarrow; `--help` pays for none of the engines."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Whatever the batch host needs and a serving process must never load.
# numpy is not among it: pyarrow loads it where it is installed, and works where it is not.
HEAVY = """
polars deltalake narwhals pandas scipy prefect great_expectations altair vl_convert xlsxwriter jinja2 orjson
duckdb torch transformers cryptography typer rich sqlalchemy pydantic fastapi
"""
# What no help text and no short verb waits for.
ENGINES = (
    "polars deltalake narwhals numpy pandas prefect great_expectations altair vl_convert xlsxwriter pyarrow jinja2"
)


def loaded(code: str) -> set[str]:
    """The top-level modules that are there after `code` ran in a fresh interpreter."""
    tail = "\nimport json, sys\nsys.stderr.write(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code + tail], capture_output=True, text=True, check=False, cwd="/"
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1]))


def modules(root: str, package: str) -> list[str]:
    """Every module of one package, without importing any."""
    folder = ROOT / root / "weighbridge" / package
    found = pkgutil.walk_packages([str(folder)], f"weighbridge.{package}.")
    return [f"weighbridge.{package}", *(info.name for info in found)]


@pytest.mark.parametrize(("root", "package"), [("schemas", "schemas"), ("capture", "capture")])
def test_a_serving_process_loads_pyarrow_and_nothing_else(root: str, package: str) -> None:
    code = "\n".join(f"import {name}" for name in modules(root, package) if not name.endswith(".export"))
    assert not loaded(code) & set(HEAVY.split())


READ_ONE = """
from weighbridge.pipeline import read_usage
usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
assert read_usage({"provider": "openai", "api": "chat", "usage": usage}).total == 5
"""


@pytest.mark.parametrize(
    "code",
    [
        "import weighbridge.schemas.errors, weighbridge.schemas.identity, weighbridge.schemas.leaves",
        "import weighbridge.schemas.lattice, weighbridge.schemas.finding",
        "import weighbridge.capture",
        "import weighbridge.pipeline",
        "import weighbridge.pipeline.settings",
        READ_ONE,
    ],
)
def test_light_modules_need_the_standard_library_only(code: str) -> None:
    assert not loaded(code) & {*HEAVY.split(), "pyarrow", "numpy"}


def test_the_whole_batch_loads_neither_scheduler_nor_validator() -> None:
    code = "\n".join(f"import {name}" for name in modules("pipeline", "pipeline"))
    assert not loaded(code) & {"prefect", "great_expectations", "torch", "transformers", "pandas"}


def verbs() -> list[list[str]]:
    """Every verb, those inside groups too."""
    from weighbridge.cli.main import application  # noqa: PLC0415 - collected once, when the tests are

    app = application()
    found: list[list[str]] = [[]]
    found += [[str(command.name)] for command in app.registered_commands]
    for group in app.registered_groups:
        assert group.typer_instance is not None
        found.append([str(group.name)])
        found += [[str(group.name), str(command.name)] for command in group.typer_instance.registered_commands]
    return found


def test_all_verbs_are_looked_at() -> None:
    names = {" ".join(verb) for verb in verbs()}
    assert names >= {
        "",
        *"init demo simulate ingest validate read conformance reconcile report nightly explain doctor digest".split(),
        *("findings ls", "findings show", "findings ack", "findings waive", "prices ls"),
        *("run nightly", "run monthly", "run backfill", "run retention"),
        *("quarantine ls", "quarantine show", "quarantine retry", "quarantine release"),
    }


def test_no_help_text_loads_an_engine() -> None:
    code = f"""
import sys
from weighbridge.cli.main import run
for verb in {verbs()!r}:
    try:
        run([*verb, "--help"])
    except SystemExit as end:
        assert not end.code, verb
"""
    assert not loaded(code) & set(ENGINES.split())


BARE = """
import sys, typer
app, group = typer.Typer(), typer.Typer()
app.add_typer(group, name="findings")
@group.command()
def ls(limit: int = typer.Option(0, help="How many.")) -> None: "List."
@group.command()
def show() -> None: "Show."
def run(arguments): app(arguments)
"""
OURS = "from weighbridge.cli.main import run"
# What every verb has: its own file, and some forty of the command line, of settings and of schemas.
OWN = 40


def all_modules(code: str, arguments: tuple[str, ...]) -> set[str]:
    """Every module that is there after a command line of that code ran with these arguments."""
    told = """
import json, sys
try:
    run(sys.argv[1:])
except SystemExit as end:
    assert not end.code
sys.stderr.write("\\n" + json.dumps(sorted(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code + told, *arguments], capture_output=True, text=True, check=False, cwd="/"
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("arguments", [("--help",), ("findings", "ls", "--help")], ids=" ".join)
def test_help_loads_nothing_of_others_that_an_empty_command_line_would_not(arguments: tuple[str, ...]) -> None:
    """What it takes in CPU seconds beside that empty one, `benchmarks/startup.py` says."""
    ours = all_modules(OURS, arguments)
    foreign = {name.partition(".")[0] for name in ours - all_modules(BARE, arguments)}
    assert foreign - sys.stdlib_module_names - {"rich"} <= {"weighbridge"} | {
        name for name in foreign if name.startswith("_")
    }
    own = [name for name in ours if name.startswith("weighbridge.")]
    verbs = [name for name in own if name.startswith("weighbridge.cli.commands.")]
    assert len(own) - len(verbs) <= OWN


def test_the_version_loads_no_pipeline_but_its_settings() -> None:
    ours = all_modules(OURS, ("--version",))
    rooms = {name.split(".")[2] for name in ours if name.startswith("weighbridge.pipeline.")}
    assert rooms <= {"settings", "run"}
    assert not {name.partition(".")[0] for name in ours} & set(ENGINES.split())
