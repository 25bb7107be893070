"""What a usage report says beside its counts: the terms it was served on, what is charged by use, what it was charged.

    service_tier flex                      the tier; `standard` and `on_demand` are the default one, `batch` is a job
    inference_geo us                       the region; where a model has none the answer says so, or that it is global
    server_tool_use.web_search_requests 3  3 searches
    cost_in_usd_ticks 1497500              0.00014975 USD: 10**10 ticks are one

Of the parts of a stream, the last that says a thing counts. Nothing is concluded from silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation
from functools import cache

from weighbridge.schemas.enumerations import FeeKind
from weighbridge.schemas.leaves import Leaf

DEFAULT, BATCH, FAST = "default", "batch", "fast"
USD = "USD"
# As many digits as a leaf can have, and then some.
_EXACT = Context(prec=1000)
# What tiers are called that are none of their own; the rest keep their names.
TIERS: Mapping[str, str] = {
    "standard": DEFAULT,
    "on_demand": DEFAULT,
    "standard_only": DEFAULT,
    "ON_DEMAND": DEFAULT,
    "ON_DEMAND_FLEX": "flex",
    "ON_DEMAND_PRIORITY": "priority",
    "PROVISIONED_THROUGHPUT": "provisioned",
}
# What is no tier: that none was chosen.
NO_TIER = frozenset({"SERVICE_TIER_UNSPECIFIED", "TRAFFIC_TYPE_UNSPECIFIED"})
NO_REGION = frozenset({"not_available"})
BATCH_APIS = frozenset({"batch", "batches", "openai_batches", "message_batches", "anthropic_batches"})
# Names that stand for what they are: the leaf is named below the usage object, or at the root of the answer.
TIER_LEAVES = ("service_tier", "serviceTier", "trafficType")
SPEED_LEAF, REGION_LEAF, SIZE_LEAF = "speed", "inference_geo", "search_context_size"
FEES: Mapping[str, FeeKind] = {
    "server_tool_use.web_search_requests": FeeKind.WEB_SEARCH,
    "server_tool_use.web_fetch_requests": FeeKind.WEB_FETCH,
    "server_tool_use_details.web_search_requests": FeeKind.WEB_SEARCH,
    "server_side_tool_usage_details.web_search_calls": FeeKind.WEB_SEARCH,
    "server_side_tool_usage_details.x_search_calls": FeeKind.X_SEARCH,
    "server_side_tool_usage_details.code_interpreter_calls": FeeKind.CODE_EXECUTION,
    "server_side_tool_usage_details.file_search_calls": FeeKind.FILE_SEARCH,
    "server_side_tool_usage_details.document_search_calls": FeeKind.DOCUMENT_SEARCH,
    "server_side_tool_usage_details.mcp_calls": FeeKind.MCP,
    "server_side_tool_usage_details.image_generation_calls": FeeKind.IMAGE_GENERATION,
    "num_server_side_tools_used": FeeKind.SERVER_TOOL,
    "num_sources_used": FeeKind.SOURCE,
    "num_search_queries": FeeKind.SEARCH_QUERY,
    "citation_tokens": FeeKind.CITATION_TOKEN,
    "search_units": FeeKind.SEARCH_UNIT,
    "billable_audio_seconds": FeeKind.AUDIO_SECOND,
}
SIZES: Mapping[str, FeeKind] = {
    "low": FeeKind.REQUEST_LOW,
    "medium": FeeKind.REQUEST_MEDIUM,
    "high": FeeKind.REQUEST_HIGH,
}
# What an answer says it was charged, and how many of its units make a dollar.
CHARGES: Mapping[str, int] = {"cost": 1, "cost.total_cost": 1, "cost_in_usd_ticks": 10**10}
_HOLDERS = (
    *("usage", "response.usage", "response.body.usage", "message.usage", "delta.usage", "interaction.usage"),
    *("usageMetadata", "usage_metadata", "response.usageMetadata", "x_groq.usage"),
    *("meta.billed_units", "response.meta.billed_units", "usage.billed_units"),
)
_ROOTS = ("", "response.", "interaction.")


@dataclass(frozen=True, slots=True)
class Told:
    """What one report says beside its counts; null where it says nothing.

    Attributes:
        service_tier, batch, region: the terms it was served on, as the table `reading` has them.
        fees: kind of use -> how often; only what was used.
        charged: what the answer says it cost, in `charged_currency`.
    """

    service_tier: str | None = None
    batch: bool | None = None
    region: str | None = None
    fees: Mapping[FeeKind, int] | None = None
    charged: Decimal | None = None

    @property
    def charged_currency(self) -> str | None:
        """The currency of `charged`."""
        return None if self.charged is None else USD

    def of_a_call(self) -> Told:
        """The same of one of the model calls of the answer: what is charged by use is the answer's."""
        return Told(self.service_tier, self.batch, self.region)

    def to_dict(self) -> dict[str, object]:
        """What is told, as plain JSON values."""
        found: dict[str, object] = {
            "service_tier": self.service_tier,
            "batch": self.batch,
            "region": self.region,
            "fees": None if self.fees is None else {str(kind): count for kind, count in self.fees.items()},
            "charged": None if self.charged is None else format(self.charged, "f"),
            "charged_currency": self.charged_currency,
        }
        return {name: value for name, value in found.items() if value is not None}


@cache
def names_of(shape: str) -> Mapping[str, int]:
    """The leaves of a shape that are read here: name below its holder -> position."""
    found: dict[str, int] = {}
    for position, path in enumerate(shape.split(" ")):
        name = _NAMES.get(path)
        if name is not None:
            found[name] = position
    return found


def told_by(api: str | None, parts: Iterable[Iterable[Leaf]]) -> Told:
    """What the parts of one report say, in their order."""
    held: dict[str, Leaf] = {}
    for leaves in parts:
        for leaf in leaves:
            if (name := _NAMES.get(leaf.path)) is not None:
                held[name] = leaf
    texts = {name: leaf.text for name, leaf in held.items() if leaf.text is not None}
    said = next((texts[name] for name in TIER_LEAVES if texts.get(name, "") not in {"", *NO_TIER}), None)
    tier = TIERS.get(said or "", said)
    region = texts.get(REGION_LEAF)
    fees: dict[FeeKind, int] = {}
    for name, kind in FEES.items():
        count = held[name].integer if name in held else None
        if kind not in fees and count is not None:
            fees[kind] = count
    fees = {kind: count for kind, count in fees.items() if count}
    if set(fees) & _NAMED_TOOLS:
        fees.pop(FeeKind.SERVER_TOOL, None)
    if (size := SIZES.get(texts.get(SIZE_LEAF, ""))) is not None:
        fees[size] = 1
    batch = True if tier == BATCH or api in BATCH_APIS else None
    if tier == BATCH:
        tier = DEFAULT
    return Told(
        service_tier=FAST if texts.get(SPEED_LEAF) == FAST else tier,
        batch=batch,
        region=None if region in NO_REGION else region,
        fees=dict(sorted(fees.items())) or None,
        charged=_charged(held),
    )


def sums_apart() -> frozenset[FeeKind]:
    """Tools whose calls are told one by one; where any is, the sum of all of them is not charged again."""
    return _NAMED_TOOLS


def _charged(held: Mapping[str, Leaf]) -> Decimal | None:
    for name, units in CHARGES.items():
        leaf = held.get(name)
        if leaf is None:
            continue
        try:
            amount = _EXACT.divide(
                Decimal(leaf.integer if leaf.integer is not None else str(leaf.text)), Decimal(units)
            )
        except InvalidOperation:
            continue
        if fits(amount):
            return amount
    return None


def fits(amount: Decimal) -> bool:
    """Whether a column of money holds this exactly: 20 digits before the point and 18 after it."""
    exponent = _EXACT.normalize(amount).as_tuple().exponent
    return abs(amount) < Decimal(10) ** 20 and isinstance(exponent, int) and exponent >= -18


# Tools whose calls are told one by one: their sum is not told again.
_NAMED_TOOLS = frozenset(kind for name, kind in FEES.items() if name.startswith("server_side_tool_usage_details."))
_READ = (*TIER_LEAVES, SPEED_LEAF, REGION_LEAF, SIZE_LEAF, *FEES, *CHARGES)
_NAMES: dict[str, str] = {f"{holder}.{name}": name for holder in _HOLDERS for name in _READ} | {
    f"{root}{name}": name for root in _ROOTS for name in ("service_tier", "serviceTier")
}
