"""The manifest of a sealed segment, read strictly: every field of its own type, and no message repeats a value.

A value of another type is never turned into the right one: a count written as text, or a table named twice, means
that the writer is broken, and what it wrote is not read.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from weighbridge.schemas.enumerations import Ended
from weighbridge.schemas.errors import ContractError
from weighbridge.schemas.identity import NAME
from weighbridge.schemas.leaves import INT64_MAX
from weighbridge.schemas.tables import TABLES
from weighbridge.schemas.version import SCHEMA_VERSION, check_version

FORMAT = "weighbridge segment"
_DIGEST = "digest"
_FIELDS = frozenset(
    (
        "format",
        "schema_version",
        "writer",
        "key_id",
        "sequence_first",
        "sequence_last",
        "end",
        "labels",
        "files",
        _DIGEST,
    )
)
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a sealed segment says about itself.

    Attributes:
        writer: the installation that wrote it; the `source` of its rows.
        sequence_first, sequence_last: its range of journal sequence numbers, null where it has none.
        end: complete, or unknown where the journal was never closed.
        files: table name -> (rows, bytes, SHA-256).
        labels: short facts about the segment, such as simulated=true.
        key_id: id of the pseudonym key its pseudonyms were made with.
    """

    writer: str
    end: Ended
    files: Mapping[str, tuple[int, int, str]]
    sequence_first: int | None = None
    sequence_last: int | None = None
    labels: Mapping[str, str] | None = None
    key_id: str | None = None
    schema_version: int = SCHEMA_VERSION

    def to_json(self) -> bytes:
        """The bytes of the manifest file."""
        content = {
            "format": FORMAT,
            "schema_version": self.schema_version,
            "writer": self.writer,
            "key_id": self.key_id,
            "sequence_first": self.sequence_first,
            "sequence_last": self.sequence_last,
            "end": str(self.end),
            "labels": dict(self.labels or {}),
            "files": [
                {"table": table, "rows": rows, "bytes": size, "sha256": digest}
                for table, (rows, size, digest) in sorted(self.files.items())
            ],
        }
        return _text_of(content | {_DIGEST: _digest(content)})


def _text_of(content: Mapping[str, object]) -> bytes:
    return (json.dumps(content, indent=1, sort_keys=True) + "\n").encode()


def _digest(content: Mapping[str, object]) -> str:
    """SHA-256 of the manifest without its own digest: a bit that flipped in a label or a range is seen too."""
    return hashlib.sha256(_text_of({name: value for name, value in content.items() if name != _DIGEST})).hexdigest()


class _MisfitError(ValueError):
    """A field that is not what it has to be; says which, and what is allowed."""


def manifest_of(raw: bytes, where: str) -> Manifest:
    """The manifest whose bytes are `raw`.

    Args:
        raw: the bytes of the file.
        where: the path of the file, for messages.

    Raises:
        ContractError: it is no manifest, or of a later schema version; names the field, never its value.
    """
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ContractError(_no_manifest(where, f"no JSON object with the format {FORMAT!r}"))
    version = check_version(content.get("schema_version"), where)
    try:
        manifest = Manifest(
            writer=_name(content, "writer"),
            end=_ended(content),
            files=_files(content),
            sequence_first=_number(content, "sequence_first", absent=True),
            sequence_last=_number(content, "sequence_last", absent=True),
            labels=_labels(content),
            key_id=_text(content, "key_id"),
            schema_version=version,
        )
        # One without a digest is read; one whose digest lost its name is not.
        if content.keys() - _FIELDS or (_DIGEST in content and raw != _text_of(content | {_DIGEST: _digest(content)})):
            raise _MisfitError("its digest is not that of its fields, or a field is unknown")
    except _MisfitError as misfit:
        raise ContractError(_no_manifest(where, str(misfit))) from None
    return manifest


def _no_manifest(where: str, why: str) -> str:
    return (
        f"{where} is not a segment manifest ({why}); nothing was read. Restore it from its source, or write it again."
    )


def _name(content: Mapping[str, object], field: str) -> str:
    value = content.get(field)
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise _MisfitError(f"{field} must be a name: letters, digits and ._:/@-, without blanks, at most 128")
    return value


def _ended(content: Mapping[str, object]) -> Ended:
    value = content.get("end")
    if not isinstance(value, str) or value not in set(Ended):
        raise _MisfitError(f"end must be one of {', '.join(Ended)}")
    return Ended(value)


def _number(content: Mapping[str, object], field: str, *, absent: bool = False) -> int | None:
    value = content.get(field)
    if absent and value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= INT64_MAX:
        raise _MisfitError(f"{field} must be a whole number from 0 to 2**63 - 1")
    return value


def _text(content: Mapping[str, object], field: str) -> str | None:
    value = content.get(field)
    if value is not None and not isinstance(value, str):
        raise _MisfitError(f"{field} must be text or null")
    return value


def _labels(content: Mapping[str, object]) -> dict[str, str]:
    labels = content.get("labels") or {}
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        raise _MisfitError("labels must be an object of texts")
    return labels


def _files(content: Mapping[str, object]) -> dict[str, tuple[int, int, str]]:
    told = content.get("files")
    if not isinstance(told, list):
        raise _MisfitError("files must be a list")
    files: dict[str, tuple[int, int, str]] = {}
    for place, file in enumerate(told):
        table, entry = _file(file, f"files[{place}]")
        if table in files:
            raise _MisfitError(f"files[{place}] names the table {table} once more")
        files[table] = entry
    return files


def _file(file: object, place: str) -> tuple[str, tuple[int, int, str]]:
    if not isinstance(file, dict):
        raise _MisfitError(f"{place} must be an object")
    table, digest = file.get("table"), file.get("sha256")
    if not isinstance(table, str) or table not in TABLES:
        raise _MisfitError(f"{place}.table must be a table of the vocabulary")
    if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
        raise _MisfitError(f"{place}.sha256 must be 64 hexadecimal digits")
    try:
        rows, size = _number(file, "rows"), _number(file, "bytes")
    except _MisfitError as misfit:
        raise _MisfitError(f"{place}.{misfit}") from None
    return table, (rows or 0, size or 0, digest)
