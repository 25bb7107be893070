"""Sealing: a journal that no process writes any more becomes a segment of checksummed Parquet."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from weighbridge.capture import engine_counters, layout
from weighbridge.capture.layout import COUNTS, HEAD, TIMES, Kind, Outcome
from weighbridge.capture.plan import measure_text
from weighbridge.capture.reader import Contents, doubles, read_journal
from weighbridge.schemas.enumerations import (
    AttemptStatus,
    ChildKind,
    Ended,
    GapReason,
    QuarantineReason,
    ReportPart,
    Stage,
)
from weighbridge.schemas.identity import AttemptKey
from weighbridge.schemas.segment import write_segment
from weighbridge.schemas.tables import TABLES, UNASSIGNED

Row = dict[str, Any]
_GAPS: Final = tuple(GapReason)
_CHILDREN: Final = tuple(ChildKind)
_STAGES: Final = tuple(Stage)
_LABELS: Final = ("role", "rank", "world", "group", "first_layer", "first_head", "policy")
_IDS_EXPECTED: Final = HEAD.index("ids_expected")
_CACHE: Final = ("cached_local", "cached_external", "prefill_computed")


def seal(journal: Path, out: Path, *, extra: Mapping[str, list[Row]] | None = None) -> Path:
    """Turn one journal into a sealed segment in `out` and return its path. The journal itself is left as it is.

    Args:
        journal: a file that no living process writes.
        extra: further rows (token runs from the content file) by table.

    Raises:
        ContractError: the journal's header is damaged.
        FileExistsError: it was sealed before.
    """
    contents = read_journal(journal)
    tables = rows_of(contents)
    for name, more in (extra or {}).items():
        tables.setdefault(name, []).extend(more)
    arrow = {
        name: pa.Table.from_pylist(
            rows, schema=pa.schema([TABLES[name].schema().field(c) for c in _columns(name, rows)])
        )
        for name, rows in tables.items()
        if rows
    }
    return write_segment(
        out,
        journal.stem,
        arrow,
        writer=contents.header["installation"],
        end=contents.end,
        sequence=(0, contents.taken - 1) if contents.taken else None,
        labels={k: str(contents.header[k]) for k in _LABELS if contents.header.get(k) is not None},
        key_id=contents.header.get("key_id"),
    )


def _columns(name: str, rows: Iterable[Row]) -> list[str]:
    present = {key for row in rows for key in row}
    return [column for column in TABLES[name].names if column in present]


def rows_of(contents: Contents) -> dict[str, list[Row]]:
    """The rows of every table that a journal holds."""
    out: dict[str, list[Row]] = defaultdict(list)
    source = contents.header["installation"]
    attempts: dict[tuple[int, int], Row] = {}
    for number, words in contents.slots:
        kind = words[0] & 0xFF
        if kind == Kind.ATTEMPT:
            row = _attempt(contents, words, source)
            attempts[words[1], words[2]] = row
            out["attempt"].append(row)
            _usage(contents, words, row, out)
        elif kind == Kind.USAGE:
            _usage(contents, words, _attempt(contents, words, source), out, part=words[8])
        elif kind == Kind.CHILD:
            out["child"].append(_child(contents, words, source))
        elif kind == Kind.GAP:
            out["gap"].append(_gap(words, source, number))
        elif kind == Kind.COUNTER:
            entry = contents.dictionary[words[0] >> 32][1]
            out["engine_counter"].extend(engine_counters.rows_of(entry, words, source))
        elif kind == Kind.SCOPE:
            out["request_scope"].append(_scope(contents, words, source))
    for words in (words for _, words in contents.slots if words[0] & 0xFF == Kind.RECOUNT):
        _recount(attempts, words, source, out)
    for entry in contents.leaves:
        _leaves(contents, entry, source, attempts, out)
    out["foreign_id"].extend(_foreign_id(entry, source) for entry in contents.foreign_ids)
    _own_gaps(contents, source, out)
    return out


def _null(value: int) -> int | None:
    return None if value == layout.NULL else value


def _day(us: int) -> date:
    return datetime.fromtimestamp(us / 1_000_000, tz=UTC).date()


def _attempt(contents: Contents, words: tuple[int, ...], source: str) -> Row:
    context = contents.dictionary[words[0] >> 32][1]
    plan = contents.dictionary[words[0] >> 8 & 0xFFFFFF][1]
    outcome = Outcome.of(words[7])
    row: Row = {
        "attempt_hi": words[1],
        "attempt_lo": words[2],
        "day": _day(words[5]),
        "source": source,
        "request_hi": words[3] if words[3] or words[4] else None,
        "request_lo": words[4] if words[3] or words[4] else None,
        "scope": words[8] & 0xFFFFFFFF,
        "attempt_number": words[8] >> 32 or None,
        "arrived_at": datetime.fromtimestamp(words[5] // 1_000_000, tz=UTC).replace(microsecond=words[5] % 1_000_000),
        "status": str(outcome.status),
        "http_status": outcome.http,
        "finish_reason": None if outcome.finish is None else str(outcome.finish),
        "level": outcome.level,
        "marked_reason": None if outcome.reason is None else str(outcome.reason),
        "marked_by": None if outcome.by is None else str(outcome.by),
        "ids_expected": words[_IDS_EXPECTED] if words[_IDS_EXPECTED] >= 0 else None,
        "revision": 0,
        **{name: value for name, value in context.items() if name in TABLES["attempt"].names},
    }
    if words[6] > 0:
        row.update(contents.dictionary[words[6]][1])
    for name, value in zip(plan["counts"], words[len(HEAD) :], strict=False):
        row[name] = _null(value)
    parts = [row.get(name) for name in ("input_computed", *_CACHE)]
    if None not in parts:
        row["cache_correction"] = parts[0] - sum(parts[1:])  # type: ignore[operator, arg-type]
    return row


def _usage(contents: Contents, words: tuple[int, ...], attempt: Row, out: dict[str, list[Row]], part: int = 0) -> None:
    """The usage report that stands in the slot of its attempt, or in a slot of its own."""
    plan = contents.dictionary[words[0] >> 8 & 0xFFFFFF][1]
    outcome = Outcome.of(words[7])
    if not plan["paths"] and not plan["constants"]:
        return
    at = len(HEAD) + len(plan["counts"])
    leaves: dict[str, tuple[int | None, str | None]] = {path: (None, text) for path, text in plan["constants"].items()}
    for index, (path, kind) in enumerate(zip(plan["paths"], plan["kinds"], strict=True)):
        leaves[path] = (words[at + index], None) if kind == "q" else (None, measure_text(doubles(words, at + index)))
    out["usage_report"].append(_report(attempt, leaves, outcome, part))


def _report(attempt: Row, leaves: Mapping[str, tuple[int | None, str | None]], outcome: Outcome, part: int) -> Row:
    paths = sorted(leaves)
    texts = [leaves[path][1] for path in paths]
    return {
        "attempt_hi": attempt["attempt_hi"],
        "attempt_lo": attempt["attempt_lo"],
        "day": attempt["day"],
        "source": attempt["source"],
        "child": 0,
        "report": 0,
        "part": part,
        "part_kind": str(outcome.part or ReportPart.WHOLE),
        "provider": attempt.get("provider"),
        "api": attempt.get("api"),
        "model": attempt.get("model_served") or attempt.get("model_requested"),
        "reported_at": None,
        "ended": str(outcome.ended),
        "leaf_shape": " ".join(paths),
        "leaf_integers": [leaves[path][0] for path in paths],
        "leaf_texts": texts if any(text is not None for text in texts) else None,
        "revision": 0,
    }


def _child(contents: Contents, words: tuple[int, ...], source: str) -> Row:
    plan = contents.dictionary[words[0] >> 8 & 0xFFFFFF][1]
    outcome = Outcome.of(words[7])
    row: Row = {
        "attempt_hi": words[1],
        "attempt_lo": words[2],
        "day": _day(words[5]),
        "source": source,
        "child": words[8] & 0xFFFF,
        "kind": str(_CHILDREN[words[8] >> 16 & 0xFF]),
        "parent_child": words[8] >> 32 & 0xFFFF or None,
        "finish_reason": None if outcome.finish is None else str(outcome.finish),
        "revision": 0,
    }
    columns = TABLES["child"].names
    values = dict(zip(plan["counts"], words[len(HEAD) :], strict=False))
    row.update({name: _null(value) for name, value in values.items() if name in columns})
    withheld = [
        values.get(f"withheld_{reason}", -1) for reason in ("end_token", "stop_trimmed", "aborted", "truncated")
    ]
    if any(value > 0 for value in withheld):
        row["output_withheld"] = sum(value for value in withheld if value > 0)
        if sum(value > 0 for value in withheld) == 1:
            row["withheld_reason"] = ("end_token", "stop_trimmed", "aborted", "truncated")[
                next(index for index, value in enumerate(withheld) if value > 0)
            ]
    return row


def _gap(words: tuple[int, ...], source: str, number: int) -> Row:
    return {
        "day": _day(words[5] or words[4]),
        "source": source,
        "reason": str(_GAPS[words[1]]),
        "attempts": words[2],
        "tokens": words[3] or None,
        "began_at": datetime.fromtimestamp(words[4] / 1_000_000, tz=UTC),
        "ended_at": datetime.fromtimestamp(words[5] / 1_000_000, tz=UTC),
        "segment_row": number,
    }


def _scope(contents: Contents, words: tuple[int, ...], source: str) -> Row:
    context = contents.dictionary[words[0] >> 32][1]
    return {
        "request_hi": words[1],
        "request_lo": words[2],
        "scope": words[3],
        "day": _day(words[5]),
        "source": source,
        "parent_scope": _null(words[4]),
        "stage": str(_STAGES[words[6]]),
        "name": context.get("scope"),
        "tenant": context.get("tenant", UNASSIGNED),
        "task": context.get("task", UNASSIGNED),
        "route": context.get("route", UNASSIGNED),
        "started_at": datetime.fromtimestamp(words[5] / 1_000_000, tz=UTC),
        "duration_us": _null(words[7]),
        "input_tokens": _null(words[8]),
        "output_tokens": _null(words[9]),
        "status": str(tuple(AttemptStatus)[words[10]]),
        "revision": 0,
    }


def _recount(
    attempts: Mapping[tuple[int, int], Row], words: tuple[int, ...], source: str, out: dict[str, list[Row]]
) -> None:
    """A recount completes its attempt's row, or becomes a row of its own source where that lies in another file."""
    row = attempts.get((words[1], words[2]))
    if row is None:
        row = {
            "attempt_hi": words[1],
            "attempt_lo": words[2],
            "day": _day(words[3]),
            "source": f"{source}.recount",
            "tenant": UNASSIGNED,
            "task": UNASSIGNED,
            "route": UNASSIGNED,
            "status": str(AttemptStatus.UNKNOWN),
            "revision": 0,
        }
        out["attempt"].append(row)
    for name, value in zip(layout.RECOUNTS[:4], words[4:8], strict=True):
        row[name] = _null(value)
    flags = words[8] if words[8] >= 0 else layout.RECOUNT_NO_INPUT
    has_input = not flags & layout.RECOUNT_NO_INPUT
    row["recount_has_template"] = bool(flags & 1) if has_input else None
    row["recount_has_special"] = bool(flags & 2) if has_input else None
    written_in = layout.SCRIPTS[flags >> layout.RECOUNT_SCRIPT_SHIFT]
    row["script"] = None if written_in is None else str(written_in)


def _leaves(
    contents: Contents, entry: Mapping[str, Any], source: str, attempts: Mapping[tuple[int, int], Row],
    out: dict[str, list[Row]],
) -> None:  # fmt: skip
    """Leaves that no plan could store: a report of its own, or a quarantine row where something was unreadable."""
    raw = bytes.fromhex(entry["attempt"])
    key = (int.from_bytes(raw[:8], "big", signed=True), int.from_bytes(raw[8:], "big", signed=True))
    attempt = attempts.get(key)
    if attempt is None:
        # The file was full between the leaves and their attempt, which stands in the next one.
        context = contents.dictionary.get(entry["context"], (None, {}))[1]
        attempt = {**context, "attempt_hi": key[0], "attempt_lo": key[1], "day": _day(entry["us"])}
    leaves = {path: (integer, text) for path, integer, text in entry["leaves"]}
    outcome = Outcome.of(entry["outcome"])
    report = _report(attempt, leaves, outcome, entry.get("part", 0))
    if not entry["refusals"]:
        notes = ["integral_float"] * bool(entry["integral"]) + ["strings_dropped"] * bool(entry["dropped"])
        out["usage_report"].append({**report, "notes": notes or None})
        return
    path, reason = entry["refusals"][0]
    out["quarantine"].append(
        {
            "segment": hashlib.sha256(contents.path.name.encode()).hexdigest(),
            "line": len(out["quarantine"]),
            "day": attempt["day"],
            "source": source,
            "importer": "capture",
            "reason": str(QuarantineReason(reason)),
            "path": path,
            "provider": attempt.get("provider"),
            "api": attempt.get("api"),
            **{name: report[name] for name in ("leaf_shape", "leaf_integers", "leaf_texts")},
        }
    )


def _foreign_id(entry: Mapping[str, Any], source: str) -> Row:
    key = AttemptKey.from_hex(entry["attempt"])
    return {
        "attempt_hi": key.hi,
        "attempt_lo": key.lo,
        "day": _day(entry["us"]),
        "source": source,
        "kind": entry["kind"],
        "value": entry["value"],
    }


def _own_gaps(contents: Contents, source: str, out: dict[str, list[Row]]) -> None:
    """What the reader itself could not accept, as gap records."""
    made = datetime.fromtimestamp(contents.wall_ns / 1e9, tz=UTC)
    for reason, count in ((GapReason.CORRUPT, contents.damaged), (GapReason.NOT_SEEN, contents.unfinished)):
        if count:
            out["gap"].append(
                {
                    "day": made.date(),
                    "source": source,
                    "reason": str(reason),
                    "attempts": count,
                    "began_at": made,
                    "ended_at": None,
                    "segment_row": None,
                }
            )


__all__ = ["COUNTS", "TIMES", "Ended", "rows_of", "seal"]
