"""The flow of the end of a month."""

from __future__ import annotations

from pathlib import Path

from prefect import flow

from weighbridge.dags.run import Told, run_of


@flow(name="monthly-close", persist_result=False, result_serializer="json")
def monthly_close(config: Path | None = None, month: str | None = None, by: str = "schedule") -> Told:
    """Do a month once more with the dialects and prices of now, and close it.

    Args:
        config: settings file of the installation, or its folder.
        month: the UTC month, YYYY-MM; the last one that is over, its days of grace included, where left out.
        by: who closes, a name without blanks.
    """
    with run_of("monthly-close", config) as run:
        run.month(month, by)
        return run.told()
