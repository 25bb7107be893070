"""Compare a month with one provider: cells, gaps, causes and states, as rows of `invoice_gap` and `invoice_cause`."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

import polars as pl

from weighbridge.pipeline.invoice.billing import Figure
from weighbridge.pipeline.invoice.cause import of_kind
from weighbridge.pipeline.invoice.cells import Grouping, Key
from weighbridge.pipeline.invoice.ledger import Ledger
from weighbridge.pipeline.invoice.search import Explained, Search, Share
from weighbridge.pipeline.invoice.sides import Charged
from weighbridge.pipeline.invoice.sums import countable, exactly, payable
from weighbridge.pipeline.invoice.zones import span_of
from weighbridge.schemas.enumerations import ChargedBy, Confidence, LineKind, Status
from weighbridge.schemas.finding import EVIDENCE_ROWS
from weighbridge.schemas.identity import framed

TOKENS = "tokens"
# The parts of a key that every cell has; what comes behind is there where a bill states it.
_NAMED = 6


@dataclass(frozen=True, slots=True)
class Compared:
    """One cell: both sides, and why they differ.

    Attributes:
        key: what it is about.
        expected, charged: our side and theirs; null where not known.
        status: how far it is explained.
        explained: why, where anything explains it.
        attempts, lines: how many calls and lines it stands for.
        segments: files of their side.
        contradictory: how many calls of the cell have reports that contradict themselves: they are in no sum.
    """

    key: Key
    expected: Figure
    charged: Figure
    status: Status
    explained: Explained | None
    attempts: int
    lines: int
    segments: tuple[str, ...] = ()
    contradictory: int = 0


@dataclass(frozen=True, slots=True)
class MonthResult:
    """A month with a provider, compared.

    Attributes:
        ledger: what was compared.
        cells: in order of kind and period.
    """

    ledger: Ledger
    cells: tuple[Compared, ...]
    notes: Mapping[str, object] = field(default_factory=dict)


def charged_cells(
    lines: pl.DataFrame, grouping: Grouping, spans: Sequence[tuple[datetime, datetime]]
) -> dict[Key, Charged]:
    """Cell -> the sum of its lines: of tokens by the grouping both sides have, of every other kind by month."""
    held: defaultdict[Key, list[dict[str, object]]] = defaultdict(list)
    starts = [start for start, _ in spans[:-1]]
    for row in lines.iter_rows(named=True):
        if row["kind"] != LineKind.TOKENS:
            held[Key(row["kind"], *spans[-1])].append(row)
            continue
        place = bisect_right(starts, row["start"]) - 1
        inside = place >= 0 and row["start"] < spans[place][1]
        held[grouping.of_line(row, spans[place] if inside else spans[-1])].append(row)
    return {key: _charged(rows) for key, rows in held.items()}


def _charged(rows: Sequence[Mapping[str, object]]) -> Charged:
    paid = [row["amount"] for row in rows]
    counted = [row["tokens"] for row in rows]
    listed = [(row["list_amount"], row["amount"]) for row in rows]
    known = all(value is not None for pair in listed for value in pair)
    # Lines of one cell on bills of several days have no day of issue that a rate could be of.
    issued = {row["issued_at"].date() for row in rows if isinstance(row["issued_at"], datetime)}
    return Charged(
        tokens=None if None in counted else countable(sum(int(str(count)) for count in counted)),
        money=None if None in paid else payable(sum((Decimal(str(each)) for each in paid), start=Decimal(0))),
        lines=len(rows),
        open=any(bool(row["open"]) for row in rows),
        closed=all(bool(row["closed"]) for row in rows),
        segments=tuple(sorted({str(row["segment"]) for row in rows if row["segment"]}))[:EVIDENCE_ROWS],
        tiers=tuple(sorted({str(row["service_tier"]) for row in rows if row["service_tier"]})),
        issued_on=issued.pop() if len(issued) == 1 else None,
        off_list=sum((Decimal(str(b)) - Decimal(str(a)) for a, b in listed), start=Decimal(0)) if known else None,
    )


def compare(ledger: Ledger, months: Mapping[LineKind, Decimal | None], now: datetime, *, closed: bool) -> MonthResult:
    """Compare every cell.

    Args:
        ledger: both sides.
        months: kind -> what the contract says lines of that kind come to in the month.
        now: the UTC moment it is: what ended less than the provider's lateness ago is provisional.
        closed: the provider says that the billing period is closed.
    """
    agreed = ledger.predicted(ledger.agreed)
    calls = ledger.attempts(ledger.agreed)
    of_use = {key for key in {*agreed, *ledger.charged} if key.kind in {LineKind.TOKENS, LineKind.TOOL_FEE}}
    sides = {key: (agreed.get(key, _none(ledger)), _target(ledger, key)) for key in of_use}
    gaps = {key: target for key, (ours, target) in sides.items() if _differs(ours, target) and _known(ours, target)}
    tokens = {key: target for key, target in gaps.items() if key.kind == LineKind.TOKENS}
    charged = {key: target for key, (_, target) in sides.items()}
    found = Search(ledger, tokens, agreed, charged).run() if tokens else {}
    cells = []
    for key, (ours, target) in sides.items():
        explained = found.get(key) or (_by_kind(key, ours, target) if key in gaps else None)
        cells.append(_compared(ledger, key, (ours, target), explained, calls.get(key, 0), now, closed=closed))
    begin, end = span_of(ledger.month, ledger.contract.zone)
    lined = {key: each for key, each in ledger.charged.items() if key not in of_use}
    # A credit, a discount or a minimum that was agreed and stands on no line is charged with nothing.
    due = [Key(str(kind), begin, end) for kind, paid in months.items() if paid != 0]
    told = {key.kind for key in lined}
    lined_or_due = {**dict.fromkeys(key for key in due if key.kind not in told), **lined}
    cells += [_other(ledger, key, each, months, now, closed=closed) for key, each in lined_or_due.items()]
    return MonthResult(ledger, tuple(sorted(cells, key=lambda cell: repr(cell.key))))


def _none(ledger: Ledger) -> Figure:
    return Figure(0, Decimal(0) if ledger.currency else None)


def _target(ledger: Ledger, key: Key) -> Figure:
    """What was charged in a cell; one without lines was charged nothing, in whatever the others are charged in."""
    charged = ledger.charged.get(key)
    if charged is not None:
        return Figure(charged.tokens, charged.money)
    counted = all(each.tokens is not None for k, each in ledger.charged.items() if k.kind == LineKind.TOKENS)
    return Figure(0 if counted and ledger.charged else None, Decimal(0) if ledger.currency else None)


def _differs(ours: Figure, target: Figure) -> bool:
    pairs = [(ours.tokens, target.tokens), (ours.money, target.money)]
    return any(a != b for a, b in pairs if a is not None and b is not None)


def _known(ours: Figure, target: Figure) -> bool:
    """Whether something of both sides is known, and nothing that was charged has no expectation."""
    if target.money is not None and ours.money is None:
        return False
    return any(a is not None and b is not None for a, b in zip(ours, target, strict=True))


def _by_kind(key: Key, ours: Figure, target: Figure) -> Explained | None:
    """A cell that its kind explains by itself."""
    cause = of_kind(key.kind)
    if cause is None or target.money is None or ours.money is None:
        return None
    return Explained((Share(cause.code, "the_line_says_so", 0, target.money - ours.money),), Confidence.CERTAIN)


def _compared(
    ledger: Ledger, key: Key, sides: tuple[Figure, Figure], explained: Explained | None, calls: int, now: datetime, *,
    closed: bool,
) -> Compared:  # fmt: skip
    ours, target = sides
    charged = ledger.charged.get(key)
    if not _known(ours, target):
        status = Status.NOT_COMPARED
    elif not _differs(ours, target):
        status = Status.MATCHED
    elif _provisional(ledger, key, charged, now, closed=closed):
        status = Status.PROVISIONAL
    else:
        status = Status.UNEXPLAINED if explained is None else Status.EXPLAINED
    lines, segments = (0, ()) if charged is None else (charged.lines, charged.segments)
    spoiled = ledger.contradictory(key)
    return Compared(
        key, ours, target, status, explained, calls, lines, segments, 0 if spoiled is None else spoiled.calls
    )


def _provisional(ledger: Ledger, key: Key, charged: Charged | None, now: datetime, *, closed: bool) -> bool:
    """Whether data of a cell may still come."""
    if closed or (charged is not None and charged.closed):
        return False
    if charged is not None and charged.open:
        return True
    return now < key.end + timedelta(hours=ledger.contract.lateness_hours)


def _other(
    ledger: Ledger, key: Key, charged: Charged | None, months: Mapping[LineKind, Decimal | None], now: datetime, *,
    closed: bool,
) -> Compared:  # fmt: skip
    """Lines that are no use: held against the contract, or not at all where nobody can say what they should be."""
    target = Figure(None, Decimal(0) if charged is None else charged.money)
    kind = None if key.kind is None else LineKind(key.kind)
    unheld = kind in {LineKind.TAX, LineKind.OTHER_SERVICE}
    expected = None if unheld else months.get(kind, Decimal(0)) if kind else Decimal(0)
    ours = Figure(None, expected)
    explained = _by_kind(key, ours, target) if _known(ours, target) and _differs(ours, target) else None
    return _compared(ledger, key, (ours, target), explained, 0, now, closed=closed)


@exactly
def rows(result: MonthResult) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """The rows of `invoice_gap` and `invoice_cause`, one of each unit that both sides know."""
    gaps: list[dict[str, object]] = []
    causes: list[dict[str, object]] = []
    for cell in result.cells:
        for unit, ours, theirs in _units(result.ledger, cell):
            gap, shares = _gap_row(result.ledger, cell, unit, ours, theirs)
            gaps.append(gap)
            causes += shares
    return gaps, causes


def _units(ledger: Ledger, cell: Compared) -> list[tuple[str, Decimal | None, Decimal | None]]:
    found: list[tuple[str, Decimal | None, Decimal | None]] = []
    if cell.charged.tokens is not None or (ledger.against is ChargedBy.USAGE_PAGE and cell.key.kind == LineKind.TOKENS):
        found.append((TOKENS, _decimal(cell.expected.tokens), _decimal(cell.charged.tokens)))
    if ledger.currency:
        found.append((ledger.currency, cell.expected.money, cell.charged.money))
    return found


def _gap_row(
    ledger: Ledger, cell: Compared, unit: str, ours: Decimal | None, theirs: Decimal | None
) -> tuple[dict[str, object], list[dict[str, object]]]:
    key, name = cell.key, ledger.contract.provider
    about = [str(part) if part is not None else "" for part in key[:_NAMED]]
    finer = [f"{name}={part}" for name, part in zip(Key._fields[_NAMED:], key[_NAMED:], strict=True) if part]
    identity = framed(ledger.month, str(ledger.against), name, unit, *about, *finer)
    digest = hashlib.sha256(identity).hexdigest()[:32]
    gap = None if ours is None or theirs is None else payable(theirs - ours)
    shares = [] if cell.explained is None or gap is None else list(cell.explained.shares)
    parts = [Decimal(share.tokens) if unit == TOKENS else share.money for share in shares]
    residual = None if gap is None else gap - sum(parts, start=Decimal(0))
    row: dict[str, object] = {
        "cell": digest,
        "period": ledger.month,
        "against": str(ledger.against),
        "unit": unit,
        "provider": name,
        "kind": key.kind,
        "grouped_by": ["period", *_grouped(ledger.grouping, key)] if key.kind == LineKind.TOKENS else ["month"],
        "period_start": key.start,
        "period_end": key.end,
        "model": key.model,
        "tenant": key.tenant,
        "token_class": key.token_class,
        "service_tier": key.service_tier,
        "region": key.region,
        "modality": key.modality,
        "contradictory": cell.contradictory or None,
        "attempts": cell.attempts,
        "lines": cell.lines,
        "expected": ours,
        "charged": theirs,
        "gap": gap,
        "residual": residual,
        "status": str(Status.MATCHED if gap == 0 and cell.status is Status.EXPLAINED else cell.status),
        "segments": list(cell.segments),
    }
    told = [
        {
            "cell": digest,
            "period": ledger.month,
            "cause": share.cause,
            "amount": part,
            "unit": unit,
            "confidence": str(cell.explained.confidence),
            "why": share.why,
            "alternatives": list(cell.explained.alternatives),
        }
        for share, part in zip(shares, parts, strict=True)
        if part and cell.explained is not None
    ]
    return row, told


def _grouped(grouping: Grouping, key: Key) -> list[str]:
    """What the cell of a model is grouped by."""
    return [name for name in grouping.named if name not in grouping.fine or key.model in grouping.fine[name]]


def _decimal(value: int | None) -> Decimal | None:
    return None if value is None else Decimal(value)
