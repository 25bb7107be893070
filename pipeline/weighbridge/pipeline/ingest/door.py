"""The door: which files a call names, which importer reads each, and whether it can be read at all."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from weighbridge.pipeline.ingest.charges.mapping import maps_charges
from weighbridge.pipeline.ingest.importer import Heading, Importer, Source, importers
from weighbridge.pipeline.ingest.json_records import let_go
from weighbridge.schemas.errors import ConfigError, ContractError
from weighbridge.schemas.segment import MANIFEST, SUFFIX, sha256_file

# What stands for an empty file that no importer recognises by its name: it has no rows for any of them.
FALLBACK = "recorded_answers"
# How the names of files end that a folder stands for, compressed or not.
_INPUTS = (".jsonl", ".ndjson", ".json", ".csv", ".parquet", ".prom")
# What a simulation writes beside its segments: the findings to come to, which are no input of those who look for them.
EXPECTED = "expected.json"


@dataclass(frozen=True, slots=True)
class Admitted:
    """A file that was looked at and can be read.

    Attributes:
        place: its place in the call, for the order of results.
        source: what to read.
        importer: who reads it.
        heading: digest, size and what else is known.
        empty: it has no bytes, so nobody needs to read it.
    """

    place: int
    source: Source
    importer: Importer
    heading: Heading
    empty: bool = False


def admit(sources: Sequence[Source], importer: str | None) -> list[Admitted]:
    """Look at every file before anything is written.

    Raises:
        ContractError: names the first file that cannot be read at all, and the next step.
        ConfigError: there is no such importer, or a mapping does not fit its file.
    """
    known = importers()
    if importer is not None and importer not in known:
        raise ConfigError(_unknown(importer, known))
    try:
        return [_admit(place, source, importer, known) for place, source in enumerate(sources)]
    finally:
        let_go()


def files_of(paths: Sequence[Path]) -> Iterator[Path]:
    """The files and segments that `paths` name: a folder stands for what lies directly in it, in order of names.

    Raises:
        ContractError: there is no such file, or a folder without any.
    """
    for path in paths:
        if not path.exists():
            raise ContractError(f"there is no file {path}; check the path, nothing was read")
        if _is_folder(path):
            inside = sorted(p for p in path.iterdir() if _is_input(p))
            if not inside:
                raise ContractError(
                    f"the folder {path} holds no sealed segment and no {', '.join(_INPUTS)} file; "
                    "name the files themselves, nothing was read"
                )
            yield from inside
        else:
            yield path


def holds_files(path: Path) -> bool:
    """Whether a file, a segment, or a folder with any of them directly in it; a folder without is of no use."""
    return not _is_folder(path) or any(_is_input(inside) for inside in path.iterdir())


def _is_folder(path: Path) -> bool:
    return path.is_dir() and path.suffix != SUFFIX and not (path / MANIFEST).is_file()


def _is_input(path: Path) -> bool:
    if path.name.startswith(".") or path.name == EXPECTED:
        return False
    if path.is_dir():
        return path.suffix == SUFFIX
    return path.name.lower().removesuffix(".gz").endswith(_INPUTS)


def _unknown(name: str, known: dict[str, Importer]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"there is no importer {name!r}; {hint}known are {', '.join(known)}"


def _admit(place: int, source: Source, name: str | None, known: dict[str, Importer]) -> Admitted:
    path = source.path
    try:
        empty = path.is_file() and path.stat().st_size == 0
        importer = _importer_of(source, name, known, empty=empty)
        if empty:
            return Admitted(place, source, importer, Heading(digest=sha256_file(path), bytes=0), empty=True)
        return Admitted(place, source, importer, importer.check(source))
    except OSError as error:
        raise ContractError(
            f"{path} cannot be read ({type(error).__name__}); give this user access or copy it again. "
            "Nothing was written."
        ) from error


def _importer_of(source: Source, name: str | None, known: dict[str, Importer], *, empty: bool) -> Importer:
    if name is not None:
        return known[name]
    fits = [importer for importer in known.values() if importer.recognises(source.path)]
    if source.mapping is not None and not any(importer.recorded for importer in fits):
        return known["mapped_charges" if maps_charges(source.mapping) else "mapped"]
    if len(fits) == 1:
        return fits[0]
    if not fits and empty:
        return known[FALLBACK]
    found = "several importers recognise" if fits else "no importer recognises"
    raise ContractError(
        f"{found} {source.path}. Name one with --importer ({', '.join(known)}), or describe the columns of a "
        "CSV, JSONL or Parquet file in a mapping file and give it with --mapping; nothing was written."
    )
