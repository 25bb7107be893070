"""The road from files to a report on the command line, and what each step says and leaves."""

from __future__ import annotations

import csv
import json
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from weighbridge.pipeline.lake import Lake

Run = Callable[..., Any]
CANARY = "zebra-canary"


@pytest.fixture
def home(weighed: Path, tmp_path: Path) -> Path:
    """A copy of the weighed installation, to be changed."""
    copy = tmp_path / "home"
    shutil.copytree(weighed, copy)
    return copy


@pytest.fixture
def fresh(weighbridge: Run, tmp_path: Path) -> Path:
    """A new installation."""
    weighbridge("init", tmp_path / "fresh")
    return tmp_path / "fresh"


def expected(home: Path) -> Counter[str]:
    content = json.loads((home / "made" / "expected.json").read_text())
    return Counter(item["code"] for item in content["expected"])


def weighty(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["state"] == "open" and row["severity"] in {"warning", "error"}]


def test_the_same_files_twice_change_nothing(weighbridge: Run, home: Path) -> None:
    before = weighbridge("digest", "--config", home, "--json").json
    again = weighbridge("ingest", home / "made", "--config", home, "--json")
    assert again.code == 0
    assert [file["skipped"] for file in again.json["files"]] == [True] * 8
    assert (again.json["days"], again.json["priced"]) == ([], 0)
    weighbridge("reconcile", "--config", home)
    assert weighbridge("digest", "--config", home, "--json").json == before


def test_every_row_is_accounted_for(weighbridge: Run, weighed: Path, fresh: Path) -> None:
    ran = weighbridge("ingest", weighed / "made", "--config", fresh, "--json")
    for file in ran.json["files"]:
        assert file["rows_in"] == file["rows_out"] + file["rows_quarantined"] + file["rows_duplicate"] > 0
    assert sum(file["rows_in"] for file in ran.json["files"] if "agent" in file["name"]) >= 600


def test_reconcile_reads_anew_what_an_earlier_version_could_not_read(weighbridge: Run, home: Path) -> None:
    """As if the dialects of this version had not been there when the files were taken in."""
    lake = Lake.open(home / "lake")
    days = lake.days("reading")
    before = lake.digests()
    unread = lake.scan("reading").with_columns(
        *(pl.lit(None, dtype=pl.Int64).alias(name) for name in ("input_total", "output_total", "total")),
        verdict=pl.lit("UNKNOWN"),
    )
    lake.replace("reading", unread.collect(), days=days)
    assert lake.digest("reading") != before["reading"]
    weighbridge("reconcile", "--config", home)
    assert lake.digests() == before


def test_reconcile_finds_what_was_put_in(weighbridge: Run, weighed: Path) -> None:
    listed = weighbridge("findings", "ls", "--config", weighed, "--json")
    assert Counter(row["code"] for row in listed.json) >= expected(weighed)
    assert listed.code == 1
    assert weighty(listed.json)


def test_reconcile_of_one_month_tells_its_findings(weighbridge: Run, home: Path) -> None:
    ran = weighbridge("reconcile", "--month", "2026-01", "--config", home, "--json")
    assert (ran.code, ran.json["months"]) == (1, ["2026-01"])
    assert sum(ran.json["statuses"].values()) == 2 * ran.json["attempts"]
    assert {item["period"] for item in ran.json["findings"]} == {"2026-01"}
    listed = weighbridge("findings", "ls", "--config", home, "--json").json
    assert sum(item["findings"] for item in ran.json["findings"]) == len(listed)


def test_somebody_who_waits_for_a_reconciliation_is_told_how_far_it_is(
    weighbridge: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a terminal, on standard error; a pipe or a scheduler gets what it got before."""
    asked = ("reconcile", "--month", "2026-01", "--json", "--config", home)
    quiet = weighbridge(*asked)
    assert quiet.err == ""
    monkeypatch.setattr(sys.stderr.__class__, "isatty", lambda _: True, raising=False)
    told = weighbridge(*asked)
    assert told.json == quiet.json
    steps = ("reading the usage of 16 days", "pricing it", "reconciling 2026-01")
    assert [any(step in line for line in told.err.splitlines()) for step in steps] == [True] * 3


def test_an_empty_month_is_said_and_not_invented(weighbridge: Run, home: Path) -> None:
    ran = weighbridge("reconcile", "--month", "2031-05", "--config", home, "--json")
    assert ran.json["attempts"] == 0
    assert len(ran.json["findings"]) == 1


def test_findings_are_listed_worst_first_and_filtered(weighbridge: Run, weighed: Path) -> None:
    def ls(*options: str) -> list[dict[str, Any]]:
        return list(weighbridge("findings", "ls", "--config", weighed, "--json", *options).json)

    every = ls()
    scale = ["error", "warning", "notice", "info"]
    places = [scale.index(row["severity"]) for row in every]
    assert places == sorted(places)
    assert ls("--severity", "warning") == [row for row in every if row["severity"] in {"warning", "error"}]
    assert ls("--code", "duplicate_report") == [row for row in every if row["code"] == "duplicate_report"] != []
    assert ls("--month", "2026-02") == []
    assert ls("--month", "2026-01") == every
    assert ls("--since", "20260301") == [row for row in every if row["last_day"] is None]
    assert ls("--until", "2025-12-31") == [row for row in every if row["first_day"] is None]
    assert ls("--state", "waived") == []
    early = ls("--until", "2026-01-10")
    assert early == [row for row in every if row["first_day"] is None or row["first_day"] <= "2026-01-10"]
    assert 0 < len(early) < len(every)


@pytest.mark.parametrize("options", [[], ["--json"], ["--month", "2026-02"]])
def test_a_code_that_no_finding_can_have_is_no_empty_list(weighbridge: Run, weighed: Path, options: list[str]) -> None:
    ran = weighbridge("findings", "ls", "--code", "duplicate_reports", *options, "--config", weighed)
    assert (ran.code, ran.out) == (2, "")
    assert "no finding has the code 'duplicate_reports'; did you mean duplicate_report? Known are " in ran.err
    none = weighbridge("findings", "ls", "--code", "ids_missing", *options, "--config", weighed)
    assert (none.code, none.err) == (0, ""), "a code that is known and was not found"


def test_a_list_without_weighty_findings_is_clean(weighbridge: Run, weighed: Path) -> None:
    assert weighbridge("findings", "ls", "--month", "2026-02", "--config", weighed).code == 0
    assert weighbridge("findings", "ls", "--state", "closed", "--config", weighed).code == 0


def test_one_finding_is_shown_with_its_cure_and_found_by_eight_digits(weighbridge: Run, weighed: Path) -> None:
    row = weighbridge("findings", "ls", "--config", weighed, "--json").json[0]
    shown = weighbridge("findings", "show", row["finding_id"][:8], "--config", weighed)
    assert shown.code == 0
    assert row["cure"] in shown.out
    assert row["finding_id"] in shown.out
    told = weighbridge("findings", "show", row["finding_id"], "--config", weighed, "--json").json
    assert told == row | {"history": []}


def test_the_exact_amount_stands_in_json_as_text(weighbridge: Run, weighed: Path) -> None:
    amounts = [row["amount"] for row in weighbridge("findings", "ls", "--config", weighed, "--json").json]
    known = [amount for amount in amounts if amount is not None]
    assert known
    assert all(re.fullmatch(r"-?\d+(\.\d*[1-9])?", amount) for amount in known)


def test_acknowledged_and_waived_findings_weigh_nothing(weighbridge: Run, home: Path) -> None:
    at = ["--config", home]
    rows = weighty(weighbridge("findings", "ls", *at, "--json").json)
    later = (datetime.now(UTC) + timedelta(days=30)).date()
    for number, row in enumerate(rows):
        verb = ["ack"] if number % 2 else ["waive", "--expires", f"{later:%Y%m%d}"]
        ran = weighbridge("findings", *verb, row["finding_id"], "--reason", CANARY, "--by", "alice", *at)
        assert ran.code == 0
        assert CANARY not in ran.out + ran.err
    clean = weighbridge("findings", "ls", *at, "--json")
    assert (clean.code, weighty(clean.json)) == (0, [])
    states = {item["finding_id"]: item["state"] for item in clean.json}
    assert [states[row["finding_id"]] for row in rows[:2]] == ["waived", "acknowledged"]
    (change,) = weighbridge("findings", "show", rows[0]["finding_id"], *at, "--json").json["history"]
    assert (change["state"], change["changed_by"], change["expires_on"]) == ("waived", "alice", str(later))
    assert weighbridge("reconcile", *at).code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ack", "ffffffff"], "no finding has an id that begins with ffffffff"),
        (["ack", "xyz"], "is no id; give its first 8 or more hexadecimal digits"),
        (["show", "12"], "is no id; give its first 8 or more hexadecimal digits"),
        (["waive", "@", "--reason", " ", "--expires", "2199-01-01"], "a waiver needs a reason"),
        (["waive", "@", "--reason", "known", "--expires", "2020-01-01"], "a waiver needs a last day that is not over"),
        (["ack", "@", "--by", "two words"], "cannot be used as a name"),
    ],
)
def test_a_change_that_cannot_be_made_is_told_why(
    weighbridge: Run, weighed: Path, arguments: list[str], message: str
) -> None:
    row = weighbridge("findings", "ls", "--config", weighed, "--json").json[0]
    given = [row["finding_id"] if argument == "@" else argument for argument in arguments]
    ran = weighbridge("findings", *given, "--config", weighed)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_explain_goes_from_a_finding_down_to_a_line_of_a_file(weighbridge: Run, weighed: Path) -> None:
    rows = weighbridge("findings", "ls", "--code", "duplicate_report", "--config", weighed, "--json").json
    tree = weighbridge("explain", rows[0]["finding_id"][:12], "--config", weighed)
    assert tree.code == 0
    for part in ("duplicate_report", "attempt", "usage report of", "sim-provider", ".segment", "row"):
        assert part in tree.out
    assert re.search(r"usage(Metadata)?\.\w+  \d", tree.out)
    root = weighbridge("explain", rows[0]["finding_id"], "--config", weighed, "--json").json
    assert (root["label"], root["value"]) == ("finding", rows[0]["finding_id"])
    attempt = weighbridge("explain", rows[0]["evidence"][0], "--config", weighed, "--json").json
    assert (attempt["label"], attempt["value"]) == ("attempt", rows[0]["evidence"][0])
    file = weighbridge("explain", rows[0]["segments"][0], "--config", weighed, "--json").json
    assert file["label"] == "file"
    assert weighbridge("explain", "deadbeefdeadbeef", "--config", weighed).code == 2


def test_explain_takes_the_response_id_of_a_provider(weighbridge: Run, fresh: Path) -> None:
    """Two answers, and one more under an id that was used before."""
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    lines = [
        {"id": f"line-{number}", "provider": "openai", "api_flavor": "chat", "model": "gpt-4o", "request": {},
         "response": {"id": name, "created": 1767614400 + number, "usage": usage}}
        for number, name in enumerate(["chatcmpl-One", "chatcmpl-Two", "chatcmpl-Two"])
    ]  # fmt: skip
    (fresh / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert weighbridge("ingest", fresh / "answers.jsonl", "--config", fresh).code == 0
    one = weighbridge("explain", "chatcmpl-One", "--config", fresh)
    assert one.code == 0
    assert re.search(r"found by  provider_response_id", one.out)
    assert re.search(r"usage\.prompt_tokens  1", one.out)
    root = weighbridge("explain", "chatcmpl-One", "--config", fresh, "--json").json
    assert root == weighbridge("explain", "line-0", "--config", fresh, "--json").json | {"children": root["children"]}
    twice = weighbridge("explain", "chatcmpl-Two", "--config", fresh)
    assert (twice.code, twice.out) == (2, "")
    assert twice.err.count(" attempt ") == 2
    assert "'chatcmpl-Two' is ambiguous: 2 things are called so" in twice.err
    never = weighbridge("explain", "chatcmpl-Three", "--config", fresh)
    assert (never.code, never.out) == (2, "")
    assert "or the whole response id a provider gave" in never.err


def test_the_report_is_written_twice_byte_for_byte(weighbridge: Run, weighed: Path, tmp_path: Path) -> None:
    def write(out: Path) -> dict[str, bytes]:
        ran = weighbridge("report", "--month", "2026-01", "--out", out, "--config", weighed, "--json")
        assert ran.code == 0
        (files,) = ran.json
        assert Path(files["html"]).is_file()
        assert Path(files["xlsx"]).is_file()
        return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}

    one, two = write(tmp_path / "one"), write(tmp_path / "two")
    assert one == two
    assert len(one) > 5
    html = one["weighbridge-2026-01.html"].decode()
    assert "Token and cost report" in html
    assert "imulated" in html


def test_a_report_of_days_in_a_zone_with_a_title(weighbridge: Run, weighed: Path, tmp_path: Path) -> None:
    options = ["--since", "20260105", "--until", "2026-01-11", "--timezone", "Asia/Tokyo", "--title", "One week"]
    ran = weighbridge("report", *options, "--out", tmp_path, "--config", weighed, "--json")
    (files,) = ran.json
    page = Path(files["html"]).read_text()
    assert "One week" in page
    assert "Asia/Tokyo" in page
    for table in Path(files["csv"]).glob("*.csv"):
        with table.open(newline="") as file:
            assert list(csv.reader(file)), table


def test_nothing_can_be_reported_before_something_was_taken_in(weighbridge: Run, fresh: Path) -> None:
    ran = weighbridge("report", "--config", fresh)
    assert ran.code == 2
    assert "weighbridge ingest" in ran.err
    listed = weighbridge("findings", "ls", "--config", fresh, "--json")
    assert (listed.code, listed.json) == (0, [])
    assert weighbridge("digest", "--config", fresh, "--json").json == {}


def test_nightly_does_the_whole_road_and_rests_when_nothing_is_new(
    weighbridge: Run, weighed: Path, fresh: Path, by_great_expectations: None
) -> None:
    ran = weighbridge("nightly", weighed / "made", "--config", fresh, "--json")
    assert (ran.code, ran.json["months"]) == (1, ["2026-01"])
    assert Path(ran.json["reports"]["2026-01"]).is_file()
    again = weighbridge("nightly", weighed / "made", "--config", fresh)
    assert again.code == 0
    assert "Nothing new" in again.out


@pytest.mark.system
def test_a_digest_says_when_two_lakes_hold_the_same_rows(weighbridge: Run, weighed: Path, tmp_path: Path) -> None:
    """The files are taken in one by one and in the opposite order."""
    shutil.copytree(weighed / "keys", tmp_path / "other" / "keys")
    weighbridge("init", tmp_path / "other")
    for segment in sorted((weighed / "made").glob("*.segment"), reverse=True):
        assert weighbridge("ingest", segment, "--config", tmp_path / "other").code == 0
    weighbridge("reconcile", "--config", tmp_path / "other")
    one = weighbridge("digest", "--config", weighed, "--json").json
    two = weighbridge("digest", "--config", tmp_path / "other", "--json").json
    # The log of changes says when each lake saw its settings first.
    assert one.pop("change")["rows"] == two.pop("change")["rows"]
    assert two == one
    assert {"attempt", "usage_report", "reading", "finding", "priced_amount"} <= one.keys()
    table = weighbridge("digest", "attempt", "--config", weighed).out
    assert one["attempt"]["sha256"] in table
    assert "usage_report" not in table


def test_prices_are_listed_with_their_source(weighbridge: Run, weighed: Path) -> None:
    rows = weighbridge("prices", "ls", "--provider", "openai", "--config", weighed, "--json").json
    assert {row["provider"] for row in rows} == {"openai"}
    assert all(row["origin"] and row["per_million"] for row in rows)
    (one,) = weighbridge(
        "prices",
        "ls",
        "--provider",
        "openai",
        "--model",
        "gpt-4o-2024-11-20",
        "--day",
        "20260105",
        "--config",
        weighed,
        "--json",
    ).json
    assert one["per_million"]["input_uncached"] == "2.5"
    table = weighbridge("prices", "ls", "--model", "gpt-4o-2024-11-20", "--config", weighed)
    assert table.code == 0
    assert "input_uncached 2.5" in table.out


def test_what_cannot_be_read_goes_to_quarantine_and_exits_with_1(weighbridge: Run, fresh: Path) -> None:
    answers = fresh / "answers.jsonl"
    body = {"usage": {"prompt_tokens": 1.5, "completion_tokens": 2, "total_tokens": 3}, "text": CANARY}
    record = {"provider": "openai", "api_flavor": "chat", "model": "gpt-4o", "request": {}, "response": body}
    sound = record | {"response": {"usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}}}
    answers.write_text("".join(json.dumps(each) + "\n" for each in (sound, record)) + "{" + CANARY + "\n")
    ran = weighbridge(
        "ingest", answers, "--importer", "recorded_answers", "--day", "20260105", "--config", fresh, "--json"
    )
    assert ran.code == 1, ran.err
    (file,) = ran.json["files"]
    assert (file["rows_in"], file["rows_out"], file["rows_quarantined"]) == (3, 1, 2)
    assert weighbridge("reconcile", "--config", fresh).code == 1
    codes = {row["code"] for row in weighbridge("findings", "ls", "--config", fresh, "--json").json}
    assert "quarantined_rows" in codes
    listed = weighbridge("findings", "ls", "--code", "quarantined_rows", "--config", fresh).out
    assert [line.count("importer=recorded_answers; reason=") for line in listed.splitlines()].count(1) == 2
    assert "reason=fraction" in listed
    assert "reason=not_json" in listed
    assert "+1 row " in listed
    identity = next(line[:8] for line in listed.splitlines() if "reason=fraction" in line)
    behind = weighbridge("explain", identity, "--config", fresh).out
    places = [line.split()[-2:] for line in behind.splitlines() if "path" in line or "row " in line]
    assert places == [["path", "usage.prompt_tokens"], ["row", "2"]]
    assert CANARY not in behind
    weighbridge("report", "--month", "2026-01", "--config", fresh)
    answers.unlink()
    for path in fresh.rglob("*"):
        assert not path.is_file() or CANARY.encode() not in path.read_bytes(), path


def test_only_a_known_amount_counts_as_priced(weighbridge: Run, fresh: Path) -> None:
    answers = fresh / "answers.jsonl"
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    record = {"provider": "openai", "api_flavor": "chat", "request": {}, "response": {"usage": usage}}
    models = ("gpt-4o", "of-our-own", "of-our-own")
    answers.write_text("".join(json.dumps(record | {"id": f"r_{n}", "model": m}) + "\n" for n, m in enumerate(models)))
    told = weighbridge("ingest", answers, "--day", "20260105", "--config", fresh).out
    assert "from what was given: 3 readings, 1 of them priced\n" in told
    answers.write_text(json.dumps(record | {"id": "r_9", "model": "gpt-4o"}) + "\n")
    (fresh / "nothing.jsonl").write_text("")
    later = weighbridge("ingest", answers, fresh / "nothing.jsonl", "--day", "20260105", "--config", fresh).out
    assert "from what was given: 1 reading, 1 of them priced\n" in later
    assert "1 day touched, read and priced anew: 4 readings there now, 2 of them priced\n" in later
    assert "without any record: nothing.jsonl\n" in later
    # A scrape of an engine has no reading of its own; the day has those of before.
    (fresh / "engine.prom").write_text('vllm:prompt_tokens_total{model_name="m"} 7\n')
    scraped = weighbridge("ingest", fresh / "engine.prom", "--day", "20260105", "--config", fresh).out
    assert "from what was given: 0 readings, 0 of them priced\n" in scraped
    assert "1 day touched, read and priced anew: 4 readings there now, 2 of them priced\n" in scraped
    again = weighbridge("ingest", answers, "--importer", "token_logs", "--config", fresh).out
    assert "taken in before, read by recorded_answers" in again
    assert "Nothing was compared: of every attempt one side is here" in weighbridge("reconcile", "--config", fresh).out
    none = weighbridge("report", "--month", "2031-01", "--config", fresh)
    assert (none.code, "nothing of 2031-01; it has 2026-01 to 2026-01" in none.err) == (2, True)
    beside = weighbridge("report", "--month", "2025-12", "--timezone", "Europe/Berlin", "--config", fresh)
    assert (beside.code, "nothing of 2025-12" in beside.err) == (2, True)
    named = weighbridge("findings", "ls", "--config", fresh / "nope")
    assert f"weighbridge init {fresh / 'nope'}`" in named.err


def test_a_month_of_nothing_but_quarantine_is_reconciled_and_reported(weighbridge: Run, fresh: Path) -> None:
    record = {"provider": "openai", "api_flavor": "chat", "response": {"usage": {"prompt_tokens": -1.5}}}
    (fresh / "answers.jsonl").write_text(json.dumps(record) + "\n")
    weighbridge("ingest", fresh / "answers.jsonl", "--day", "20260105", "--config", fresh)
    told = weighbridge("reconcile", "--config", fresh, "--json")
    assert (told.json["months"], told.json["attempts"]) == (["2026-01"], 0)
    assert "quarantined_rows" in {item["code"] for item in told.json["findings"]}
    (files,) = weighbridge("report", "--config", fresh, "--json").json
    assert Path(files["html"]).is_file()


@pytest.mark.parametrize("name", ["broken.jsonl", "broken.csv", "broken.parquet", "broken.segment"])
def test_a_file_nobody_can_read_is_refused_and_nothing_is_written(weighbridge: Run, fresh: Path, name: str) -> None:
    path = fresh / name
    if path.suffix == ".segment":
        path.mkdir()
    else:
        path.write_bytes(b"\x00\xff" + CANARY.encode())
    ran = weighbridge("ingest", path, "--config", fresh)
    assert (ran.code, ran.out) == (2, ""), ran.err
    assert name in ran.err
    assert CANARY not in ran.err
    assert weighbridge("digest", "--config", fresh, "--json").json == {}


def test_simulate_writes_the_same_bytes_for_the_same_seed(weighbridge: Run, fresh: Path) -> None:
    def made(name: str, seed: int) -> list[bytes]:
        options = ["--attempts", 50, "--days", 3, "--seed", seed, "--start", "20260301"]
        ran = weighbridge("simulate", fresh / name, *options, "--config", fresh, "--json")
        assert (ran.code, ran.json["labels"]["simulated"]) == (0, "true")
        return [(Path(segment) / "manifest.json").read_bytes() for segment in ran.json["segments"]]

    assert made("one", 3) == made("two", 3) != made("three", 4)
    assert weighbridge("simulate", fresh / "one", "--config", fresh).code == 2


def test_the_demonstration_finds_exactly_what_was_put_in(weighbridge: Run, tmp_path: Path) -> None:
    ran = weighbridge("demo", "--out", tmp_path / "demo", "--attempts", 800, "--days", 20, "--no-live")
    assert ran.code == 0, ran.out + ran.err
    assert ran.out.startswith("SIMULATED DATA")
    assert "expected findings were found exactly, and no other." in ran.out
    (page,) = re.findall(r"^report 2026-01: (.+)$", ran.out, re.MULTILINE)
    assert "imulated" in Path(page).read_text()


@pytest.mark.system
def test_the_log_goes_to_standard_error_and_only_where_it_is_asked_for(
    weighbridge: Run, weighed: Path, fresh: Path
) -> None:
    quiet = weighbridge("ingest", weighed / "made", "--config", fresh, "--json")
    assert quiet.err == ""
    told = weighbridge("--log-level", "info", "ingest", weighed / "made", "--config", fresh, "--json")
    assert told.json["files"]
    assert re.search(
        r"^INFO weighbridge.cli: ingest ended with 0; \d+\.\d CPU seconds, \d+ MiB", told.err, re.MULTILINE
    )
    more = weighbridge("digest", "--config", fresh, "--log-level", "debug")
    assert f"DEBUG weighbridge.cli: setting key_file from {fresh / 'weighbridge.toml'}" in more.err


def test_reconcile_as_of_an_early_day_waits_and_as_of_a_later_one_tells_what_became_of_it(
    weighbridge: Run, home: Path
) -> None:
    days = Lake.open(home / "lake").days("attempt")
    early = weighbridge("reconcile", "--as-of", min(days), "--config", home, "--json").json
    assert early["statuses"]["PROVISIONAL"] > 0
    late = weighbridge("reconcile", "--as-of", max(days) + timedelta(days=60), "--config", home, "--json").json
    assert "PROVISIONAL" not in late["statuses"]
    assert sum(each["rows"] for each in late["transitions"]) == early["statuses"]["PROVISIONAL"]
