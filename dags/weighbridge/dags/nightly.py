"""The flow of a night."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from prefect import flow

from weighbridge.dags.run import Told, run_of
from weighbridge.pipeline.run.steps import NIGHT


@flow(name="nightly", persist_result=False, result_serializer="json")
def nightly(
    config: Path | None = None,
    paths: list[Path] | None = None,
    day: date | None = None,
    importer: str | None = None,
    mapping: Path | None = None,
) -> Told:
    """Take in what came, then do whatever is due: safe to kill and to run again.

    Args:
        config: settings file of the installation, or its folder.
        paths: files, sealed segments, or folders of them; the spool where left out.
        day: the UTC day of records without a time; today where left out.
        importer: which importer reads them; recognised by content where left out.
        mapping: what the columns of a table mean (TOML).
    """
    with run_of("nightly", config) as run:
        run.take_in(paths, day, importer, mapping)
        run.go(NIGHT)
        run.pack()
        return run.told()
