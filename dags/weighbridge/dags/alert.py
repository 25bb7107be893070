"""The flow that tells of a run that failed."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from prefect import flow

from weighbridge.dags.safety import guarded
from weighbridge.pipeline.run.failed import run_failed
from weighbridge.pipeline.run.home import open_home
from weighbridge.pipeline.settings import find_config


@flow(name="alert", persist_result=False, result_serializer="json")
def alert(flow_name: str, run: str, event: str, config: Path | None = None) -> bool:
    """Tell those the settings name that a run failed; whether anybody was told.

    The automation that runs it looks at runs with the tag `weighbridge`, and this one has another: a failure of its
    own is told to nobody, or it would tell of itself for ever.

    Args:
        flow_name: the flow that failed.
        run: its run, as events name it: `prefect.flow-run.<id>`.
        event: what was seen, such as `prefect.flow-run.Failed`.
        config: settings file of the installation, or its folder.
    """
    home = guarded(open_home)(find_config(config, os.environ))
    told = guarded(run_failed)(
        home, flow=flow_name, run=run.rpartition(".")[2], state=event.rpartition(".")[2], now=datetime.now(UTC)
    )
    return bool(told.delivered)
