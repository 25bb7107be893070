"""Token ids on the command line: acknowledged, missed, packed, measured; never shown."""

from __future__ import annotations

import json
import shutil
import struct
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from weighbridge.capture import layout
from weighbridge.capture.content import Run
from weighbridge.capture.context import Context
from weighbridge.capture.keys import KeyFolder
from weighbridge.capture.recorder import Recorder
from weighbridge.capture.spool import main as spool
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.run.home import read_key
from weighbridge.schemas.enumerations import AttemptStatus, RunStream

Call = Callable[..., Any]
DONE = layout.outcome_word(AttemptStatus.SUCCEEDED)
ATTEMPTS = 6
# Ids whose digits and bytes stand in no file by chance.
CANARY = [0x1F2E3D4C, 0x5B6A7988, 0x70A1B2C3]
MONTH = f"{datetime.now(tz=UTC):%Y-%m}"


@pytest.fixture
def home(weighbridge: Call, tmp_path: Path) -> Path:
    """A new installation, with a folder for the keys of token ids that its settings do not name."""
    weighbridge("init", tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def sent(home: Path, tmp_path: Path) -> Path:
    """A folder of segments of a process that is gone: six attempts with nine ids each, in six blocks."""
    recorder = Recorder.start(
        tmp_path / "spool",
        installation="gpu-1",
        key=read_key(home / "keys" / "pseudonym.key"),
        keys=KeyFolder(home / "ids"),
    )
    binding = recorder.bind(Context(tenant="acme", subject_bucket=5), counts=("input_computed", "output_computed"))
    for _ in range(ATTEMPTS):
        attempt = binding.begin()
        runs = [
            Run(attempt.hi, attempt.lo, 0, 0, RunStream.PROMPT, 0, CANARY),
            Run(attempt.hi, attempt.lo, 0, 1, RunStream.OUTPUT, 0, CANARY * 2),
        ]
        attempt.finish(DONE, (3, 6), None, recorder.offer_ids(attempt, runs))
        recorder.drain_content(all_=True)
    recorder.close()
    assert spool(["seal", str(recorder.spool)]) == 0
    assert spool(["ship", str(recorder.spool), str(tmp_path / "there")]) == 0
    return tmp_path / "there"


def sets(home: Path, line: str) -> None:
    """Add a line to the settings of an installation."""
    with (home / "weighbridge.toml").open("a") as file:
        file.write(line + "\n")


def blocks(home: Path) -> int:
    """How many blocks the lake has."""
    return int(Lake.open(home / "lake").scan("token_run").collect()["block"].n_unique())


def codes(weighbridge: Call, home: Path) -> list[str]:
    rows = weighbridge("findings", "ls", "--config", home, "--json").json
    return [row["code"] for row in rows if row["code"] in {"ids_missing", "gap_records"}]


# -- acknowledgements --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("named", ["option", "settings", "nightly"])
def test_the_spool_lets_go_of_what_was_acknowledged_in_the_folder_that_is_named(
    weighbridge: Call, home: Path, sent: Path, tmp_path: Path, named: str
) -> None:
    acks, held = tmp_path / "acks", sorted(path.name for path in (tmp_path / "spool").iterdir())
    ship = ["ship", str(tmp_path / "spool"), str(sent), "--acks", str(acks)]
    assert spool(ship) == 1, "the folder is not there yet"
    assert sorted(path.name for path in (tmp_path / "spool").iterdir()) == held
    options = [] if named == "settings" else ["--acks", acks]
    if named == "settings":
        sets(home, f"acks = {json.dumps(str(acks))}")
    verb = "nightly" if named == "nightly" else "ingest"
    assert weighbridge(verb, sent, *options, "--config", home).code == 0
    assert len(list(acks.glob("*.ack"))) == len(held) == 2
    assert list(sent.glob("*.ack")) == []
    assert spool(["ship", str(tmp_path / "spool"), str(sent)]) == 0
    assert sorted(path.name for path in (tmp_path / "spool").iterdir()) == held, "not told where to look"
    assert spool(ship) == 0
    assert list((tmp_path / "spool").iterdir()) == []


def test_a_segment_that_did_not_reach_the_lake_stays_in_the_spool(
    weighbridge: Call, home: Path, sent: Path, tmp_path: Path
) -> None:
    """One of the two segments is taken in; the other one is damaged, and then left out."""
    acks = tmp_path / "acks"
    (ids,) = sent.glob("*-ids.segment")
    (counts,) = [path for path in sent.glob("*.segment") if path != ids]
    table = ids / "token_run.parquet"
    sound = table.read_bytes()
    table.write_bytes(sound[:-1])
    assert weighbridge("ingest", sent, "--acks", acks, "--config", home).code == 2
    table.write_bytes(sound)
    ship = ["ship", str(tmp_path / "spool"), str(sent), "--acks", str(acks)]
    assert spool(ship) == 0
    assert len(list((tmp_path / "spool").iterdir())) == 2
    assert weighbridge("ingest", counts, "--acks", acks, "--config", home).code == 0
    assert spool(ship) == 0
    assert [path.name for path in (tmp_path / "spool").iterdir()] == [ids.name]


def test_an_acknowledgement_that_cannot_be_written_is_told(
    weighbridge: Call, home: Path, sent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    refused = weighbridge("ingest", sent, "--acks", tmp_path / "file" / "acks", "--config", home)
    assert (refused.code, refused.out) == (2, "")
    assert str(tmp_path / "file") in refused.err
    touch = Path.touch

    def full(self: Path, *arguments: Any, **named: Any) -> None:
        if self.suffix == ".ack":
            raise OSError(28, "No space left on device")
        touch(self, *arguments, **named)

    monkeypatch.setattr(Path, "touch", full)
    ran = weighbridge("ingest", sent, "--config", home)
    assert ran.code == 0
    assert "2 segments could not be acknowledged and stay in their spool" in ran.out
    told = weighbridge("ingest", sent, "--config", home, "--json").json
    assert told["unacknowledged"] == sorted(path.name for path in sent.glob("*.segment"))


# -- ids that never came -----------------------------------------------------------------------------------------------


def test_ids_that_never_came_are_a_finding_until_they_come(weighbridge: Call, home: Path, sent: Path) -> None:
    """The segment of ids is late. With no grace it is missed at once; with the usual one it may come yet."""
    (ids,) = sent.glob("*-ids.segment")
    late = shutil.move(ids, sent.parent / ids.name)
    sets(home, "ids_grace_days = 0")
    assert weighbridge("nightly", sent, "--config", home).code == 1
    (row,) = weighbridge("findings", "ls", "--code", "ids_missing", "--config", home, "--json").json
    assert (row["rows"], row["expected"], row["observed"], row["subject"]) == (ATTEMPTS, 54, 0, "source=gpu-1")
    assert "ids_expected" in weighbridge("explain", row["evidence"][0], "--config", home).out
    assert weighbridge("ingest", late, "--config", home).code == 0
    assert weighbridge("reconcile", "--config", home).code == 0
    assert codes(weighbridge, home) == []


def test_the_newest_days_are_not_missed_yet(weighbridge: Call, home: Path, sent: Path) -> None:
    shutil.rmtree(next(sent.glob("*-ids.segment")))
    assert weighbridge("nightly", sent, "--config", home).code == 0
    assert codes(weighbridge, home) == []


@pytest.mark.system
def test_a_night_looks_again_at_the_days_that_can_get_no_more_ids(
    weighbridge: Call, home: Path, sent: Path, tmp_path: Path
) -> None:
    """Ids of one month are missed when the days of the next one come."""
    shutil.rmtree(next(sent.glob("*-ids.segment")))
    lines = [
        {"provider": "openai", "api_flavor": "openai_chat", "model": "gpt-4o", "request": {}, "response": {
            "id": f"chatcmpl-{day.day}", "created": int(day.timestamp()),
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}}
        for day in (datetime(2099, 1, 1, 12, tzinfo=UTC), datetime(2099, 1, 2, 12, tzinfo=UTC))
    ]  # fmt: skip
    weighbridge("nightly", sent, "--config", home)
    for number, line in enumerate(lines):
        assert codes(weighbridge, home) == []
        (tmp_path / f"{number}.jsonl").write_text(json.dumps(line) + "\n")
        ran = weighbridge("nightly", tmp_path / f"{number}.jsonl", "--config", home, "--json")
        assert ran.json["months"] == ([MONTH, "2099-01"] if number else ["2099-01"])
    assert codes(weighbridge, home) == ["ids_missing"]


# -- packing and measuring ---------------------------------------------------------------------------------------------


def test_small_blocks_are_packed_once(weighbridge: Call, home: Path, sent: Path) -> None:
    weighbridge("ingest", sent, "--config", home)
    before = blocks(home)
    command = ["content", "recompress", "--content-keys", home / "ids", "--config", home]
    done = weighbridge(*command, "--json")
    assert (done.code, before, blocks(home)) == (0, ATTEMPTS, 1)
    assert (done.json["ids"], done.json["blocks_before"], done.json["blocks_after"]) == (54, ATTEMPTS, 1)
    assert done.json["bytes_after"] < done.json["bytes_before"]
    assert done.json["shut"] == {}
    digest = weighbridge("digest", "--config", home, "--json").json
    again = weighbridge(*command)
    assert (again.code, again.out) == (0, "token ids: nothing to pack\n")
    assert weighbridge("digest", "--config", home, "--json").json == digest


def test_only_the_days_that_are_asked_for_are_packed(weighbridge: Call, home: Path, sent: Path) -> None:
    weighbridge("ingest", sent, "--config", home)
    command = ["content", "recompress", "--content-keys", home / "ids", "--config", home, "--json"]
    for period in (["--month", "2000-01"], ["--until", "2000-01-01"], ["--since", "2199-01-01"]):
        assert weighbridge(*command, *period).json["days"] == []
    assert weighbridge(*command, "--month", MONTH, "--since", "2000-01-01").json["ids"] == 54


def test_a_night_packs_the_ids_that_came_where_keys_are_named(weighbridge: Call, home: Path, sent: Path) -> None:
    sets(home, 'content_keys = "ids"')
    ran = weighbridge("nightly", sent, "--config", home)
    (line,) = [line for line in ran.out.splitlines() if line.startswith("token ids:")]
    assert line.startswith(f"token ids: 54 ids on 1 day, {ATTEMPTS} blocks made 1, ")
    assert blocks(home) == 1
    again = weighbridge("nightly", sent, "--config", home, "--json")
    assert again.json["token_ids"]["days"] == []


def test_a_night_packs_what_a_night_that_was_cut_off_left(weighbridge: Call, home: Path, sent: Path) -> None:
    weighbridge("ingest", sent, "--config", home)
    sets(home, 'content_keys = "ids"')
    ran = weighbridge("nightly", sent, "--config", home, "--json")
    assert (ran.json["months"], ran.json["token_ids"]["blocks_before"], blocks(home)) == ([MONTH], ATTEMPTS, 1)


def test_a_night_without_keys_says_that_it_left_them(weighbridge: Call, home: Path, sent: Path) -> None:
    ran = weighbridge("nightly", sent, "--config", home)
    assert "token ids: left as they came; no keys are named in the settings (content_keys," in ran.out
    assert (ran.code, blocks(home)) == (0, ATTEMPTS)
    assert weighbridge("nightly", sent, "--config", home, "--json").json["token_ids"] is None


def test_a_night_whose_keys_cannot_be_used_takes_nothing_in(weighbridge: Call, home: Path, sent: Path) -> None:
    sets(home, 'content_keys = "nowhere"')
    ran = weighbridge("nightly", sent, "--config", home)
    assert (ran.code, ran.out) == (2, "")
    assert "there is no such folder" in ran.err
    assert Lake.open(home / "lake").rows("segment") == 0


@pytest.mark.parametrize("verb", ["recompress", "metrics"])
def test_without_keys_nothing_can_be_opened(weighbridge: Call, home: Path, verb: str) -> None:
    ran = weighbridge("content", verb, "--config", home)
    assert (ran.code, ran.out) == (2, "")
    assert "set content_keys to the folder the agent writes them to" in ran.err


def test_the_option_goes_before_every_place_the_settings_name(weighbridge: Call, home: Path, sent: Path) -> None:
    weighbridge("ingest", sent, "--config", home)
    sets(home, 'content_key_command = ["nothing-of-that-name"]')
    shut = weighbridge("content", "recompress", "--config", home, "--json")
    assert (shut.code, shut.json["shut"]) == (0, {"no_key": ATTEMPTS})
    done = weighbridge("content", "recompress", "--content-keys", home / "ids", "--config", home, "--json")
    assert (done.json["ids"], done.json["shut"]) == (54, {})


def test_blocks_whose_key_was_destroyed_are_left_and_told(weighbridge: Call, home: Path, sent: Path) -> None:
    weighbridge("ingest", sent, "--config", home)
    (name,) = [path.name for path in (home / "ids").iterdir()]
    KeyFolder(home / "ids").destroy(name)
    ran = weighbridge("content", "recompress", "--content-keys", home / "ids", "--config", home)
    assert ran.code == 0
    assert ran.out == (
        "token ids: nothing to pack\n"
        f"token ids: {ATTEMPTS} blocks whose key was destroyed or cannot be had; left as they are\n"
    )
    rows = weighbridge("content", "metrics", "--content-keys", home / "ids", "--config", home, "--json").json
    assert [(row["ids"], row["opened"], row["whole"]) for row in rows] == [(36, 0, 0), (18, 0, 0)]


def test_doctor_tells_what_is_not_packed_and_keys_that_cannot_be_used(
    weighbridge: Call, home: Path, sent: Path
) -> None:
    def check() -> tuple[str, str, str]:
        ran = weighbridge("doctor", "--config", home, "--json")
        (found,) = [each for each in ran.json["checks"] if each["name"] == "token ids"]
        return found["health"], found["found"], found["cure"]

    assert check() == ("ok", "no keys are named", "")
    weighbridge("ingest", sent, "--config", home)
    assert check()[:2] == ("notice", "days that are not packed: 1")
    assert "content_keys" in check()[2]
    sets(home, 'content_keys = "ids"')
    assert check() == ("notice", "days that are not packed: 1", "run `weighbridge content recompress`")
    weighbridge("content", "recompress", "--config", home)
    assert check() == ("ok", "keys are named", "")
    (home / "ids").rename(home / "elsewhere")
    health, _, cure = check()
    assert (health, "there is no such folder" in cure) == ("problem", True)


def test_a_damaged_block_is_something_wrong_with_the_data(weighbridge: Call, home: Path, sent: Path) -> None:
    weighbridge("ingest", sent, "--config", home)
    lake = Lake.open(home / "lake")
    rows = lake.scan("token_run").collect()
    lake.replace("token_run", rows.with_columns(subject_bucket=pl.lit(6, pl.Int32)), days=lake.days("token_run"))
    ran = weighbridge("content", "recompress", "--content-keys", home / "ids", "--config", home)
    assert ran.code == 1
    assert f"{ATTEMPTS} blocks that do not open under their own key" in ran.out


def test_metrics_are_numbers_about_all_or_each(weighbridge: Call, home: Path, sent: Path) -> None:
    weighbridge("ingest", sent, "--config", home)
    command = ["content", "metrics", "--content-keys", home / "ids", "--config", home]
    output, prompt = weighbridge(*command, "--json").json
    assert (output["stream"], output["streams"], output["ids"], output["met"], output["unmet"]) == (
        "output",
        6,
        36,
        6,
        0,
    )
    assert (prompt["stream"], prompt["ids"], prompt["distinct"], prompt["grams"]) == ("prompt", 18, 18, 0)
    each = weighbridge(*command, "--each", "--json")
    assert (each.code, len(each.json)) == (0, 2 * ATTEMPTS)
    known = {row["attempt"] for row in each.json}
    assert weighbridge("explain", min(known), "--config", home).code == 0
    assert weighbridge(*command, "--month", "2000-01", "--json").json == []
    assert len(weighbridge(*command, "--month", MONTH, "--since", "2000-01-01", "--json").json) == 2


def test_metrics_tell_where_there_are_not_as_many_ids_as_the_engine_counted(
    weighbridge: Call, home: Path, sent: Path
) -> None:
    weighbridge("ingest", sent, "--config", home)
    lake = Lake.open(home / "lake")
    rows = lake.scan("attempt").collect()
    lake.replace("attempt", rows.with_columns(output_computed=pl.lit(7, pl.Int64)), days=lake.days("attempt"))
    ran = weighbridge("content", "metrics", "--content-keys", home / "ids", "--config", home)
    assert ran.code == 1
    assert "There are not as many ids as the engine counted." in ran.out


def test_no_verb_shows_or_writes_an_id(weighbridge: Call, home: Path, sent: Path) -> None:
    """Neither its digits nor its bytes, in the spool, the lake, the reports or what is printed."""
    sets(home, 'content_keys = "ids"')
    at = ("--config", home, "--log-level", "debug")
    ran = [
        weighbridge("nightly", sent, *at),
        weighbridge("content", "recompress", *at),
        weighbridge("content", "metrics", *at),
        weighbridge("content", "metrics", "--each", "--json", *at),
    ]
    assert [each.code for each in ran] == [0, 0, 0, 0]
    told = "".join(each.out + each.err for each in ran)
    assert not [value for value in CANARY if str(value) in told or f"{value:x}" in told]
    words = {value.to_bytes(8, order) for value in CANARY for order in ("little", "big")}
    held = words | {struct.pack(form, *CANARY[:2]) for form in ("<2I", ">2I")}
    for folder in (home, sent):
        for path in folder.rglob("*"):
            assert not path.is_file() or not [raw for raw in held if raw in path.read_bytes()], path
    assert (home / "ids").is_dir()


def test_a_key_service_is_asked_by_name(weighbridge: Call, home: Path, sent: Path, tmp_path: Path) -> None:
    """The keys of the folder, served by a command."""
    program = tmp_path / "service.py"
    program.write_text(
        "import sys, pathlib\n"
        "assert sys.argv[2] == 'get'\n"
        "print((pathlib.Path(sys.argv[1]) / sys.argv[3]).read_bytes().hex())\n"
    )
    command = json.dumps([sys.executable, str(program), str(home / "ids")])
    sets(home, f"content_key_command = {command}")
    ran = weighbridge("nightly", sent, "--config", home, "--json")
    assert (ran.json["token_ids"]["ids"], ran.json["token_ids"]["shut"]) == (54, {})
