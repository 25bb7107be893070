"""Sealing a spool: every file that no process holds becomes a segment, and is unlinked once that is proved on disk.

    journal       -> <name>.segment          attempts, reports, gaps, ...
    content file  -> <name>-ids.segment      token runs and traces; ciphertext once per block, on its first row
    a whole process that is gone -> <process>-missing.segment, where ids were expected and never came

Each step can be cut off anywhere and done again: a segment is there whole or not at all, and names are never reused.
What ids a file expected or brought is kept beside it (`<process>.<name>.ids`) until the process is gone.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from weighbridge.capture import holding
from weighbridge.capture.content import ContentFile, read_content
from weighbridge.capture.journal import SUFFIX as JOURNAL
from weighbridge.capture.layout import HEAD, Kind
from weighbridge.capture.reader import Contents, read_journal
from weighbridge.capture.seal import seal
from weighbridge.schemas.enumerations import Ended, GapReason
from weighbridge.schemas.errors import ContractError
from weighbridge.schemas.identity import AttemptKey
from weighbridge.schemas.segment import SUFFIX, verify_segment, write_segment
from weighbridge.schemas.tables import TABLES

IDS: Final = ".ids"
_EXPECTED: Final = HEAD.index("ids_expected")
_ARRIVED: Final = HEAD.index("arrived_us")
_RUN: Final = (
    "attempt_hi", "attempt_lo", "child", "run", "stream", "start", "length", "token_class", "origin",
)  # fmt: skip


@dataclass(slots=True)
class Sealed:
    """What one pass did.

    Attributes:
        segments: segments that were made, or found made by a pass that was cut off.
        left: files of living processes.
        failed: what could not be sealed, with the reason; it was left as it is.
    """

    segments: list[Path] = field(default_factory=list)
    left: list[Path] = field(default_factory=list)
    failed: list[tuple[Path, str]] = field(default_factory=list)


def seal_spool(spool: Path) -> Sealed:
    """Seal everything in a spool that no living process holds. Doing it again changes nothing."""
    out = Sealed()
    for path in holding.journals(spool):
        _seal_file(path, path.stem, _seal_journal, out)
    for path in holding.contents(spool):
        _seal_file(path, f"{path.stem}-ids", _seal_content, out)
    _settle_ids(spool, out)
    return out


def _seal_file(path: Path, name: str, make: Callable[[Path, str], str], out: Sealed) -> None:
    with holding.taken(path) as ours:
        if not ours:
            if path.exists():
                out.left.append(path)
            return
        try:
            if holding.unwritten(path):
                path.unlink()
                return
            for rest in path.parent.glob(f".{name}.*.tmp"):  # of a pass that was cut off; the file's lock is ours
                shutil.rmtree(rest, ignore_errors=True)
            target = path.parent / (name + SUFFIX)
            process = make(path, name)
            verify_segment(target)
            _note_ids(path, process)
            path.unlink()
            out.segments.append(target)
        except (ContractError, OSError, ValueError, KeyError, IndexError) as error:
            out.failed.append((path, str(error) if isinstance(error, ContractError) else type(error).__name__))


def _seal_journal(path: Path, name: str) -> str:
    if not (path.parent / (name + SUFFIX)).exists():
        seal(path, path.parent)
    return str(read_journal(path).header.get("process", ""))


def _seal_content(path: Path, name: str) -> str:
    content = read_content(path)
    if not (path.parent / (name + SUFFIX)).exists():
        write_segment(
            path.parent,
            name,
            content_tables(content, datetime.fromtimestamp(path.stat().st_mtime, tz=UTC)),
            writer=content.header["installation"],
            end=Ended.COMPLETE if content.complete else Ended.UNKNOWN,
            sequence=(0, len(content.blocks) - 1) if content.blocks else None,
            key_id=content.header.get("key_id"),
        )
    return str(content.header.get("process", ""))


def content_tables(content: ContentFile, written: datetime) -> dict[str, pa.Table]:
    """The rows of a content file: token runs, state events, strategies, and a gap row for what was damaged."""
    source = content.header["installation"]
    runs: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = []
    strategies: dict[str, dict[str, Any]] = {}
    for about, block in content.blocks:
        if "trace" in about:
            events += _events(about, block, source)
            strategies |= {each["strategy_id"]: each for each in about["strategies"]}
            continue
        offset = 0
        for place, run in enumerate(about["runs"]):
            (hi, lo, child, number, stream, start, length, token_class, origin) = run
            runs.append(
                dict(zip(_RUN, (hi, lo, child, number, stream, start, length, token_class, origin), strict=True))
                | {
                    "day": date.fromisoformat(about["day"]),
                    "source": source,
                    "ciphertext": None if place else block,
                    "key_id": about["key"],
                    "block": about["block"],
                    "block_offset": offset,
                    "tenant": about["tenant"],
                    "subject_bucket": about["bucket"],
                    "month": about["day"][:7],
                }
            )
            offset += length
    told = {"token_run": runs, "state_event": events, "strategy": list(strategies.values())}
    out = {name: _table(name, rows) for name, rows in told.items() if rows}
    if content.damaged:
        out["gap"] = _table("gap", [_gap(source, GapReason.CORRUPT, 0, None, written, None)])
    return out


def _events(about: dict[str, Any], block: bytes, source: str) -> list[dict[str, Any]]:
    """The rows of a trace; the first one has the ciphertext, after the name of its block."""
    hi, lo, child = about["trace"]
    sealed = bytes.fromhex(about["block"]) + block
    return [
        {
            **row,
            "attempt_hi": hi,
            "attempt_lo": lo,
            "child": child,
            "day": date.fromisoformat(about["day"]),
            "source": source,
            "payload": None if place else sealed,
            "key_id": about["key"],
        }
        for place, row in enumerate(about["events"])
    ]


def _table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    schema = TABLES[name].schema()
    return pa.Table.from_pylist(rows, schema=pa.schema([f for f in schema if f.name in rows[0]]))


def _gap(
    source: str, reason: GapReason, attempts: int, tokens: int | None, began: datetime, ended: datetime | None
) -> dict[str, Any]:
    return {
        "day": began.date(),
        "source": source,
        "reason": str(reason),
        "attempts": attempts,
        "tokens": tokens,
        "began_at": began,
        "ended_at": ended,
    }


# -- ids that were expected and never came -----------------------------------------------------------------------------


def _note_ids(path: Path, process: str) -> None:
    """Keep what a file expected or brought until its process is gone. Written again it is the same."""
    if path.suffix == JOURNAL:
        journal = read_journal(path)
        told: dict[str, Any] = {"expected": _expected(journal), "traces": _announced(journal)}
        source = journal.header["installation"]
    else:
        content = read_content(path)
        told = {"came": _came(content), "traces_came": _traces_came(content)}
        source = content.header["installation"]
    if not process or not any(told.values()):
        return
    note = {"source": source, **told}
    temporary = path.parent / f".{process}.{path.name}{IDS}"
    temporary.write_text(json.dumps(note), encoding="ascii")
    temporary.chmod(0o600)
    with temporary.open("rb") as file:
        os.fsync(file.fileno())
    temporary.rename(path.parent / temporary.name[1:])


def _expected(journal: Contents) -> dict[str, list[int]]:
    """Attempt -> [ids expected, arrival in Unix microseconds]."""
    return {
        AttemptKey(words[1], words[2]).to_hex(): [words[_EXPECTED], words[_ARRIVED]]
        for _, words in journal.slots
        if words[0] & 0xFF == Kind.ATTEMPT and words[_EXPECTED] > 0
    }


def _came(content: ContentFile) -> dict[str, int]:
    """Attempt -> ids that came."""
    came: Counter[str] = Counter()
    for about, _ in content.blocks:
        for run in about.get("runs", ()):
            came[AttemptKey(run[0], run[1]).to_hex()] += run[6]
    return dict(came)


def _announced(journal: Contents) -> dict[str, list[int]]:
    """Attempt -> [traces announced, arrival in Unix microseconds]."""
    out: dict[str, list[int]] = {}
    for _, words in journal.slots:
        if words[0] & 0xFF == Kind.TRACE:
            told = out.setdefault(AttemptKey(words[1], words[2]).to_hex(), [0, words[5]])
            told[0] += words[4]
    return out


def _traces_came(content: ContentFile) -> dict[str, int]:
    """Attempt -> traces that came."""
    traces = (about["trace"] for about, _ in content.blocks if "trace" in about)
    return dict(Counter(AttemptKey(hi, lo).to_hex() for hi, lo, _ in traces))


def _settle_ids(spool: Path, out: Sealed) -> None:
    """For every process of which no file is left: what it expected and never got becomes a gap row."""
    notes: dict[str, list[Path]] = {}
    for path in sorted(spool.glob(f"*{IDS}")):
        notes.setdefault(path.name.split(".", 1)[0], []).append(path)
    if not notes:
        return
    try:
        living = {holding.sums(path).process for path in (*holding.journals(spool), *holding.contents(spool))}
    except (ContractError, OSError):
        return  # a file of which nobody can say whose it is: it may bring ids yet
    for process, paths in notes.items():
        if process not in living:
            _settle_process(spool, process, paths, out)


def _settle_process(spool: Path, process: str, paths: list[Path], out: Sealed) -> None:
    told = [json.loads(path.read_bytes()) for path in paths]
    came: Counter[str] = Counter()
    for note in told:
        came.update(note.get("came", {}))
    missing = {
        attempt: (expected - came[attempt], at)
        for note in told
        for attempt, (expected, at) in note.get("expected", {}).items()
        if came[attempt] < expected
    }
    untraced = _untraced(told)
    if missing or untraced:
        target = spool / f"{process}-missing{SUFFIX}"
        if not target.exists():
            source = told[0]["source"]
            table = _table("gap", _missing_rows(source, missing) + _untraced_rows(source, untraced))
            write_segment(spool, f"{process}-missing", {"gap": table}, writer=source)
        verify_segment(target)
        out.segments.append(target)
    for path in paths:
        path.unlink()


def _missing_rows(source: str, missing: dict[str, tuple[int, int]]) -> list[dict[str, Any]]:
    """One gap row per UTC day."""
    days: dict[date, list[tuple[int, int]]] = {}
    for tokens, at in missing.values():
        days.setdefault(_moment(at).date(), []).append((tokens, at))
    return [
        _gap(
            source, GapReason.IDS_MISSING, len(lost), sum(tokens for tokens, _ in lost),
            _moment(min(at for _, at in lost)), _moment(max(at for _, at in lost)),
        )
        for _, lost in sorted(days.items())
    ]  # fmt: skip


def _untraced(told: list[dict[str, Any]]) -> dict[str, int]:
    """Attempts of which a trace was announced that never came, with their arrival."""
    left: Counter[str] = Counter()
    arrived: dict[str, int] = {}
    for note in told:
        for attempt, (traces, at) in note.get("traces", {}).items():
            left[attempt] += traces
            arrived[attempt] = at
    for note in told:
        left.subtract(note.get("traces_came", {}))
    return {attempt: arrived[attempt] for attempt, traces in left.items() if traces > 0}


def _untraced_rows(source: str, untraced: dict[str, int]) -> list[dict[str, Any]]:
    """One gap row per UTC day; traces have no number of tokens."""
    days: dict[date, list[int]] = {}
    for at in untraced.values():
        days.setdefault(_moment(at).date(), []).append(at)
    return [
        _gap(source, GapReason.IDS_MISSING, len(lost), None, _moment(min(lost)), _moment(max(lost)))
        for _, lost in sorted(days.items())
    ]


def _moment(us: int) -> datetime:
    return datetime.fromtimestamp(us // 1_000_000, tz=UTC).replace(microsecond=us % 1_000_000)
