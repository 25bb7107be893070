"""Once is enough: the same rows in any number of files, calls and interrupted runs give one and the same lake."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from tests.conftest import KEY
from tests.pipeline.ingest.conftest import DAY, answer_of, attempt_of, lines_in, report_of, segment_in

from weighbridge.pipeline.ingest import ingest as ingest_module
from weighbridge.pipeline.ingest.ingest import IngestResult, ingest
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.validate.contract import contract

Take = Callable[..., IngestResult]
Jsonl = Callable[..., Path]
Row = Callable[..., dict[str, object]]
Segment = Callable[..., Path]


def figures(result: IngestResult) -> list[tuple[int, int, int, int]]:
    return [(f.rows_in, f.rows_out, f.rows_quarantined, f.rows_duplicate) for f in result.files]


def test_the_same_file_twice_changes_nothing(lake: Lake, take: Take, jsonl: Jsonl, answer: Row) -> None:
    path = jsonl("a.jsonl", [answer(1), answer(2), b"torn"])
    take([path], lake)
    before, versions = lake.digests(), {t: lake.version(t) for t in lake.digests()}
    again = take([path], lake)
    assert again.files[0].skipped
    assert (again.days, again.readings) == ((), 0)
    assert lake.digests() == before
    assert {t: lake.version(t) for t in before} == versions


def test_the_same_file_twice_in_one_call_is_read_once(lake: Lake, take: Take, jsonl: Jsonl, answer: Row) -> None:
    path = jsonl("a.jsonl", [answer(1)])
    first, second = take([path, path], lake).files
    assert (first.skipped, second.skipped) == (False, True)
    assert lake.rows("attempt") == 1


def test_the_same_rows_in_another_file_are_duplicates(lake: Lake, take: Take, jsonl: Jsonl, answer: Row) -> None:
    take([jsonl("a.jsonl", [answer(1), answer(2)])], lake)
    tables = ("attempt", "usage_report", "foreign_id", "alias", "reading")
    before = {table: lake.digest(table) for table in tables}
    result = take([jsonl("b.jsonl", [answer(2), answer(1)])], lake)
    assert figures(result) == [(2, 0, 0, 2)]
    assert {table: lake.digest(table) for table in tables} == before
    assert result.days == ()


def test_of_overlapping_files_only_what_is_new_is_stored(lake: Lake, take: Take, jsonl: Jsonl, answer: Row) -> None:
    take([jsonl("a.jsonl", [answer(1), answer(2)])], lake)
    result = take([jsonl("b.jsonl", [answer(2), answer(3)])], lake)
    assert figures(result) == [(2, 1, 0, 1)]
    assert lake.scan("usage_report").collect()["leaf_integers"].sort().to_list() == [
        [5, 11, 16],
        [5, 12, 17],
        [5, 13, 18],
    ]


def test_records_without_ids_are_told_apart_by_their_order(lake: Lake, take: Take, jsonl: Jsonl, answer: Row) -> None:
    def nameless(number: int) -> dict[str, object]:
        return answer(number, id=None, response={"usage": {"prompt_tokens": number}})

    result = take([jsonl("a.jsonl", [nameless(1), nameless(1), nameless(2)])], lake)
    assert figures(result) == [(3, 3, 0, 0)]
    # The same two, a third like them, and one that is new.
    result = take([jsonl("b.jsonl", [nameless(1), nameless(1), nameless(1), nameless(3)])], lake)
    assert figures(result) == [(4, 2, 0, 2)]
    assert lake.rows("attempt") == 5
    assert lake.scan("usage_report").collect()["leaf_integers"].sort().to_list() == [[1], [1], [1], [2], [3]]


def test_a_record_without_a_time_keeps_its_first_day(lake: Lake, take: Take, jsonl: Jsonl, answer: Row) -> None:
    undated = answer(1, response={"usage": {"prompt_tokens": 1}})
    take([jsonl("a.jsonl", [undated])], lake, day=date(2026, 1, 1))
    result = take([jsonl("b.jsonl", [undated, answer(2)])], lake, day=date(2026, 2, 2))
    assert figures(result) == [(2, 1, 0, 1)]
    assert lake.scan("attempt").filter(pl.col("undated")).collect()["day"].to_list() == [date(2026, 1, 1)]


def test_other_content_under_a_key_is_a_revision_and_the_last_one_counts(
    lake: Lake, take: Take, jsonl: Jsonl, answer: Row
) -> None:
    def told(tokens: int) -> dict[str, object]:
        return answer(1, response={"id": "chatcmpl-1", "created": 1768473000, "usage": {"prompt_tokens": tokens}})

    take([jsonl("a.jsonl", [told(10)])], lake)
    result = take([jsonl("b.jsonl", [told(20)])], lake)
    assert figures(result) == [(1, 1, 0, 0)]
    rows = lake.scan("usage_report").sort("revision").select("revision", "report", "leaf_integers").collect().rows()
    assert rows == [(0, 0, [10]), (1, 0, [20])]
    assert lake.rows("attempt") == 1
    assert lake.scan("reading").collect()["revision"].to_list() == [1]
    # Content that was there before, whichever revision, is a duplicate.
    assert figures(take([jsonl("c.jsonl", [told(10), told(20), told(10)])], lake)) == [(3, 1, 0, 2)]


NEW_YEAR = 1767225600  # 2026-01-01 00:00 UTC


@pytest.mark.parametrize("at_once", [True, False])
def test_revisions_lie_on_the_first_day_of_their_key_also_across_the_end_of_a_month(
    lake: Lake, take: Take, jsonl: Jsonl, answer: Row, at_once: bool
) -> None:
    def told(number: int, tokens: int, created: int) -> dict[str, object]:
        usage = {"prompt_tokens": tokens}
        return answer(number, response={"id": f"chatcmpl-{number}", "created": created, "usage": usage})

    before = jsonl("a.jsonl", [told(1, 100, NEW_YEAR - 10), told(2, 7, NEW_YEAR - 9)])
    after = jsonl("b.jsonl", [told(1, 200, NEW_YEAR + 10), told(3, 9, NEW_YEAR + 11)])
    results = [take([before, after], lake)] if at_once else [take([before], lake), take([after], lake)]
    first, second = date(2025, 12, 31), date(2026, 1, 1)
    # The day that got a revision is one that has to be worked on again.
    assert results[-1].days == (first, second)
    for table in ("attempt", "usage_report"):
        rows = lake.scan(table).sort("revision", "attempt_hi").select("day", "revision").collect().rows()
        assert sorted(rows) == [(first, 0), (first, 0), (first, 1), (second, 0)], table
    counted = lake.scan("reading").sort("input_total").select("day", "revision", "input_total").collect().rows()
    assert counted == [(first, 0, 7), (second, 0, 9), (first, 1, 200)]
    # A run that was cut off behind its first commits finds the rows where they stand.
    digests = lake.digests()
    lake.replace("segment", lake.scan("segment").clear().collect(), days=None)
    take([before, after], lake)
    assert lake.digests() == digests
    broken = next(rule.broken for rule in contract("attempt") if rule.name == "day.arrived_at")
    assert broken is not None
    assert lake.scan("attempt").filter(broken).collect().is_empty()


def test_the_same_report_twice_in_one_file_is_a_duplicate_report(
    lake: Lake, take: Take, jsonl: Jsonl, answer: Row
) -> None:
    result = take([jsonl("a.jsonl", [answer(1), answer(2), answer(1), answer(1)])], lake)
    assert figures(result) == [(4, 4, 0, 0)]
    assert lake.rows("attempt") == 2
    rows = lake.scan("usage_report").sort("report", "leaf_integers").select("leaf_integers", "report", "revision")
    assert rows.collect().rows() == [
        ([5, 11, 16], 0, 0),
        ([5, 12, 17], 0, 0),
        ([5, 11, 16], 1, 0),
        ([5, 11, 16], 2, 0),
    ]
    # In another file they are what is known already, except for the fourth.
    assert figures(take([jsonl("b.jsonl", [answer(1)] * 4)], lake)) == [(4, 1, 0, 3)]


def test_the_same_key_twice_in_one_file_with_other_content_is_a_revision(
    lake: Lake, take: Take, segment: Segment, attempt: Row, report: Row
) -> None:
    path = segment("s", attempt=[attempt(1)], usage_report=[report(1, 10), report(1, 30), report(1, 10)])
    assert figures(take([path], lake)) == [(4, 4, 0, 0)]
    rows = lake.scan("usage_report").sort("report", "revision").select("report", "revision", "leaf_integers")
    assert rows.collect().rows() == [(0, 0, [5, 10, 15]), (0, 1, [5, 30, 35]), (1, 0, [5, 10, 15])]


def test_a_further_report_that_its_writer_numbered_keeps_its_number(
    lake: Lake, take: Take, segment: Segment, report: Row
) -> None:
    path = segment("s", usage_report=[report(1), report(1, report=1), report(2), report(2, 99, report=1)])
    assert figures(take([path], lake)) == [(4, 4, 0, 0)]
    rows = lake.scan("usage_report").sort("attempt_hi", "report").select("attempt_hi", "report", "revision")
    assert rows.collect().rows() == [(1001, 0, 0), (1001, 1, 0), (1002, 0, 0), (1002, 1, 0)]


def test_the_parts_of_a_stream_stand_and_fall_together(lake: Lake, take: Take, segment: Segment, report: Row) -> None:
    def stream(last: int) -> list[dict[str, object]]:
        return [report(1, 10, part=0, part_kind="start"), report(1, last, part=1, part_kind="delta")]

    path = segment("s", usage_report=[*stream(20), *stream(20), *stream(21)])
    assert figures(take([path], lake)) == [(6, 6, 0, 0)]
    rows = lake.scan("usage_report").sort("report", "revision", "part")
    assert rows.select("report", "revision", "part", "leaf_integers").collect().rows() == [
        (0, 0, 0, [5, 10, 15]),
        (0, 0, 1, [5, 20, 25]),
        (0, 1, 0, [5, 10, 15]),
        (0, 1, 1, [5, 21, 26]),
        (1, 0, 0, [5, 10, 15]),
        (1, 0, 1, [5, 20, 25]),
    ]


def corpus(folder: Path) -> list[Path]:
    """Files that overlap, repeat, revise, refuse and refer to one another."""
    dense = {"strategy_id": "0" * 32, "name": "dense", "family": "dense", "token_events": False, "parameters": "{}"}
    meets = {"kind": "provider_response_id", "value": "chatcmpl-2", "day": date(2026, 1, 15), "source": "agent-1"}
    return [
        segment_in(
            folder,
            "one",
            attempt=[attempt_of(1), attempt_of(2)],
            usage_report=[report_of(1), report_of(1), report_of(2, 20)],
            foreign_id=[{"attempt_hi": 1002, "attempt_lo": -5002, **meets}],
            gap=[{"day": date(2026, 1, 15), "source": "agent-1", "reason": "quota", "attempts": 3}],
            strategy=[dense],
        ),
        # The second description of its file is a duplicate, and one that contradicts the first is refused.
        segment_in(
            folder,
            "two",
            strategy=[dense, dense, dense | {"family": "other"}],
            attempt=[attempt_of(2), attempt_of(3, task="other")],
            usage_report=[report_of(2, 21)],
        ),
        lines_in(
            folder,
            "three.jsonl",
            [answer_of(1), answer_of(2), answer_of(1), b"torn", answer_of(4, id=None, response={})],
        ),
        lines_in(folder, "four.jsonl", [answer_of(2), answer_of(3, status=500), {"provider": "x"}]),
    ]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, files: list[Path]) -> Mapping[str, str]:
    """The digests of a lake that took all files in one undisturbed call."""
    lake = Lake.create(tmp_path_factory.mktemp("undisturbed") / "lake")
    result = ingest(files, lake, key=KEY, day=DAY)
    assert figures(result) == [(8, 8, 0, 0), (6, 3, 1, 2), (5, 4, 1, 0), (3, 1, 1, 1)]
    assert set(lake.digests()) == {
        *("attempt", "usage_report", "reading", "alias", "foreign_id", "strategy", "gap", "quarantine", "segment"),
    }
    return lake.digests()


def test_one_call_or_several_give_the_same_lake(
    lake: Lake, take: Take, files: list[Path], whole: Mapping[str, str]
) -> None:
    for path in files:
        take([path], lake)
    assert lake.digests() == whole


def test_batches_of_any_size_give_the_same_lake(
    lake: Lake, take: Take, files: list[Path], whole: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest_module, "BATCH_ROWS", 1)
    take(files, lake)
    assert lake.digests() == whole


def test_taking_everything_again_changes_nothing(
    lake: Lake, take: Take, files: list[Path], whole: Mapping[str, str], tmp_path: Path
) -> None:
    take(files, lake)
    assert all(file.skipped for file in take(files, lake).files)
    assert lake.digests() == whole


class Cut(BaseException):
    """A run that is cut off."""


class CutLake(Lake):
    """A lake whose writer is cut off before a given commit."""

    commits = 0

    def append(self, *arguments: object, **more: object) -> int:
        self._count()
        return super().append(*arguments, **more)  # type: ignore[arg-type]

    def replace(self, *arguments: object, **more: object) -> None:
        self._count()
        super().replace(*arguments, **more)  # type: ignore[arg-type]

    def _count(self) -> None:
        if self.commits == 0:
            raise Cut
        self.commits -= 1


def sampled(values: Iterable[float], *always: float) -> list[object]:
    """Every value, of which most are left to the longer run."""
    return [value if value in always else pytest.param(value, marks=pytest.mark.system) for value in values]


@pytest.mark.parametrize("commits", sampled(range(10), 0, 5, 8, 9))
def test_a_run_cut_off_between_commits_is_made_whole_by_the_next(
    tmp_path: Path, take: Take, files: list[Path], whole: Mapping[str, str], commits: int
) -> None:
    lake = Lake.create(tmp_path / "lake")
    cut = CutLake(lake.root)
    cut.commits = commits
    try:
        take(files, cut)
        finished = True
    except Cut:
        finished = False
    # Aliases, ids, strategies, attempts, reports, gaps, quarantine, readings, the account of the files: nine commits.
    assert finished == (commits >= 9)
    assert figures(take(files, lake)) == (
        [(0, 0, 0, 0)] * 4 if finished else [(8, 8, 0, 0), (6, 3, 1, 2), (5, 4, 1, 0), (3, 1, 1, 1)]
    )
    assert lake.digests() == whole


@pytest.mark.parametrize("commits", sampled(range(0, 9, 2), 4))
def test_a_run_cut_off_and_finished_file_by_file_is_whole_too(
    tmp_path: Path, take: Take, files: list[Path], whole: Mapping[str, str], commits: int
) -> None:
    lake = Lake.create(tmp_path / "lake")
    cut = CutLake(lake.root)
    cut.commits = commits
    with pytest.raises(Cut):
        take(files, cut)
    for path in files:
        take([path], lake)
    assert lake.digests() == whole


KILLED = """
    import os, signal, sys
    from datetime import date
    from pathlib import Path
    from weighbridge.pipeline.ingest.ingest import ingest
    from weighbridge.pipeline.lake import Lake
    signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, float(sys.argv[2]))
    ingest([Path(p) for p in sys.argv[3:]], Lake.open(sys.argv[1]), key=bytes(range(32)), day=date(2026, 1, 15))
"""


@pytest.mark.parametrize("after", sampled([0.05, 0.15, 0.3], 0.15))
def test_a_run_killed_at_any_instant_is_made_whole_by_the_next(
    lake: Lake, files: list[Path], whole: Mapping[str, str], key: bytes, after: float
) -> None:
    program = [sys.executable, "-c", textwrap.dedent(KILLED), lake.root, str(after), *map(str, files)]
    subprocess.run(program, check=False, timeout=60)
    ingest(files, lake, key=key, day=date(2026, 1, 15))
    assert lake.digests() == whole


def test_many_small_files_of_a_day_become_one_sorted_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, take: Take, jsonl: Jsonl, answer: Row
) -> None:
    """Each call adds a file to the day, until there are enough to be merged; no row is another one for it."""
    monkeypatch.setattr(ingest_module, "RUNS", 3)
    merged, kept = (Lake.create(tmp_path / name) for name in ("merged", "kept"))
    counts = []
    for number in range(1, 5):
        path = jsonl(f"{number}.jsonl", [answer(number)])
        take([path], merged)
        counts.append(len(merged.parts("attempt")))
    monkeypatch.setattr(ingest_module, "RUNS", 99)
    for number in range(1, 5):
        take([tmp_path / f"{number}.jsonl"], kept)
    assert (counts, len(kept.parts("attempt"))) == ([1, 2, 1, 2], 4)
    assert merged.digests() == kept.digests()
