"""Answers recorded elsewhere: JSON lines with the ids of an answer, for runs this product did not make.

One line is one answer: `pair` (the prompt, by any name), `output_ids`, and, where they are known, `strategy`,
`tokenizer`, `model`, `cluster`, `stop`, `max_new_tokens`, `score` and what it took (the names of `Cost`, or those of
`NAMES`). A line may have further keys; no text is read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

from weighbridge.pipeline.compare.answer import Answer, Cost, Side
from weighbridge.schemas.enumerations import FinishReason
from weighbridge.schemas.errors import ContractError
from weighbridge.schemas.identity import framed

UNNAMED: Final = "answers"
BASELINES: Final = ("dense", "baseline", "off")
# How recordings name what an answer took.
NAMES: Final[Mapping[str, str]] = {
    "input_ids_length": "prompt_tokens",
    "kv_entries_written": "kv_written",
    "kv_entries_in_cache_at_end": "kv_kept",
    "kv_entries_masked": "kv_masked",
}
_COSTS: Final = {item.name: item.type for item in fields(Cost)}
_MOST: Final = 1 << 32
_MOST_COST: Final = 1 << 53  # what is exact as a number of any kind; sums over answers stay within Int64 counts


def read_recording(path: Path) -> list[Side]:
    """The strategies of a file, in the order they first occur.

    Raises:
        ContractError: a line that is none of an answer, named by its number; or no line at all.
    """
    held: dict[str, dict[str, Answer]] = {}
    again: dict[str, dict[str, Answer]] = {}
    unlike: dict[str, set[str]] = {}
    about: dict[str, dict[str, Any]] = {}
    for number, line in _lines(path):
        where = f"{path}, line {number}"
        name = _name(line.get("strategy", UNNAMED), "strategy", where)
        answer = _answer(line, where)
        if answer.pair in held.setdefault(name, {}):
            raise ContractError(f"{where}: {name} answers this pair twice; give each prompt a name of its own")
        held[name][answer.pair] = answer
        if line.get("baseline_rerun_identical") is True:
            again.setdefault(name, {})[answer.pair] = answer
        elif line.get("baseline_rerun_identical") is False:
            unlike.setdefault(name, set()).add(answer.pair)
        about.setdefault(name, {}).update(_about(line, where, about.get(name, {})))
    if not held:
        raise ContractError(f"{path} has no answers; one JSON object with `pair` and `output_ids` a line is expected")
    return [
        Side(
            name=name,
            answers=answers,
            again=again.get(name, {}),
            unlike=frozenset(unlike.get(name, ())),
            identity=identity_of(path, about[name].get("model")),
            **about[name],
        )
        for name, answers in held.items()
    ]


def identity_of(path: Path, model: str | None) -> str:
    """What tells the model of a file from others: what the file calls it, or where the file lies if it does not."""
    parts = ("model", model) if model else ("file", str(path.absolute()))
    return hashlib.sha256(framed("weighbridge model", *parts)).hexdigest()


def _lines(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            if not raw.strip():
                continue
            try:
                line = json.loads(raw)
            except (ValueError, RecursionError):
                raise ContractError(f"{path}, line {number} is not JSON; write one answer a line") from None
            if not isinstance(line, dict):
                raise ContractError(f"{path}, line {number} is no object; write one answer a line")
            yield number, line


def _answer(line: Mapping[str, Any], where: str) -> Answer:
    ids = line.get("output_ids")
    if not isinstance(ids, list) or not all(type(each) is int and 0 <= each < _MOST for each in ids):
        raise ContractError(f"{where}: output_ids must be a list of token ids, whole numbers from 0")
    stop = line.get("stop", line.get("finish_reason"))
    if stop is not None and stop not in list(FinishReason):
        raise ContractError(f"{where}: stop is none of {', '.join(FinishReason)}; leave it out where it is not known")
    cluster = line.get("cluster")
    return Answer(
        pair=_name(line.get("pair"), "pair", where),
        ids=ids,
        stop=None if stop is None else FinishReason(stop),
        cluster=None if cluster is None else _name(cluster, "cluster", where),
        score=_share(line.get("score"), where),
        cost=_cost(line, len(ids), where),
    )


def _cost(line: Mapping[str, Any], output: int, where: str) -> Cost:
    known: dict[str, Any] = {}
    for key, value in line.items():
        name = NAMES.get(key, key)
        if name not in _COSTS or value is None:
            continue
        real = "float" in str(_COSTS[name])
        sound = isinstance(value, (int, float) if real else int) and not isinstance(value, bool)
        if not sound or not _within(value) or (value < 0 and name not in {"nll", "kl"}):
            raise ContractError(
                f"{where}: {key} must be {'a number' if real else 'a whole number'} from 0 to {_MOST_COST}; "
                "leave it out where it is not known"
            )
        known[name] = value
    cost = replace(Cost(**known), **_of_layers(line, known.get("prompt_tokens"), output))
    wall = line.get("wall_ms")
    if cost.seconds is None and isinstance(wall, (int, float)) and not isinstance(wall, bool):
        if not _within(wall) or wall < 0:
            raise ContractError(f"{where}: wall_ms must be a number from 0; leave it out where it is not known")
        cost = replace(cost, seconds=wall / 1000)
    return cost


def _within(value: float) -> bool:
    """Whether it is a number that can be summed up; compared as it is, as the largest whole numbers are no float."""
    return -_MOST_COST <= value <= _MOST_COST


def _of_layers(line: Mapping[str, Any], prompt: int | None, output: int) -> dict[str, int]:
    """Entries per layer at the end, and those that a cache that drops nothing would have: prompt + output - 1."""
    held, heads = line.get("kv_entries_at_end"), line.get("kv_heads")
    if not isinstance(held, list) or not isinstance(heads, int) or not all(type(each) is int for each in held):
        return {}
    kept = {"kv_kept": sum(held) * heads}
    return kept if prompt is None else kept | {"kv_written": (prompt + max(output - 1, 0)) * len(held) * heads}


def _share(value: object, where: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise ContractError(f"{where}: score must be a number from 0 to 1")
    return float(value)


def _about(line: Mapping[str, Any], where: str, known: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name in ("tokenizer", "model"):
        value = line.get(name)
        if isinstance(value, str):
            if known.get(name, value) != value:
                raise ContractError(f"{where}: answers of one strategy name two of {name}; give each a strategy")
            out[name] = value
    cap = line.get("max_new_tokens")
    return out | ({"cap": cap} if type(cap) is int else {})


def _name(value: object, what: str, where: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= 128 or not value.isprintable():
        raise ContractError(f"{where}: {what} must be a name of 1 to 128 printable characters")
    return value
