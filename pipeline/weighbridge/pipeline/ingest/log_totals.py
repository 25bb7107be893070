"""Totals of logs: one that is the mere sum of what stands beside it may be the log's own work, and proves nothing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from weighbridge.pipeline.ingest.dialects._logs import SUMMED_TOTAL
from weighbridge.pipeline.ingest.log_leaves import PATH
from weighbridge.schemas.leaves import Flattened, Leaf


def summed_apart(
    leaves: Flattened,
    containers: Sequence[str],
    total: str,
    addends: tuple[str, ...],
    parts: frozenset[str] | None = None,
) -> Flattened:
    """The leaves, with a total that is the sum of its addends called `summed_total`.

    Which count contains which is decided by a total only where nobody can have made it from these very counts. Where
    there is nothing to decide, because no part is told or all are zero, the total stays what it is.

    Args:
        leaves: those of one record.
        containers: where the same counts stand, with the dot behind each.
        total: the name of the total.
        addends: the names of the input and the output.
        parts: names of counts that a log adds up beside them; null where it adds up these two alone.
    """
    counts = {path: count for path, count, _ in leaves.leaves if count is not None}
    summed = set()
    for container in containers:
        told = counts.get(container + total)
        if told is not None:
            # A record tells few of the many names it could.
            added = _added(container, addends, parts)
            if told == sum([count for path, count in counts.items() if path in added]):
                summed.add(container + total)
    if not summed:
        return leaves
    plain = {container + name for container in containers for name in (total, *addends)}
    if not any(n and path not in plain and path.startswith(tuple(containers)) for path, n in counts.items()):
        return leaves
    renamed = [_renamed(leaf, total) if leaf.path in summed else leaf for leaf in leaves.leaves]
    return Flattened(sorted(renamed, key=PATH), leaves.refusals, leaves.dropped_strings, leaves.integral_floats)


@cache
def _added(container: str, addends: tuple[str, ...], parts: frozenset[str] | None) -> frozenset[str]:
    return frozenset(container + name for name in (*addends, *(parts or ())))


def _renamed(leaf: Leaf, total: str) -> Leaf:
    return leaf._replace(path=leaf.path.removesuffix(total) + SUMMED_TOTAL)
