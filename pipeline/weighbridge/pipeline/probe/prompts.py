"""The fixed texts of a probe, and the digest by which two results are known to have sent the same."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FILE = Path(__file__).parent / "prompts.toml"


@dataclass(frozen=True, slots=True)
class Prompts:
    """The texts by name, their version, and the SHA-256 of their file."""

    version: int
    digest: str
    texts: Mapping[str, str]

    def longer(self, name: str) -> str:
        """A text with the addition behind it."""
        return self.texts[name] + self.texts["addition"]


@cache
def prompts() -> Prompts:
    """The texts that ship with this version."""
    raw = _FILE.read_bytes()
    told = tomllib.loads(raw.decode())
    return Prompts(told["version"], hashlib.sha256(raw).hexdigest(), told["texts"])
