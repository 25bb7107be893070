"""Great Expectations says of each rule whether it holds, from counts alone: quietly, offline, leaving no file."""

from __future__ import annotations

import ast
import gc
import json
import logging
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from tests.by_hand import judged_by_hand

from weighbridge.pipeline.validate.contract import contract
from weighbridge.pipeline.validate.rule import Gravity
from weighbridge.pipeline.validate.suite import (
    NoneBreaks,
    NotBelow,
    Sheet,
    Verdict,
    judge,
    load,
    suite,
    without_spark_connect,
)

ROOT = Path(__file__).resolve().parents[3]
NONE = NoneBreaks("minimum.queue_us", Gravity.CRITICAL, "is at least 0")
OTHER = NoneBreaks("identity.drafted", Gravity.WARNING, "drafted = accepted + rejected")
LOW = NotBelow("volume_low", Gravity.WARNING, "is not far below", "rows", "low")


def test_a_rule_holds_where_no_day_has_a_row_that_breaks_it() -> None:
    sheet = Sheet("attempt", {"minimum.queue_us": [0, 0, 0], "identity.drafted": [0, 2, 1]}, [NONE, OTHER])
    assert judge([sheet]) == [
        Verdict("attempt", "minimum.queue_us", holds=True),
        Verdict("attempt", "identity.drafted", holds=False),
    ]


def test_rows_below_their_limit_are_named_by_their_place_and_unknown_limits_are_passed_over() -> None:
    sheet = Sheet("attempt arrivals", {"rows": [5, 2, 0, 9], "low": [5, 3, None, 10]}, [LOW])
    assert judge([sheet]) == [Verdict("attempt arrivals", "volume_low", holds=False, rows=(1, 3))]
    sheet = Sheet("attempt arrivals", {"rows": [5, 0], "low": [5, None]}, [LOW])
    assert judge([sheet]) == [Verdict("attempt arrivals", "volume_low", holds=True)]


def test_what_other_tests_judge_by_hand_is_what_it_says() -> None:
    counts = {"none": [0, 0, 0], "first": [7, 0, 0], "last": [0, 0, 1]}
    figures: list[int | None] = [1, 2, 3, None, 5, 0, 9, None, 4]
    limits: list[int | None] = [3, 2, 1, 1, None, 1, 10, None, None]
    sheets = [
        Sheet("counts", counts, [NoneBreaks(name, Gravity.CRITICAL, "is none") for name in counts]),
        Sheet("below", {"rows": figures, "low": limits}, [LOW]),
        Sheet("not below", {"rows": figures[1:3], "low": limits[1:3]}, [LOW]),
    ]
    assert judge(sheets) == judged_by_hand(sheets)


def test_sheets_without_rows_or_expectations_are_not_judged() -> None:
    assert judge([Sheet("a", {"minimum.queue_us": []}, [NONE]), Sheet("b", {"x": [1]}, [])]) == []


def test_the_contract_of_a_table_is_a_suite_with_its_gravities() -> None:
    rules = contract("attempt")
    made = suite(Sheet("attempt", {}, [NoneBreaks(rule.name, rule.gravity, rule.says) for rule in rules]))
    told = {each.meta["rule"]: (each.expectation_type, str(each.severity.value)) for each in made.expectations}
    assert set(told) == {rule.name for rule in rules}
    assert told["pattern.tenant"] == ("expect_column_sum_to_be_between", "critical")
    assert told["identity.drafted"][1] == "warning"
    assert told["note.tenant"][1] == "info"


@pytest.mark.parametrize("columns", [{"another": [0]}, {"minimum.queue_us": ["0"]}])
def test_an_expectation_that_cannot_be_judged_is_a_fault_of_the_program_and_not_a_rule_that_holds(
    columns: dict[str, list[object]],
) -> None:
    with pytest.raises(RuntimeError, match=r"the rule minimum.queue_us of attempt could not be judged"):
        judge([Sheet("attempt", columns, [NONE])])


@pytest.fixture
def spark_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module of a client of Spark Connect that ends the process when it is imported."""
    client = tmp_path / "pyspark" / "sql" / "connect"
    client.mkdir(parents=True)
    (client / "__init__.py").write_text("import sys\nsys.exit(0)\n", encoding="utf-8")
    (client / "dataframe.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    real = _taken_out("pyspark")
    yield "pyspark.sql.connect.dataframe"
    _taken_out("pyspark")
    sys.modules.update(real)


def _taken_out(package: str) -> dict[str, ModuleType]:
    """What was imported of a package, which is not any more."""
    mine = [name for name in sys.modules if name.partition(".")[0] == package]
    return {name: sys.modules.pop(name) for name in mine}


def test_the_client_of_spark_connect_cannot_end_the_process_that_validates(spark_client: str) -> None:
    """Afterwards whoever wants it gets it."""
    with without_spark_connect(), pytest.raises(ImportError):
        import_module(spark_client)
    with pytest.raises(SystemExit):
        import_module(spark_client)


def test_a_client_of_spark_connect_that_is_in_use_stays(spark_client: str) -> None:
    there = ModuleType("pyspark.sql.connect")
    sys.modules["pyspark.sql.connect"] = there
    with without_spark_connect():
        assert sys.modules["pyspark.sql.connect"] is there
    assert sys.modules["pyspark.sql.connect"] is there


def test_the_process_is_left_as_it_was() -> None:
    log = logging.getLogger("great_expectations")
    before = log.level, log.propagate, list(log.handlers)
    load()
    assert gc.isenabled()
    gc.disable()
    try:
        judge([Sheet("attempt", {"minimum.queue_us": [0]}, [NONE])])
        assert not gc.isenabled()
    finally:
        gc.enable()
    assert (log.level, log.propagate, list(log.handlers)) == before


def test_what_it_says_of_its_own_work_is_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    """Also what loggers of its modules say that have a level of their own."""
    caplog.set_level(logging.DEBUG)
    judge([Sheet("attempt", {"minimum.queue_us": [1]}, [NONE])])
    assert [record.name for record in caplog.records if record.name.startswith("great_expectations")] == []


def imports_of(path: Path) -> set[str]:
    """The top-level modules that a file imports anywhere, inside functions too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(str(node.module).partition(".")[0])
    return found


def test_one_module_of_the_product_imports_it() -> None:
    sources = [path for root in ("schemas", "capture", "pipeline", "dags") for path in (ROOT / root).rglob("*.py")]
    assert len(sources) > 200
    using = {path.relative_to(ROOT).as_posix() for path in sources if "great_expectations" in imports_of(path)}
    assert using == {"pipeline/weighbridge/pipeline/validate/suite.py"}


ALONE = """
import json, os, socket, sys
from datetime import date
from pathlib import Path

def refused(*arguments, **named):
    raise OSError("no network")

asked = []
def noted(self, address):
    asked.append(str(address))
    refused()

socket.socket.connect = noted
socket.socket.connect_ex = noted
socket.getaddrinfo = lambda *a, **k: asked.append(str(a[0])) or refused()
socket.gethostbyname = lambda host: asked.append(host) or refused()

from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.validate.validate import validate

lake = Lake.open(sys.argv[1])
found = validate(lake, today=date(2026, 1, 6), page=Path(sys.argv[2]))
print(json.dumps({"asked": asked, "gate": found.gate, "analytics": os.environ["GX_ANALYTICS_ENABLED"]}))
"""


def test_nothing_is_asked_of_any_network_and_no_file_is_left_but_ours(tmp_path: Path) -> None:
    """In a process of its own: a home, a working folder and a folder for temporary files that stay empty."""
    from tests.pipeline.validate.conftest import account, clean, frame  # noqa: PLC0415 - one test builds a lake

    from weighbridge.pipeline.lake import Lake  # noqa: PLC0415

    lake = Lake.create(tmp_path / "lake")
    lake.append("attempt", frame("attempt", [clean("attempt", 1, task="two words"), clean("attempt", 2)]))
    lake.append("segment", frame("segment", [account(rows=2)]))
    folders = {name: tmp_path / name for name in ("home", "cwd", "tmp")}
    for folder in folders.values():
        folder.mkdir()
    env = {name: value for name, value in os.environ.items() if not name.startswith(("GX_", "XDG_"))}
    env |= {"HOME": str(folders["home"]), "TMPDIR": str(folders["tmp"]), "GX_ANALYTICS_ENABLED": "true"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(ALONE), lake.root, str(tmp_path / "page.html")],
        capture_output=True,
        text=True,
        check=False,
        cwd=folders["cwd"],
        env=env,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {"asked": [], "gate": False, "analytics": "false"}
    assert {name: list(folder.rglob("*")) for name, folder in folders.items()} == {"home": [], "cwd": [], "tmp": []}
    assert (tmp_path / "page.html").is_file()
