"""Home-made token logs: JSON Lines in which a team wrote down what its engine did, call by call, with token ids.

    {"request_id": "r-1", "model": "m", "prompt": "...", "prompt_tokens": 3, "prompt_token_ids": [5, 6, 7],
     "output": "...", "output_tokens": 2, "output_token_ids": [9, 2], "finish_reason": "stop"}

Texts are dropped at the door, ids are encrypted at once under the keys of the installation; what is kept in clear are
counts. They are what the engine computed, and no usage report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from weighbridge.pipeline.ingest.frameworks import framework_of
from weighbridge.pipeline.ingest.importer import Heading, Importer, Source, Staged
from weighbridge.pipeline.ingest.json_records import read_records
from weighbridge.pipeline.ingest.log_heads import heading, recognised
from weighbridge.pipeline.ingest.pseudonyms import tenant
from weighbridge.pipeline.ingest.staging import Stage
from weighbridge.pipeline.ingest.token_blocks import BUCKET, TokenBlocks
from weighbridge.pipeline.ingest.token_fields import is_token_record, names_of
from weighbridge.pipeline.ingest.token_records import Told, counted, told
from weighbridge.pipeline.lake import polars_schema
from weighbridge.schemas.enumerations import ChildKind, QuarantineReason
from weighbridge.schemas.leaves import Refusal

SOURCE = "token-logs"
_KEY = ("segment_row", "attempt_hi", "attempt_lo")


def _recognises(path: Path) -> bool:
    return recognised(path, read_records, is_token_record)


def _check(source: Source) -> Heading:
    names_of(source.mapping)
    return heading(source.path, read_records, "token log", "Write it again")


def _read(source: Source, heading: Heading) -> Staged:  # noqa: ARG001 - one signature for all importers
    names = names_of(source.mapping)
    stage, blocks = Stage(source, SOURCE), TokenBlocks(source.keys)
    children: list[dict[str, object]] = []
    records = 0
    for line in read_records(source.path):
        records += 1
        if line.value is None:
            stage.refuse(line.number, [Refusal("", line.reason or QuarantineReason.NOT_JSON)])
            continue
        found = told(line.value, names, model=source.model, framework=framework_of(source.provider))
        if not isinstance(found, Told):
            stage.refuse(line.number, found)
            continue
        found.call.attempt.update(_about_ids(found, source))
        stage.add(line.number, [found.call], line.value)
        day = found.call.created.date() if found.call.created else source.day
        place = {"day": day, "source": SOURCE, "segment_row": line.number}
        if source.ids_of is None or line.number in source.ids_of:
            blocks.add(place, tenant(source.key, source.tenant or found.call.tenant), found)
        children += _children(found, place)
    blocks.close()
    staged = stage.staged(records)
    named = staged.tables.get("attempt", _frame("attempt", [])).select(_KEY)
    more = {"child": children, "token_run": blocks.runs, "gap": blocks.gaps}
    return Staged(
        records=staged.records,
        tables=staged.tables
        | {
            # One call a record, so its place says which attempt it became.
            name: _frame(name, rows).join(named, on="segment_row", how="left", maintain_order="left")
            for name, rows in more.items()
            if rows
        },
        by_line=True,
        refused=staged.refused,
        refused_records=staged.refused_records,
        derived=staged.derived,
    )


def _about_ids(found: Told, source: Source) -> dict[str, object]:
    """Columns of an attempt that speak of its ids; none are announced where there is no key to keep them under."""
    kept = source.keys is not None and found.held > 0
    return {"level": 2 if kept else 1, "ids_expected": found.held if kept else None, "subject_bucket": BUCKET}


def _children(found: Told, place: Mapping[str, object]) -> list[dict[str, object]]:
    """What the ids of each choice come to, beside the counts that were stated; the prompt is one for all of them."""
    rows = []
    for child, choice in enumerate(found.choices, 1):
        counts = {"input_computed": counted(found.prompt), "output_computed": counted(choice.ids)}
        if any(count is not None for count in counts.values()):
            about = {"child": child, "kind": str(ChildKind.CHOICE), "parent_child": None, "model": found.call.model}
            rows.append({**place, **about, "finish_reason": choice.finish, **counts})
    return rows


def _frame(table: str, rows: Sequence[Mapping[str, object]]) -> pl.DataFrame:
    types = {**polars_schema(table), "segment_row": pl.Int64()}
    names = list(dict.fromkeys(name for row in rows for name in row)) if rows else list(_KEY)
    return pl.DataFrame(rows, schema={name: types[name] for name in names})


IMPORTER = Importer(
    name="token_logs",
    doc="Home-made token logs with token ids: counts are kept, ids encrypted at once, texts dropped.",
    recognises=_recognises,
    check=_check,
    read=_read,
)
