"""What a comparison found, as findings of the lake."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from types import MappingProxyType
from typing import Final

from weighbridge.pipeline.compare.cause import likely
from weighbridge.pipeline.compare.comparison import Compared, Comparison
from weighbridge.pipeline.compare.deed import deed
from weighbridge.pipeline.compare.eviction import Forgotten, Visible
from weighbridge.pipeline.compare.symptom import SYMPTOMS
from weighbridge.schemas.enumerations import Confidence, FindingOrigin, Severity
from weighbridge.schemas.finding import Finding

NOTHING_SEEN: Final[Mapping[str, Sequence[Visible]]] = MappingProxyType({})
NO_EFFECT: Final = "strategy_had_no_effect"
FORGOTTEN: Final = "system_prompt_forgotten"
FLOOR: Final = "baseline_not_repeatable"
CODES: Final = (NO_EFFECT, FORGOTTEN, FLOOR, *(symptom.code for symptom in SYMPTOMS))
_NO_EFFECT_CURE: Final = (
    "Nothing shows that the strategy was on: see that the engine takes its parameters, that prompts exceed its "
    "budget, and record cache entries or state events; until then equal answers prove nothing."
)
_FORGOTTEN_CURE: Final = (
    "Keep the system prompt: name its length as sinks, raise the budget, or put what must hold into the last turn."
)
_FLOOR_CURE: Final = (
    "Two runs of the baseline differ: use greedy decoding, one seed and batches of one size, or take more pairs; "
    "losses are told against this floor."
)


def findings(
    found: Comparison,
    day: date,
    forgotten: Iterable[Forgotten] = (),
    visible: Mapping[str, Sequence[Visible]] = NOTHING_SEEN,
) -> list[Finding]:
    """The findings of a comparison, in a fixed order.

    Args:
        found: the comparison.
        day: when it was made, in UTC.
        forgotten: strategies whose state events show that a system prompt went.
        visible: strategy -> what its state events say is left of each prompt.
    """
    out = [
        finding
        for each in found.strategies
        for finding in _of_strategy(found, each, day, visible.get(each.side.name, ()))
    ]
    out += [_forgotten(found, each, day) for each in forgotten]
    if found.unrepeated:
        out.append(_finding(found, found.baseline.name, FLOOR, Severity.NOTICE, found.unrepeated, _FLOOR_CURE, day))
    return sorted(out, key=lambda finding: finding.finding_id)


def _of_strategy(found: Comparison, each: Compared, day: date, seen: Sequence[Visible]) -> Iterable[Finding]:
    if each.unshown:
        made = _finding(found, each.side.name, NO_EFFECT, Severity.WARNING, each.unshown, _NO_EFFECT_CURE, day)
        yield replace(made, expected=len(each.pairs), observed=each.acted, difference=-each.unshown)
    did = deed(each, seen)
    cause = likely(each.side.parameters, did.done)
    for symptom in SYMPTOMS:
        rows = symptom.rows(each)
        if rows:
            cure = f"{symptom.cure} {cause.cure} {did.told}"
            yield _finding(
                found, each.side.name, symptom.code, symptom.severity, rows, cure, day, cause.code, Confidence.PROBABLE
            )


def _forgotten(found: Comparison, each: Forgotten, day: date) -> Finding:
    return _finding(
        found, each.strategy, FORGOTTEN, Severity.WARNING, each.answers, _FORGOTTEN_CURE, day, "context_evicted"
    )


def _finding(
    found: Comparison,
    strategy: str,
    code: str,
    severity: Severity,
    rows: int,
    cure: str,
    day: date,
    cause: str | None = None,
    confidence: Confidence = Confidence.CERTAIN,
) -> Finding:
    about = {} if found.model is None else {"model": found.model}
    return Finding(
        code=code,
        severity=severity,
        period=f"{day:%Y-%m}",
        subject={**about, "strategy": strategy, "baseline": found.baseline.name},
        rows=rows,
        cure=cure,
        unit="attempts",
        cause=cause,
        confidence=confidence,
        first_day=day,
        last_day=day,
        origin=FindingOrigin.COMPARE,
    )
