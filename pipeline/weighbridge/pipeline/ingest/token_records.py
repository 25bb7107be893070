"""One record of a home-made token log: counts of the engine's side, ids as bytes, and nothing of what was said.

    {"prompt": "...", "prompt_tokens": 3, "prompt_token_ids": [5, 6, 7], "output_token_ids": [9, 2]}
    ->  input_computed 3, output_computed 2

Where a field of counts holds a list of token strings, its length is the count and the strings are dropped. A count that
is not there is the number of ids. Where both are there they are kept apart: the attempt has the count that was stated,
its child the number of ids. A list of lists, and a list of objects, are the ids of several choices, each a child:

    {"prompt_token_ids": [5, 6], "output_token_ids": [[9, 2], [9, 8, 2]]}      ->  output_computed 5, children 2 and 3
    {"prompt_token_ids": [5, 6], "outputs": [{"token_ids": [9, 2], "finish_reason": "stop"}, {...}]}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import numpy as np

from weighbridge.pipeline.ingest.finish import finish_reason
from weighbridge.pipeline.ingest.parameters import parameters
from weighbridge.pipeline.ingest.record_fields import epoch_time, id_of, iso_time, name_of
from weighbridge.pipeline.ingest.staging import Call
from weighbridge.pipeline.ingest.token_fields import COUNTS, Names, field, objects_of
from weighbridge.schemas.enumerations import AttemptStatus, FinishReason, ForeignIdKind, QuarantineReason
from weighbridge.schemas.leaves import Refusal

STRINGS_DROPPED = "strings_dropped"
_LIMIT = 2**63
_LARGEST_ID = 2**32
_MILLI = 10**11  # seconds since 1970 stay below it for two thousand years


class Choice(NamedTuple):
    """One choice: its ids as those of the prompt, and why it ended."""

    ids: bytes | None
    finish: FinishReason | None


def counted(ids: bytes | None) -> int | None:
    """How many ids these are."""
    return None if ids is None else len(ids) // 4


@dataclass(frozen=True, slots=True)
class Told:
    """What a record tells.

    Attributes:
        call: the call, without any text.
        prompt: its ids, little-endian unsigned 32-bit; null where the record has none.
        choices: what was generated, one choice as a rule.
    """

    call: Call
    prompt: bytes | None
    choices: tuple[Choice, ...]

    @property
    def held(self) -> int:
        """How many ids the record has."""
        return sum(counted(ids) or 0 for ids in (self.prompt, *(choice.ids for choice in self.choices)))


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
    prompt = _ids(field(record, names["prompt_ids"]), "prompt_ids", refusals)
    choices = _choices(record, names, refusals)
    counts = {what: _count(field(record, names[what]), what, refusals) for what in COUNTS}
    known = (prompt, *(choice.ids for choice in choices), *counts.values())
    if not refusals and all(held is None for held in known):
        refusals.append(Refusal("", QuarantineReason.MISSING_FIELD))
    if refusals:
        return refusals
    notes: list[str] = []
    made = [counted(choice.ids) for choice in choices]
    generated = None if None in made else sum(count or 0 for count in made)
    lengths = {"prompt_ids": counted(prompt), "output_ids": generated}
    named = name_of(field(record, names["model"]), notes) or model
    identifier = id_of(field(record, names["id"]), notes)
    finish = _finish(record, names)
    if finish is None and len({choice.finish for choice in choices}) == 1:
        finish = choices[0].finish
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
    if len(choices) > 1 and attempt.get("n") is None:
        attempt["n"] = len(choices)
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
    return Told(call, prompt, choices)


def _choices(record: Mapping[str, object], names: Names, refusals: list[Refusal]) -> tuple[Choice, ...]:
    """The choices of a record: objects of their own, lists of ids side by side, or the one list."""
    what = "output_ids"
    value = field(record, names[what])
    if value is None and (objects := objects_of(record, names)):
        ids = [_ids(field(one, names[what]), what, refusals) for one in objects]
        return tuple(Choice(held, _finish(one, names)) for held, one in zip(ids, objects, strict=True))
    if isinstance(value, list) and value and all(isinstance(each, list) for each in value):
        reasons = field(record, names["finish"])
        told = reasons if isinstance(reasons, list) and len(reasons) == len(value) else [reasons] * len(value)
        return tuple(
            Choice(_ids(each, what, refusals), finish_reason([{"finish_reason": reason}]))
            for each, reason in zip(value, told, strict=True)
        )
    return (Choice(_ids(value, what, refusals), _finish(record, names)),)


def _finish(record: Mapping[str, object], names: Names) -> FinishReason | None:
    return finish_reason([{"finish_reason": field(record, names["finish"])}])


def _ids(value: object, what: str, refusals: list[Refusal]) -> bytes | None:
    """A list of ids as bytes."""
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
    if isinstance(value, list) and what == "output_count":  # a count for each choice
        each = [_count(one, what, refusals) for one in value]
        return None if None in each else _count(sum(one or 0 for one in each), what, refusals)
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
