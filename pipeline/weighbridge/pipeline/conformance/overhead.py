"""Cases of what a chat template adds to a prompt, learnt from their own records as the reconciliation learns it.

`input.records` is a list of {attempt_id, messages, local_text_tokens, usage}: prompts that were counted on this side
without their template. One record can be explained by many constants, so that fewer than three teach nothing; what a
provider published about its template is tried then.

    10 tokens in 1 message, 17 reported; 20 in 2, 31; 50 in 5, 73   ->   3 a request and 4 a message
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from weighbridge.pipeline.conformance.case import Case, count, mapping, word
from weighbridge.pipeline.conformance.compare import differs
from weighbridge.pipeline.conformance.explaining import causes_in, explained_input, input_rows
from weighbridge.pipeline.conformance.malformed import MalformedCaseError
from weighbridge.pipeline.ingest.reading import read_usage
from weighbridge.pipeline.reconcile.explain.explanation import lessons_of
from weighbridge.pipeline.reconcile.explain.template import LEAST_ATTEMPTS, PUBLISHED, learnt
from weighbridge.pipeline.reconcile.frames import collected, frame_of
from weighbridge.schemas.enumerations import Grade

COUNTED = "local_text_tokens"
INPUT = frozenset({"provider", "api", "model", "context", "records"})
# What somebody published about the template is compared with nothing: what counts is what was reported.
CONTEXT = frozenset({"published_formula"})
EXPECT = frozenset({"input_total", "hidden", "learnt", "gap", "causes", "residual", "note"})
_FIELDS = frozenset({"attempt_id", "messages", COUNTED, "usage"})
_LEARNT = ("per_request", "per_message")
_TEMPLATE = "template_not_applied"


def is_one(case: Case) -> bool:
    """Whether the case is one of these: every record tells what was counted on this side."""
    records = case.given.get("records")
    told = isinstance(records, list) and bool(records)
    return told and all(isinstance(record, Mapping) and COUNTED in record for record in records or ())


def needs(case: Case) -> Iterator[str]:
    """What the case lacks to be run, and fields of the records that nothing here reads."""
    records = _records(case)
    told = any(case.provider in providers for providers, _, _ in PUBLISHED)
    if len(records) < LEAST_ATTEMPTS and not told:
        yield (
            f"needs at least {LEAST_ATTEMPTS} records to learn what the template adds from; the case brings "
            f"{len(records)}, which any constant would explain"
        )
    for name in sorted({name for record in records for name in record} - _FIELDS):
        yield f"needs input.records.{word(name, 'input.records')}"


def compared_overhead(case: Case) -> Iterator[str | None]:
    """One item for each thing the case asserts: the difference in words, or null where there is none.

    Raises:
        MalformedCaseError: a record or an expectation cannot be read.
    """
    rows = input_rows([_row(case, record) for record in _records(case)])
    lessons = collected(learnt(lessons_of(frame_of(rows))))
    told = explained_input(rows, lessons)
    causes = causes_in(told)
    found = {
        "input_total": sum(row["reported"] for row in told),
        "gap": abs(sum(row["gap"] for row in told)),
        "residual": sum(abs(row["residual"]) for row in told),
    }
    for name, value in found.items():
        if name in case.expect:
            yield differs(name, count(case.expect[name], f"expect.{name}"), value)
    known = lessons.row(0, named=True) if lessons.height == 1 else {}
    for name, value in mapping(case.expect.get("learnt", {}), "expect.learnt").items():
        where = f"learnt.{word(name, 'expect.learnt')}"
        if name not in _LEARNT:
            raise MalformedCaseError(f"expect.learnt has a key that is none of {', '.join(_LEARNT)}")
        yield differs(where, count(value, f"expect.{where}"), known.get(name))
    for name, value in mapping(case.expect.get("causes", {}), "expect.causes").items():
        code = word(name, "expect.causes")
        yield differs(f"causes.{code}", count(value, f"expect.causes.{code}"), causes.get(code))
    for name, value in mapping(case.expect.get("hidden", {}), "expect.hidden").items():
        if name != "template":
            raise MalformedCaseError("expect.hidden has a key that is not template")
        yield differs("hidden.template", count(value, "expect.hidden.template"), causes.get(_TEMPLATE))


def _records(case: Case) -> list[Mapping[str, Any]]:
    return [mapping(record, "input.records") for record in case.given["records"]]


def _row(case: Case, record: Mapping[str, Any]) -> dict[str, object]:
    usage = mapping(record.get("usage"), "input.records.usage")
    model = case.given.get("model")
    reading = read_usage({"provider": case.provider, "api": case.api, "model": model, "usage": usage})
    counted = count(record.get(COUNTED), f"input.records.{COUNTED}")
    if reading.input_total is None or counted is None:
        raise MalformedCaseError(f"input.records has one whose input or {COUNTED} is not known")
    return {
        "provider": reading.provider,
        "model": reading.model,
        "grade": str(Grade.G3),
        "messages": count(record.get("messages"), "input.records.messages"),
        "recount_has_template": False,
        "observed": counted,
        "reported": reading.input_total,
    }
