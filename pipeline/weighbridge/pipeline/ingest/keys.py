"""Keys for many rows at once: the same bytes as `schemas.identity.keyed_key`, a tenth of its cost."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from weighbridge.schemas.enumerations import ForeignIdKind
from weighbridge.schemas.identity import AttemptKey, framed, keyed_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Kinds that name one attempt the same way in every system, so that two sources can meet in them. A record id is one
# source's own number and is hashed together with it; a trace holds many attempts and names none.
SHARED_KINDS = (ForeignIdKind.PROVIDER_RESPONSE_ID, ForeignIdKind.CLIENT_REQUEST_ID, ForeignIdKind.SPAN_ID)
OWN_KINDS = (ForeignIdKind.RECORD_ID,)


def keyed_keys(
    key: bytes, prefix: Sequence[str], values: Iterable[str | bytes | None], *, framed_already: bool = False
) -> NDArray[np.int64]:
    """The keyed 128-bit hash of (prefix..., value) for each value, as rows of (hi, lo).

    Args:
        key: the installation's pseudonym key.
        prefix: the parts before the value.
        values: the last part: text, or where `framed_already` the framed bytes of all the parts that follow.
    """
    begun = hashlib.blake2b(framed(*prefix), key=key[:64], digest_size=16)
    digests = bytearray()
    for value in values:
        raw = value if isinstance(value, bytes) else (value or "").encode("utf-8", "surrogatepass")
        state = begun.copy()
        state.update(raw if framed_already else b"s" + len(raw).to_bytes(8, "big") + raw)
        digests += state.digest()
    return np.frombuffer(bytes(digests), dtype=">i8").astype(np.int64).reshape(-1, 2)


def alias_keys(key: bytes, kind: ForeignIdKind, source: str, values: Iterable[str | None]) -> NDArray[np.int64]:
    """The alias hash of each identifier: of (kind, id), or of (kind, source, id) for a source's own numbers."""
    return keyed_keys(key, _alias_of(kind, source), values)


def alias_key(key: bytes, kind: ForeignIdKind, source: str, value: str) -> AttemptKey:
    """The alias hash of one identifier."""
    return keyed_key(key, *_alias_of(kind, source), value)


def _alias_of(kind: ForeignIdKind, source: str) -> list[str]:
    return [str(kind), source] if kind in OWN_KINDS else [str(kind)]


def aliases(key: bytes, foreign: pl.DataFrame) -> pl.DataFrame:
    """The rows of `alias` that rows of `foreign_id` give, one each; trace ids give none.

    Args:
        key: the installation's pseudonym key.
        foreign: attempt_hi, attempt_lo, day, source, kind, value.
    """
    parts = []
    for (kind, source), rows in foreign.group_by("kind", "source", maintain_order=True):
        if kind not in SHARED_KINDS and kind not in OWN_KINDS:
            continue
        hashed = alias_keys(key, ForeignIdKind(str(kind)), str(source), rows["value"])
        parts.append(
            rows.select("kind", "attempt_hi", "attempt_lo", "day", "source").with_columns(
                pl.Series("alias_hi", hashed[:, 0]), pl.Series("alias_lo", hashed[:, 1])
            )
        )
    return pl.concat(parts).unique(maintain_order=True) if parts else _NO_ALIAS.clone()


_NO_ALIAS = pl.DataFrame(
    schema={
        "kind": pl.String,
        "attempt_hi": pl.Int64,
        "attempt_lo": pl.Int64,
        "day": pl.Date,
        "source": pl.String,
        "alias_hi": pl.Int64,
        "alias_lo": pl.Int64,
    }
)
