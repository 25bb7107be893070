"""The integers that attempts of transformers state, in their order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weighbridge.capture.layout import ACCEPTED_STEPS

UNKNOWN: Final = -1
COUNTS: Final = (
    "input_computed", "cached_local", "cached_external", "prefill_computed", "output_computed", "output_delivered",
    "withheld_end_token", "drafted", "accepted", "rejected", "bonus", "undrafted", *ACCEPTED_STEPS, "recomputed",
    "verify_width", "padding", "forward", "attended", "attended_dense", "kv_appended", "kv_evicted", "kv_merged",
    "kv_kept", "queue_us", "prefill_us", "first_token_us", "decode_us", "total_us",
)  # fmt: skip


def stated(known: Mapping[str, int]) -> tuple[int, ...]:
    """The integers in their order; what is not among `known` is unknown."""
    return tuple([known.get(name, UNKNOWN) for name in COUNTS])
