"""How an attempt that only reports know of stands to observed attempts of its request."""

from __future__ import annotations

from enum import StrEnum

import narwhals as nw

from weighbridge.pipeline.reconcile.frames import Expr


class Relation(StrEnum):
    """What it is beside them, the first that holds."""

    SPECULATIVE = "speculative"  # it ran at the same time as one of them
    FALLBACK = "fallback"  # another provider or model than each of them
    RETRY = "retry"  # the same again


def is_related(relation: Relation) -> Expr:
    """Whether the attempt is that, and nobody observed it."""
    return (nw.col("relation") == relation).fill_null(value=False) & nw.col("observed").is_null()
