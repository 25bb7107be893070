"""A cell's honest days and its misreported ones as sealed segments, for the whole road: ingest, reconcile, audit."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from weighbridge.pipeline.ingest.door import EXPECTED
from weighbridge.pipeline.simulate.answers import UNKNOWN, Answers
from weighbridge.pipeline.simulate.columns import AGENT, PROVIDER
from weighbridge.pipeline.simulate.misreport import Misreport, all_misreports
from weighbridge.pipeline.simulate.traffic import DAY_US, EPOCH, uuid7
from weighbridge.pipeline.simulate.usage import Parts, leaf_columns
from weighbridge.pipeline.simulate.world import Ints, Mask
from weighbridge.schemas.enumerations import AttemptStatus, Ended, FinishReason
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import key_id, pseudonym
from weighbridge.schemas.segment import SUFFIX, write_segment
from weighbridge.schemas.table import TIME

_OTHER = 64  # tokens of the direction that is not weighed
_PROVIDER, _API, _MODEL = "openai", "openai_chat", "gpt-4.1-2025-04-14"
# Neither of these has a grain that simulated counts could break.
_ENGINE = ("azure", "Llama-3.3-70B-Instruct")
_THINKER = "gpt-5.4-2026-03-05"


@dataclass(frozen=True, slots=True)
class Misreported:
    """What was written.

    Attributes:
        segments: the sealed segments.
        honest: first and last UTC day that are honest: what an audit is calibrated with.
        misreported: first and last UTC day that are not.
    """

    segments: list[Path]
    honest: tuple[date, date]
    misreported: tuple[date, date]


def write_misreported(
    out: Path, misreport: Misreport, *, factor: float, attempts: int, seed: int, start: date, days: int, key: bytes
) -> Misreported:
    """Write half of the days honest and half misreported, and what has to be found as `expected.json`.

    Args:
        out: the folder; it must hold no segments yet.
        misreport, factor: what is done, and how much of it.
        attempts: how many answers, half of them honest.
        seed: the same arguments give the same bytes.
        start, days: the UTC days, at least two.
        key: the pseudonym key of the installation that will ingest them.

    Raises:
        ConfigError: fewer than two attempts or days, or segments are in `out` already.
    """
    if attempts < 2 or days < 2:
        raise ConfigError(
            f"attempts={attempts}, days={days}: at least 2 of each are needed, one half is honest; raise them"
        )
    if any(out.glob(f"*{SUFFIX}")):
        raise ConfigError(f"{out} holds segments already, which are never overwritten; name an empty folder")
    rng = np.random.default_rng([seed, int(misreport.code[1:])])
    half = attempts // 2
    before = misreport if misreport.honest is not None else all_misreports()["M0"]
    honest = before.draw(rng, (1, half), before.factor if before.honest is None else before.honest)
    answers = _joined(honest, misreport.draw(rng, (1, attempts - half), factor))
    middle = start + timedelta(days=days // 2)
    at = np.concatenate([_spread(half, start, days // 2), _spread(attempts - half, middle, days - days // 2)])
    hi, lo = uuid7(rng, at)
    labels = {"simulated": "true", "seed": str(seed), "misreport": misreport.code}
    tables = {
        AGENT: {"attempt": _attempts(answers, at, hi, lo, key, engine=misreport.engine)},
        PROVIDER: {"usage_report": _reports(answers, at, hi, lo, engine=misreport.engine)},
    }
    segments = [
        write_segment(out, f"{writer}-000", own, writer=writer, sequence=(0, 0), labels=labels, key_id=key_id(key))
        for writer, own in tables.items()
    ]
    done = Misreported(segments, (start, middle - timedelta(days=1)), (middle, start + timedelta(days=days - 1)))
    _write(out / EXPECTED, misreport, factor, done)
    return done


def _write(path: Path, misreport: Misreport, factor: float, done: Misreported) -> None:
    told = {
        "labels": {"simulated": "true", "misreport": misreport.code},
        "expected": [],
        "misreport": misreport.code,
        "title": misreport.title,
        "factor": factor,
        "means": misreport.means,
        "rounding": misreport.rounding,
        "cause": misreport.expected,
        "honest": [day.isoformat() for day in done.honest],
        "misreported": [day.isoformat() for day in done.misreported],
    }
    path.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def _joined(first: Answers, second: Answers) -> Answers:
    """One run of both, one after the other, without the axis of runs; measure is that of the second."""
    names = [item.name for item in fields(Answers) if item.name != "measure"]
    both = {name: np.concatenate([getattr(first, name)[0], getattr(second, name)[0]]) for name in names}
    return Answers(measure=second.measure, **both)


def _spread(rows: int, start: date, days: int) -> Ints:
    """Arrivals at even distances, microseconds since 1970."""
    return (start - EPOCH).days * DAY_US + np.arange(rows) * (days * DAY_US) // max(rows, 1)


def _attempts(answers: Answers, at: Ints, hi: Ints, lo: Ints, key: bytes, *, engine: bool) -> pa.Table:
    rows = len(at)
    output = answers.measure in {"output", "hidden_reasoning"}
    other = np.full(rows, _OTHER, np.int64)
    sides = (other, answers.observed) if output else (answers.observed, other)
    counted = "computed" if engine else "recounted"
    drafted = pa.array(answers.rejected, mask=answers.rejected == UNKNOWN)
    words = {
        "source": AGENT,
        "api": _API,
        "status": str(AttemptStatus.SUCCEEDED),
        "finish_reason": str(FinishReason.STOP),
        "tenant": pseudonym(key, "tenant", "acme"),
        "tenant_key_id": key_id(key),
        "task": "chat",
        "route": "assistant",
        "environment": "production",
        "tokenizer": "o200k_base",
        "template": "openai-chat",
    } | _model(answers, engine=engine)
    table = {
        **{name: pa.array([word] * rows) for name, word in words.items()},
        **_keys(hi, lo),
        "day": _days(at),
        "arrived_at": pa.array(at, TIME),
        "attempt_number": pa.array(np.ones(rows, np.int32)),
        "revision": pa.array(np.zeros(rows, np.int32)),
        "undated": pa.array(np.zeros(rows, bool)),
        "usage_expected": pa.array(np.ones(rows, bool)),
        "messages": pa.array(answers.messages, pa.int32()),
        "max_tokens": pa.array(answers.limit, pa.int32()),
        f"input_{counted}": pa.array(sides[0]),
        f"output_{counted}": pa.array(sides[1]),
        "drafted": drafted,
        "rejected": drafted,
        "accepted": pa.array(np.zeros(rows, np.int64), mask=answers.rejected == UNKNOWN),
    }
    if engine:
        table |= {"cached_local": pa.array(answers.cached), "prefill_computed": pa.array(sides[0] - answers.cached)}
        table |= {
            "cached_external": pa.array(np.zeros(rows, np.int64)),
            "cache_correction": pa.array(np.zeros(rows, np.int64)),
        }
    else:
        # Prompts that are weighed were counted as bare text.
        table |= {"recount_has_template": pa.array(np.full(rows, answers.measure != "input"))}
    return pa.table(table)


def _reports(answers: Answers, at: Ints, hi: Ints, lo: Ints, *, engine: bool) -> pa.Table:
    once = np.flatnonzero(~answers.missing)
    again = np.flatnonzero(answers.repeated > 0)
    which = np.concatenate([once, again])
    number = np.concatenate([np.zeros(len(once), np.int64), np.ones(len(again), np.int64)])
    order = np.lexsort((number, which))
    which, number = which[order], number[order]
    nothing = np.zeros(len(which), np.int64)
    words = {"source": PROVIDER, "api": _API, "ended": str(Ended.COMPLETE)} | _model(answers, engine=engine)
    words["model"] = words.pop("model_served")
    words.pop("model_requested")
    return pa.table(
        {
            **{name: pa.array([word] * len(which)) for name, word in words.items()},
            **_keys(hi[which], lo[which], request=False),
            "day": _days(at[which]),
            "reported_at": pa.array(at[which], TIME),
            "child": pa.array(nothing.astype(np.int32)),
            "report": pa.array(number, pa.int32()),
            "part": pa.array(nothing.astype(np.int32)),
            "revision": pa.array(nothing.astype(np.int32)),
            **leaf_columns(Parts(which, number, nothing, nothing), _figures(answers)),
        }
    )


def _figures(answers: Answers) -> dict[str, Ints]:
    """The figures of every report, in the form of a chat answer."""
    other = np.full_like(answers.observed, _OTHER)
    zero = np.zeros_like(other)
    said = answers.reported - answers.repeated
    entered, left, cached, reasoning = other, said, zero, zero
    match answers.measure:
        case "input":
            entered, left = said, other
        case "uncached_input":
            entered, left, cached = answers.observed, other, answers.cached - answers.gaps
        case "hidden_reasoning":
            left, reasoning = answers.observed + said, said
    figures = {"input": entered, "output": left, "cached": cached, "reasoning": reasoning, "total": entered + left}
    # Names that other forms have.
    return dict.fromkeys(("zero", "one", "written", "written_5m", "written_1h"), zero) | figures


def _model(answers: Answers, *, engine: bool) -> dict[str, str]:
    provider, model = _ENGINE if engine else (_PROVIDER, _THINKER if answers.measure == "hidden_reasoning" else _MODEL)
    return {"provider": provider, "model_requested": model, "model_served": model}


def _keys(hi: Ints, lo: Ints, *, request: bool = True) -> dict[str, pa.Array]:
    own = {"attempt_hi": pa.array(hi), "attempt_lo": pa.array(lo)}
    return own | ({"request_hi": pa.array(hi), "request_lo": pa.array(lo)} if request else {})


def _days(at: Ints | Mask) -> pa.Array:
    return pa.array((at // DAY_US).astype(np.int32), pa.int32()).cast(pa.date32())
