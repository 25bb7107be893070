"""The flow of retention."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from prefect import flow

from weighbridge.dags.run import Told, run_of


@flow(name="retention", persist_result=False, result_serializer="json")
def retention(
    config: Path | None = None, today: date | None = None, by: str = "schedule", accept_clock: bool = False
) -> Told:
    """Delete what is past its time from every place it has, with receipts.

    Args:
        config: settings file of the installation, or its folder.
        today: the UTC day it is taken to be; today where left out.
        by: who asked, for receipts, a name without blanks.
        accept_clock: the clock, and the day named, are right, though far ahead of everything known here.
    """
    with run_of("retention", config) as run:
        run.delete(today, by, accept_clock=accept_clock)
        return run.told()
