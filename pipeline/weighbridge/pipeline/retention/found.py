"""What retention finds: deletions that did not come to their end, and data that is there although its time is over.

Findings are about the installation, not about a month, and name nobody: tenants are hashes. They hold no month back.
Each run replaces them all, so a finding goes when what it says is no longer so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

import polars as pl

from weighbridge.pipeline.lake.found import write_findings
from weighbridge.pipeline.retention.deletion import deletion_of
from weighbridge.pipeline.retention.ledger import ERASURES, PENDING, Ledger
from weighbridge.pipeline.retention.places import Places
from weighbridge.pipeline.retention.plan import RetentionPlan
from weighbridge.pipeline.retention.request import request_of
from weighbridge.schemas.enumerations import FindingOrigin, Severity
from weighbridge.schemas.finding import Finding

UNFINISHED, OVERDUE, HELD = "deletion_unfinished", "kept_past_its_term", "held_past_its_term"
ERASURE, TRACES = "erasure_unfinished", "erased_traces_left"
CODES = (UNFINISHED, OVERDUE, HELD, ERASURE, TRACES)
OF_LEDGER = (UNFINISHED, ERASURE, TRACES)
_EVER = "all"
_CURES = {
    UNFINISHED: "Mend what `weighbridge retention apply` says stood in its way, and run it again.",
    OVERDUE: "Its time is over and it is still there: see why with `weighbridge retention apply`, and run it again.",
    HELD: "A legal hold keeps it: see `weighbridge retention holds`, and release the hold when the matter is settled.",
    ERASURE: "Release the hold, or seal and ingest the files that were not sealed yet; then run `weighbridge retention "
    "apply`.",
    TRACES: "Delete what `weighbridge erase` found in files it does not change, and run the same erasure again.",
}


def of_ledger(ledger: Ledger) -> Iterator[Finding]:
    """What is begun and has no receipt, and what of erasures is still to be done."""
    pending = Counter(deletion_of(content).table for content in ledger.entries(PENDING).values())
    for table, count in sorted(pending.items()):
        yield _finding(UNFINISHED, {"table": table}, count, "deletions", Severity.WARNING)
    for name, content in ledger.entries(ERASURES).items():
        request = request_of(name, content)
        about = {"erasure": name}
        if request.left:
            yield _finding(ERASURE, about, request.left, "rows", Severity.WARNING)
        elif request.waits:
            yield _finding(ERASURE, about, len(request.waits), "files", Severity.WARNING)
        if request.traces:
            yield _finding(TRACES, about, request.traces, "files", Severity.WARNING)


def of_plan(plan: RetentionPlan, *, deleted: bool) -> Iterator[Finding]:
    """What is due and still there, and what of it a hold keeps.

    Args:
        plan: what is due.
        deleted: whether all of it that no hold keeps was deleted since.
    """
    late: Counter[tuple[str, str, str]] = Counter()
    held: Counter[tuple[str, str]] = Counter()
    for due in plan.due:
        unit = "files" if due.paths and due.table != "spool" else "rows"
        late[due.table, due.rule.name, unit] += due.rows
        late[due.table, due.rule.name, "keys"] += len(due.keys)
        held[due.table, "rows"] += due.held
        held[due.table, "keys"] += len(due.held_keys)
    if not plan.keys_known:
        yield _finding(UNFINISHED, {"table": "keys"}, 1, "deletions", Severity.WARNING)
    for (table, rule, unit), count in sorted(late.items()):
        if count and not deleted:
            yield _finding(OVERDUE, {"table": table, "rule": rule, "unit": unit}, count, unit, Severity.WARNING)
    for (table, unit), count in sorted(held.items()):
        if count:
            yield _finding(HELD, {"table": table, "unit": unit}, count, unit, Severity.NOTICE)


def tell(places: Places, found: Sequence[Finding], codes: Collection[str] = CODES) -> None:
    """Put findings into the lake in the place of those of these codes."""
    where = pl.col("code").is_in(list(codes))
    write_findings(places.lake, found, origin=FindingOrigin.RETENTION, periods=None, where=where)


def _finding(code: str, subject: dict[str, str], count: int, unit: str, severity: Severity) -> Finding:
    return Finding(
        code=code, severity=severity, period=_EVER, subject=subject, rows=count, expected=0, observed=count,
        difference=count, unit=unit, cure=_CURES[code], origin=FindingOrigin.RETENTION,
    )  # fmt: skip
