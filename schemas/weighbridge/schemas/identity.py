"""Keys: who an attempt is, how foreign names map to it, and how names become pseudonyms.

An attempt id is a UUIDv7 (RFC 9562) made by the recorder or carried in a header. In tables it is two signed Int64:
`hi` is the first eight bytes, `lo` the last eight, big-endian. Where no recorder id exists, the key is a keyed
128-bit hash of what does identify the attempt.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import struct
import time
from collections.abc import Iterable
from typing import NamedTuple

_PAIR = struct.Struct(">qq")
BUCKETS = 64

# What may stand in a column for identifiers of other systems. Anything else is text until proved otherwise.
IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+=-]{0,199}")
# A name chosen by the user for a task, a route or an importer: no blanks, so no sentence fits in.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}")
# A route may be the path of an endpoint: a name with a "/" before it.
ROUTE = re.compile("/?" + NAME.pattern)


def shown(names: Iterable[str]) -> str:
    """Names of fields or files of somebody else, for a message: those that are names, and how many are not.

    The first row of a table without a header, or a key of a JSON object, may be any text.
    """
    told = list(names)
    fit = sorted(name for name in told if NAME.fullmatch(name))
    other = len(told) - len(fit)
    listed = ", ".join(fit) or ("" if other else "none")
    return listed if not other else f"{listed}{' and ' if fit else ''}{other} of names that are not repeated here"


class AttemptKey(NamedTuple):
    """The 128-bit key of an attempt as two signed 64-bit integers."""

    hi: int
    lo: int

    @classmethod
    def from_bytes(cls, raw: bytes) -> AttemptKey:
        """The key whose 16 big-endian bytes are `raw`."""
        return cls(*_PAIR.unpack(raw))

    @classmethod
    def from_hex(cls, text: str) -> AttemptKey:
        """The key written as 32 hexadecimal digits, with or without the hyphens of a UUID.

        Raises:
            ValueError: `text` is not 32 hexadecimal digits.
        """
        digits = text.replace("-", "").strip().lower()
        if not re.fullmatch(r"[0-9a-f]{32}", digits):
            raise ValueError(f"{text!r} is no attempt id: 32 hexadecimal digits are expected, as `explain` prints them")
        return cls.from_bytes(bytes.fromhex(digits))

    def to_bytes(self) -> bytes:
        """The 16 big-endian bytes."""
        return _PAIR.pack(self.hi, self.lo)

    def to_hex(self) -> str:
        """The 32 hexadecimal digits."""
        return self.to_bytes().hex()

    @property
    def bucket(self) -> int:
        """The spill bucket, 0 to 63: the low six bits of `lo`."""
        return self.lo & (BUCKETS - 1)


def new_attempt_id(unix_ms: int | None = None, random: bytes | None = None) -> AttemptKey:
    """A fresh UUIDv7: 48 bits of Unix milliseconds, then 74 random bits (RFC 9562, section 5.7)."""
    unix_ms = time.time_ns() // 1_000_000 if unix_ms is None else unix_ms
    raw = bytearray((unix_ms & (1 << 48) - 1).to_bytes(6, "big") + (os.urandom(10) if random is None else random[:10]))
    raw[6] = 0x70 | raw[6] & 0x0F
    raw[8] = 0x80 | raw[8] & 0x3F
    return AttemptKey.from_bytes(bytes(raw))


def framed(*parts: str | bytes | int) -> bytes:
    """The parts, each with its kind and length before it, so that no two sequences of parts give the same bytes."""
    out = bytearray()
    for part in parts:
        if isinstance(part, bytes):
            kind, raw = b"b", part
        elif isinstance(part, str):
            kind, raw = b"s", part.encode("utf-8", "surrogatepass")  # JSON may name half a character
        else:
            kind, raw = b"i", str(part).encode()
        out += kind + len(raw).to_bytes(8, "big") + raw
    return bytes(out)


def keyed_key(key: bytes, *parts: str | bytes | int) -> AttemptKey:
    """The keyed 128-bit hash (BLAKE2b) of a sequence of parts, as an attempt or alias key.

    Args:
        key: the installation's pseudonym key, 16 to 64 bytes.
        parts: what identifies the thing, most general first: source, kind, foreign id, occurrence number.
    """
    return AttemptKey.from_bytes(hashlib.blake2b(framed(*parts), key=key[:64], digest_size=16).digest())


def pseudonym(key: bytes, kind: str, name: str) -> str:
    """The pseudonym of a tenant or user: HMAC-SHA256 cut to 64 bits, in hexadecimal, after the letter of its kind."""
    return f"{kind[:1]}_{hmac.new(key, framed(kind, name), hashlib.sha256).hexdigest()[:16]}"


def erased(what: str) -> str:
    """How a receipt names a tenant or attempt that was erased: a hash that says whether it is the one you hold.

    Without the pseudonym nobody gets from it to the pseudonym, and without the installation's key nobody gets from a
    name to the pseudonym.

    Args:
        what: the pseudonym of a tenant, or the 32 hexadecimal digits of an attempt id.
    """
    return f"x_{hashlib.sha256(framed('weighbridge erased', what)).hexdigest()[:32]}"


def key_id(key: bytes) -> str:
    """A public name of a key: says whether two hosts use the same one, says nothing about it."""
    return hashlib.blake2b(b"weighbridge key id", key=key[:64], digest_size=6).hexdigest()
