"""Where evicted positions lie: by origin of the token and by place in the prompt, and whether answers part behind them.

What a strategy pruned, evicted or merged is told by state events alone, never by what two answers differ in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from weighbridge.pipeline.compare.pairwise import common_prefix
from weighbridge.pipeline.compare.ranks import rank_correlation

DECILES: Final = 10
# A system prompt of which less than this share of its KV entries is left counts as forgotten.
LEFT: Final = 0.1


@dataclass(frozen=True, slots=True)
class Visible:
    """What is left of one prompt when the answer ends.

    Attributes:
        pair: the prompt.
        kept: per position of the prompt the share of (layer, KV head) in which it can still be read.
        origins: (origin, first position, length) of its parts, in order.
        divergence: place of the first different id of the answer, null where none was seen.
        cluster: prompts that share a beginning.
    """

    pair: str
    kept: Sequence[float] = field(repr=False)
    origins: Sequence[tuple[str, int, int]] = ()
    divergence: int | None = None
    cluster: str | None = None


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A strategy that lost the system prompt.

    Attributes:
        strategy: its name.
        answers: of how many answers less than `LEFT` of it was left.
    """

    strategy: str
    answers: int


def evicted_by_origin(seen: Sequence[Visible]) -> dict[str, float]:
    """Origin -> share of its KV entries that went, over all prompts."""
    sums: dict[str, list[float]] = {}
    for each in seen:
        for origin, start, length in each.origins:
            sums.setdefault(origin, []).extend(each.kept[start : start + length])
    return {origin: 1 - sum(kept) / len(kept) for origin, kept in sorted(sums.items()) if kept}


def evicted_by_decile(seen: Sequence[Visible]) -> list[float | None]:
    """Per tenth of the prompt, from its beginning, the share of KV entries that went; null where no prompt has any."""
    sums: list[list[float]] = [[] for _ in range(DECILES)]
    for each in seen:
        for at, kept in enumerate(each.kept):
            sums[at * DECILES // len(each.kept)].append(kept)
    return [1 - sum(kept) / len(kept) if kept else None for kept in sums]


def visibility_of_shared(seen: Sequence[Visible], shared: Mapping[str, int]) -> dict[str, list[float]]:
    """Cluster -> per answer the share of its shared beginning that can still be read at the end.

    Args:
        seen: prompts.
        shared: cluster -> length of the beginning its prompts have in common.
    """
    out: dict[str, list[float]] = {}
    for each in seen:
        length = shared.get(each.cluster or "", 0)
        if each.cluster is not None and length:
            out.setdefault(each.cluster, []).append(sum(each.kept[:length]) / length)
    return out


def parting_by_eviction(seen: Sequence[Visible]) -> dict[str, tuple[int, int]]:
    """Do answers part where something went? Per group (`evicted`, `whole`): answers, and those that part."""
    out = {"evicted": (0, 0), "whole": (0, 0)}
    for each in seen:
        name = "whole" if all(kept >= 1 for kept in each.kept) else "evicted"
        answers, parted = out[name]
        out[name] = (answers + 1, parted + (each.divergence is not None))
    return out


def parting_with_eviction(seen: Sequence[Visible]) -> float | None:
    """Do answers part earlier the more of their prompt went? Spearman's rank correlation of the share that went and of
    how early they part; above zero they do. Null where one of the two does not vary."""
    gone = [1 - sum(each.kept) / len(each.kept) for each in seen]
    # One that never parts is later than any that does.
    last = max((each.divergence for each in seen if each.divergence is not None), default=0) + 1
    early = [-(last if each.divergence is None else each.divergence) for each in seen]
    return rank_correlation(gone, early) if len(seen) > 1 else None


def shared_beginnings(prompts: Mapping[str, Sequence[int]], clusters: Mapping[str, str | None]) -> dict[str, int]:
    """Cluster -> how many ids its prompts begin with alike; clusters of one prompt, or of none, are left out.

    Args:
        prompts: pair -> ids.
        clusters: pair -> its cluster.
    """
    held: dict[str, list[Sequence[int]]] = {}
    for pair, ids in prompts.items():
        cluster = clusters.get(pair)
        if cluster is not None:
            held.setdefault(cluster, []).append(ids)
    lengths = {
        cluster: min(common_prefix(several[0], other) for other in several[1:])
        for cluster, several in held.items()
        if len(several) > 1
    }
    return {cluster: length for cluster, length in lengths.items() if length}


def forgotten(strategy: str, seen: Sequence[Visible], origin: str = "system") -> Forgotten | None:
    """Whether answers were given with the system prompt nearly gone; null where none was."""
    answers = 0
    for each in seen:
        kept = [share for name, start, length in each.origins if name == origin for share in each.kept[start:][:length]]
        answers += bool(kept) and sum(kept) / len(kept) < LEFT
    return Forgotten(strategy, answers) if answers else None
