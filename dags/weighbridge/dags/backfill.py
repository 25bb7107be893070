"""The flow of a backfill."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from prefect import flow

from weighbridge.dags.run import Told, run_of
from weighbridge.pipeline.run.backfill import span_of, steps_of


@flow(name="backfill", persist_result=False, result_serializer="json")
def backfill(first: date, last: date, config: Path | None = None, release_again: bool = False) -> Told:
    """Read, price, reconcile and report these days anew, with the dialects and prices of now.

    Args:
        first, last: UTC days, both inclusive.
        config: settings file of the installation, or its folder.
        release_again: also the histograms for everybody that were released before.
    """
    with run_of("backfill", config) as run:
        run.go(steps_of(release_again=release_again), span_of(first, last, run.today))
        return run.told()
