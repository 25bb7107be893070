"""Level 2: token ids leave the request path by reference and reach the disk encrypted, or not at all.

`offer` appends references to a bounded queue. The keeper turns the runs into bytes, gathers them per (tenant, subject
bucket, day) until a block is worth while or old enough, compresses, encrypts and appends it to the content file of the
process. Without a key nothing is written in clear: the runs are counted under `no_key`. A kill loses what was still in
memory; the level-1 record says how many ids were expected, so the loss is seen.
"""

from __future__ import annotations

import array
import json
import os
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from weighbridge.capture.guard import report
from weighbridge.capture.journal import MAPPABLE, close_private, open_private
from weighbridge.schemas.block import BlockName, CipherMissingError, seal_block
from weighbridge.schemas.enumerations import GapReason, Origin, RunStream, TokenClass
from weighbridge.schemas.errors import ContractError
from weighbridge.schemas.identity import AttemptKey
from weighbridge.schemas.keys import KeyProvider, KeyScope, KeyUnavailableError
from weighbridge.schemas.packing import pack_planes

if TYPE_CHECKING:
    from weighbridge.capture.losses import Losses

SUFFIX: Final = ".content"
MAGIC: Final = b"WBCN"
_FRAME: Final = 16  # magic, 4 bytes length of the description, 4 of the block, 4 CRC-32 of all but the magic
_ABOUT_BYTES: Final = 256  # what the description of a run takes while it waits
BESIDE_BYTES: Final = 2 * _ABOUT_BYTES
OBJECTS: Final = frozenset({list, tuple})
OBJECT_BYTES: Final = 36  # of a Python integer and the reference to it
_EPOCH: Final = date(1970, 1, 1)


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


@dataclass(frozen=True, slots=True)
class Place:
    """What a block is made of: the runs of one tenant, subject bucket and UTC day (days since 1970)."""

    tenant: str
    bucket: int
    day: int

    @property
    def date(self) -> date:
        """The day."""
        return _EPOCH + timedelta(days=self.day)


@dataclass(slots=True)
class _Gathering:
    """Runs of one place that wait for their block."""

    since: float
    runs: list[list[Any]] = field(default_factory=list)
    data: bytearray = field(default_factory=bytearray)

    def size(self) -> int:
        """Bytes it is counted with."""
        return len(self.data) + _ABOUT_BYTES * len(self.runs)


class Offering(Protocol):
    """An attempt whose ids were handed over."""

    @property
    def key(self) -> AttemptKey:
        """Its key."""
        ...

    def content_place(self) -> Place:
        """The place of its ids."""
        ...


class Content:
    """The content side of one recorder. Only the keeper calls anything but `offer`.

    Attributes:
        held: bytes that wait, by reference or gathered; never above `room`.
        pairs: (attempt, bytes, prompt ids, output ids) that wait; `Attempt.offer` appends.
        quick: whether `Attempt.offer` may append: there are keys, and the GIL keeps sums of `held` whole.
    """

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
        self.room = buffer_bytes
        self._block_bytes = block_bytes
        self._block_age_s = block_age_s
        self._lock = threading.RLock()
        self._draining = threading.Lock()
        self._queue: deque[tuple[Place, int, Sequence[Run]]] = deque()
        self.pairs: deque[tuple[Offering, int, Any, Any]] = deque()
        self.quick = keys is not None and MAPPABLE
        self.held = 0
        self._gathering: dict[Place, _Gathering] = {}

    def offer(self, place: Place, runs: Sequence[Run]) -> int:
        """Hand over the runs of an attempt by reference; how many ids will follow, or -1 where none will, counted."""
        runs = tuple(runs)
        total = whole = 0
        for run in runs:
            held = run.ids
            length = len(held)
            total += length
            whole += _cost(held, length)
        if not whole:
            return -1
        if self._keys is None:
            self._losses.count(GapReason.NO_KEY, 1, total)
            return -1
        if not self.reserve(whole):
            self._losses.count(GapReason.BUFFER_FULL, 0, total)
            return -1
        self._queue.append((place, whole, runs))
        return total

    def drain(self, write: Callable[[bytes], GapReason | None], *, all_: bool = False) -> None:
        """Turn waiting runs into bytes and write the blocks that are due; `all_`: every one.

        Args:
            write: appends a frame to the content file; the reason where it could not.
        """
        with self._draining:  # the keeper; or whoever closes the recorder, should the keeper still be at it
            self._gather(write)
            for place in self._due(time.monotonic(), all_=all_):
                self._write_block(place, write)

    def _gather(self, write: Callable[[bytes], GapReason | None]) -> None:
        """Waiting runs as bytes, in their places."""
        now = time.monotonic()
        while self.pairs:
            attempt, whole, prompt, output = self.pairs.popleft()
            hi, lo = attempt.key
            ids = ((RunStream.PROMPT, prompt), (RunStream.OUTPUT, output))
            pair = [Run(hi, lo, 0, number, stream, 0, held) for number, (stream, held) in enumerate(ids)]
            self._queue.append((attempt.content_place(), whole, pair))
        while self._queue:
            place, whole, runs = self._queue.popleft()
            for run in runs:
                length = len(run.ids)
                cost = min(whole, _cost(run.ids, length))  # a list may have grown since
                whole -= cost
                self._gather_run(place, run, (length, cost, now), write)
            self.release(whole)

    def _gather_run(
        self, place: Place, run: Run, held: tuple[int, int, float], write: Callable[[bytes], GapReason | None]
    ) -> None:
        length, cost, now = held
        try:
            raw = id_bytes(run.ids)
        except Exception as error:  # noqa: BLE001 - whatever the caller's object does, the other runs go on
            report(error, "content")
            self._losses.count(GapReason.SERIALISE, 0, length)
            self.release(cost)
            return
        waiting = self._gathering.setdefault(place, _Gathering(now))
        waiting.runs.append(
            [
                run.hi, run.lo, run.child, run.number, str(run.stream), run.start, len(raw) // 4,
                None if run.token_class is None else str(run.token_class),
                None if run.origin is None else str(run.origin),
            ]
        )  # fmt: skip
        waiting.data += raw
        self.release(cost - len(raw) - _ABOUT_BYTES)
        if len(waiting.data) >= self._block_bytes:
            self._write_block(place, write)

    def _due(self, now: float, *, all_: bool) -> list[Place]:
        """Blocks that are old enough; under pressure the largest ones too, until half of the room is free."""
        due = [place for place, waiting in self._gathering.items() if all_ or now - waiting.since > self._block_age_s]
        left = sum(waiting.size() for place, waiting in self._gathering.items() if place not in due)
        for place in sorted(self._gathering, key=lambda place: -self._gathering[place].size()):
            if left * 2 <= self.room:
                break
            if place not in due:
                due.append(place)
                left -= self._gathering[place].size()
        return due

    def reserve(self, size: int) -> bool:
        """Take room for what waits."""
        # The lock is for builds without the GIL; with it nothing comes between the sum and its store.
        with self._lock:
            held = self.held + size
            if held <= self.room:
                self.held = held
                return True
        return False

    def release(self, size: int) -> None:
        """Give room back."""
        with self._lock:
            self.held = self.held - size

    def _write_block(self, place: Place, write: Callable[[bytes], GapReason | None]) -> None:
        waiting = self._gathering.pop(place)
        self.release(waiting.size())
        block = os.urandom(16).hex()
        month = place.date.strftime("%Y-%m")
        tokens = len(waiting.data) // 4
        try:
            assert self._keys is not None
            key_name, key = self._keys.current(KeyScope(place.tenant, place.bucket, month))
            name = BlockName("token_run", place.tenant, place.bucket, month, "ids", block)
            sealed = seal_block(key, name, pack_planes(bytes(waiting.data)))
        except (KeyUnavailableError, CipherMissingError):
            self._losses.count(GapReason.NO_KEY, len({(run[0], run[1]) for run in waiting.runs}), tokens)
            return
        about = {
            "tenant": place.tenant,
            "bucket": place.bucket,
            "day": place.date.isoformat(),
            "block": block,
            "key": key_name,
            "runs": waiting.runs,
        }
        refused = write(frame(about, sealed))
        if refused is not None:
            # The attempts themselves are in the journal: only ids are lost.
            self._losses.count(refused, 0, tokens)


def _cost(ids: Any, length: int) -> int:
    """What a waiting run keeps in memory: Python integers are objects, an array has at most 8 bytes for each."""
    return length * (OBJECT_BYTES if type(ids) in OBJECTS else 8) + BESIDE_BYTES


def frame(about: Mapping[str, Any], block: bytes = b"") -> bytes:
    """One frame of a content file: magic, lengths, checksum, compressed description, ciphertext."""
    text = zlib.compress(json.dumps(about, separators=(",", ":")).encode(), 6)
    sizes = len(text).to_bytes(4, "little") + len(block).to_bytes(4, "little")
    body = text + block
    return MAGIC + sizes + zlib.crc32(sizes + body).to_bytes(4, "little") + body


def opening(installation: str, process: str, key_id: str) -> bytes:
    """The first frame: who writes the file. `process` is the same in the journals of that process."""
    return frame({"installation": installation, "process": process, "key_id": key_id})


def closing(blocks: int) -> bytes:
    """The last frame of a file that was closed in order."""
    return frame({"blocks": blocks})


class ContentWriter:
    """The content file a process appends to. A frame is there whole or, after a kill, not at all."""

    def __init__(self, path: Path, head: bytes) -> None:
        self.since = time.monotonic()
        self.blocks = 0
        self.size = 0
        self._handle = open_private(path)
        self._put(head)

    def append(self, block: bytes) -> None:
        """Append the frame of a block.

        Raises:
            OSError: it cannot be written; what was written of it is taken back.
        """
        self._put(block)
        self.blocks += 1

    def _put(self, data: bytes) -> None:
        at = 0
        try:
            while at < len(data):
                at += os.write(self._handle, data[at:])
        except OSError:
            os.ftruncate(self._handle, self.size)
            os.lseek(self._handle, self.size, os.SEEK_SET)
            raise
        self.size += len(data)

    def close(self) -> None:
        """Say how many blocks there are, sync, and let go of the file."""
        try:
            self._put(closing(self.blocks))
            os.fsync(self._handle)
        finally:
            handle, self._handle = self._handle, -1
            close_private(handle)

    def forget(self) -> None:
        """In a forked child: drop the parent's file without touching it."""
        handle, self._handle = self._handle, -1
        os.close(handle)


@dataclass(slots=True)
class ContentFile:
    """What a content file holds.

    Attributes:
        header: installation, process, key_id.
        blocks: (description, ciphertext) of each block.
        damaged: stretches of bytes that are no sound frame; what lay there is lost.
        complete: it was closed in order, and every block that was counted then is here.
    """

    header: dict[str, Any]
    blocks: list[tuple[dict[str, Any], bytes]] = field(default_factory=list)
    damaged: int = 0
    complete: bool = False


def read_content(path: Path) -> ContentFile:
    """Read a content file that is closed or abandoned.

    Raises:
        ContractError: its first frame is damaged; the file is left as it is.
    """
    raw = path.read_bytes()
    at, sound, out = 0, True, ContentFile({})
    while at < len(raw):
        found = _frame_at(raw, at)
        if found is None:
            if not at:
                raise ContractError(f"{path}: the first frame is damaged; keep the file for review, nothing was read")
            out.damaged += sound
            sound = False
            at = raw.find(MAGIC, at + 1)
            if at < 0:
                break
            continue
        sound = True
        about, block, at = found
        if "installation" in about:
            out.header = about
        elif "block" in about:
            out.blocks.append((about, block))
        else:
            out.complete = about.get("blocks") == len(out.blocks)
    if not out.header:
        raise ContractError(f"{path} is no content file of this product; move it out of the spool")
    return out


def _frame_at(raw: bytes, at: int) -> tuple[dict[str, Any], bytes, int] | None:
    """The frame at an offset with the offset after it, or None where its checksum does not fit."""
    head = raw[at : at + _FRAME]
    if len(head) < _FRAME or head[:4] != MAGIC:
        return None
    text, block = int.from_bytes(head[4:8], "little"), int.from_bytes(head[8:12], "little")
    end = at + _FRAME + text + block
    body = raw[at + _FRAME : end]
    if end > len(raw) or zlib.crc32(head[4:12] + body) != int.from_bytes(head[12:16], "little"):
        return None
    return json.loads(zlib.decompress(body[:text])), body[text:], end


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
