"""Leaves that stand under names of other systems' logs: a closed list of whole paths, everything else is left out.

An answer of a provider is taken apart key by key (`schemas.leaves`). What a log says about a call stands under names
of its own: an attribute of a span (`gen_ai.usage.input_tokens.cached`), a field of a record (`input.inputTokenCount`).
Their words, taken one by one, mean something else elsewhere, so only the whole name is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from operator import attrgetter

from weighbridge.pipeline.ingest.dialect import Dialect
from weighbridge.pipeline.ingest.dialects import (
    _spans,
    anthropic_usage,
    bedrock_invocation_log,
    openai_usage,
    openinference,
    otel_gen_ai,
)
from weighbridge.pipeline.ingest.gateway_paths import GATEWAY_CHARGES, GATEWAY_COUNTS
from weighbridge.schemas.enumerations import QuarantineReason
from weighbridge.schemas.leaves import INT64_MAX, Flattened, Leaf, Refusal, flatten

# Leaves stand in the order of their paths.
PATH = attrgetter("path")
# Decimals that stand in a leaf as they are written.
_PLAIN = re.compile(r"-?\d{1,40}\.\d{1,40}")
# What a session log of an older release says a message cost, US dollars.
COST = "costUSD"
# Quantities of usage pages that need not be whole.
_MEASURES = frozenset({"result.seconds", COST}) | GATEWAY_CHARGES
# Writes that are kept for half an hour and for twelve, which OpenAI's page tells apart by name: rows of one figure.
WRITES: Mapping[str, str] = {
    "result.input_cache_write_tokens": "result.input_cache_write_tokens[0]",
    "result.input_cache_write_12h_tokens": "result.input_cache_write_tokens[1]",
}


def _paths(dialect: Dialect, *containers: str) -> frozenset[str]:
    """The paths a dialect reads in one of its containers."""
    return frozenset(f"{container}.{name}" for container in containers for name in dialect.roles if "[*]" not in name)


SPAN_PATHS: frozenset[str] = (
    _paths(otel_gen_ai.DIALECT, "gen_ai.usage", "llm.usage")
    | _paths(openinference.DIALECT, "llm.token_count")
    | frozenset(f"ai.usage.{name}" for name in _spans.VERCEL)
)
PAGE_PATHS: frozenset[str] = (
    _paths(openai_usage.DIALECT, "result") | _paths(anthropic_usage.DIALECT, "result") | set(WRITES.values())
)
BEDROCK_PATHS: frozenset[str] = frozenset(
    f"{'output' if name.startswith('output') else 'input'}.{name}" for name in bedrock_invocation_log.DIALECT.roles
)
LOG_PATHS: frozenset[str] = SPAN_PATHS | PAGE_PATHS | BEDROCK_PATHS | {COST} | GATEWAY_COUNTS | GATEWAY_CHARGES
LOG_COUNTS: frozenset[str] = LOG_PATHS - _MEASURES


def named_leaves(values: Mapping[str, object]) -> Flattened:
    """The leaves of a record whose fields stand under whole names; what is not in the list is left out.

    Args:
        values: path -> number, as it came. A number that is none, or no whole one where tokens are counted, is refused.
    """
    out = Flattened()
    for path, value in values.items():
        if value is None or path not in LOG_PATHS:
            continue
        if type(value) is int and -INT64_MAX <= value <= INT64_MAX:
            out.leaves.append(Leaf(path, value, None))
        elif type(value) is Decimal and path in _MEASURES and _PLAIN.fullmatch(text := str(value)):
            out.leaves.append(Leaf(path, None, text))
        elif isinstance(value, dict | list | tuple):
            out.refusals.append(Refusal(path, QuarantineReason.TYPE))
        else:
            _other(out, path, value)
    out.leaves.sort(key=PATH)
    out.refusals.sort()
    return out


def _other(out: Flattened, path: str, value: object) -> None:
    """A value that is no plain number: a stand-in with the grammar of its kind, whose rules hold for every leaf."""
    one = flatten(value, b"", "usage.cost" if path in _MEASURES else "usage.tokens")
    out.leaves += [Leaf(path, leaf.integer, leaf.text) for leaf in one.leaves]
    out.refusals += [Refusal(path, refusal.reason) for refusal in one.refusals]
    out.dropped_strings += one.dropped_strings
    out.integral_floats += [path] * len(one.integral_floats)
