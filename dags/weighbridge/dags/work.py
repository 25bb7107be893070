"""The tasks: one call of `weighbridge.pipeline.run` each. They are given and return what may lie around in clear."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from weighbridge.dags.safety import guarded, may_help
from weighbridge.pipeline.run.changes import notice
from weighbridge.pipeline.run.failure import GateRefusedError, LeftBehindError
from weighbridge.pipeline.run.home import open_home
from weighbridge.pipeline.run.month import close_books
from weighbridge.pipeline.run.night import IngestResult, Intake, pack, take_in, what_came
from weighbridge.pipeline.run.retain import deleted
from weighbridge.pipeline.run.sources import fetch
from weighbridge.pipeline.run.steps import STEPS

Counts = dict[str, int]
# How often and how long after a task is tried again, where its error says that this may help.
DELAYS_S = [10.0, 60.0, 300.0]
# Whoever reads the lake may do so from another process, so nothing is kept here but that a task has run.
KEPT: dict[str, Any] = {"cache_policy": NO_CACHE, "persist_result": False, "result_serializer": "json"}
TRIED: dict[str, Any] = {"retries": len(DELAYS_S), "retry_delay_seconds": DELAYS_S, "retry_condition_fn": may_help}


@task(task_run_name="take-in", **TRIED, **KEPT)
@guarded
def take(config: Path, paths: list[Path], day: date, importer: str | None, mapping: Path | None) -> Counts:
    """Take in what waits at these paths; records without a time get this UTC day."""
    return _account(take_in(open_home(config), what_came(paths), Intake(day=day, importer=importer, mapping=mapping)))


@task(task_run_name="changes", **TRIED, **KEPT)
@guarded
def note_changes(config: Path) -> int:
    """Write down what is configured otherwise than it was; how many values."""
    return notice(open_home(config), datetime.now(UTC))


@task(task_run_name="fetch", **TRIED, **KEPT)
@guarded
def fetch_sources(config: Path) -> Counts:
    """Fetch from the sources that the settings name; what fails is a finding, and counted."""
    done = fetch(open_home(config))
    return _account(done.result) | {"failed": len(done.failed)}


def _account(done: IngestResult) -> Counts:
    fresh = [file for file in done.files if not file.skipped]
    return {
        "files": len(fresh),
        "rows": sum(file.rows_in for file in fresh),
        "stored": sum(file.rows_out for file in fresh),
        "quarantined": sum(file.rows_quarantined for file in fresh),
        "duplicates": sum(file.rows_duplicate for file in fresh),
        "days": len(done.days),
    }


@task(task_run_name="{step}-{units}", **TRIED, **KEPT)
@guarded
def work(config: Path, step: str, units: str, marks: dict[str, str], today: date) -> dict[str, Any]:
    """Do a day or month of one step as its rows were marked, or several in one piece.

    Args:
        config: the installation.
        step: its name.
        units: what the piece is called: a day or month, or the first and last of them.
        marks: day or month -> mark.
        today: the UTC day it is.

    Returns:
        counts: what was counted; files: the paths of what was made.
    """
    done = STEPS[step].run(open_home(config), marks, today)
    if done.refused:
        raise GateRefusedError(
            f"the gate of {step} refused {units}; nothing after it was done, and nothing is lost. "
            "Run `weighbridge findings ls` to see why."
        )
    return {"counts": dict(done.counts), "files": sorted(str(path) for path in done.files.values())}


@task(task_run_name="pack", **TRIED, **KEPT)
@guarded
def pack_up(config: Path, today: date) -> Counts:
    """Pack the token ids of days that have more blocks than their ids need."""
    done = pack(open_home(config), (), today)
    return {} if done is None else {"days": len(done.days), "ids": done.ids, "blocks": done.blocks_after}


@task(task_run_name="close-{month}", **TRIED, **KEPT)
@guarded
def close(config: Path, month: str, by: str) -> dict[str, Any]:
    """Close a month that was brought up to date.

    Returns:
        counts: rows closed, and whether this run did it; files: the pack.
    """
    done = close_books(open_home(config), month, by=by, now=datetime.now(UTC))
    if not done.closed:
        gates = "; ".join(f"{refusal.code}: {refusal.cure}" for refusal in done.refused)
        raise GateRefusedError(f"{month} was not closed: {gates}")
    return {
        "counts": {"rows": done.rows, "new": int(done.new)},
        "files": [] if done.pack is None else [str(done.pack)],
    }


@task(task_run_name="delete", **TRIED, **KEPT)
@guarded
def delete(config: Path, today: date, by: str, *, accept_clock: bool = False) -> Counts:
    """Delete what is past its time on this UTC day."""
    done = deleted(open_home(config), today=today, now=datetime.now(UTC), by=by, accept_clock=accept_clock)
    if done.applied.failed:
        raise LeftBehindError(
            f"{len(done.applied.failed)} deletions failed and are tried again by the next run; "
            "`weighbridge retention plan` names them"
        )
    return {
        "receipts": len(done.applied.receipts),
        "rows": sum(receipt.rows for receipt in done.applied.receipts),
        "resumed": done.applied.resumed,
        "repeated": len(done.applied.repeated),
        "finished": len(done.applied.finished),
        "furthered": len(done.applied.furthered),
    }
