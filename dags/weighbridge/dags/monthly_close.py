"""The flow of the end of a month."""

from __future__ import annotations

from pathlib import Path

from prefect import flow

from weighbridge.dags.run import Told, run_of


@flow(name="monthly-close", persist_result=False, result_serializer="json")
def monthly_close(config: Path | None = None, month: str | None = None, by: str = "schedule") -> Told:
    """Do months once more with the dialects and prices of now, and close them.

    Args:
        config: settings file of the installation, or its folder.
        month: the UTC month, YYYY-MM; where left out, every month that is over and not closed (`months_due`).
        by: who closes, a name without blanks.
    """
    with run_of("monthly-close", config) as run:
        run.month(month, by)
        return run.told()
