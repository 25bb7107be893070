"""Models of transformers in two processes with gloo: stages of a pipeline, and experts spread over both.

What comes of them is held against the same model in one process: its tokens, its counts, and its trace.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.capture import stage
from tests.capture.adapters.conftest import needs_models
from tests.conftest import ROOT

from weighbridge.capture.adapters import transformers as adapter
from weighbridge.capture.context import Context
from weighbridge.capture.keys import KeyFolder
from weighbridge.capture.recorder import Limits, Recorder
from weighbridge.capture.spool import main as spool
from weighbridge.pipeline.content.traces import open_traces, state_events
from weighbridge.pipeline.ingest.ingest import ingest
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.enumerations import Axis
from weighbridge.schemas.parts import Parallel, Part
from weighbridge.schemas.trace import StateEvent, fold, replay

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("models")]

OF_CACHE = ("attended", "kv_appended", "kv_evicted", "kv_kept")
ALIKE = ("input_computed", "output_computed", "forward", "drafted", "accepted", "attended_dense", "finish_reason")


def start(folder: Path) -> None:
    """A policy that takes every attempt at level 3."""
    cell = {"tenant": None, "route": None, "strategy": None, "level": 3, "purpose": "sparsity_check"}
    policy = {"version": 1, "cells": [{**cell, "expires": "2999-12-31"}]}
    folder.mkdir()
    (folder / "policy.json").write_text(json.dumps(policy), encoding="utf-8")


def in_two(folder: Path, kind: Parallel) -> None:
    """Run both processes to their end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((os.environ.get("PYTHONPATH", ""), str(ROOT)))}
    command = [sys.executable, "-m", "tests.capture.stage", str(folder), str(kind)]
    ranks = [subprocess.Popen([*command, str(own), str(port)], env=environment) for own in range(2)]
    try:
        assert [process.wait(120) for process in ranks] == [0, 0]
    finally:
        for process in ranks:
            process.kill()


def in_one(folder: Path, kind: Parallel) -> list[list[int]]:
    """The whole model in this process, watched; what it says."""
    model = stage.model_of(kind)
    recorder = Recorder.start(
        folder / "spool", installation="gpu-1", key=stage.KEY, keys=KeyFolder(folder / "keys"),
        policy_file=folder / "policy.json", limits=Limits(keeper_s=3600.0),
    )  # fmt: skip
    with adapter.install(model, recorder, Context(tenant="acme", model_served="tiny"), fingerprint=False):
        said = stage.answers(model)
    recorder.close()
    return said


def taken(folder: Path) -> Lake:
    assert spool(["seal", str(folder / "spool")]) == 0
    lake = Lake.create(folder / "lake")
    ingest([folder / "spool"], lake, key=stage.KEY, day=datetime.now(tz=UTC).date())
    return lake


def emitted(events: list[StateEvent]) -> list[tuple[Any, ...]]:
    """What is of no layer: drafts, and what became of them."""
    return [(event.step, event.op, event.n_members) for event in events if event.axis is Axis.EMIT]


@pytest.mark.parametrize("kind", [Parallel.PIPELINE, Parallel.EXPERT])
def test_two_processes_are_one_attempt_and_one_trace(kind: Parallel, tmp_path: Path) -> None:
    needs_models()
    two, one = tmp_path / "two", tmp_path / "one"
    start(two)
    start(one)
    in_two(two, kind)
    said = in_one(one, kind)
    for rank in range(2):
        assert json.loads((two / f"said-{rank}.json").read_text(encoding="utf-8")) == said
    lake, whole = taken(two), taken(one)
    attempts, expected = (each.scan("attempt").collect().sort("input_computed").to_dicts() for each in (lake, whole))
    assert [row["source"] for row in attempts] == ["gpu-1"] * len(stage.PROMPTS), "each attempt counts once"
    assert [[row[name] for name in ALIKE] for row in attempts] == [[row[name] for name in ALIKE] for row in expected]
    assert all(row[name] is not None for row in expected for name in OF_CACHE)
    for row, of_one in zip(attempts, expected, strict=True):
        # A stage knows what its own layers keep, and nobody what all of them do.
        told = [None] * len(OF_CACHE) if kind is Parallel.PIPELINE else [of_one[name] for name in OF_CACHE]
        assert [row[name] for name in OF_CACHE] == told
    assert lake.scan("gap").collect().is_empty()
    rings = KeyFolder(two / "keys"), KeyFolder(one / "keys")
    first = Part(kind=kind, rank=0, world=2, group="start-1")
    alone_keys = [
        (row["attempt_hi"], row["attempt_lo"]) for row in sorted(expected, key=lambda r: -r["input_computed"])
    ]
    for call, key_of_one in enumerate(alone_keys):
        key = first.key(stage.KEY, call)
        traces = open_traces(lake, rings[0], key)
        assert len(traces) == 2, "each process told its own"
        layers = [{layer for layer, _ in fold(trace.events)} for trace in traces]
        half = stage.LAYERS // 2
        own = [set(range(half)), set(range(half, stage.LAYERS))] if kind is Parallel.PIPELINE else [set(range(4))] * 2
        assert sorted(layers, key=min) == own
        events = state_events(lake, rings[0], key)
        alone = state_events(whole, rings[1], type(key)(*key_of_one))
        assert fold(events) == fold(alone)
        assert {layer for layer, _ in fold(events)} == set(range(stage.LAYERS))
        state, state_alone = replay(events), replay(alone)
        assert (state.contradictions, state.entries) == (0, state_alone.entries)
        assert emitted(events) == emitted(alone)
        assert bool(emitted(events)) == bool(stage.ASKED[call])
