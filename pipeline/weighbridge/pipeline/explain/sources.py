"""Every room whose findings and figures are followed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from weighbridge.pipeline.explain import behind
from weighbridge.pipeline.explain.source import Behind
from weighbridge.schemas.discovery import declared


@cache
def all_behind() -> tuple[Behind, ...]:
    """One for each file of `behind`."""
    return tuple(declared(behind, "BEHIND", Behind).values())


def behind_findings() -> Mapping[str, Behind]:
    """By the origin of findings."""
    return {str(each.origin): each for each in all_behind() if each.origin is not None}


def behind_sheets() -> Mapping[str, Behind]:
    """By the name of a sheet."""
    return {sheet: each for each in all_behind() for sheet in each.sheets}
