"""`weighbridge compare` on recorded answers, and what becomes of a recommendation."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from tests.cli.conftest import Terminal


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    """A baseline that was run twice, a strategy that saves half and changes nothing, and one that spoils everything."""
    source, lines = Random(4), []
    for at in range(240):
        ids = [source.randrange(500) for _ in range(12)]
        about = {"pair": f"p{at}", "model": "tiny", "attended_dense": 100}
        lines += [
            {**about, "strategy": "dense", "output_ids": ids, "attended": 100, "baseline_rerun_identical": True},
            {**about, "strategy": "half", "output_ids": ids, "attended": 50},
            {**about, "strategy": "tenth", "output_ids": ids[:1] + [7] * 11, "attended": 10},
        ]
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    return path


def test_answers_are_compared_kept_and_recommended(weighbridge: Terminal, tmp_path: Path, answers: Path) -> None:
    home = tmp_path / "home"
    assert weighbridge("init", home).code == 0
    at = ("--config", home)
    assert "No comparison is kept yet" in weighbridge("compare", "show", *at).out
    ran = weighbridge("compare", "analyse", answers, "--lake", *at)
    assert ran.code == 1
    assert "recommended: half" in ran.out
    assert "warning: strategy_worse, tenth, 240 answers" in ran.out
    told = weighbridge("compare", "show", "--json", *at).json
    assert [(row["strategy"], row["judgement"]) for row in told["comparison"]] == [
        ("dense", None), ("tenth", "worse"), ("half", "not_worse"),
    ]  # fmt: skip
    (advice,) = told["recommendations"]
    assert (advice["state"], advice["strategy"], advice["saved"]) == ("proposed", "half", 0.5)
    number = advice["recommendation_id"][:8]
    assert weighbridge("compare", "apply", number, "--reason", "on all hosts", *at).out == f"{number} half: applied\n"
    assert "is too short" in weighbridge("compare", "refuse", "", *at).err, "nothing is decided by an empty id"
    refused = weighbridge("compare", "apply", number, *at)
    assert (refused.code, "is applied; it can only become refused" in refused.err) == (2, True)
    assert weighbridge("compare", "analyse", answers, "--lake", *at).code == 1
    assert [row["state"] for row in weighbridge("compare", "show", "--json", *at).json["recommendations"]] == [
        "verified"
    ]
    assert weighbridge("compare", "refuse", number, *at).code == 0
    log = [row for row in weighbridge("changes", "--json", *at).json if row["kind"] == "strategy"]
    assert [row["after"] for row in log] == ["proposed", "applied", "verified", "refused"]
    (worse,) = weighbridge("findings", "ls", "--code", "strategy_worse", "--json", *at).json
    explained = weighbridge("explain", worse["finding_id"], *at).out
    assert "comparisons of that day" in explained
    assert "judgement  worse" in explained or "judgement: worse" in explained


@pytest.mark.real
def test_a_recording_of_presses_is_kept_though_its_model_is_a_description(
    weighbridge: Terminal, tmp_path: Path, shared_real: Path
) -> None:
    home = tmp_path / "home"
    weighbridge("init", home)
    path = shared_real / "engines" / "kvpress" / "pairs_tiny.jsonl"
    assert weighbridge("compare", "analyse", path, "--lake", "--config", home).code in {0, 1}
    rows = weighbridge("compare", "show", "--json", "--config", home).json["comparison"]
    assert len(rows) == 9
    assert {row["model"] for row in rows} == {None}
    assert {row["pairs"] for row in rows} == {14}


def test_nothing_is_shown_of_ids_and_a_wrong_margin_is_refused(weighbridge: Terminal, answers: Path) -> None:
    told = weighbridge("compare", "analyse", answers, "--margin", "edit=0.1", "--json").json
    assert (told["margins"], told["recommended"]) == ({"edit": 0.1}, "half")
    assert "output_ids" not in json.dumps(told)
    assert weighbridge("compare", "analyse", answers, "--margin", "edit").code == 2
    assert weighbridge("compare", "analyse", answers, "--hour", "-1").code == 2
    assert "is no measure that can decide" in weighbridge("compare", "analyse", answers, "--margin", "x=1").err


def test_what_a_person_refused_stays_refused_until_what_is_known_changes(
    weighbridge: Terminal, tmp_path: Path, answers: Path
) -> None:
    home = tmp_path / "home"
    weighbridge("init", home)
    at = ("--config", home)
    first = weighbridge("compare", "analyse", answers, "--lake", "--json", *at).json
    assert (first["recommended"], first["refused"]) == ("half", [])
    (advice,) = weighbridge("compare", "show", "--json", *at).json["recommendations"]
    assert "183" in advice["reason"] or "217" in advice["reason"], "the pairs it takes stand in the reason"
    number = advice["recommendation_id"][:8]
    assert weighbridge("compare", "refuse", number, "--reason", "answers too terse", *at).code == 0
    again = weighbridge("compare", "analyse", answers, "--lake", "--json", *at).json
    (refused,) = again["refused"]
    assert (again["recommended"], refused["strategy"], refused["reason"]) == (None, "half", "answers too terse")
    told = weighbridge("compare", "analyse", answers, "--lake", *at).out
    assert "half stays refused since" in told
    assert "answers too terse" in told
    assert "recommended: none" in told
    (row,) = weighbridge("compare", "show", "--json", *at).json["recommendations"]
    assert (row["state"], row["change"]) == ("refused", 1), "nothing was proposed again"
    lines = [json.loads(line) for line in answers.read_text().splitlines()]
    saving = [line | {"attended": 20} if line["strategy"] == "half" else line for line in lines]
    answers.write_text("\n".join(map(json.dumps, saving)))
    assert weighbridge("compare", "analyse", answers, "--lake", "--json", *at).json["recommended"] == "half"
    (row,) = weighbridge("compare", "show", "--json", *at).json["recommendations"]
    assert row["state"] == "proposed"
    assert row["reason"].startswith("refused before, on 20")
    assert "(answers too terse)" in row["reason"]


def test_models_without_a_name_do_not_share_a_recommendation(
    weighbridge: Terminal, tmp_path: Path, answers: Path
) -> None:
    home = tmp_path / "home"
    weighbridge("init", home)
    lines = [json.loads(line) for line in answers.read_text().splitlines()]
    for name in ("one", "two", "one"):
        path = tmp_path / f"{name}.jsonl"
        rest = [{key: value for key, value in line.items() if key != "model"} for line in lines]
        path.write_text("\n".join(json.dumps(line) for line in rest if line["strategy"] != "tenth"))
        weighbridge("compare", "analyse", path, "--lake", "--config", home)
    rows = weighbridge("compare", "show", "--json", "--config", home).json["recommendations"]
    assert len({row["recommendation_id"] for row in rows}) == len(rows) == 2
    assert {row["model"] for row in rows} == {None}


def test_pairs_it_acted_on_stand_beside_all_of_them(weighbridge: Terminal, tmp_path: Path, answers: Path) -> None:
    home = tmp_path / "home"
    weighbridge("init", home)
    lines = [json.loads(line) for line in answers.read_text().splitlines()]
    idle = [
        line | {"attended": 100} if line["strategy"] == "half" and int(line["pair"][1:]) >= 50 else line
        for line in lines
    ]
    answers.write_text("\n".join(map(json.dumps, idle)))
    told = weighbridge("compare", "analyse", answers, "--lake", "--config", home).out
    assert "half: not shown; it acted on 50 of 240 pairs" in told
    shown = weighbridge("compare", "show", "--json", "--config", home).json["comparison"]
    half = next(row for row in shown if row["strategy"] == "half")
    there = half["where_it_acted"]
    assert (half["pairs"], half["unshown"], there["pairs"], there["judgement"]) == (240, 190, 50, None)
    assert there["saved"] == pytest.approx(0.5)
    assert there["loss_high"] > half["loss_high"] > 0
    assert "loss there" in weighbridge("compare", "show", "--config", home).out
    (idle,) = weighbridge("findings", "ls", "--code", "strategy_had_no_effect", "--json", "--config", home).json
    assert "half@acted" in weighbridge("explain", idle["finding_id"], "--config", home).out
