"""Whether a leaf path may be stored: the grammar of `schemas.leaves`, for paths that someone else wrote down."""

from __future__ import annotations

import re

from weighbridge.pipeline.ingest.headers import HEADER_PATHS
from weighbridge.pipeline.ingest.log_leaves import LOG_COUNTS, LOG_PATHS
from weighbridge.schemas.lattice import CELLS
from weighbridge.schemas.leaves import BARE, CONTAINERS, COUNT_KEYS, ENUMERATED, KEYS

# Leaves of api `declared`, in our own words.
DECLARED_PATHS: frozenset[str] = frozenset(
    f"usage.{name}" for name in ("input_total", "output_total", "total", *(cell.name for cell in CELLS))
)
_STEP = re.compile(r"([^\[\].]+)((?:\[[^\[\]]+\])*)")
_BRACKETED = re.compile(r"\[([^\[\]]+)\]")
_LABEL = re.compile(r"([^#]+)(#[1-9][0-9]{0,3})?")
_HASHED = re.compile(r"h_[0-9a-f]{8}")
_NAMES = KEYS | BARE | {step for container in CONTAINERS for step in container.split(".")}
_LABELS = frozenset(value for name in ("modality", "type", "ttl") for value in ENUMERATED[name])


def is_leaf_path(path: str) -> bool:
    """Whether every step of `path` is an allow-listed key, a hashed one, or the number or enumeration of an element."""
    if path in DECLARED_PATHS or path in HEADER_PATHS or path in LOG_PATHS:
        return True
    return all(_is_step(step) for step in path.split("."))


def is_count(path: str) -> bool:
    """Whether the leaf at `path` is a number of tokens, calls or the like: an integer or nothing."""
    name = path.rsplit(".", 1)[-1].split("[", 1)[0]
    listed = path in DECLARED_PATHS or path in HEADER_PATHS or path in LOG_COUNTS
    return listed or (path not in LOG_PATHS and (name in COUNT_KEYS or name in BARE))


def _is_step(step: str) -> bool:
    found = _STEP.fullmatch(step)
    if found is None or not (found[1] in _NAMES or _HASHED.fullmatch(found[1])):
        return False
    return all(map(_is_label, _BRACKETED.findall(found[2])))


def _is_label(text: str) -> bool:
    found = _LABEL.fullmatch(text)
    return found is not None and (found[1] in _LABELS or (found[1].isascii() and found[1].isdigit()))
