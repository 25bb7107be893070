"""What a night fetches itself: folders of files here, databases in `test_pull`; a source that fails is a finding."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from weighbridge.cli.main import execute
from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.run.demo import new_home
from weighbridge.pipeline.run.failure import DiskFullError
from weighbridge.pipeline.run.home import Home, open_home
from weighbridge.pipeline.run.night import Intake, night
from weighbridge.pipeline.run.sources import CODE, fetch
from weighbridge.pipeline.settings import load
from weighbridge.schemas.errors import ConfigError

NOW = datetime(2026, 3, 3, 6, tzinfo=UTC)
TABLE = "when,in,out\n2026-03-01T10:00:00Z,5,6\n2026-03-01T11:00:00Z,7,8\n"
MAPPING = """
[source]
name = "export"
provider = "openai"
[columns]
time = "when"
[leaves]
"usage.input_total" = "in"
"usage.output_total" = "out"
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return new_home(tmp_path / "home", 7)


def configured(home: Home, *sources: dict[str, Any]) -> Home:
    """The installation with these sources written into its file."""
    lines = [
        f"[[sources]]\n{''.join(f'{name} = {json.dumps(value)}{chr(10)}' for name, value in s.items())}"
        for s in sources
    ]
    path = home.root / "weighbridge.toml"
    text = path.read_text(encoding="utf-8").partition("\n[[sources]]")[0]
    path.write_text("\n".join([text, *lines]), encoding="utf-8")
    return open_home(home.root)


def exports(tmp_path: Path) -> dict[str, Any]:
    folder = tmp_path / "exports"
    folder.mkdir(exist_ok=True)
    (folder / "march.csv").write_text(TABLE, encoding="utf-8")
    (tmp_path / "map.toml").write_text(MAPPING, encoding="utf-8")
    about = {"name": "exports", "kind": "files", "importer": "mapped", "mapping": str(tmp_path / "map.toml")}
    return {**about, "path": str(folder), "tenant": "acme", "model": "m-1"}


def figures(result: IngestResult) -> list[tuple[str, int, int, int]]:
    return [(file.name, file.rows_in, file.rows_out, file.rows_duplicate) for file in result.files]


def failures(home: Home) -> list[tuple[str, str]]:
    rows = home.lake().scan("finding").collect().rows(named=True)
    return sorted((row["subject"], row["severity"]) for row in rows if row["code"] == CODE)


def test_a_folder_is_fetched_as_the_settings_say_and_twice_changes_nothing(home: Home, tmp_path: Path) -> None:
    home = configured(home, exports(tmp_path))
    assert figures(fetch(home, now=NOW).result) == [("march.csv", 2, 2, 0)]
    rows = home.lake().scan("attempt").collect()
    assert rows["model_served"].unique().to_list() == ["m-1"]
    assert rows["tenant"].str.contains("^t_[0-9a-f]{16}$").all()
    before = home.lake().digest("attempt")
    again = fetch(home, now=NOW).result
    assert [file.skipped for file in again.files] == [True]
    (tmp_path / "exports" / "april.csv").write_text(TABLE + "2026-03-02T11:00:00Z,9,9\n", encoding="utf-8")
    assert figures(fetch(home, now=NOW).result)[0] == ("april.csv", 3, 1, 2)
    assert home.lake().digest("attempt") != before


def test_the_place_may_stand_in_the_environment(home: Home, tmp_path: Path) -> None:
    source = exports(tmp_path)
    folder = source.pop("path")
    home = configured(home, source | {"variable": "EXPORTS"})
    assert len(fetch(home, now=NOW, env={"EXPORTS": folder}).result.files) == 1
    failed = fetch(home, now=NOW, env={}).failed
    assert "EXPORTS does not say where the source exports is" in failed["exports"]
    assert failures(home) == [("source=exports; kind=files; failure=ConfigError", "warning")]


def test_a_source_that_fails_is_a_finding_and_the_others_are_fetched(home: Home, tmp_path: Path) -> None:
    gone = {"name": "gone", "kind": "files", "path": str(tmp_path / "nowhere")}
    home = configured(home, gone, exports(tmp_path))
    done = fetch(home, now=NOW)
    assert (list(done.failed), len(done.result.files)) == (["gone"], 1)
    assert failures(home) == [("source=gone; kind=files; failure=ConfigError", "warning")]
    (tmp_path / "nowhere").mkdir()
    assert fetch(home, now=NOW).failed == {}
    assert failures(home) == []


def test_where_the_settings_say_so_a_failure_stops_the_night_and_is_found_all_the_same(
    home: Home, tmp_path: Path
) -> None:
    gone = {"name": "gone", "kind": "files", "path": str(tmp_path / "nowhere"), "on_failure": "stop"}
    home = configured(home, gone, exports(tmp_path))
    with pytest.raises(ConfigError, match="the source gone is not there"):
        fetch(home, now=NOW)
    assert home.lake().rows("attempt") == 0
    assert len(failures(home)) == 1


def test_a_full_disk_is_no_failure_of_a_source(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends the fetching, whatever the source's own failures do; waiting for the lake covers the findings too."""
    home = configured(home, exports(tmp_path))

    def full(*_: object, **__: object) -> IngestResult:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("weighbridge.pipeline.run.sources.take_in", full)
        with pytest.raises(DiskFullError):
            fetch(home, now=NOW)
    assert failures(home) == []
    waited: list[Callable[[], Any]] = []

    def patient(work: Callable[[], Any]) -> object:
        waited.append(work)
        return work()

    fetch(home, now=NOW, attempt=patient)
    assert len(waited) == len(["the source", "the findings"])


def test_a_night_fetches_and_weighs_what_it_fetched(home: Home, tmp_path: Path) -> None:
    gone = {"name": "gone", "kind": "files", "path": str(tmp_path / "nowhere")}
    home = configured(home, exports(tmp_path), gone)
    done = night(home, [], Intake(day=NOW.date()), today=NOW.date())
    assert (done.months, list(done.failed)) == (("2026-03",), ["gone"])
    assert figures(done.ingested) == [("march.csv", 2, 2, 0)]
    assert home.lake().rows("reconciled") > 0
    assert night(home, [], Intake(day=NOW.date()), today=NOW.date()).months == ()


def test_the_command_line_says_which_source_failed(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = configured(home, {"name": "gone", "kind": "files", "path": str(tmp_path / "nowhere")})
    with pytest.raises(SystemExit) as ended:
        execute(["nightly", "--json", "--config", str(home.root)])
    assert ended.value.code == 1
    assert list(json.loads(capsys.readouterr().out)["failed_sources"]) == ["gone"]


GOOD = {"name": "a", "kind": "files", "path": "x"}


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ([{"kind": "files", "path": "x"}], r"sources\.1\.name is missing"),
        ([{"name": "a", "path": "x"}], r"sources\.1\.kind is missing"),
        ([GOOD, GOOD], r"sources\.2\.name is 'a', which another source has"),
        ([GOOD | {"kind": "file"}], r"sources\.1\.kind is 'file'; allowed is files, litellm"),
        ([GOOD | {"variable": "X"}], "exactly one of them"),
        ([{"name": "a", "kind": "files"}], "exactly one of them"),
        ([{"name": "a", "kind": "litellm", "path": "x"}], "name the environment variable"),
        ([{"name": "a", "kind": "litellm", "path": "x", "variable": "X"}], r"path has no meaning for the kind litellm"),
        ([{"name": "a", "kind": "litellm", "variable": "X", "mapping": "m"}], "has no meaning for the kind litellm"),
        ([GOOD | {"since": "2026-03-01"}], "has no meaning for the kind files"),
        ([{"name": "a", "kind": "litellm", "variable": "X", "since": "March"}], "a day, such as"),
        ([GOOD | {"importers": "x"}], r"importers is unknown; did you mean importer\?"),
        ([GOOD | {"on_failure": "go on"}], "allowed is note, stop"),
        (["x"], r"sources\.1 is text; a table is expected"),
    ],
)
def test_a_source_that_cannot_be_is_told_with_its_place(sources: list[object], message: str) -> None:
    with pytest.raises(ConfigError, match=f"(?i){message}"):
        load(env={"WEIGHBRIDGE_SOURCES": json.dumps(sources)})


def test_a_connection_string_in_the_file_is_refused_and_not_repeated() -> None:
    secret = "postgresql://reader:s3cret@db/x"
    with pytest.raises(ConfigError, match="not shown") as caught:
        load(env={"WEIGHBRIDGE_SOURCES": json.dumps([{"name": "a", "kind": "litellm", "variable": secret}])})
    assert "s3cret" not in str(caught.value)
