"""Grains: counts that a provider only ever gives in whole blocks. One that is no multiple of them was not counted so.

The facts are those the providers' documentation states or that every recorded answer shows; a model without a line has
no grain that is known, and nothing is said about it.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from weighbridge.schemas.enumerations import TokenClass


@dataclass(frozen=True, slots=True)
class Grain:
    """A block that counts come in.

    Attributes:
        provider: who counts.
        model: how the model's name begins.
        token_class: of which tokens.
        block: tokens of one block.
        source: where it is said, or seen.
    """

    provider: str
    model: str
    token_class: TokenClass
    block: int
    source: str


_CACHING = "provider's guide to prompt caching: hits come in steps of 128 tokens; so do all recorded answers"
_THINKING = "recorded answers of these models: reasoning is a multiple of 64 tokens in each of them"
# Names that begin so. Later families (gpt-5.2 for reasoning, gpt-5.6 for caching) were recorded without a grain.
_CACHED = ("gpt-4o", "gpt-4.1", "gpt-5-", "gpt-5.2")
_REASONED = ("gpt-5-", "o1-mini", "o3-mini", "o4-mini")
GRAINS: tuple[Grain, ...] = (
    *(Grain("openai", model, TokenClass.CACHE_READ, 128, _CACHING) for model in _CACHED),
    Grain("azure", "gpt-5-", TokenClass.CACHE_READ, 128, _CACHING),
    *(Grain("openai", model, TokenClass.REASONING, 64, _THINKING) for model in _REASONED),
    Grain("azure", "gpt-5-", TokenClass.REASONING, 64, _THINKING),
)


def broken(readings: pl.LazyFrame) -> pl.DataFrame:
    """Readings whose counts are no whole number of blocks, by model.

    Args:
        readings: provider, model, day, attempt_hi, attempt_lo, cache_read, reasoning.

    Returns:
        provider, model, token_class, block, rows (that have such tokens), broken (of them), first_day, last_day.
    """
    found = []
    for grain in GRAINS:
        count = pl.col(str(grain.token_class))
        own = readings.filter(
            pl.col("provider") == grain.provider, pl.col("model").str.starts_with(grain.model), count > 0
        )
        odd = count % grain.block != 0
        found.append(
            own.group_by("provider", "model").agg(
                token_class=pl.lit(str(grain.token_class)).first(),
                block=pl.lit(grain.block, pl.Int64).first(),
                rows=pl.len().cast(pl.Int64),
                broken=odd.sum().cast(pl.Int64),
                first_day=pl.col("day").filter(odd).min(),
                last_day=pl.col("day").filter(odd).max(),
            )
        )
    every = pl.concat(found).filter(pl.col("broken") > 0).unique(["provider", "model", "token_class"])
    return every.sort("provider", "model", "token_class").collect()
