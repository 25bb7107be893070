"""What a live call is weighed by: its kind, what each side says of it, and what has to explain the difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from weighbridge.schemas.enumerations import Direction, WithheldReason

SERVE: Final = "transformers serve"
OWN: Final = "own server"
# Why these kinds of call are not served by `transformers serve`: what was seen of 5.24.
NOT_SERVED: Final[Mapping[str, str]] = {
    "stop string": "it leaves the stop string in the text and counts it, so nothing is cut off",
    "stream without usage": "it sends usage at the end of every stream, asked or not",
    "aborted stream": "it ends its engine only when the next token comes, so it computes more than a client can get",
    "padded batch": "it answers one call after the other",
    "several choices": "it ignores `n`",
    "refused, failed, retry": "it has no limit at which it would turn a call away",
}
BOTH: Final = (Direction.INPUT, Direction.OUTPUT)
_REFUSED: Final = frozenset({"refused", "failed"})
# What explains the difference that each kind of call is made for, per server and direction; none: the sides agree.
EXPECTED: Final[Mapping[tuple[str, str], tuple[str | None, str | None]]] = {
    (SERVE, "plain"): (None, None),
    (SERVE, "stop string"): (None, None),
    (SERVE, "end token"): (None, None),
    (SERVE, "stream"): (None, None),
    (SERVE, "aborted stream"): ("aborted", "aborted"),
    (SERVE, "known by its answer"): (None, None),
    (OWN, "plain"): (None, None),
    (OWN, "stop string"): (None, "stop_trimmed"),
    (OWN, "stream"): (None, None),
    (OWN, "stream without usage"): ("usage_missing", "usage_missing"),
    (OWN, "aborted stream"): ("aborted", "aborted"),
    (OWN, "several choices"): (None, None),
    (OWN, "padded batch"): ("padding_counted", None),
    (OWN, "refused"): (None, None),
    (OWN, "failed"): (None, None),
    (OWN, "retry"): (None, None),
    (OWN, "known by its answer"): (None, None),
}
ONLY_ALONE: Final = frozenset({(OWN, "stream"), (OWN, "known by its answer")})


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """One direction of one attempt: what each side says, and why they differ. Counts are tokens, None where unknown.

    Attributes:
        computed: by the engine.
        reported: by usage.
        recounted: by tokenising again what was sent and delivered, at the client.
        difference: reported - computed, or - recounted where the engine does not know; 0 - it where no usage came.
        withheld: reason -> computed tokens that were not delivered, where the engine or the server says so.
        aborted: the client went away.
    """

    server: str
    kind: str
    attempt: str
    direction: Direction
    computed: int | None
    reported: int | None
    recounted: int | None
    difference: int | None
    causes: tuple[str, ...]
    residual: int | None
    withheld: Mapping[WithheldReason, int]
    aborted: bool = False

    @property
    def explained(self) -> bool:
        """Whether it has the cause its call was made for, and no residual.

        A prompt that is the longest of its batch has no padding. What was refused has nothing to compare.
        """
        if self.residual:
            return False
        if self.kind in _REFUSED:
            return self.computed is self.reported is None and self.causes == ()
        wanted = EXPECTED[self.server, self.kind][BOTH.index(self.direction)]
        if wanted is None or (self.difference == 0 and self.kind == "padded batch"):
            return self.difference == 0 and self.causes == ()
        return self.causes == (wanted,) and self.difference not in {0, None}

    @property
    def recount_explained(self) -> bool:
        """Whether the recount is what was computed without what was withheld; None on either side says nothing.

        Of a stream that was left early the client has got at most what the server had sent.
        """
        if self.recounted is None or self.computed is None:
            return True
        delivered = self.computed - sum(self.withheld.values())
        return self.recounted <= delivered if self.aborted else self.recounted == delivered


def as_frame(rows: Sequence[Weighed]) -> pl.DataFrame:
    """Per server, kind of call and direction: attempts, tokens of each side, and the causes of the difference.

    `withheld` says which tokens a recount cannot find because they were computed and not delivered.
    """
    frame = pl.DataFrame(
        [
            {
                "server": row.server,
                "kind": row.kind,
                "direction": row.direction,
                "computed": row.computed,
                "reported": row.reported,
                "recounted": row.recounted,
                "difference": row.difference,
                "causes": list(row.causes),
                "withheld": [f"{reason}" for reason in row.withheld],
                "residual": row.residual,
            }
            for row in rows
        ],
        schema={
            **dict.fromkeys(("server", "kind", "direction"), pl.String),
            **dict.fromkeys(("computed", "reported", "recounted", "difference"), pl.Int64),
            **dict.fromkeys(("causes", "withheld"), pl.List(pl.String)),
            "residual": pl.Int64,
        },
    )
    grouped = frame.group_by("server", "kind", "direction", maintain_order=True)
    return grouped.agg(
        pl.len().cast(pl.Int64).alias("attempts"),
        *(_total(name) for name in ("computed", "reported", "recounted", "difference")),
        *(pl.col(name).explode().drop_nulls().unique().sort().str.join(", ") for name in ("causes", "withheld")),
        _total("residual"),
    )


def _total(name: str) -> pl.Expr:
    """The sum of what is known, null where nothing is."""
    return pl.when(pl.col(name).count() > 0).then(pl.col(name).sum()).alias(name)
