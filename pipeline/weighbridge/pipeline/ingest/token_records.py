"""One record of a home-made token log: counts of the engine's side, ids as bytes, and nothing of what was said.

    {"prompt": "...", "prompt_tokens": 3, "prompt_token_ids": [5, 6, 7], "output_token_ids": [9, 2]}
    ->  input_computed 3, output_computed 2

Where a field of counts holds a list of token strings, its length is the count and the strings are dropped. A count that
is not there is the number of ids. Where both are there they are kept apart: the attempt has the count that was stated,
its child the number of ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from weighbridge.pipeline.ingest.finish import finish_reason
from weighbridge.pipeline.ingest.parameters import parameters
from weighbridge.pipeline.ingest.record_fields import epoch_time, id_of, iso_time, name_of
from weighbridge.pipeline.ingest.staging import Call
from weighbridge.pipeline.ingest.token_fields import COUNTS, IDS, Names, field
from weighbridge.schemas.enumerations import AttemptStatus, ForeignIdKind, QuarantineReason
from weighbridge.schemas.leaves import Refusal

STRINGS_DROPPED = "strings_dropped"
_LIMIT = 2**63
_LARGEST_ID = 2**32
_MILLI = 10**11  # seconds since 1970 stay below it for two thousand years


@dataclass(frozen=True, slots=True)
class Told:
    """What a record tells.

    Attributes:
        call: the call, without any text.
        ids: per stream its ids, little-endian unsigned 32-bit; null where the record has none.
    """

    call: Call
    ids: dict[str, bytes | None]

    def counted(self, what: str) -> int | None:
        """How many ids a stream has."""
        held = self.ids[what]
        return None if held is None else len(held) // 4


def told(
    record: Mapping[str, object], names: Names, *, model: str | None, framework: str | None
) -> Told | list[Refusal]:
    """Read a record, or say why it cannot be.

    Args:
        record: the parsed object.
        names: what its fields are called.
        model, framework: stand in where it does not say.
    """
    refusals: list[Refusal] = []
    ids = {what: _ids(field(record, names[what]), what, refusals) for what in IDS}
    counts = {what: _count(field(record, names[what]), what, refusals) for what in COUNTS}
    if not refusals and all(held is None for held in (*ids.values(), *counts.values())):
        refusals.append(Refusal("", QuarantineReason.MISSING_FIELD))
    if refusals:
        return refusals
    notes: list[str] = []
    lengths = {what: None if held is None else len(held) // 4 for what, held in ids.items()}
    named = name_of(field(record, names["model"]), notes) or model
    identifier = id_of(field(record, names["id"]), notes)
    finish = finish_reason([{"finish_reason": field(record, names["finish"])}])
    attempt: dict[str, object] = {
        "framework": name_of(field(record, names["framework"]), notes) or framework,
        "framework_version": name_of(field(record, names["framework_version"]), notes),
        "model_served": named,
        "status": str(AttemptStatus.UNKNOWN if finish is None else AttemptStatus.SUCCEEDED),
        "finish_reason": finish,
        "input_computed": lengths["prompt_ids"] if counts["prompt_count"] is None else counts["prompt_count"],
        "output_computed": lengths["output_ids"] if counts["output_count"] is None else counts["output_count"],
        "cached_local": counts["cached_count"],
        **parameters(record),
    }
    call = Call(
        attempt,
        [],
        {} if identifier is None else {ForeignIdKind.RECORD_ID: identifier},
        tuple(notes),
        named,
        _time(field(record, names["time"])),
        tenant=_text(field(record, names["tenant"])),
        task=name_of(field(record, names["task"]), notes),
    )
    return Told(call, ids)


def _ids(value: object, what: str, refusals: list[Refusal]) -> bytes | None:
    """A list of ids as bytes. One of lists is of several choices, which this format does not know."""
    if value is None:
        return None
    if not isinstance(value, list) or any(isinstance(each, bool) or not isinstance(each, int) for each in value):
        refusals.append(Refusal(what, QuarantineReason.TYPE))
        return None
    if any(not 0 <= each < _LARGEST_ID for each in value):
        refusals.append(Refusal(what, QuarantineReason.RANGE))
        return None
    return np.array(value, dtype="<u4").tobytes()


def _count(value: object, what: str, refusals: list[Refusal]) -> int | None:
    if value is None:
        return None
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return len(value)
    if isinstance(value, bool) or not isinstance(value, int):
        refusals.append(Refusal(what, QuarantineReason.TYPE))
        return None
    if not 0 <= value < _LIMIT:
        refusals.append(Refusal(what, QuarantineReason.RANGE))
        return None
    return value


def _time(value: object) -> datetime | None:
    if isinstance(value, str):
        return iso_time(value)
    milli = isinstance(value, int) and value >= _MILLI
    return epoch_time(value, 1000 if milli else 1) if not isinstance(value, float) else epoch_time(int(value))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
