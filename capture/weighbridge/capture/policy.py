"""The capture policy: which attempts are looked at how closely, and why.

A policy file is JSON:

    {"version": 1, "default": {"level": 1},
     "cells": [{"tenant": "acme", "route": "/v1/chat/completions", "strategy": null, "level": 2, "share": 0.01,
                "purpose": "billing_audit", "expires": "2026-12-31"}]}

It is read again when its content changes, without a restart. An escalation needs a purpose and an expiry, and raises a
whole (tenant, route, strategy) cell, so that being sampled says nothing about what was written. `tenant` is the clear
name in the file and becomes a pseudonym in memory; null means any.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import NAME, ROUTE, pseudonym

PURPOSE: Final = re.compile(r"[a-z][a-z0-9_]{2,47}")
ALL: Final = 1 << 64  # a threshold that no hash reaches: every attempt
_EPOCH: Final = date(1970, 1, 1).toordinal()
_CELL_KEYS: Final = {"tenant", "route", "strategy", "level", "share", "purpose", "expires"}


@dataclass(frozen=True, slots=True)
class Rule:
    """One cell that is raised above the default."""

    tenant: str | None
    route: str | None
    strategy: str | None
    level: int
    share: float
    purpose: str
    expires: date


@dataclass(frozen=True, slots=True)
class Decision:
    """What applies to a binding until `until_ns`: attempts whose keyed hash is below `threshold` get `level`.

    All others get level 1.
    """

    level: int = 1
    threshold: int = 0
    until_ns: int = 0

    def covers(self, key: bytes, hi: int, lo: int, now_ns: int) -> bool:
        """Whether the attempt of this id is raised at `now_ns`."""
        return now_ns < self.until_ns and (self.threshold >= ALL or sample_hash(key, hi, lo) < self.threshold)


@dataclass(frozen=True, slots=True)
class Policy:
    """A parsed policy. `digest` names it in journal headers."""

    rules: tuple[Rule, ...] = ()
    digest: str = "default"

    def decide(self, tenant: str, route: str, strategy: str | None, today: date) -> Decision:
        """The decision for one binding: the first rule that covers it and has not expired."""
        for rule in self.rules:
            if (
                rule.tenant in (None, tenant)
                and rule.route in (None, route)
                and rule.strategy in (None, strategy)
                and today <= rule.expires
            ):
                return Decision(rule.level, int(rule.share * ALL), _end_ns(rule.expires))
        return Decision()


class PolicyFile:
    """A policy file that is read again when its content changes."""

    def __init__(self, path: Path, key: bytes) -> None:
        self._path = path
        self._key = key
        self._seen = b""

    def changed(self) -> Policy | None:
        """The policy it holds, where its content is other than last time; None where it is the same.

        Raises:
            ConfigError: as `load_policy`; once for each content.
            OSError: it cannot be read.
        """
        raw = self._path.read_bytes()
        if raw == self._seen:
            return None
        self._seen = raw
        return parse_policy(raw, str(self._path), self._key)


def load_policy(path: Path, key: bytes) -> Policy:
    """Read a policy file.

    Raises:
        ConfigError: names the rule and the value that is wrong, and what is allowed.
    """
    return parse_policy(path.read_bytes(), str(path), key)


def parse_policy(raw: bytes, path: str, key: bytes) -> Policy:
    """The policy whose bytes are `raw`; `path` is for messages.

    Raises:
        ConfigError: as `load_policy`.
    """
    try:
        content = json.loads(raw)
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON ({error}); mend it, the policy in force stays until then") from error
    if not isinstance(content, dict) or content.get("version") != 1:
        raise ConfigError(f"{path}: a policy is an object with version 1; see the header of capture/policy.py")
    cells = content.get("cells", [])
    if not isinstance(cells, list):
        raise ConfigError(f"{path}: cells must be a list of objects")
    rules = tuple(_rule(cell, f"{path}: cells[{index}]", key) for index, cell in enumerate(cells))
    return Policy(rules, hashlib.sha256(raw).hexdigest()[:16])


def _rule(cell: object, where: str, key: bytes) -> Rule:
    if not isinstance(cell, Mapping):
        raise ConfigError(f"{where} must be an object")
    unknown = sorted(set(cell) - _CELL_KEYS)
    if unknown:
        raise ConfigError(f"{where}: unknown key {unknown[0]!r}; allowed are {', '.join(sorted(_CELL_KEYS))}")
    level, share = cell.get("level"), cell.get("share", 1.0)
    if level not in (1, 2, 3) or isinstance(level, bool):
        raise ConfigError(f"{where}: level is {level!r}; 1, 2 or 3 is allowed")
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share <= 1:
        raise ConfigError(f"{where}: share must be a number from 0 to 1")
    purpose = cell.get("purpose")
    if not isinstance(purpose, str) or not PURPOSE.fullmatch(purpose):
        raise ConfigError(f"{where}: an escalation needs a purpose in snake_case, such as billing_audit")
    try:
        expires = date.fromisoformat(str(cell.get("expires")))
    except ValueError as error:
        raise ConfigError(f"{where}: an escalation needs expires as YYYY-MM-DD") from error
    names = {}
    for part in ("tenant", "route", "strategy"):
        value = cell.get(part)
        allowed = ROUTE if part == "route" else NAME
        if value is not None and (not isinstance(value, str) or not allowed.fullmatch(value)):
            raise ConfigError(f"{where}: {part} must be null or a name matching {allowed.pattern}")
        names[part] = value
    tenant = None if names["tenant"] is None else pseudonym(key, "tenant", names["tenant"])
    return Rule(tenant, names["route"], names["strategy"], int(level), float(share), purpose, expires)


def _end_ns(day: date) -> int:
    """When a UTC day ends, in nanoseconds since 1970."""
    return (day.toordinal() + 1 - _EPOCH) * 86_400 * 1_000_000_000


def sample_hash(key: bytes, hi: int, lo: int) -> int:
    """The keyed 64-bit hash of an attempt id that sampling compares with the threshold."""
    raw = hi.to_bytes(8, "big", signed=True) + lo.to_bytes(8, "big", signed=True)
    return int.from_bytes(hashlib.blake2b(raw, key=key[:64], digest_size=8, person=b"wb-sample").digest(), "big")


def today() -> date:
    """The current UTC day."""
    return datetime.now(tz=UTC).date()
