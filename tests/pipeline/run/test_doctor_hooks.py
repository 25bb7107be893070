"""The doctor on hooks: one nothing ever ran through is a problem beside others of its installation that had calls."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from weighbridge.capture.context import Context
from weighbridge.capture.layout import outcome_word
from weighbridge.capture.recorder import Limits, Recorder
from weighbridge.capture.spool import main as spool
from weighbridge.pipeline.ingest.ingest import ingest
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.reconcile.reconcile import reconcile
from weighbridge.pipeline.run.doctor import Health, _hooks
from weighbridge.schemas.enumerations import AttemptStatus
from weighbridge.schemas.parts import Parallel, Part

KEY = bytes(range(32))


def ran(folder: Path, rank: int, *, calls: int, installation: str = "gpu-1") -> None:
    """A process with a hook in it, from begin to end."""
    part = Part(kind=Parallel.DATA, rank=rank, world=3, group="start-1")
    recorder = Recorder.start(folder, installation=installation, key=KEY, part=part, limits=Limits(keeper_s=3600.0))
    recorder.hooks.add("transformers")
    binding = recorder.bind(Context(), counts=("input_computed",))
    for _ in range(calls):
        binding.begin().finish(outcome_word(AttemptStatus.SUCCEEDED), (1,))
    recorder.close()


@pytest.mark.parametrize(
    ("calls", "health", "named"),
    [
        ((2, 1), Health.OK, "every one"),
        ((2, 0), Health.PROBLEM, "gpu-1/data_rank:1"),
        ((0, 0), Health.NOTICE, "gpu-1, gpu-1/data_rank:1"),
    ],
)
def test_a_hook_beside_the_model(calls: tuple[int, int], health: Health, named: str, tmp_path: Path) -> None:
    for rank, count in enumerate(calls):
        ran(tmp_path / "spool", rank, calls=count)
    assert spool(["seal", str(tmp_path / "spool")]) == 0
    lake = Lake.create(tmp_path / "lake")
    ingest([tmp_path / "spool"], lake, key=KEY, day=datetime.now(tz=UTC).date())
    check = _hooks(lake)
    assert (check.health, named in check.found) == (health, True), check.found
    idle = [f for f in reconcile(lake).findings if f.code == "gap_records"]
    assert len(idle) == calls.count(0)
    assert all((f.difference, "install the adapter there" in f.cure) == (0, True) for f in idle)


def test_a_hook_that_was_used_before_is_no_problem(tmp_path: Path) -> None:
    for calls in (1, 0):
        ran(tmp_path / "spool", 0, calls=calls)
    assert spool(["seal", str(tmp_path / "spool")]) == 0
    lake = Lake.create(tmp_path / "lake")
    ingest([tmp_path / "spool"], lake, key=KEY, day=datetime.now(tz=UTC).date())
    assert _hooks(lake).health is Health.OK
