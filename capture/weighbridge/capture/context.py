"""What a binding says about its attempts: names that are checked, tenants that become pseudonyms, numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Final

from weighbridge.schemas.enumerations import Environment
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import NAME, ROUTE, key_id, pseudonym
from weighbridge.schemas.tables import UNASSIGNED

BUCKETS: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Provenance, tenant, task, route and strategy of a binding.

    `tenant` is the clear name; only its HMAC is ever written. A name that does not fit the allowed pattern is refused
    when the binding is made, not in the request.
    """

    provider: str | None = None
    api: str | None = None
    model_requested: str | None = None
    model_served: str | None = None
    model_revision: str | None = None
    framework: str | None = None
    framework_version: str | None = None
    tokenizer: str | None = None
    template: str | None = None
    strategy_id: str | None = None
    tenant: str | None = None
    subject_bucket: int | None = None
    task: str | None = None
    route: str | None = None
    environment: Environment | None = None
    stream: bool | None = None
    usage_expected: bool | None = None

    def entry(self, key: bytes) -> dict[str, object]:
        """The dictionary entry.

        Raises:
            ConfigError: a value that is no allowed name.
        """
        out: dict[str, object] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if value is None:
                continue
            named = isinstance(value, str) and not isinstance(value, Environment) and item.name != "tenant"
            allowed = ROUTE if item.name == "route" else NAME
            if named and not allowed.fullmatch(value):
                raise ConfigError(f"{item.name} must match {allowed.pattern}; map it to such a name before binding")
            out[item.name] = value
        tenant = self.tenant
        out["tenant"] = UNASSIGNED if tenant is None else pseudonym(key, "tenant", tenant)
        out["tenant_key_id"] = key_id(key)
        out["task"] = self.task or UNASSIGNED
        out["route"] = self.route or UNASSIGNED
        return out


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Generation parameters: numbers only, and whether log probabilities of the prompt's tokens are asked for."""

    max_tokens: int | None = None
    min_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    n: int | None = None
    beams: int | None = None
    length_penalty: float | None = None
    stop_strings: int | None = None
    messages: int | None = None
    tools: int | None = None
    prompt_scored: bool | None = None

    def entry(self) -> dict[str, object]:
        """The dictionary entry; anything that is no finite number of the right kind is left out."""
        out: dict[str, object] = {}
        for item in fields(self):
            value = getattr(self, item.name)
            if "bool" in str(item.type) and isinstance(value, bool):
                out[item.name] = value
                continue
            whole = "int" in str(item.type)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                continue
            if whole and (value != int(value) or abs(value) >= 1 << 31):
                continue
            out[item.name] = int(value) if whole else float(value)
        return out
