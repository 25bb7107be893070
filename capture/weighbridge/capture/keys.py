"""The key providers, where a serving process looks for them; the batch, which opens what they seal, uses the same."""

from __future__ import annotations

from weighbridge.schemas.keys import (
    KEY_BYTES,
    KEY_NAME,
    KeyCommand,
    KeyEnvironment,
    KeyFolder,
    KeyProvider,
    KeyScope,
    KeyUnavailableError,
)

__all__ = [
    "KEY_BYTES",
    "KEY_NAME",
    "KeyCommand",
    "KeyEnvironment",
    "KeyFolder",
    "KeyProvider",
    "KeyScope",
    "KeyUnavailableError",
]
