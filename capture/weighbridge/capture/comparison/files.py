"""What a run leaves: the agent's sealed segments (ids and traces encrypted), one table of numbers, a manifest.

The manifest is written last; a folder without one is a run that did not end.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from weighbridge.schemas.comparison_run import MANIFEST, ROWS, SPOOL, TOKENIZER, VERSION, schema

__all__ = ["MANIFEST", "ROWS", "SPOOL", "TOKENIZER", "write_run"]
_READ: Final = 1 << 20


def write_run(folder: Path, rows: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> None:
    """Write the table of numbers and, when all is on disk, the manifest.

    Args:
        folder: of the run; its spool is sealed.
        rows: one per answer, as `schemas.comparison_run` declares.
        about: what the manifest says of the run.
    """
    pq.write_table(
        pa.Table.from_pylist([dict(row) for row in rows], schema=schema()), folder / ROWS, compression="zstd",
        write_page_checksum=True,
    )  # fmt: skip
    held = sorted(path for path in folder.rglob("*") if path.is_file())
    files = {path.relative_to(folder).as_posix(): _digest(path) for path in held if path.name != MANIFEST}
    content = json.dumps({"version": VERSION, **about, "files": files}, indent=1, sort_keys=True)
    temporary = folder / f".{MANIFEST}"
    with temporary.open("w", encoding="utf-8") as file:
        file.write(content + "\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / MANIFEST)


def _digest(path: Path) -> str:
    state = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_READ):
            state.update(block)
    return state.hexdigest()
