"""What the flags of a reading are worth as findings. A flag that is not in here is reported as a notice."""

from __future__ import annotations

from weighbridge.pipeline.reconcile.found.tally import Kind
from weighbridge.pipeline.reconcile.match.reports import MISSING_FLAG
from weighbridge.schemas.enumerations import Severity

# Said by a finding of its own.
ELSEWHERE = frozenset({MISSING_FLAG, "inside_answer"})

_FACTS: dict[str, tuple[Severity, str]] = {
    "total_mismatch": (
        Severity.WARNING,
        "The report's own total is not the sum of its parts: ask the provider which of them is billed.",
    ),
    "negative_count": (
        Severity.WARNING,
        "A count below zero was reported: ask the provider what it means before these reports are paid.",
    ),
    "cached_exceeds_input": (
        Severity.WARNING,
        "More cached than input tokens were reported: check whether this API counts them outside the prompt.",
    ),
    "reasoning_exceeds_output": (
        Severity.WARNING,
        "More reasoning than output tokens were reported: check whether this API counts them outside the answer.",
    ),
    "convention_refuted": (
        Severity.WARNING,
        "The report's own total refutes the convention declared for this API: correct the dialect, then read anew.",
    ),
    "ttl_split_exceeds_creation": (
        Severity.WARNING,
        "The cache writes by lifetime exceed the writes as a whole: ask the provider which figure is billed.",
    ),
    "output_incomplete": (
        Severity.NOTICE,
        "The stream was cut before its final usage: read streams to the end, so that the output is counted whole.",
    ),
    "error_after_usage": (
        Severity.NOTICE,
        "An error followed the usage: check whether the provider charges for these answers.",
    ),
    "cached_off_grain": (
        Severity.NOTICE,
        "Cached tokens came in another step than this model's do: something between you and the provider changed them.",
    ),
    "reasoning_off_grain": (
        Severity.NOTICE,
        "Reasoning tokens came in another step than this model's do: something between you and the provider made them.",
    ),
    "repaired_negative_input": (
        Severity.WARNING,
        "A negative input was read as what was not cached less the cache reads: ask the provider what is billed.",
    ),
    "service_count_differs": (
        Severity.WARNING,
        "The service counted otherwise than the model's own usage: compare both with the invoice before it is paid.",
    ),
    "total_double_counts_cache": (
        Severity.NOTICE,
        "The reported total counts cached tokens twice: do not take it for a sum, the counts by class are right.",
    ),
    "iterations_left_out": (
        Severity.WARNING,
        "Model calls are missing from the figures of these answers: their cost is not in any amount here.",
    ),
    "count_only": (
        Severity.INFO,
        "A prompt was counted and not served: nothing to do.",
    ),
    "child_calls": (
        Severity.NOTICE,
        "One answer was made with calls of several models: check which model's price the provider bills.",
    ),
    "breakdown_differs": (
        Severity.WARNING,
        "The calls listed do not add up to their answer: ask the provider which models were used and what is billed.",
    ),
    "provider_not_known": (
        Severity.INFO,
        "Read by the shape of the API alone: add a fact about this provider, or send its name as the product knows it.",
    ),
    "cache_detail_missing": (
        Severity.INFO,
        "Cached tokens are not shown: switch the server's cache report on, so that they can be priced.",
    ),
    "modality_details_incomplete": (
        Severity.INFO,
        "The modalities do not add up to the count: the rest is priced as text, or not at all where prices differ.",
    ),
    "integral_float": (
        Severity.INFO,
        "Counts came as decimal fractions without a fraction: mend the exporter, the numbers were read as they are.",
    ),
}


def kind_of(flag: str) -> Kind:
    """The kind of finding a flag leads to."""
    severity, cure = _FACTS.get(
        flag, (Severity.NOTICE, "Open the reports with `weighbridge explain` and see what the flag stands for.")
    )
    return Kind(code=flag, severity=severity, unit="reports", cure=cure)
