"""Answers of real engines with and without a press, analysed and worked out a second time by other means."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.compare.test_measures import edits, f1, lcs

from weighbridge.pipeline.compare.comparison import Comparison, compare
from weighbridge.pipeline.compare.gate import Gate
from weighbridge.pipeline.compare.recording import read_recording
from weighbridge.pipeline.compare.run_folder import read_run
from weighbridge.pipeline.compare.survival import share_at
from weighbridge.pipeline.run.comparing import chosen
from weighbridge.schemas.errors import ConfigError, ContractError

FILES = {"pairs_tiny": 8, "pairs_gemma": 3}
Rows = dict[str, dict[str, dict[str, Any]]]


@pytest.fixture(params=FILES)
def analysed(request: pytest.FixtureRequest, shared_real: Path) -> tuple[str, Rows, Comparison]:
    """A recording as it stands, and as it is analysed."""
    return (request.param, *_analysed(shared_real / "engines" / "kvpress" / f"{request.param}.jsonl"))


@cache
def _analysed(path: Path) -> tuple[Rows, Comparison]:
    rows: Rows = defaultdict(dict)
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        rows[row["strategy"]][row["pair"]] = row
    held = chosen(str(path), None)
    return rows, compare(held.off, held.on, Gate())


@pytest.mark.real
def test_every_measure_is_what_tables_and_counting_give(analysed: tuple[str, Rows, Comparison]) -> None:
    name, rows, found = analysed
    assert len(found.strategies) == FILES[name]
    for each in found.strategies:
        pairs = [
            (rows["baseline"][pair]["output_ids"], row["output_ids"])
            for pair, row in sorted(rows[each.side.name].items())
        ]
        wanted = {
            "exact": [float(off == on) for off, on in pairs],
            "similarity": [2 * lcs(off, on) / (len(off) + len(on)) for off, on in pairs],
            "edit": [1 - edits(off, on) / max(len(off), len(on)) for off, on in pairs],
            "rouge_1": [f1(off, on, 1) for off, on in pairs],
            "rouge_2": [f1(off, on, 2) for off, on in pairs],
            "length": [float(len(on)) for _, on in pairs],
        }
        for measure, values in wanted.items():
            assert each.measured[measure].on == pytest.approx(sum(values) / len(values)), measure
        parted = sum(off[0] != on[0] for off, on in pairs)
        assert share_at(each.parting, 0) == pytest.approx(1 - parted / len(pairs))
        assert each.passed["exact"].off_only == sum(off != on for off, on in pairs)


@pytest.mark.real
def test_what_is_kept_of_the_cache_is_the_saving(analysed: tuple[str, Rows, Comparison]) -> None:
    name, rows, found = analysed
    for each in found.strategies:

        def used(strategy: str) -> int:
            held = rows[strategy].values()
            if name == "pairs_gemma":
                return sum(sum(row["kv_entries_at_end"]) for row in held)
            return sum(row["kv_entries_in_cache_at_end"] - row["kv_entries_masked"] for row in held)

        assert each.saved["kv_entries"].saved == pytest.approx(1 - used(each.side.name) / used("baseline"))
        assert each.unshown == 0, "every press shows in the cache or in what it masked"
    assert found.floor_measured == (name == "pairs_tiny")


@pytest.mark.real
def test_the_baseline_beside_itself_had_no_effect(shared_real: Path) -> None:
    path = shared_real / "engines" / "kvpress" / "pairs_tiny.jsonl"
    held = chosen(f"{path}#baseline", f"{path}#baseline")
    (each,) = compare(held.off, held.on, Gate()).strategies
    assert (str(each.judgement), each.unshown, each.side.name) == ("no_effect", 14, "pairs_tiny.baseline")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[]", "line 1 is no object"),
        ("{", "line 1 is not JSON"),
        ('{"pair": "a"}', "output_ids must be a list of token ids"),
        ('{"pair": "a", "output_ids": [1, -1]}', "output_ids must be a list of token ids"),
        ('{"pair": "a", "output_ids": [true]}', "output_ids must be a list of token ids"),
        ('{"pair": "", "output_ids": []}', "pair must be a name"),
        ('{"pair": "a", "output_ids": [], "stop": "enough"}', "stop is none of stop, length"),
        ('{"pair": "a", "output_ids": [], "score": 2}', "score must be a number from 0 to 1"),
        ('{"pair": "a", "output_ids": [], "attended": "many"}', "attended must be a whole number from 0"),
        ('{"pair": "a", "output_ids": [], "attended": 1' + "0" * 400 + "}", "attended must be a whole number from 0"),
        ('{"pair": "a", "output_ids": [], "wall_ms": NaN}', "wall_ms must be a number from 0"),
        ('{"pair": "a", "output_ids": ' + "[" * 100_000, "line 1 is not JSON"),
        ('{"pair": "a", "output_ids": []}\n{"pair": "a", "output_ids": []}', "line 2: answers answers this pair twice"),
        ('{"pair": "a", "output_ids": [], "tokenizer": "x"}\n{"pair": "b", "output_ids": [], "tokenizer": "y"}',
         "name two of tokenizer"),
        ("", "has no answers"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_recording_says_what_is(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text(line)
    with pytest.raises(ContractError, match=message):
        read_recording(path)


def test_sources_name_what_they_hold(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"pair": "a", "output_ids": [], "strategy": "x"}\n{"pair": "a", "output_ids": [], "strategy": "y"}'
    )
    with pytest.raises(ConfigError, match="holds x, y; say which one is the baseline"):
        chosen(str(path), None)
    with pytest.raises(ConfigError, match="has no strategy 'z'; it has x, y"):
        chosen(f"{path}#z", None)
    for missing in (str(tmp_path / "b.jsonl"), "", "#x"):
        with pytest.raises(ConfigError, match="there is no"):
            chosen(missing, None)
    held = chosen(f"{path}#x", None)
    assert (held.off.name, [side.name for side in held.on]) == ("x", ["y"])


@pytest.mark.parametrize(
    "about",
    [
        {"version": 1, "files": []},
        {"version": 1, "files": {}, "strategies": ["x"]},
        {"version": 1, "files": 5},
    ],
)
def test_a_manifest_that_says_too_little_is_refused(tmp_path: Path, about: dict[str, object]) -> None:
    (tmp_path / "comparison.json").write_text(json.dumps(about))
    with pytest.raises(ContractError, match=r"comparison\.json"):
        read_run(tmp_path)
