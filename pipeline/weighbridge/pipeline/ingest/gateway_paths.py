"""The leaves that logs of gateways and tracers are read for, as whole paths: counts, and what they say was charged.

A charge is evidence: it stands beside the counts it was made for, and no price of ours comes from it.
"""

from __future__ import annotations

from collections.abc import Mapping

from weighbridge.pipeline.ingest.dialect import Dialect
from weighbridge.pipeline.ingest.dialects import helicone, langfuse, langsmith, litellm
from weighbridge.pipeline.ingest.dialects._logs import SUMMED_TOTAL

# Charges of SpendLogs: the column, and the parts it is made of where the release writes them.
LITELLM_PARTS = (
    "input_cost",
    "cache_read_cost",
    "cache_creation_cost",
    "output_cost",
    "reasoning_cost",
    "tool_usage_cost",
    "guardrail_cost",
    "original_cost",
    "discount_amount",
    "margin_total_amount",
    "total_cost",
)
LITELLM_SPEND = "spend_log.spend"
# Costs by type of usage; `calculated...` is what older releases call them.
LANGFUSE_COSTS: Mapping[str, str] = {
    name: f"costDetails.{name}" for name in langfuse.DIALECT.roles if name != SUMMED_TOTAL
}
LANGFUSE_CALCULATED = ("calculatedInputCost", "calculatedOutputCost", "calculatedTotalCost")
LANGSMITH_COSTS = ("input_cost", "output_cost", "total_cost", "prompt_cost", "completion_cost")
# Dollars as the service's API answers them; the column of its own table counts them in billionths.
HELICONE_DOLLARS, HELICONE_BILLIONTHS = "request_response.cost", "request_response.cost_billionths"


def _paths(dialect: Dialect) -> frozenset[str]:
    return frozenset(f"{container}.{name}" for container in dialect.containers for name in dialect.roles)


GATEWAY_COUNTS: frozenset[str] = (
    frozenset(f"{container}.{name}" for container in ("usage", "spend_log") for name in litellm.COUNTED)
    | _paths(langfuse.DIALECT)
    | _paths(langsmith.DIALECT)
    | _paths(helicone.DIALECT)
)
GATEWAY_CHARGES: frozenset[str] = (
    frozenset({LITELLM_SPEND, HELICONE_DOLLARS, HELICONE_BILLIONTHS})
    | {f"cost_breakdown.{name}" for name in LITELLM_PARTS}
    | set(LANGFUSE_COSTS.values())
    | {f"observation.{name}" for name in LANGFUSE_CALCULATED}
    | {f"{holder}.{name}" for holder in ("usage_metadata", "run") for name in LANGSMITH_COSTS}
)
