"""The folder a run leaves: its manifest and its table of numbers. Ids and traces are for the room that decrypts."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import polars as pl

from weighbridge.pipeline.compare.answer import Cost
from weighbridge.schemas.comparison_run import MANIFEST, ROWS, VERSION
from weighbridge.schemas.errors import ContractError

_COSTS = tuple(item.name for item in fields(Cost))
_ABOUT = ("made_at", "model", "tokenizer", "max_new_tokens")
_STRATEGY = ("name", "parameters", "implementation", "strategy_id")


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A run that ended.

    Attributes:
        path: its folder.
        about: its manifest.
        rows: one per answer, see `schemas.comparison_run`.
    """

    path: Path
    about: dict[str, Any]
    rows: pl.DataFrame


def read_run(path: Path) -> RunFolder:
    """Read a run and see that nothing of it was changed.

    Raises:
        ContractError: the run did not end, is of a later version, or a file of it is not what its manifest says.
    """
    place = path / MANIFEST
    if not place.is_file():
        raise ContractError(f"{path} has no {MANIFEST}: it is no run, or one that did not end; run it again")
    try:
        about = json.loads(place.read_text(encoding="utf-8"))
        version, files = about["version"], dict(about["files"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ContractError(f"{place} cannot be read as the manifest of a run; run it again") from None
    if version != VERSION:
        raise ContractError(f"{place} is of version {version!r}, this reads {VERSION}; upgrade, or run it again")
    if not _whole(about):
        raise ContractError(f"{place} lacks what a manifest says of a run; restore it, or run it again")
    for name, digest in files.items():
        held = path / name
        if not held.is_file() or hashlib.sha256(held.read_bytes()).hexdigest() != digest:
            raise ContractError(f"{held} is not the file that was written; restore it, or run it again")
    return RunFolder(path, about, pl.read_parquet(path / ROWS))


def _whole(about: dict[str, Any]) -> bool:
    """Whether a manifest says what is read of it: it has no digest of its own."""
    named = about.get("strategies")
    sound = isinstance(named, list) and all(isinstance(each, dict) and set(_STRATEGY) <= set(each) for each in named)
    return sound and set(_ABOUT) <= set(about) and ROWS in about["files"]


def cost_of(row: dict[str, Any]) -> Cost:
    """What the answer of a row took."""
    return Cost(**{name: row[name] for name in _COSTS})
