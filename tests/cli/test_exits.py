"""Whatever goes wrong becomes one line on standard error and a documented exit code, and never quotes data."""

from __future__ import annotations

import errno
import logging
import os
import signal
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import polars as pl
import pytest
import typer

from weighbridge.cli.exits import CRASH, FINDINGS, PIPE_CLOSED, USAGE, guarded
from weighbridge.cli.options import parse_day, parse_month
from weighbridge.cli.session import show_progress
from weighbridge.pipeline.lake import Lake, polars_schema
from weighbridge.pipeline.run.failure import PROGRESS, spoken
from weighbridge.schemas.errors import ConfigError, LakeBusyError

CANARY = "zebra" + "-canary"


def ended(error: BaseException, *, debug: bool = False) -> int:
    """The exit code of a command that raises `error`."""
    with pytest.raises(typer.Exit) as caught, guarded(lambda: debug):
        raise error
    return int(caught.value.exit_code)


def test_what_the_user_can_mend_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(ConfigError("there is no lake; run `weighbridge init`")) == USAGE
    assert capsys.readouterr().err == "weighbridge: there is no lake; run `weighbridge init`\n"


def test_what_may_pass_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(LakeBusyError("another writer holds the lake.")) == USAGE
    assert capsys.readouterr().err == "weighbridge: another writer holds the lake. Try again later.\n"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "x/y"), "No space left on device: x/y; make room"),
        (PermissionError(errno.EACCES, "Permission denied", "k"), "Permission denied: k; check the owner and mode"),
        (
            FileNotFoundError(errno.ENOENT, "No such file or directory", "f"),
            "No such file or directory: f; check the path",
        ),
        (OSError("odd"), "OSError; check the path and the disk"),
    ],
)
def test_trouble_with_the_machine_is_no_crash(error: OSError, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(error) == USAGE
    assert capsys.readouterr().err.startswith(f"weighbridge: {line}")


@pytest.mark.parametrize("kind", [ValueError, KeyError, RuntimeError, AssertionError, RecursionError])
def test_a_crash_tells_its_type_and_no_text(kind: type[Exception], capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(kind(CANARY)) == CRASH
    told = capsys.readouterr().err
    assert told.startswith(f"weighbridge: crashed with {kind.__name__}; run it again with --log-level debug")
    assert "Traceback" not in told
    assert CANARY not in told


def test_a_package_that_is_not_installed_is_no_crash(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(ModuleNotFoundError("No module named 'jinja2'", name="jinja2")) == USAGE
    assert 'jinja2 is not installed; run `pip install "weighbridge[pipeline,report]"`' in capsys.readouterr().err
    assert ended(ModuleNotFoundError("ours", name="weighbridge.pipeline.gone")) == CRASH


def test_debugging_shows_the_places_of_a_crash_and_its_cause_but_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    def outer() -> None:
        try:
            int(CANARY)
        except ValueError as error:
            raise LookupError(CANARY) from error

    with pytest.raises(typer.Exit), guarded(lambda: True):
        outer()
    told = capsys.readouterr().err
    assert told.index("builtins.ValueError") < told.index("which led to") < told.index("builtins.LookupError")
    assert "in outer" in told
    assert CANARY not in told


def test_an_exit_code_of_a_verb_passes() -> None:
    assert ended(typer.Exit(FINDINGS)) == FINDINGS


def test_a_usage_error_is_left_to_the_parser() -> None:
    with pytest.raises(typer.BadParameter), guarded():
        raise typer.BadParameter("no month")


def test_interruption_is_left_to_the_top() -> None:
    with pytest.raises(KeyboardInterrupt), guarded():
        raise KeyboardInterrupt


PRINT_MUCH = """
import sys
from weighbridge.cli.exits import guarded
with guarded():
    for number in range(200_000):
        sys.stdout.write(f"{number}\\n")
"""


def test_a_reader_that_goes_away_is_no_crash() -> None:
    with subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import typer\ntry:\n exec({PRINT_MUCH!r})\nexcept typer.Exit as e: sys.exit(e.exit_code)",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"0\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == PIPE_CLOSED


def opened_by_reader(fifo: Path, process: subprocess.Popen[bytes]) -> int:
    """Open the fifo for writing once the process has opened it for reading."""
    while process.poll() is None:
        try:
            return os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.02)
    raise AssertionError("the verb ended before it read anything")


def test_control_c_ends_with_130(tmp_path: Path) -> None:
    """A fifo that nobody writes into keeps `read` waiting until it is interrupted."""
    fifo = tmp_path / "records.jsonl"
    os.mkfifo(fifo)
    command = [sys.executable, "-m", "weighbridge.cli.main", "read", str(fifo)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        handle = opened_by_reader(fifo, process)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
        assert process.wait() == 130
        os.close(handle)


def run(*arguments: str, stdout: int | None = subprocess.PIPE, shell: str = "") -> subprocess.CompletedProcess[bytes]:
    """Run the command line in a process of its own."""
    command = [sys.executable, "-m", "weighbridge.cli.main", *arguments]
    if shell:
        command = ["/bin/sh", "-c", f'exec "$@" {shell}', "sh", *command]
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, check=False)


def test_an_output_that_the_caller_closed_is_no_crash() -> None:
    done = run("--version", shell=">&-")
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_argument_that_is_no_text_is_told_before_anything_is_done() -> None:
    done = run("report", "--title", os.fsdecode(b"caf\xe9"))
    assert done.returncode == USAGE
    assert done.stderr.startswith(b"weighbridge: argument 3 has bytes that are no UTF-8; write it in UTF-8")


@pytest.mark.parametrize("month", ["0001-01", "9999-12", "1899-12", "2200-01", "\u0662\u0660\u0662\u0666-01"])
def test_a_month_whose_ends_no_zone_can_shift_is_none(month: str) -> None:
    with pytest.raises(typer.BadParameter, match="is no month from 1900 to 2199"):
        parse_month(month)


@pytest.mark.parametrize("day", ["9999-12-31", "1899-12-31", "22000101"])
def test_a_day_at_the_end_of_the_calendar_is_none(day: str) -> None:
    with pytest.raises(typer.BadParameter, match="is no day from 1900 to 2199"):
        parse_day(day)


def test_a_step_is_named_as_it_begins_where_somebody_waits(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logging.getLogger(PROGRESS)
    for waits, told in ((True, ["running the step price"]), (False, [])):
        caplog.clear()
        monkeypatch.setattr(sys.stderr, "isatty", lambda waits=waits: waits, raising=False)
        show_progress()
        with spoken("running the step price"):
            pass
        assert [record.message for record in caplog.records if record.name == PROGRESS] == told
    log.setLevel(logging.NOTSET)


def test_a_library_in_rust_that_gives_up_is_a_fault_of_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    panic = type("PanicException", (BaseException,), {})
    assert ended(panic(CANARY)) == CRASH
    assert "crashed with PanicException" in (said := capsys.readouterr().err)
    assert CANARY not in said


def test_a_damaged_file_of_the_lake_is_no_fault_of_the_program(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The engine does not say which one it is; it is looked for, and its place and what to do are told."""
    lake = Lake.create(tmp_path / "lake")
    words = {"day": date(2026, 3, 1), "source": "agent", "reason": "quota"}
    lake.append("gap", pl.DataFrame([{**words, "attempts": number} for number in range(300)]))
    path = Path(lake.parts("gap")[0].address)
    raw = bytearray(path.read_bytes())
    raw[4:600] = bytes(byte ^ 0x5A for byte in raw[4:600])
    path.write_bytes(raw)
    with pytest.raises(typer.Exit) as left, guarded():
        lake.scan("gap").collect()
    said = capfd.readouterr().err
    assert (left.value.exit_code, said.count("\n")) == (USAGE, 1)
    assert f"{path.name} is damaged" in said
    lake.replace("gap", pl.DataFrame(schema=polars_schema("gap")), days=[date(2026, 3, 1)])
    with pytest.raises(typer.Exit) as left, guarded():
        raise pl.exceptions.ComputeError(CANARY)
    assert left.value.exit_code == CRASH
    assert CANARY not in capfd.readouterr().err
