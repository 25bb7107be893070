"""What was lawfully erased from a close pack after it was closed, by which rule, and what stands there now.

A record names the rows by their place, the files that took the place of those that held them, and its receipts. Each
receipt carries the digest of all the rest of the record, and its own id is the digest of its content: the receipts in
the lake vouch for the record, and no row can be missing that no receipt speaks of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weighbridge.pipeline.close.layout import PartName, erasure_file, is_part
from weighbridge.pipeline.close.plain import DamagedError, document, parsed, sha256

FORMAT = "weighbridge erasure"


@dataclass(frozen=True, slots=True)
class Erasure:
    """One erasure.

    Attributes:
        number: 1 for the first of a pack.
        period: the month of the pack.
        previous: digest of the erasure before it, of the first one the root of the pack.
        rows: (table, part) -> places of the erased rows among all the part had, in order.
        files: path of each new file -> (bytes, SHA-256).
        receipts: rows of the table `receipt`, as plain values.
    """

    number: int
    period: str
    previous: str
    rows: Mapping[tuple[str, str], Sequence[int]]
    files: Mapping[str, tuple[int, str]]
    receipts: Sequence[Mapping[str, Any]] = ()

    def core(self) -> dict[str, Any]:
        """All of it but the receipts."""
        return {
            "format": FORMAT,
            "number": self.number,
            "period": self.period,
            "previous": self.previous,
            "rows": [{"table": t, "part": p, "places": list(places)} for (t, p), places in sorted(self.rows.items())],
            "files": [{"path": p, "bytes": size, "sha256": digest} for p, (size, digest) in sorted(self.files.items())],
        }

    @property
    def digest(self) -> str:
        """Digest of what was erased and what stands there now; each receipt names it."""
        return sha256(document(self.core()))

    @property
    def parts(self) -> list[PartName]:
        """The parts it wrote anew."""
        return [PartName(table, part, self.number) for table, part in sorted(self.rows)]

    @property
    def paths(self) -> set[str]:
        """The files it has to have written."""
        return {path for part in self.parts for path in (part.rows, part.salts)}

    def to_json(self) -> bytes:
        """The bytes of its file."""
        return document(
            {**self.core(), "receipts": [dict(receipt) for receipt in self.receipts], "digest": self.digest}
        )


def erasure_of(raw: bytes, number: int) -> Erasure:
    """The erasure whose bytes are `raw`.

    Raises:
        DamagedError: it is none, or another one, or was edited.
    """
    where = erasure_file(number)
    content: Mapping[str, Any] = parsed(raw, where)
    try:
        found = Erasure(
            number=int(content["number"]),
            period=str(content["period"]),
            previous=str(content["previous"]),
            rows={(str(e["table"]), str(e["part"])): [int(p) for p in e["places"]] for e in content["rows"]},
            files={str(e["path"]): (int(e["bytes"]), str(e["sha256"])) for e in content["files"]},
            receipts=[dict(receipt) for receipt in content["receipts"]],
        )
        sound = found.to_json() == raw and found.number == number and set(found.files) == found.paths
        sound = sound and all(is_part(part) and list(p) == sorted(set(p)) for (_, part), p in found.rows.items())
    except (KeyError, TypeError, ValueError):
        sound = False
    if not sound:
        raise DamagedError(f"{where} is not the record of an erasure: it was edited, or damaged")
    return found
