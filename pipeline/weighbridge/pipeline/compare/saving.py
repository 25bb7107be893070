"""What a strategy saves: keys attended, KV at the peak and at the end, time, money. Sums over pairs that know both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from weighbridge.pipeline.compare.answer import Cost
from weighbridge.pipeline.compare.pairs import Pair

_HOUR = 3600


@dataclass(frozen=True, slots=True)
class Saving:
    """One resource.

    Attributes:
        pairs: of which both sides are known.
        off, on: their sums; money is exact, at the price of an hour.
        saved: share of the baseline's that is saved, below zero where it takes more; null where that is nothing.
    """

    pairs: int
    off: Decimal
    on: Decimal
    saved: float | None


def _entries(cost: Cost) -> int | None:
    return None if cost.kv_kept is None else cost.kv_kept - (cost.kv_masked or 0)


RESOURCES: Mapping[str, tuple[str, Callable[[Cost], float | None]]] = {
    "attended": ("keys read by attention", lambda cost: cost.attended),
    "kv_bytes": ("bytes of keys and values at the peak", lambda cost: cost.kv_peak_bytes),
    "kv_entries": ("KV entries in use at the end", _entries),
    "forward": ("positions of forward passes", lambda cost: cost.forward),
    "seconds": ("time of the calls, seconds", lambda cost: cost.seconds),
}
MONEY = "money"


def savings(pairs: Sequence[Pair], hour: Decimal | None) -> dict[str, Saving]:
    """Resource -> what it saves, where it is known.

    Args:
        pairs: of one strategy.
        hour: what an hour of the machine costs; null: money is not known.
    """
    out: dict[str, Saving] = {}
    for name, (_, of) in RESOURCES.items():
        known = [(of(pair.off.cost), of(pair.on.cost)) for pair in pairs]
        both = [(off, on) for off, on in known if off is not None and on is not None]
        if both:
            out[name] = _saving(len(both), *(Decimal(str(sum(side))) for side in zip(*both, strict=True)))
    if hour is not None and "seconds" in out:
        time = out["seconds"]
        out[MONEY] = _saving(time.pairs, time.off * hour / _HOUR, time.on * hour / _HOUR)
    return out


def _saving(pairs: int, off: Decimal, on: Decimal) -> Saving:
    return Saving(pairs, off, on, float(1 - on / off) if off else None)
