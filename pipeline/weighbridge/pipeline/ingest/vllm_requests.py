"""Finished requests of a vLLM engine, put together to the calls they were made for.

    {"iteration_timestamp": 1795970137.145643, "e2e_latency": 0.108001, "request_id": "cmpl-r-1-0", "finish_reason": "length",
     "num_prompt_tokens": 401, "num_cached_tokens": 384, "num_generation_tokens": 20, "max_tokens_param": 20,
     "num_preemptions": 0, "queued_time": 0.00002, "prefill_time": 0.02, "decode_time": 0.08}

That is vLLM's `FinishedRequestStats`, as a stat logger of one's own gets them. How the engine's id is made of the API's
is told by `weighbridge.schemas.engine_ids`; only beams of one call arrive one after the other.
"""  # noqa: E501 - a record as it stands

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from weighbridge.pipeline.ingest.finish import finish_reason
from weighbridge.pipeline.ingest.http_calls import microseconds, named
from weighbridge.pipeline.ingest.importer import Source
from weighbridge.pipeline.ingest.record_fields import epoch_time, small_number
from weighbridge.pipeline.ingest.staging import Call
from weighbridge.schemas.engine_ids import SAME_US, client_id, engine_id
from weighbridge.schemas.enumerations import AttemptStatus, ChildKind, FinishReason, ForeignIdKind, QuarantineReason
from weighbridge.schemas.identity import IDENTIFIER
from weighbridge.schemas.leaves import Refusal

FRAMEWORK = "vllm"
_COUNTS = ("num_prompt_tokens", "num_generation_tokens")
_LIMIT = 2**63
_MICRO = 1_000_000
_STATUS = {FinishReason.ABORT: AttemptStatus.ABORTED, FinishReason.ERROR: AttemptStatus.FAILED}
Record = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Finished:
    """One finished request of the engine.

    Attributes:
        number: the place of its record in its file.
        api_id: the id the answer of its call has.
        prompt: which prompt of the call it worked on; null where the id does not tell.
        beam: whether it is a step of a beam.
        arrived_us, total_us: when its call arrived, microseconds since 1970, and how long it took.
        counts: prompt, output and cached tokens; null where it is not told.
        preempted: whether it was preempted; null where that is not told.
    """

    number: int
    record: Record
    api_id: str
    prompt: int | None
    beam: bool
    arrived_us: int
    total_us: int
    input: int
    output: int
    cached: int | None
    preempted: bool | None

    @property
    def finish(self) -> FinishReason | None:
        """Why it stopped."""
        return finish_reason([self.record])


def is_finished(record: Record) -> bool:
    """Whether a record is of this form."""
    return {"request_id", "iteration_timestamp", "e2e_latency", *_COUNTS} <= record.keys()


def finished(number: int, record: Record) -> Finished | list[Refusal]:
    """One record, or why it cannot be read."""
    refusals: list[Refusal] = []
    counts = [_count(record.get(name), name, refusals) for name in _COUNTS]
    cached = record.get("num_cached_tokens")
    # vLLM says -1 where it does not know.
    held = None if cached is None or cached == -1 else _count(cached, "num_cached_tokens", refusals)
    ended, took = microseconds(record.get("iteration_timestamp")), microseconds(record.get("e2e_latency"))
    if ended is None or took is None or epoch_time(max(ended - took, 0), _MICRO) is None:
        refusals.append(Refusal("attempt.arrived_at", QuarantineReason.BAD_TIME))
    told = record.get("request_id")
    if not isinstance(told, str) or not IDENTIFIER.fullmatch(told):
        refusals.append(Refusal("request_id", QuarantineReason.BAD_IDENTIFIER))
    if refusals or ended is None or took is None or not isinstance(told, str):
        return refusals
    api_id, prompt, beam = engine_id(told)
    prompts, outputs = (count or 0 for count in counts)
    preemptions = small_number(record.get("num_preemptions"))
    return Finished(
        number, record, api_id, prompt, beam, ended - took, took, prompts, outputs, held,
        None if preemptions is None else preemptions > 0,
    )  # fmt: skip


def calls_of(requests: Iterable[Finished]) -> Iterator[list[Finished]]:
    """The requests of each call, in the order of their files; calls in the order of their first request."""
    by_id: dict[tuple[str, bool], list[Finished]] = {}
    for request in requests:
        by_id.setdefault((request.api_id, request.beam), []).append(request)
    calls: list[list[Finished]] = []
    for (_, beam), held in by_id.items():
        calls += [held] if beam else _together(held)
    yield from sorted(calls, key=lambda call: call[0].number)


def _together(held: Sequence[Finished]) -> Iterator[list[Finished]]:
    """Requests under one id that arrived in one instant."""
    group: list[Finished] = []
    for request in sorted(held, key=lambda one: (one.arrived_us, one.number)):
        if group and request.arrived_us - group[-1].arrived_us > SAME_US:
            yield sorted(group, key=lambda one: one.number)
            group = []
        group.append(request)
    yield sorted(group, key=lambda one: one.number)


def call_of(call: Sequence[Finished], source: Source) -> Call:
    """One call as an attempt: what the engine did for all requests it made of it."""
    first = min(call, key=lambda one: (one.arrived_us, one.number))
    last = max(one.arrived_us + one.total_us for one in call)
    reasons = {one.finish for one in call}
    reason = reasons.pop() if len(reasons) == 1 else None
    cached = [one.cached for one in call]
    read = None if None in cached else sum(each or 0 for each in cached)
    prompts = sum(one.input for one in call)
    single = call[0].record if len(call) == 1 else {}
    attempt: dict[str, object] = {
        "provider": source.provider or FRAMEWORK,
        "framework": FRAMEWORK,
        "model_served": source.model,
        "status": str(_STATUS.get(reason or FinishReason.STOP, AttemptStatus.SUCCEEDED)),
        "finish_reason": reason,
        "max_tokens": small_number(first.record.get("max_tokens_param")),
        "total_us": last - first.arrived_us,
        **{f"{name}_us": microseconds(single.get(f"{told}_time"))
           for name, told in (("queue", "queued"), ("prefill", "prefill"), ("decode", "decode"))},
        "input_computed": prompts,
        "cached_local": read,
        "prefill_computed": None if read is None else prompts - read,
        "output_computed": sum(one.output for one in call),
        # How much of it was computed again is in no record of the request.
        "recomputed": 0 if all(one.preempted is False for one in call) else None,
    }  # fmt: skip
    if first.beam:
        attempt["max_tokens"] = None  # each step of a beam asks for one token
        attempt["beams"] = _width(call)
    ids = {
        ForeignIdKind.RECORD_ID: named(first.api_id, first.arrived_us),
        ForeignIdKind.PROVIDER_RESPONSE_ID: first.api_id,
    }
    client = client_id(first.api_id)
    if client and IDENTIFIER.fullmatch(client):
        ids[ForeignIdKind.CLIENT_REQUEST_ID] = client
    created = epoch_time(first.arrived_us, _MICRO)
    held = {kind: value for kind, value in ids.items() if IDENTIFIER.fullmatch(value)}
    return Call(attempt, [], held, (), source.model, created)


def children_of(call: Sequence[Finished], source: Source) -> list[dict[str, object]]:
    """The requests of a call that was made of several: each says which one it shares its prompt with."""
    if len(call) == 1:
        return []
    ordered = sorted(call, key=lambda one: (one.arrived_us, one.number)) if call[0].beam else list(call)
    several = len({one.prompt for one in ordered}) == len(ordered)
    kind = ChildKind.BEAM if ordered[0].beam else ChildKind.PROMPT if several else ChildKind.CHOICE
    first: dict[int | None, int] = {}
    rows: list[dict[str, object]] = []
    for child, one in enumerate(ordered, 1):
        shared = first.setdefault(None if one.beam else one.prompt, child)
        rows.append(
            {
                "kind": str(kind),
                "parent_child": None if shared == child else shared,
                "model": source.model,
                "finish_reason": one.finish,
                "input_computed": one.input,
                "output_computed": one.output,
            }
        )
    return rows


def _width(call: Sequence[Finished]) -> int:
    """How many beams went on side by side: as many as have a prompt of one length."""
    lengths = [one.input for one in call]
    return max(lengths.count(length) for length in lengths)


def _count(value: object, name: str, refusals: list[Refusal]) -> int | None:
    if isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        refusals.append(Refusal(name, QuarantineReason.TYPE))
        return None
    if not 0 <= value < _LIMIT:
        refusals.append(Refusal(name, QuarantineReason.RANGE))
        return None
    return value
