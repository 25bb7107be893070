"""Answers and traces of a run of a comparison, opened in memory: ids for measures, positions for what was evicted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from weighbridge.pipeline.compare.answer import Answer, Side
from weighbridge.pipeline.compare.blind import Shown
from weighbridge.pipeline.compare.eviction import Visible
from weighbridge.pipeline.compare.pairwise import common_prefix
from weighbridge.pipeline.compare.run_folder import RunFolder, cost_of
from weighbridge.pipeline.content.blocks import Reader, Ring, open_day
from weighbridge.schemas.block import BlockError
from weighbridge.schemas.comparison_run import ENGINE, MEANINGS, SPOOL, TOKENIZER, TRACER
from weighbridge.schemas.enumerations import Axis, FinishReason, Operation, RunStream
from weighbridge.schemas.errors import ConfigError, ContractError
from weighbridge.schemas.keys import KeyUnavailableError
from weighbridge.schemas.segment import SUFFIX, read_table, verify_segment
from weighbridge.schemas.state_event import StateEvent, rows
from weighbridge.schemas.trace import fold, positions_of
from weighbridge.schemas.trace_block import open_events

_Key = tuple[int, int]
_TOLD = (Axis.INPUT, Axis.STORE)  # events of these axes say what is left of a prompt


@dataclass(frozen=True, slots=True)
class OpenedRun:
    """A run, opened.

    Attributes:
        sides: the baseline first.
        prompts: pair -> ids of its prompt as the baseline got it.
        visible: strategy -> what is left of each prompt, for strategies whose traces say so.
        shut: traces that do not open, so that what they told is missing from `visible`.
    """

    sides: list[Side]
    prompts: dict[str, list[int]]
    visible: dict[str, list[Visible]]
    shut: int = 0


def open_run(run: RunFolder, keys: Reader) -> OpenedRun:
    """Open the ids and traces of a run.

    Args:
        run: its numbers.
        keys: who gives the keys.

    Raises:
        ContractError: ids are missing, their key is gone, or a segment was changed.
        CipherMissingError: the package that decrypts is not installed.
    """
    ids = _ids(run.path / SPOOL, keys)
    events, shut = _events(run.path / SPOOL, keys)
    held = run.rows.to_dicts()
    answers: dict[tuple[str, int], dict[str, Answer]] = {}
    for row in held:
        found = ids.get((row["attempt_hi"], row["attempt_lo"], str(RunStream.OUTPUT)), [])
        if len(found) != row["output"]:
            raise ContractError(
                f"{run.path}: {len(found)} of {row['output']} ids of an answer of {row['strategy']} open; their key "
                "was destroyed, or the run lost them. Name its keys (--content-keys), or run it again."
            )
        answers.setdefault((row["strategy"], row["run"]), {})[row["pair"]] = Answer(
            pair=row["pair"], ids=found, stop=FinishReason(row["stop"]), cluster=row["cluster"], score=row["score"],
            cost=cost_of(row), alike={name: row[name] for name in MEANINGS if row[name] is not None},
        )  # fmt: skip
    about = run.about
    sides = [
        Side(
            name=each["name"], answers=answers.get((each["name"], 0), {}), again=answers.get((each["name"], 1), {}),
            parameters=each["parameters"], implementation=each["implementation"], strategy_id=each["strategy_id"],
            model=about["model"], tokenizer=about["tokenizer"], cap=about["max_new_tokens"],
            identity=about.get("model_revision"),
        )
        for each in about["strategies"]
    ]  # fmt: skip
    base = sides[0].answers
    prompts = {
        row["pair"]: ids.get((row["attempt_hi"], row["attempt_lo"], str(RunStream.PROMPT)), [])
        for row in held
        if row["strategy"] == sides[0].name and row["run"] == 0
    }
    visible: dict[str, list[Visible]] = {}
    for row in held:
        trace = events.get((row["attempt_hi"], row["attempt_lo"]), [])
        if row["run"] == 0 and any(event.axis in _TOLD for event in trace):
            answer = answers[row["strategy"], 0][row["pair"]]
            visible.setdefault(row["strategy"], []).append(_visible(row, trace, answer, base[row["pair"]]))
    return OpenedRun(sides, prompts, visible, shut)


def _segments(spool: Path) -> Iterator[Path]:
    for segment in sorted(spool.glob(f"*{SUFFIX}")):
        verify_segment(segment)
        yield segment


def _ids(spool: Path, keys: Reader) -> dict[tuple[int, int, str], list[int]]:
    """(attempt, stream) -> ids the adapter saw."""
    out: dict[tuple[int, int, str], list[tuple[int, list[int]]]] = {}
    for segment in _segments(spool):
        if not (segment / "token_run.parquet").exists():
            continue
        frame: Any = pl.from_arrow(read_table(segment, "token_run"))
        for block in open_day(frame.filter(pl.col("source") == ENGINE), keys):
            if block.shut is not None:
                continue
            about = block.rows.select("attempt_hi", "attempt_lo", "stream", "start", "length", "block_offset")
            for hi, lo, stream, start, length, offset in about.iter_rows():
                out.setdefault((hi, lo, stream), []).append((start, block.ids[offset : offset + length].tolist()))
    return {key: [each for _, part in sorted(parts) for each in part] for key, parts in out.items()}


def _events(spool: Path, keys: Reader) -> tuple[dict[_Key, list[StateEvent]], int]:
    """Attempt -> the state events the runner told; and how many traces do not open."""
    out: dict[_Key, list[StateEvent]] = {}
    shut = 0
    ring = Ring(keys)
    for segment in _segments(spool):
        if not (segment / "state_event.parquet").exists():
            continue
        frame: Any = pl.from_arrow(read_table(segment, "state_event"))
        told = frame.filter(pl.col("payload").is_not_null(), pl.col("source") == TRACER)
        for hi, lo, payload, key_id in told.select("attempt_hi", "attempt_lo", "payload", "key_id").iter_rows():
            try:
                out[hi, lo] = open_events(key_id, ring.get(key_id), payload)
            except (KeyUnavailableError, BlockError, ContractError, ValueError):
                shut += 1
    return out, shut


def _visible(row: dict[str, Any], trace: list[StateEvent], answer: Answer, base: Answer) -> Visible:
    """Per position of the prompt the share of (layer, KV head) that still holds it."""
    length = int(row["prompt_tokens"])
    dropped: set[int] = set()
    for event in trace:
        if (event.axis, event.op) == (Axis.INPUT, Operation.DROP):
            found = rows(event, {each.seq: each for each in trace}) or {}
            dropped.update(position for mask in found.values() for position in positions_of(mask))
    places = [at for at in range(length) if at not in dropped]
    live = fold(trace)
    kept = [0.0] * length
    sets = [frozenset(held) for held in live.values()]
    for at, place in enumerate(places):
        kept[place] = sum(at in held for held in sets) / len(sets) if sets else 1.0
    same = common_prefix(base.ids, answer.ids)
    return Visible(
        pair=row["pair"],
        kept=kept,
        origins=[(part["origin"], part["start"], part["length"]) for part in row["origins"]],
        divergence=None if list(base.ids) == list(answer.ids) else same,
        cluster=row["cluster"],
    )


def texts(run: RunFolder, opened: OpenedRun, strategy: str) -> list[Shown]:
    """Prompts and answers of a strategy and its baseline as text, for people to judge.

    Raises:
        ConfigError: the run has no tokenizer to turn ids into text, or no such strategy.
    """
    side = next((each for each in opened.sides[1:] if each.name == strategy), None)
    if side is None:
        named = ", ".join(each.name for each in opened.sides[1:])
        raise ConfigError(f"{run.path} has no strategy {strategy!r}; it has {named}")
    path = run.path / TOKENIZER
    if not path.is_file():
        raise ConfigError(f"{run.path} has no {TOKENIZER}: its prompts were ids, and cannot be shown as text")
    from tokenizers import Tokenizer  # noqa: PLC0415 - only who asks for text needs it

    tokenizer = Tokenizer.from_file(str(path))
    off = opened.sides[0].answers
    return [
        Shown(
            pair,
            *(tokenizer.decode(list(ids), skip_special_tokens=True) for ids in (
                opened.prompts.get(pair, []), off[pair].ids, answer.ids,
            )),
        )
        for pair, answer in sorted(side.answers.items())
        if pair in off
    ]  # fmt: skip
