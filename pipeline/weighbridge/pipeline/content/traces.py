"""Opening traces: the state events of one attempt, in memory, for this room and the verb that shows them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from weighbridge.pipeline.content.blocks import Reader, Ring, Shut
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.block import BlockError
from weighbridge.schemas.errors import ContractError
from weighbridge.schemas.identity import AttemptKey
from weighbridge.schemas.keys import KeyUnavailableError
from weighbridge.schemas.parts import installation_of, united
from weighbridge.schemas.state_event import StateEvent
from weighbridge.schemas.strategy import Strategy
from weighbridge.schemas.trace_block import NAME_BYTES, TABLE, open_events

_TOLD = (
    "source", "child", "seq", "step", "phase", "axis", "op", "layer_lo", "layer_hi", "head_lo", "head_hi",
    "head_kind", "pos_space", "n_universe", "n_members", "enc", "fidelity", "strategy_id",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class OpenedTrace:
    """The trace of one child of an attempt, as one source told it.

    Attributes:
        source, child: whose.
        events: its events; empty where it does not open.
        shut: why it does not open.
        attempt: its attempt.
    """

    source: str
    child: int
    attempt: AttemptKey
    events: list[StateEvent] = field(default_factory=list)
    shut: Shut | None = None


def open_traces(lake: Lake, keys: Reader, attempt: AttemptKey) -> list[OpenedTrace]:
    """Open every trace of an attempt, in the order of source and child.

    Raises:
        CipherMissingError: the package that decrypts is not installed.
    """
    rows = _rows(lake, attempt).sort("source", "child", "seq")
    ring = Ring(keys)
    out = []
    for part in rows.partition_by("source", "child", maintain_order=True):
        first = part.row(0, named=True)
        held = part.filter(pl.col("payload").is_not_null()).select("payload", "key_id").rows()
        events, shut = _opened(held, ring)
        out.append(OpenedTrace(str(first["source"]), int(first["child"]), attempt, events, shut))
    return out


def _opened(held: list[tuple[Any, ...]], ring: Ring) -> tuple[list[StateEvent], Shut | None]:
    if not held:
        return [], Shut.NO_CIPHERTEXT
    payload, key_id = held[0]
    if key_id is None or len(payload) <= NAME_BYTES:
        return [], Shut.DAMAGED
    try:
        return open_events(key_id, ring.get(key_id), payload), None
    except KeyUnavailableError:
        return [], Shut.NO_KEY
    except (BlockError, ContractError, ValueError):
        return [], Shut.DAMAGED


def state_events(lake: Lake, keys: Reader, attempt: AttemptKey, *, child: int = 0) -> list[StateEvent]:
    """The state events of one child of an attempt; empty where there are none, or where they do not open.

    Where several sources told a trace it is that of the first one; `open_traces` has them all, and the reasons. The
    ranks of one installation are one source: what each did to its own heads or layers is put together.

    Raises:
        CipherMissingError: the package that decrypts is not installed.
    """
    shards: dict[str, list[list[StateEvent]]] = {}
    for trace in open_traces(lake, keys, attempt):
        if trace.child == child and trace.events:
            shards.setdefault(installation_of(trace.source), []).append(trace.events)
    first = next(iter(shards.values()), [])
    return united(first) if len(first) > 1 else [event for events in first for event in events]


def trace_counts(lake: Lake, attempt: AttemptKey) -> pl.DataFrame:
    """What is told of an attempt's traces in clear: counts per event, those of the axis `emit` summed up. No key."""
    return _rows(lake, attempt).select(_TOLD).sort("source", "child", "seq")


def strategies(lake: Lake) -> dict[str, Strategy]:
    """The strategies the lake knows, by id; rows of other writers that do not make their id are left out."""
    out = {}
    for row in lake.scan("strategy").collect().to_dicts():
        try:
            out[row["strategy_id"]] = Strategy.from_columns(row)
        except (ContractError, ValueError, TypeError):
            continue
    return out


def _rows(lake: Lake, attempt: AttemptKey) -> pl.DataFrame:
    of_it = (pl.col("attempt_lo") == attempt.lo) & (pl.col("attempt_hi") == attempt.hi)
    return lake.scan(TABLE).filter(of_it).collect()
