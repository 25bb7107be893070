"""What the figures of a close rest on beside its rows: rules, prices, code, lock, settings; each one plain document.

Nothing here depends on the machine, its clock, its locale or the folder the product lies in.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import weighbridge
from weighbridge.pipeline.close.plain import DamagedError, document, sha256
from weighbridge.pipeline.ingest.dialect import Dialect
from weighbridge.pipeline.ingest.dialect_facts import dialect_of, facts_of
from weighbridge.pipeline.ingest.dialects import all_dialects
from weighbridge.pipeline.ingest.speakers import Lookup, lookup
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.row import PriceRow
from weighbridge.pipeline.reconcile.explain.cause import all_causes
from weighbridge.pipeline.reconcile.explain.cures import CURES, FAMILIES
from weighbridge.schemas.identity import framed
from weighbridge.schemas.version import SCHEMA_VERSION

PRODUCT = "weighbridge"
# The rooms whose code decides what a figure is. Their digests say whether a pack can be held to the letter.
ROOMS = ("ingest", "price", "reconcile")
_SOURCES = (".py", ".toml", ".jsonl")


@cache
def source_files() -> dict[str, str]:
    """Path below the namespace -> SHA-256 of every source file of the installed product."""
    found: dict[str, str] = {}
    for root in weighbridge.__path__:
        for path in Path(root).rglob("*"):
            if path.suffix in _SOURCES and "__pycache__" not in path.parts:
                found[path.relative_to(root).as_posix()] = sha256(path.read_bytes())
    return dict(sorted(found.items()))


def _digest(files: Iterable[tuple[str, str]]) -> str:
    return hashlib.sha256(b"".join(framed(path, digest) for path, digest in sorted(files))).hexdigest()


def code() -> dict[str, Any]:
    """Version of the product, and the digest of its source: of all files, and each by name."""
    files = source_files()
    return {
        "product": PRODUCT,
        "version": metadata.version(PRODUCT),
        "schema_version": SCHEMA_VERSION,
        "sha256": _digest(files.items()),
        "files": files,
    }


def lock() -> dict[str, Any]:
    """The interpreter and every installed distribution with its version."""
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "distributions": dict(sorted(_distributions().items())),
    }


@cache
def _distributions() -> dict[str, str]:
    """Name -> version. Reading what hundreds of them say of themselves takes a quarter of a small close."""
    found: dict[str, str] = {}
    for each in metadata.distributions():
        about = each.metadata
        found[re.sub(r"[-_.]+", "-", str(about["Name"])).lower()] = about["Version"]
    return found


def rules() -> dict[str, Any]:
    """The dialects reports are read by, the causes of gaps, what cures them, and digests of the rooms behind it all."""
    return {
        "dialects": [facts_of(dialect) for dialect in all_dialects().values()],
        "causes": [
            {
                "code": cause.code,
                "title": cause.title,
                "directions": [str(direction) for direction in cause.directions],
                "cure": cause.cure,
                "structural": cause.structural,
                "order": cause.order,
                "severity": str(cause.severity),
                "at_stake": cause.at_stake,
            }
            for cause in all_causes()
        ],
        "cures": [
            {"cause": code, "family": family, "providers": sorted(FAMILIES[family]), "cure": cure}
            for (code, family), cure in sorted(CURES.items())
        ],
        "rooms": {room: room_digest(room) for room in ROOMS},
    }


@cache
def room_digest(room: str) -> str:
    """Digest of the code of one room of the pipeline; prices are no code."""
    inside = f"pipeline/{room}/"
    return _digest((p, d) for p, d in source_files().items() if p.startswith(inside) and p.endswith(".py"))


def prices(book: PriceBook, used: Collection[str]) -> dict[str, Any]:
    """The layers of the book, cut down to the rows that were used: among those, each is found as in the whole book.

    Rows that earlier amounts name and the book no longer has stand under `others`.
    """
    layers = [[row.price_id for row in layer if row.price_id in used] for layer in book.layers]
    held = {price_id for layer in layers for price_id in layer}
    return {"layers": [sorted(set(layer)) for layer in layers if layer], "others": sorted(set(used) - held)}


def book_of(pinned: Mapping[str, Any], rows: Mapping[str, PriceRow]) -> PriceBook:
    """The price book a month was closed with.

    Raises:
        DamagedError: a row it names is not there.
    """
    try:
        return PriceBook([[rows[price_id] for price_id in layer] for layer in pinned["layers"]])
    except (KeyError, TypeError):
        raise DamagedError("pins/prices.json names a price row that the pack does not have") from None


def dialects_of(pinned: Mapping[str, Any]) -> Lookup:
    """The dialects a month was closed with.

    Raises:
        DamagedError: they are not the facts of dialects.
    """
    try:
        return lookup(_dialect(json.dumps(facts, sort_keys=True)) for facts in pinned["dialects"])
    except (KeyError, TypeError, ValueError):
        raise DamagedError("pins/rules.json does not hold the facts of dialects") from None


@lru_cache(maxsize=256)
def _dialect(facts: str) -> Dialect:
    """One dialect for equal facts: what is learnt about a dialect is kept beside it."""
    return dialect_of(json.loads(facts))


def digest(content: Mapping[str, Any]) -> str:
    """The digest of a pinned document: that of its file."""
    return sha256(document(content))
