"""The rows of a segment: what the agent wrote, and what the provider's usage log holds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from weighbridge.pipeline.simulate import faults, world
from weighbridge.pipeline.simulate.engine import attention_columns, engine_columns
from weighbridge.pipeline.simulate.lengths import FINISHES, Lengths
from weighbridge.pipeline.simulate.traffic import DAY_US, HOUR_US, HTTP, STATUSES, SUCCEEDED, Traffic
from weighbridge.pipeline.simulate.usage import Parts, figures, leaf_columns
from weighbridge.pipeline.simulate.world import Ints, Mask
from weighbridge.schemas.enumerations import Ended, GapReason
from weighbridge.schemas.identity import framed, key_id, pseudonym
from weighbridge.schemas.table import TIME
from weighbridge.schemas.tables import UNASSIGNED

AGENT = "sim-agent"
PROVIDER = "sim-provider"
_ENGINE = ("vllm", "0.33.0")
_CLIENT = ("openai-python", "2.8.0")


def dense_strategy() -> dict[str, object]:
    """The row of the strategy table our engine ran with: dense, which is a strategy of its own."""
    name, family, parameters = "dense", "dense", "{}"
    digest = hashlib.sha256(framed(name, family, parameters)).hexdigest()[:32]
    return {"strategy_id": digest, "name": name, "family": family, "token_events": False, "parameters": parameters}


def attempt_table(
    rng: np.random.Generator, traffic: Traffic, tokens: Lengths, fault: Ints, clock: dict[str, Ints], key: bytes
) -> pa.Table:
    """The attempt rows of the agent, without those it lost. `clock` is that of `engine.times`."""
    answered = traffic.status == SUCCEEDED
    recounted = answered & ~tokens.engine
    engine = engine_columns(rng, traffic, tokens)
    drafts = np.array([model.speculates for model in world.MODELS])[traffic.model]
    plain = tokens.engine & ~drafts & (engine["recomputed"] == 0)
    columns: dict[str, pa.Array] = {
        **_identity(traffic, key),
        **_parameters(traffic, tokens),
        **{name: _where(values, tokens.engine) for name, values in engine.items()},
        **{name: _where(values, plain) for name, values in attention_columns(traffic, tokens, engine).items()},
        **{name: _where(values, tokens.engine) for name, values in clock.items() if name in _ENGINE_TIMES},
        **{name: _where(values, answered) for name, values in clock.items() if name not in _ENGINE_TIMES},
        **_recount(tokens, fault, recounted),
        "strategy_id": _pick([str(dense_strategy()["strategy_id"])], np.where(tokens.engine, 0, -1)),
        "subject_bucket": pa.array(rng.integers(0, 256, traffic.rows), pa.int32()),
        "usage_expected": pa.array(answered),
    }
    return pa.table(columns).filter(pa.array(fault != faults.LOST))


_ENGINE_TIMES = ("queue_us", "prefill_us", "decode_us")


def _identity(traffic: Traffic, key: bytes) -> dict[str, pa.Array]:
    models, rows = world.MODELS, traffic.rows
    answered = traffic.status == SUCCEEDED
    tenants = [pseudonym(key, "tenant", name) for name, _ in world.TENANTS]
    return {
        "attempt_hi": pa.array(traffic.attempt_hi),
        "attempt_lo": pa.array(traffic.attempt_lo),
        "request_hi": pa.array(traffic.request_hi),
        "request_lo": pa.array(traffic.request_lo),
        "day": _days(traffic.day),
        "source": _constant(AGENT, rows),
        "attempt_number": pa.array(traffic.number, pa.int32()),
        "provider": _pick([m.provider for m in models], traffic.model),
        "api": _pick([m.api for m in models], traffic.model),
        "model_requested": _pick([m.name for m in models], traffic.model),
        "model_served": _pick([m.served for m in models], np.where(answered, traffic.model, -1)),
        "tokenizer": _pick([m.tokenizer for m in models], traffic.model),
        "template": _pick([m.template for m in models], traffic.model),
        "tenant": _pick([*tenants, UNASSIGNED], np.where(traffic.tenant < 0, len(tenants), traffic.tenant)),
        "tenant_key_id": _pick([key_id(key)], np.minimum(traffic.tenant, 0)),
        "task": _pick([task.name for task in world.TASKS], traffic.task),
        "route": _pick([*world.ROUTES, UNASSIGNED], np.where(traffic.route < 0, len(world.ROUTES), traffic.route)),
        "environment": _pick([name for name, _ in world.ENVIRONMENTS], traffic.environment),
        "status": _pick([str(status) for status in STATUSES], traffic.status),
        "http_status": pa.array(np.array(HTTP)[traffic.status], pa.int32()),
        "arrived_at": pa.array(traffic.at, pa.timestamp("us", "UTC"), mask=traffic.undated),
        "undated": pa.array(traffic.undated),
        "revision": pa.array(np.zeros(rows, np.int32)),
    }


def _parameters(traffic: Traffic, tokens: Lengths) -> dict[str, pa.Array]:
    answered = traffic.status == SUCCEEDED
    engine = tokens.engine
    revisions = [m.revision for m in world.MODELS]
    return {
        "framework": _pick([_ENGINE[0], _CLIENT[0]], np.where(engine, 0, 1)),
        "framework_version": _pick([_ENGINE[1], _CLIENT[1]], np.where(engine, 0, 1)),
        "model_revision": _pick(revisions, np.where(engine, traffic.model, -1)),
        "stream": pa.array(tokens.stream),
        "finish_reason": _pick([str(finish) for finish in FINISHES], np.where(answered, tokens.finish, -1)),
        "max_tokens": pa.array(tokens.limit, pa.int32()),
        "temperature": pa.array(np.array([task.temperature for task in world.TASKS])[traffic.task]),
        "top_p": pa.array(np.array([task.top_p for task in world.TASKS])[traffic.task]),
        "n": pa.array(np.ones(traffic.rows, np.int32)),
        "stop_strings": pa.array(tokens.stop_strings, pa.int32()),
        "messages": pa.array(tokens.messages, pa.int32()),
        "tools": pa.array(np.array([task.tools for task in world.TASKS])[traffic.task], pa.int32()),
        "level": pa.array(np.ones(traffic.rows, np.int32)),
    }


def _recount(tokens: Lengths, fault: Ints, recounted: Mask) -> dict[str, pa.Array]:
    """The client's own count of the text, where no engine of ours served the attempt."""
    bare, plain = fault == faults.TEMPLATE, fault == faults.SPECIAL
    prompt = tokens.prompt - np.where(bare, tokens.template, 0) - np.where(plain, tokens.special, 0)
    return {
        "input_recounted": _where(prompt, recounted),
        "recount_template": _where(tokens.template, recounted),
        "recount_special": _where(tokens.special, recounted),
        "recount_has_template": pa.array(~bare, mask=~recounted),
        "recount_has_special": pa.array(~plain, mask=~recounted),
        "output_recounted": _where(tokens.seen, recounted),
    }


def report_table(traffic: Traffic, tokens: Lengths, fault: Ints, found: Parts, booked_at: Ints) -> pa.Table:
    """The usage-report rows of the provider's log.

    Args:
        booked_at: when the log booked the report of each attempt, microseconds since 1970.
    """
    models, at, rows = world.MODELS, found.attempt, len(found.attempt)
    when = booked_at[at]
    return pa.table(
        {
            "attempt_hi": pa.array(traffic.attempt_hi[at]),
            "attempt_lo": pa.array(traffic.attempt_lo[at]),
            "day": _days(when // DAY_US),
            "source": _constant(PROVIDER, rows),
            "child": pa.array(np.zeros(rows, np.int32)),
            "report": pa.array(found.report, pa.int32()),
            "part": pa.array(found.part, pa.int32()),
            "provider": _pick([m.provider for m in models], traffic.model[at]),
            "api": _pick([m.api for m in models], traffic.model[at]),
            "model": _pick([m.served for m in models], traffic.model[at]),
            "reported_at": pa.array(when, TIME),
            "ended": _constant(str(Ended.COMPLETE), rows),
            "revision": pa.array(np.zeros(rows, np.int32)),
            **leaf_columns(found, figures(traffic, tokens, fault)),
        }
    )


def gap_table(traffic: Traffic, fault: Ints, began: Ints) -> pa.Table:
    """One gap record per outage: how many attempts the agent lost in that hour. It knows no more about them."""
    lost = traffic.at[fault == faults.LOST]
    index = faults.outage_of(lost, began)
    which = np.unique(index)
    return pa.table(
        {
            "day": _days(began[which] // DAY_US),
            "source": _constant(AGENT, len(which)),
            "reason": _constant(str(GapReason.BUFFER_FULL), len(which)),
            "attempts": pa.array(np.bincount(index, minlength=len(began))[which].astype(np.int64)),
            "began_at": pa.array(began[which], TIME),
            "ended_at": pa.array(began[which] + HOUR_US, TIME),
        }
    )


def _pick(words: Iterable[str | None], index: Ints) -> pa.Array:
    """The word at each index; null where the index is -1."""
    return pa.array(list(words), pa.string()).take(pa.array(index, mask=index < 0))


def _constant(word: str, rows: int) -> pa.Array:
    return _pick([word], np.zeros(rows, np.int64))


def _where(values: Ints, known: Mask) -> pa.Array:
    """The values where they are known, null elsewhere."""
    return pa.array(values, mask=~known)


def _days(values: Ints) -> pa.Array:
    return pa.array(values.astype(np.int32), pa.int32()).cast(pa.date32())
