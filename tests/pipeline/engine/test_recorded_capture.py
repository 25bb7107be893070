"""Recorded vLLM servers through the agent inside them: plugin, middleware, spool, ingest, engines, reconciliation.

The causes and amounts are those of `test_recorded`, where the same calls come from files: the agent's way tells the
same, and of each difference between computed, reported and delivered the same cause.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from tests.capture.adapters.vllm_replay import KEY, Replay, generates, key_of
from tests.pipeline.engine.recorded import CONFIGURATIONS, DAY
from tests.pipeline.engine.test_recorded import INPUT, OUTPUT, SAID

from weighbridge.pipeline.engine.engine import weigh_engines
from weighbridge.pipeline.ingest.ingest import ingest
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.reconcile.reconcile import reconcile

pytestmark = pytest.mark.real


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_every_call_comes_out_with_its_causes_and_exact_amounts(
    name: str, tmp_path: Path, shared_real: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay = Replay(shared_real / "engines" / "vllm" / name, tmp_path / "spool", monkeypatch)
    replay.run()
    lake = Lake.create(tmp_path / "lake")
    ingest([tmp_path / "spool"], lake, key=KEY, day=DAY)
    weigh_engines(lake)
    reconcile(lake)
    rows = {
        (row["attempt_hi"], row["attempt_lo"], row["direction"]): row
        for row in lake.scan("reconciled").collect().to_dicts()
    }
    causes: dict[tuple[int, int, str], dict[str, int]] = {}
    for part in lake.scan("gap_cause").collect().to_dicts():
        place = (part["attempt_hi"], part["attempt_lo"], part["direction"])
        causes.setdefault(place, {})[part["cause"]] = part["tokens"]
    wrong = []
    seen = 0
    for call in filter(generates, replay.calls):
        case = call["case"]
        if case not in replay.played:
            continue
        key = key_of(case)
        for direction, expected in (("input", INPUT), ("output", OUTPUT)):
            row = rows[key.hi, key.lo, direction]
            told = causes.get((key.hi, key.lo, direction), {})
            if case in expected:
                seen += 1
                if (row["observed"], row["reported"], told, row["residual"]) != (*expected[case], 0):
                    wrong.append((case, direction, row["observed"], row["reported"], told, row["residual"]))
            elif told or row["status"] not in {"MATCHED", "NOT_COMPARED"}:
                wrong.append((case, direction, row["observed"], row["reported"], told, row["status"]))
            elif case in SAID:
                figure = SAID[case][direction == "output"]
                assert (row["observed"], row["reported"], row["gap"]) == (figure, figure, 0), case
    assert wrong == []
    assert seen == sum(case.startswith(name[0].upper()) for expected in (INPUT, OUTPUT) for case in expected)
    gaps = lake.scan("engine_gap").collect()
    left = gaps.filter((pl.col("residual") != 0) & ~pl.col("reset"))
    assert (
        left.select("counter", "label", "since", "until", "counted", "attempted", "explained", "residual").rows() == []
    )
