"""Leaves that stand under names of other systems' logs: a closed list of whole paths, everything else is left out.

An answer of a provider is taken apart key by key (`schemas.leaves`). What a log says about a call stands under names
of its own: an attribute of a span (`gen_ai.usage.input_tokens.cached`), a field of a record (`input.inputTokenCount`).
Their words, taken one by one, mean something else elsewhere, so only the whole name is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping

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
from weighbridge.schemas.leaves import Flattened, Leaf, Refusal, flatten

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
    for path in [path for path, value in values.items() if value is not None and path in LOG_PATHS]:
        if isinstance(values[path], Mapping | list | tuple):
            out.refusals.append(Refusal(path, QuarantineReason.TYPE))
            continue
        # A stand-in with the grammar of its kind: the rules for numbers are those of every other leaf.
        one = flatten(values[path], b"", "usage.cost" if path in _MEASURES else "usage.tokens")
        out.leaves += [Leaf(path, leaf.integer, leaf.text) for leaf in one.leaves]
        out.refusals += [Refusal(path, refusal.reason) for refusal in one.refusals]
        out.dropped_strings += one.dropped_strings
        out.integral_floats += [path] * len(one.integral_floats)
    out.leaves.sort(key=lambda leaf: leaf.path)
    out.refusals.sort()
    return out
