"""KV-cache events of vLLM and SGLang without the token ids they carry in clear.

Engines publish which blocks of their prefix cache they stored and let go of (`--kv-events-config`); each stored block
comes with its token ids, salts and session names. Of all that only sizes are kept, and block hashes under the
installation's key. Events name no request: what they show is the work that no statistic of tokens shows, such as the
prefill of a prompt whose caller left before its first token, and what the cache holds.

A block that is removed is let go by the prefix cache. That says nothing about sparsity: an eviction within a request
is told by state events, and the two are never added up.

The caller decodes the messages (msgpack) and binds the socket: an endpoint without `*` makes the publisher connect.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from weighbridge.schemas.identity import NAME, framed

_HASH_BYTES: Final = 16


class BlockEvent(StrEnum):
    """What happened to blocks."""

    STORED = "stored"
    REMOVED = "removed"
    CLEARED = "cleared"


_KINDS: Final = {
    "BlockStored": BlockEvent.STORED,
    "BlockRemoved": BlockEvent.REMOVED,
    "AllBlocksCleared": BlockEvent.CLEARED,
}


@dataclass(frozen=True, slots=True)
class Blocks:
    """One event, without content.

    Attributes:
        kind: what happened.
        at: seconds since 1970; rank: which data-parallel engine.
        hashes: keyed hashes of the blocks, 32 hexadecimal digits each; none where all blocks are meant.
        tokens: tokens of stored blocks; block_size: tokens of one block; None where the event does not say.
        medium: where the blocks lie, such as GPU.
    """

    kind: BlockEvent
    at: float
    rank: int
    hashes: tuple[str, ...] = ()
    tokens: int | None = None
    block_size: int | None = None
    medium: str | None = None


def blocks_of(batch: Sequence[object], key: bytes) -> Iterator[Blocks]:
    """The events of one decoded message `[time, events, rank]`; an event of a kind that is not known is left out.

    Args:
        batch: the message as its decoder gives it.
        key: the installation's pseudonym key.
    """
    if len(batch) < 2 or not isinstance(batch[0], (int, float)) or not isinstance(batch[1], Sequence):
        return
    rank = batch[2] if len(batch) > 2 and isinstance(batch[2], int) else 0
    for event in batch[1]:
        kind = _KINDS.get(str(event.get("type"))) if isinstance(event, Mapping) else None
        if kind is not None and isinstance(event, Mapping):
            yield _without_content(kind, float(batch[0]), rank, event, key)


def _without_content(kind: BlockEvent, at: float, rank: int, event: Mapping[str, object], key: bytes) -> Blocks:
    hashes, ids = event.get("block_hashes"), event.get("token_ids")
    size, medium = event.get("block_size"), event.get("medium")
    return Blocks(
        kind,
        at,
        rank,
        tuple(_keyed(key, each) for each in hashes) if isinstance(hashes, Sequence) else (),
        len(ids) if kind is BlockEvent.STORED and isinstance(ids, Sequence) else None,
        size if isinstance(size, int) and not isinstance(size, bool) else None,
        medium if isinstance(medium, str) and NAME.fullmatch(medium) else None,
    )


def _keyed(key: bytes, told: object) -> str:
    """The hash of a block under our key: whoever knows its tokens and the engine's hash can not find it again."""
    raw = told if isinstance(told, bytes) else str(told)
    return hmac.new(key, framed("kv block", raw), hashlib.sha256).hexdigest()[: 2 * _HASH_BYTES]


@dataclass(slots=True)
class Cache:
    """What the events of one publisher add up to.

    Attributes:
        stored, removed: blocks that were, of each medium; stored_tokens: tokens in them.
        held: blocks the cache holds now, as far as events tell.
        lost: messages that are missing in the sequence. Where any are, `held` is not known to be right.
    """

    stored: Counter[str] = field(default_factory=Counter)
    removed: Counter[str] = field(default_factory=Counter)
    stored_tokens: int = 0
    cleared: int = 0
    lost: int = 0
    _held: set[tuple[int, str | None, str]] = field(default_factory=set)
    _last: int | None = None

    @property
    def held(self) -> int:
        """Blocks held."""
        return len(self._held)

    def add(self, sequence: int, events: Iterator[Blocks]) -> None:
        """Add a message; `sequence` is its number, which counts from 0."""
        if self._last is not None and sequence > self._last + 1:
            self.lost += sequence - self._last - 1
        self._last = sequence
        for event in events:
            if event.kind is BlockEvent.CLEARED:
                self.cleared += 1
                self._held.clear()
                continue
            names = {(event.rank, event.medium, name) for name in event.hashes}
            if event.kind is BlockEvent.STORED:
                self.stored[event.medium or ""] += len(names)
                self.stored_tokens += event.tokens or 0
                self._held |= names
            else:
                self.removed[event.medium or ""] += len(names)
                self._held -= names
