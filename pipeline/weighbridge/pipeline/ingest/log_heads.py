"""What importers of JSON logs do before they read: recognise a file by its first records, and look at it whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from weighbridge.pipeline.ingest.importer import Heading
from weighbridge.pipeline.ingest.json_lines import Line, opened
from weighbridge.pipeline.ingest.json_records import is_json
from weighbridge.schemas.errors import ContractError
from weighbridge.schemas.segment import sha256_file

Records = Callable[[Path], Iterator[Line]]
_PEEK = 50


def recognised(path: Path, records: Records, fits: Callable[[Mapping[str, object]], bool]) -> bool:
    """Whether one of the first records of a JSON file is of this log. Never raises."""
    if not is_json(path):
        return False
    try:
        return any(line.value is not None and fits(line.value) for line in islice(records(path), _PEEK))
    except (ContractError, OSError):
        return False


def read_through(path: Path) -> None:
    """Decompress a file to its end: a damaged one is found before anything is written.

    Raises:
        ContractError: the compressed file is damaged.
    """
    with opened(path) as file:
        while file.read(2**20):
            pass


def heading(path: Path, records: Records, what: str, cure: str) -> Heading:
    """The heading of a file, once it is known to hold an object, and that all of it can be decompressed.

    Args:
        path: the file.
        records: how its records are read.
        what: what it should be, for the message.
        cure: what to do where it is not, as a sentence without its full stop.

    Raises:
        ContractError: it is damaged, or holds records and none of them is an object.
    """
    read_through(path)
    why = None
    for line in records(path):
        if line.value is not None:
            why = None
            break
        why = why or f"the first one, in place {line.number}, is {line.reason}"
    if why is not None:
        raise ContractError(
            f"{path} holds no JSON object in any of its records ({why}): it is no {what}, or damaged. "
            f"{cure}; nothing was written."
        )
    return Heading(sha256_file(path), path.stat().st_size)
