"""The fields of home-made token logs: what teams that write down what their engine did call the same few things.

The first name that a record has counts. A mapping file may name others, which then come first:

    [fields]
    output_ids = "gen.ids"        # a dot goes into an object
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from weighbridge.schemas.errors import ConfigError

# What is meant -> its names, in order. Texts (prompt, text, output, messages) are named nowhere: nothing reads them.
FIELDS: Mapping[str, tuple[str, ...]] = {
    "prompt_ids": ("prompt_token_ids", "prompt_ids", "input_token_ids", "input_ids"),
    "output_ids": ("output_token_ids", "completion_token_ids", "generated_token_ids", "output_ids", "token_ids"),
    "prompt_count": ("prompt_tokens", "num_prompt_tokens", "input_tokens", "prompt_len"),
    "output_count": ("output_tokens", "completion_tokens", "num_output_tokens", "generated_tokens",
                     "num_generated_tokens", "output_len"),
    "cached_count": ("num_cached_tokens", "cached_tokens"),
    "id": ("request_id", "id", "req_id"),
    "model": ("model", "model_name"),
    "framework": ("engine", "framework"),
    "framework_version": ("engine_version", "framework_version"),
    "time": ("timestamp", "arrival_time", "created", "created_at", "time", "ts"),
    "finish": ("finish_reason", "stop_reason"),
    "tenant": ("tenant",),
    "task": ("task", "task_type"),
    "choices": ("outputs", "choices"),
}  # fmt: skip
IDS = ("prompt_ids", "output_ids")
COUNTS = ("prompt_count", "output_count", "cached_count")
Names = Mapping[str, tuple[str, ...]]


def names_of(mapping: Path | None) -> Names:
    """The names of each field, those of a mapping file first.

    Raises:
        ConfigError: the file is no such mapping; names what is allowed.
    """
    if mapping is None:
        return FIELDS
    try:
        told = tomllib.loads(mapping.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{mapping} is no TOML file that can be read ({type(error).__name__})") from error
    own = told.get("fields")
    if set(told) != {"fields"} or not isinstance(own, dict) or not set(own) <= set(FIELDS):
        raise ConfigError(f"{mapping} needs one table [fields] with names out of {', '.join(FIELDS)}")
    if not all(isinstance(name, str) and name for name in own.values()):
        raise ConfigError(f"{mapping}: each value of [fields] is the name of a field, in quotes")
    return {what: ((own[what],) if what in own else ()) + names for what, names in FIELDS.items()}


def field(record: Mapping[str, object], names: tuple[str, ...]) -> object:
    """The first of these fields that a record has; null where it has none."""
    return next((value for name in names for value in _at(record, name) if value is not None), None)


def _at(record: object, name: str) -> Iterator[object]:
    if isinstance(record, Mapping):
        if name in record:
            yield record[name]
        elif "." in name:
            first, rest = name.split(".", 1)
            yield from _at(record.get(first), rest)


def is_token_record(record: Mapping[str, object], names: Names = FIELDS) -> bool:
    """Whether a record tells ids of a call; counts alone may be of any log."""
    told = [record, *objects_of(record, names)]
    return any(isinstance(field(one, names[what]), list) for one in told for what in IDS)


def objects_of(record: Mapping[str, object], names: Names) -> list[Mapping[str, object]]:
    """The choices of a record, where each is an object of its own; none where it has no such list."""
    listed = field(record, names["choices"])
    whole = isinstance(listed, list) and all(isinstance(each, Mapping) for each in listed)
    return list(listed) if whole and isinstance(listed, list) else []
