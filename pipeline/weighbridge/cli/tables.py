"""What more than one verb prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from weighbridge.cli.output import counted, write_line, write_table

if TYPE_CHECKING:
    from weighbridge.pipeline.content.recompress import Recompressed
    from weighbridge.pipeline.ingest.ingest import IngestResult

ID_DIGITS = 8  # of an id; every verb that takes an id takes its beginning
CENT = Decimal("0.01")
LONGEST = 32  # signs of a name in a list; `findings show` and --json have all of it
_SUBJECT = ("provider", "model", "tenant")
_SHOWN = ("severity", "period", "code", *_SUBJECT, "about", "rows")
_ACCOUNT = ("rows_in", "rows_out", "rows_quarantined", "rows_duplicate")


def write_findings(findings: Iterable[Mapping[str, object]]) -> None:
    """Findings, one a line: rows of the table `finding`, with `state` where their life is known."""
    held = list(findings)
    lives = any("state" in row for row in held)
    names = ["id", *_SHOWN, "difference", "money", "confidence", *(["state"] if lives else [])]
    write_table(names, [_cells(row, lives=lives) for row in held])


def _cells(row: Mapping[str, object], *, lives: bool) -> list[object]:
    shown = {**row, "about": _about(row), **{name: _short(row.get(name)) for name in _SUBJECT}}
    cells: list[object] = [str(row["finding_id"])[:ID_DIGITS], *(shown.get(name) for name in _SHOWN)]
    cells += [measured(row.get("difference"), row.get("unit")), measured(row.get("amount"), row.get("currency"))]
    cells.append(row.get("confidence"))
    return [*cells, row.get("state")] if lives else cells


def _short(name: object) -> object:
    """A name that would make every line of a list long, without its middle."""
    if not isinstance(name, str) or len(name) <= LONGEST:
        return name
    return f"{name[: LONGEST // 2]}…{name[1 - LONGEST // 2 :]}"


def _about(row: Mapping[str, object]) -> str | None:
    """What a finding is about beside what has a column of its own: a reason, a source, a file's importer."""
    pairs = [pair for pair in str(row.get("subject") or "").split("; ") if pair]
    return "; ".join(pair for pair in pairs if pair.partition("=")[0] not in _SUBJECT) or None


def measured(value: object, unit: object) -> str | None:
    """A figure with its sign and unit; money to four places, or to two digits where it is smaller than a cent."""
    if isinstance(value, Decimal):
        places = 4 if abs(value) >= CENT or not value else 1 - value.adjusted()
        return f"{value:+,.{places}f} {unit}"
    if not isinstance(value, int):
        return None
    return f"{value:+,} {str(unit).removesuffix('s') if abs(value) == 1 else unit}"


def in_full(value: object, unit: object) -> str | None:
    """Money with its sign, every digit and its unit; at least two places."""
    if not isinstance(value, Decimal):
        return None
    whole, _, places = f"{value:+,f}".partition(".")
    return f"{whole}.{places.rstrip('0'):0<2} {unit}"


def write_account(result: IngestResult) -> None:
    """The account of every file: rows in = stored + quarantined + duplicates."""
    names = ["file", "importer", "rows in", "stored", "quarantined", "duplicates", "note"]
    rows: list[list[object]] = [
        [
            file.name,
            file.importer,
            *(getattr(file, name) for name in _ACCOUNT),
            f"taken in before, read by {file.importer}" if file.skipped else "",
        ]
        for file in result.files
    ]
    if len(rows) > 1:
        rows.append(["all", "", *(sum(getattr(file, name) for file in result.files) for name in _ACCOUNT), ""])
    write_table(names, rows)
    if result.unacknowledged:
        silent = counted(len(result.unacknowledged), "segment")
        write_line(
            f"\n{silent} could not be acknowledged and stay in their spool; name a folder this user can write to "
            "(acks in the settings, or --acks DIR), then ingest them again"
        )


def account_of(result: IngestResult) -> dict[str, object]:
    """The account of every file, for JSON."""
    return {
        "files": [
            {
                "name": file.name,
                "segment": file.segment,
                "importer": file.importer,
                **{name: getattr(file, name) for name in _ACCOUNT},
                "skipped": file.skipped,
            }
            for file in result.files
        ],
        "days": list(result.days),
        "readings": result.readings,
        "unacknowledged": list(result.unacknowledged),
    }


NOT_PACKED = "left as they came; no keys are named in the settings (content_keys, content_key_command)"
_SHUT = {
    "no_key": "whose key was destroyed or cannot be had",
    "no_ciphertext": "without their ciphertext",
    "damaged": "that do not open under their own key",
}


def write_packed(done: Recompressed | None) -> None:
    """What packing token ids did, on a line; one more for blocks that did not open."""
    write_line(f"token ids: {NOT_PACKED if done is None else _packed(done)}")
    for reason, blocks in sorted(done.shut.items() if done else ()):
        write_line(f"token ids: {counted(blocks, 'block')} {_SHUT[reason]}; left as they are")


def _packed(done: Recompressed) -> str:
    if not done.days:
        return "nothing to pack"
    before, after = (f"{size / done.ids:.3f}" if done.ids else "0" for size in (done.bytes_before, done.bytes_after))
    return (
        f"{done.ids:,} ids on {counted(len(done.days), 'day')}, {counted(done.blocks_before, 'block')} made "
        f"{done.blocks_after:,}, {before} bytes an id made {after}"
    )


def packed_of(done: Recompressed) -> dict[str, object]:
    """What packing token ids did, for JSON."""
    names = ("ids", "blocks_before", "blocks_after", "bytes_before", "bytes_after", "days")
    return {name: getattr(done, name) for name in names} | {
        "shut": {str(reason): blocks for reason, blocks in sorted(done.shut.items())}
    }
