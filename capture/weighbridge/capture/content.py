"""Level 2: token ids leave the request path by reference and reach the disk encrypted, or not at all.

`offer` appends a reference to a bounded queue. The keeper turns the runs into bytes, gathers them per (tenant, subject
bucket) until a block is worth while or old enough, compresses, encrypts and appends it to the content file of the
process. Without a key nothing is written in clear: the runs are counted under `no_key`. A kill loses what was still in
memory; the level-1 record says how many ids were expected, so the loss is seen.
"""

from __future__ import annotations

import array
import json
import os
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from weighbridge.schemas.block import BlockName, CipherMissingError, seal_block
from weighbridge.schemas.enumerations import GapReason, Origin, RunStream, TokenClass
from weighbridge.schemas.keys import KeyProvider, KeyScope, KeyUnavailableError
from weighbridge.schemas.packing import pack_planes

if TYPE_CHECKING:
    from weighbridge.capture.losses import Losses

SUFFIX: Final = ".content"
_FRAME: Final = 12  # 4 bytes length of the description, 4 of the block, 4 CRC-32 of both


@dataclass(slots=True)
class Run:
    """One run of ids: whose, which stream, and the ids themselves (any sequence or array of integers)."""

    hi: int
    lo: int
    child: int
    number: int
    stream: RunStream
    start: int
    ids: Any
    token_class: TokenClass | None = None
    origin: Origin | None = None


@dataclass(slots=True)
class _Gathering:
    """Runs of one (tenant, subject bucket) that wait for their block."""

    since: float
    runs: list[dict[str, Any]] = field(default_factory=list)
    data: bytearray = field(default_factory=bytearray)


class Content:
    """The content side of one recorder. Only the keeper calls anything but `offer`."""

    def __init__(
        self,
        keys: KeyProvider | None,
        losses: Losses,
        *,
        buffer_bytes: int,
        block_bytes: int = 256 << 10,
        block_age_s: float = 30.0,
    ) -> None:
        self._keys = keys
        self._losses = losses
        self._room = buffer_bytes
        self._block_bytes = block_bytes
        self._block_age_s = block_age_s
        self._queue: deque[tuple[str, int, int, Run]] = deque()
        self._queued = 0
        self._gathering: dict[tuple[str, int], _Gathering] = {}
        self._blocks = 0

    def offer(self, tenant: str, bucket: int, run: Run) -> int:
        """Hand over a run by reference; how many ids will follow, or -1 where it was refused and counted."""
        if self._keys is None:
            self._losses.count(GapReason.NO_KEY, 1)
            return -1
        length = len(run.ids)
        if self._queued + 4 * length > self._room:
            self._losses.count(GapReason.BUFFER_FULL, 1)
            return -1
        self._queued += 4 * length
        self._queue.append((tenant, bucket, length, run))
        return length

    def drain(self, write: Callable[[bytes], None], *, all_: bool = False) -> None:
        """Turn waiting runs into bytes and write the blocks that are due; `all_`: every one."""
        now = time.monotonic()
        while self._queue:
            tenant, bucket, length, run = self._queue.popleft()
            raw = id_bytes(run.ids)
            self._queued -= 4 * length
            waiting = self._gathering.setdefault((tenant, bucket), _Gathering(now))
            waiting.runs.append(
                {
                    "hi": run.hi,
                    "lo": run.lo,
                    "child": run.child,
                    "run": run.number,
                    "stream": str(run.stream),
                    "start": run.start,
                    "length": len(raw) // 4,
                    "class": None if run.token_class is None else str(run.token_class),
                    "origin": None if run.origin is None else str(run.origin),
                }
            )
            waiting.data += raw
            if len(waiting.data) >= self._block_bytes:
                self._write_block(tenant, bucket, write)
        for (tenant, bucket), waiting in list(self._gathering.items()):
            if all_ or now - waiting.since > self._block_age_s:
                self._write_block(tenant, bucket, write)

    def _write_block(self, tenant: str, bucket: int, write: Callable[[bytes], None]) -> None:
        waiting = self._gathering.pop((tenant, bucket))
        month = datetime.now(tz=UTC).strftime("%Y-%m")
        block = os.urandom(16).hex()
        try:
            assert self._keys is not None
            key_name, key = self._keys.current(KeyScope(tenant, bucket, month))
            name = BlockName("token_run", tenant, bucket, month, "ids", block)
            sealed = seal_block(key, name, pack_planes(bytes(waiting.data)))
        except (KeyUnavailableError, CipherMissingError):
            self._losses.count(GapReason.NO_KEY, len({(run["hi"], run["lo"]) for run in waiting.runs}))
            return
        about = {
            "tenant": tenant,
            "bucket": bucket,
            "month": month,
            "block": block,
            "key": key_name,
            "runs": waiting.runs,
        }
        write(frame(json.dumps(about, separators=(",", ":")).encode(), sealed))
        self._blocks += 1


def frame(about: bytes, block: bytes) -> bytes:
    """One block in a content file: lengths, checksum, description, ciphertext."""
    body = about + block
    return (
        len(about).to_bytes(4, "little")
        + len(block).to_bytes(4, "little")
        + zlib.crc32(body).to_bytes(4, "little")
        + body
    )


def frames(path: Path) -> Iterator[tuple[dict[str, Any], bytes] | None]:
    """The blocks of a content file; None for the rest of it once a frame does not fit its checksum."""
    raw = path.read_bytes()
    at = 0
    while at < len(raw):
        head = raw[at : at + _FRAME]
        about, block = int.from_bytes(head[:4], "little"), int.from_bytes(head[4:8], "little")
        body = raw[at + _FRAME : at + _FRAME + about + block]
        if len(head) < _FRAME or len(body) < about + block or zlib.crc32(body) != int.from_bytes(head[8:12], "little"):
            yield None
            return
        yield json.loads(body[:about]), body[about:]
        at += _FRAME + about + block


def id_bytes(ids: Any) -> bytes:
    """Ids of any kind (list, array, NumPy, torch) as little-endian unsigned 32-bit.

    Raises:
        OverflowError: an id that is negative or does not fit 32 bits.
    """
    if hasattr(ids, "detach"):
        ids = ids.detach().cpu().numpy()
    if hasattr(ids, "astype"):
        if ids.size and (int(ids.min()) < 0 or int(ids.max()) >= 1 << 32):
            raise OverflowError("a token id is outside 0 to 2**32 - 1")
        return bytes(ids.astype("<u4").tobytes())
    return array.array("I", ids).tobytes()
