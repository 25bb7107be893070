"""Steps of a vLLM engine, JSON Lines: one `record()` of a stat logger a line, added up to counters.

    {"step": 4, "scheduler": {...}, "iteration": {"iteration_timestamp": 1795970131.299632, "num_generation_tokens": 1, ...}}

Every line counts; what they come to is told where a stretch of work begins and ends, so lines are many and rows are few.
"""  # noqa: E501 - a record as it stands

from __future__ import annotations

from pathlib import Path

import polars as pl

from weighbridge.pipeline.ingest.importer import Heading, Importer, Source, Staged
from weighbridge.pipeline.ingest.json_lines import read_lines
from weighbridge.pipeline.ingest.log_heads import heading, recognised
from weighbridge.pipeline.ingest.step_counters import ENGINE, SOURCE, StepCounters
from weighbridge.pipeline.ingest.vllm_steps import is_step, step_of
from weighbridge.pipeline.lake import polars_schema
from weighbridge.schemas.engine_steps import Steps, Told
from weighbridge.schemas.enumerations import QuarantineReason
from weighbridge.schemas.leaves import Refusal


def _recognises(path: Path) -> bool:
    return recognised(path, read_lines, is_step)


def _check(source: Source) -> Heading:
    return heading(source.path, read_lines, "list of engine steps", "Write it again, one step a line")


def _read(source: Source, heading: Heading) -> Staged:  # noqa: ARG001 - one signature for all importers
    steps, counters = Steps(), StepCounters(source)
    quarantine: list[dict[str, object]] = []
    told: list[Told] = []
    records = refused = 0
    for line in read_lines(source.path):
        record = line.value
        if record is not None and "withheld_steps" in record:
            continue  # a mark of the recording: the numbers of the steps tell that some are missing
        records += 1
        if record is None or not is_step(record):
            reason = QuarantineReason.MISSING_FIELD if record else line.reason or QuarantineReason.NOT_JSON
            read = [Refusal("step" if record else "", reason)]
        else:
            step = step_of(line.number, record)
            if not isinstance(step, list):
                told += steps.add(step)
                continue
            read = step
        refused += 1
        place = {"line": line.number, "day": source.day, "source": SOURCE, "provider": ENGINE, "api": "steps"}
        quarantine += [{**place, "reason": str(reason), "path": path} for path, reason in dict.fromkeys(read)]
    told += steps.end()
    for each in told:
        counters.add(each)
    rows = counters.rows()
    stored = 0 if rows is None else rows["segment_row"].n_unique()
    return Staged(
        records=records,
        tables={} if rows is None else {"engine_counter": rows},
        by_line=True,
        refused=_refused(quarantine) if quarantine else None,
        refused_records=refused,
        repeated=records - refused - stored,  # a step is in what the next time told
    )


def _refused(rows: list[dict[str, object]]) -> pl.DataFrame:
    types = polars_schema("quarantine")
    return pl.DataFrame(rows, schema={name: types[name] for name in rows[0]})


IMPORTER = Importer(
    name="vllm_steps",
    doc="Steps of a vLLM engine as a stat logger writes them, added up to counters, stretch of work by stretch.",
    recognises=_recognises,
    check=_check,
    read=_read,
)
