"""Usage pages of providers' own accounts: OpenAI's organization usage and Anthropic's messages usage report.

    {"object": "page", "data": [{"object": "bucket", "start_time": 1768435200, "end_time": 1768521600, "results": [
        {"object": "organization.usage.completions.result", "input_tokens": 1000, ...}]}], "has_more": false}
    {"data": [{"starting_at": "2026-01-15T00:00:00Z", "ending_at": "2026-01-16T00:00:00Z", "results": [
        {"uncached_input_tokens": 1500, "cache_creation": {...}, ...}]}], "has_more": false}

A file holds one page, a list of them, or one a line. They tell sums of a period and no calls: each result becomes a row
of `usage_period`. The same period and grouping fetched again is a revision, of which the last one counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from weighbridge.pipeline.ingest.importer import Heading, Importer, Source, Staged
from weighbridge.pipeline.ingest.json_records import read_records
from weighbridge.pipeline.ingest.log_heads import heading, recognised
from weighbridge.pipeline.ingest.period_rows import SOURCE, PeriodRows, Result
from weighbridge.pipeline.ingest.record_fields import epoch_time, iso_time
from weighbridge.schemas.enumerations import QuarantineReason
from weighbridge.schemas.leaves import Refusal

__all__ = ["IMPORTER", "SOURCE"]
_OPENAI = "organization.usage."


def _recognises(path: Path) -> bool:
    return recognised(path, read_records, _is_page)


def _is_page(record: Mapping[str, object]) -> bool:
    buckets = record.get("data")
    if not isinstance(buckets, list) or "has_more" not in record:
        return False
    return (
        all(isinstance(bucket, dict) and isinstance(bucket.get("results"), list) for bucket in buckets)
        and (record.get("object") == "page" or any("starting_at" in bucket for bucket in buckets))
        and not any(
            "amount" in result for bucket in buckets for result in bucket["results"] if isinstance(result, dict)
        )
    )


def _check(source: Source) -> Heading:
    return heading(source.path, read_records, "usage page", "Fetch it again")


def _read(source: Source, heading: Heading) -> Staged:  # noqa: ARG001 - one signature for all importers
    rows = PeriodRows(source)
    for item in _results(source.path):
        rows.add(item)
    return rows.staged()


def _results(path: Path) -> Iterator[Result | Refusal]:
    """The results of all pages, and why a page, bucket or result cannot be taken apart."""
    lines = list(read_records(path))
    for line in lines:
        page = line.value
        if page is None:
            yield Refusal("", line.reason or QuarantineReason.NOT_JSON)
            continue
        buckets = page.get("data")
        if not isinstance(buckets, list):
            yield Refusal("data", QuarantineReason.MISSING_FIELD)
            continue
        missing = page.get("has_more") is True and line is lines[-1]
        grouped = _grouped_by(buckets)
        for bucket in buckets:
            yield from _of_bucket(bucket, grouped, missing)


def _of_bucket(bucket: object, grouped: tuple[str, ...], missing: bool) -> Iterator[Result | Refusal]:
    results = bucket.get("results") if isinstance(bucket, dict) else None
    if not isinstance(bucket, dict) or not isinstance(results, list):
        yield Refusal("data.results", QuarantineReason.MISSING_FIELD)
        return
    start = epoch_time(bucket.get("start_time")) or iso_time(bucket.get("starting_at"))
    end = epoch_time(bucket.get("end_time")) or iso_time(bucket.get("ending_at"))
    for result in results:
        told = _api(result)
        if told is None or not isinstance(result, dict):
            yield Refusal("data.results", QuarantineReason.SCHEMA)
        elif start is None or end is None or end <= start:
            yield Refusal("data.start_time", QuarantineReason.BAD_TIME)
        else:
            yield Result(*told, start, end, result, grouped, missing)


def _api(result: object) -> tuple[str, str] | None:
    """Whose page a result is of, and which; null where it is none that is known."""
    if not isinstance(result, dict):
        return None
    named = result.get("object")
    if isinstance(named, str) and named.startswith(_OPENAI) and named.endswith(".result"):
        return "openai", f"openai_usage_{named.removeprefix(_OPENAI).removesuffix('.result')}"
    return ("anthropic", "anthropic_usage_messages") if "uncached_input_tokens" in result else None


def _grouped_by(buckets: list[object]) -> tuple[str, ...]:
    """By what a page is grouped: what any of its results names. A page does not say it itself."""
    results = [
        result
        for bucket in buckets
        if isinstance(bucket, dict) and isinstance(bucket.get("results"), list)
        for result in bucket["results"]
        if isinstance(result, dict)
    ]
    named = {name for result in results for name in GROUPINGS if result.get(name) is not None}
    return tuple(sorted(named))


# What pages can be grouped by, OpenAI's and Anthropic's.
GROUPINGS = (
    "project_id",
    "user_id",
    "api_key_id",
    "model",
    "batch",
    "service_tier",
    "api_source",
    "size",
    "source",
    "workspace_id",
    "account_id",
    "service_account_id",
    "context_window",
    "inference_geo",
    "speed",
)

IMPORTER = Importer(
    name="usage_pages",
    doc="OpenAI's organization usage pages and Anthropic's messages usage report: sums of a period, not calls.",
    recognises=_recognises,
    check=_check,
    read=_read,
)
