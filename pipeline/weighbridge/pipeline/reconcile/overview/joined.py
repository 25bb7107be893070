"""A stretch joined: its plain pairs are added up, what has none is told; in memory, or on the engine that computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import narwhals as nw
import numpy as np
import polars as pl

from weighbridge.pipeline.reconcile.engines.engine import POLARS, current
from weighbridge.pipeline.reconcile.engines.on_polars import engine as polars
from weighbridge.pipeline.reconcile.frames import collected, frame_of
from weighbridge.pipeline.reconcile.overview import aside, pairs
from weighbridge.pipeline.reconcile.overview.keys import LEAD
from weighbridge.pipeline.reconcile.overview.meeting import Meeting
from weighbridge.pipeline.reconcile.overview.names import WHO
from weighbridge.pipeline.reconcile.overview.numbers.runs import NONE, Ints
from weighbridge.pipeline.reconcile.overview.pairs import Certain
from weighbridge.pipeline.reconcile.overview.spill import tried
from weighbridge.pipeline.reconcile.overview.stretches import ATTEMPT, READING, Stretch
from weighbridge.pipeline.reconcile.overview.totals.packed import Packed
from weighbridge.schemas.errors import LakeError


class Joined(NamedTuple):
    """A stretch, joined.

    Attributes:
        each: every key of its attempts, rising, each once, in pieces.
        again: keys that one of its sides has more than once; nothing else is told of them.
        rest: attempts and reports that have no plain pair (`aside.sides`).
    """

    each: Sequence[Ints]
    again: Ints
    rest: dict[str, pl.DataFrame]


def joined(stretch: Stretch, known: dict[str, Certain], packed: Packed) -> Joined:
    """Join a stretch, and add up its plain pairs.

    Args:
        stretch: its rows.
        known: table -> what the footers of its files say.
        packed: where plain pairs are added up.

    Raises:
        LakeError: a row has no key, or joining lost or made rows.
    """
    attempts = stretch.attempts
    reports = tried(lambda: stretch.reports.collect(engine="streaming"))
    seen = pairs.attempt_side(nw.from_native(attempts.lazy()), (WHO,), known[ATTEMPT])
    said = pairs.reading_side(nw.from_native(reports.lazy()), known[READING])
    join = None if current().name == POLARS else _on_engine
    both = Meeting(polars().collected(seen), polars().collected(said), join)
    plain, alone, told = 0, [NONE], [NONE]
    for piece in both.pieces():
        packed.add_plain(piece.plain)
        plain += len(piece.plain.group)
        if piece.partly is not None:
            packed.add(piece.partly)
            plain += piece.partly.height
        alone.append(piece.alone)
        told.append(piece.told)
    lone = np.concatenate(alone), np.concatenate(told)
    own, other = (side.height - crowd for side, crowd in zip((attempts, reports), both.crowded, strict=True))
    if (plain + len(lone[0]), plain + len(lone[1])) != (own, other):
        raise LakeError(
            f"joining {own:,} attempts and {other:,} readings lost or made rows; nothing is told. Run "
            "`weighbridge validate`."
        )
    rest = aside.sides(attempts[lone[0]], reports[lone[1]], known[ATTEMPT], known[READING])
    return Joined(both.each, both.again, rest)


def numbered(attempts: pl.DataFrame, reports: pl.DataFrame, known: dict[str, Certain]) -> pl.DataFrame:
    """All rows of both sides, as `pairs.numbered`, from the engine that computes here.

    Args:
        attempts, reports: rows as `stretches.Stretch` has them, no second half of a key twice in either.
        known: table -> what the footers of their files say.
    """
    left = attempts.lazy().select(*pairs.attempt_read(known[ATTEMPT]), WHO)
    right = reports.lazy().select(pairs.reading_read(known[READING]))
    seen = pairs.attempt_side(frame_of(left), (WHO,), known[ATTEMPT])
    told = pairs.reading_side(frame_of(right), known[READING])
    return collected(pairs.numbered(pairs.paired(seen, told, (WHO,)), WHO))


def _on_engine(attempts: pl.DataFrame, reports: pl.DataFrame) -> pl.DataFrame:
    """The join of a meeting, on the engine that computes here."""

    def met() -> pl.DataFrame:
        both = frame_of(attempts).join(frame_of(reports), how="full", left_on=LEAD, right_on="r_lo")
        return collected(both.select("place", "r_place"))

    return tried(met)
