"""Run cases: read the usage, price it, and compare with what the case expects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from weighbridge.pipeline.conformance import counters, limited, repriced, stored
from weighbridge.pipeline.conformance.case import BODIES, RECORDS, Case, case_id, parsed
from weighbridge.pipeline.conformance.charged import compared_costs
from weighbridge.pipeline.conformance.compare import compared
from weighbridge.pipeline.conformance.dedup import compared_records
from weighbridge.pipeline.conformance.engine import compared_engine
from weighbridge.pipeline.conformance.malformed import MalformedCaseError
from weighbridge.pipeline.conformance.missing import DEDUP, ENGINE, NUMERIC, OTHER, PERIOD, missing
from weighbridge.pipeline.conformance.overhead import compared_overhead
from weighbridge.pipeline.conformance.period import compared_period
from weighbridge.pipeline.ingest.reading import read_usage
from weighbridge.schemas.errors import ConfigError

# The cases that come with the product; each value in them is worked out by hand in its note.
OWN_CASES = Path(__file__).parent / "cases.jsonl"
_UNNAMED = "case"


class Outcome(StrEnum):
    """What became of a case."""

    PASS = "PASS"  # noqa: S105 - an outcome, not a password
    FAIL = "FAIL"
    UNSUPPORTED = "UNSUPPORTED"


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What became of a case.

    Attributes:
        id: its name, or its line where it has none.
        outcome: PASS, FAIL or UNSUPPORTED.
        differences: what is not as expected, or why the case cannot be run; empty unless FAIL. Fields, numbers and
            words of the product, never text of the case.
        missing: what the product would need to run it; null unless UNSUPPORTED.
    """

    id: str
    outcome: Outcome
    differences: list[str]
    missing: str | None = None


def run_file(path: Path | str) -> list[CaseResult]:
    """Run every case of a JSON Lines file, in its order. Blank lines are passed over.

    Raises:
        ConfigError: the file cannot be read, or no line of it is a JSON object.
    """
    try:
        lines = Path(path).read_bytes().split(b"\n")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}); check the path and its permissions") from error
    results = [_run_line(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not any(result.is_object for result in results):
        raise ConfigError(f"{path} has no case; one JSON object a line is expected, see docs/conformance.md")
    return [result.case for result in results]


def run_case(case: Mapping[str, Any]) -> CaseResult:
    """Run one case. A malformed one fails with the field that is wrong; nothing is raised."""
    name = _UNNAMED
    try:
        name = case_id(case)
        return _run(Case.of(case))
    except MalformedCaseError as error:
        return _malformed(name, error)


class _Line(NamedTuple):
    """What became of a line, and whether it was an object at all."""

    case: CaseResult
    is_object: bool


def _run_line(number: int, line: bytes) -> _Line:
    is_object = True
    try:
        result = run_case(parsed(line))
    except MalformedCaseError as error:
        result, is_object = _malformed(_UNNAMED, error), False
    name = f"line {number}" if result.id == _UNNAMED else result.id
    told = [f"line {number}: {each}" for each in result.differences]
    return _Line(CaseResult(name, result.outcome, told, result.missing), is_object)


def _malformed(name: str, error: MalformedCaseError) -> CaseResult:
    return CaseResult(name, Outcome.FAIL, [f"malformed case: {error}"])


def _compared_other(case: Case) -> Iterator[str | None]:
    if limited.is_one(case):
        return limited.compared_limit(case)
    if stored.is_one(case):
        return stored.compared_store(case)
    return repriced.compared_closes(case) if repriced.is_one(case) else compared_overhead(case)


def _run(case: Case) -> CaseResult:
    needed = missing(case)
    if needed is not None:
        return CaseResult(case.id, Outcome.UNSUPPORTED, [], needed)
    if case.kind == DEDUP:
        outcomes = list(compared_records(case))
    elif case.kind == PERIOD:
        outcomes = list(compared_period(case))
    elif case.kind == OTHER:
        outcomes = list(_compared_other(case))
    elif case.kind == NUMERIC and RECORDS in case.given:
        outcomes = list(compared_costs(case))
    elif case.kind == ENGINE and counters.is_one(case):
        outcomes = list(counters.compared_counters(case))
    elif case.body is None:
        raise MalformedCaseError(f"input has none of {', '.join(BODIES)}")
    elif case.kind == ENGINE:
        outcomes = list(compared_engine(case))
    else:
        outcomes = list(compared(case, read_usage(case.record()), case.prices_of))
    if not outcomes:
        return CaseResult(case.id, Outcome.FAIL, ["asserts nothing: expect names no figure, verdict or flag"])
    differences = [difference for difference in outcomes if difference is not None]
    return CaseResult(case.id, Outcome.FAIL if differences else Outcome.PASS, differences)
