"""Attempts that several systems know under keys of their own: which are the same, which are tries of one request.

Groups are attempts of one request, and attempts that share an identifier (a response id, a client's request id). In a
group of a few attempts some were only observed, some are only reported, some are both:

    one observed, one reported, nothing speaks against it          the same attempt; by request, or by time
    time and parameters leave one partner on both sides            the same attempt; by time
    several partners are left                                      ambiguous: each keeps its candidates
    reported, and all that were observed have their own reports    a try that nobody observed (`relation.Relation`)

What a report of the same attempt has under another key is then compared under the key of the observed one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import polars as pl

from weighbridge.pipeline.reconcile.frames import KEY
from weighbridge.pipeline.reconcile.match.relation import Relation
from weighbridge.schemas.enumerations import Direction, MatchedBy
from weighbridge.schemas.identity import AttemptKey

# A client that tries again does so soon. Attempts further apart that share an id are different calls.
WINDOW = timedelta(minutes=10)
# Clocks of two hosts agree about so well where nothing says how long an attempt took.
CLOCKS = timedelta(seconds=5)
# A group of more attempts is no request that was tried again: somebody uses one id for everything.
LARGEST_GROUP = 32
# Parameters of one call are the same whoever wrote them down.
PARAMETERS = ("provider", "model", "max_tokens", "n", "temperature", "stream", "number")

Key = tuple[int, int]
MEMBER = {
    **dict.fromkeys(("group", *KEY), pl.Int64()),
    "by_request": pl.Boolean(),
    **dict.fromkeys(("begun", "ended"), pl.Datetime("us", "UTC")),
    **dict.fromkeys(("provider", "model"), pl.String()),
    **dict.fromkeys(("max_tokens", "n", "number"), pl.Int64()),
    "temperature": pl.Float64(),
    "stream": pl.Boolean(),
    **dict.fromkeys(("observed", "reported", "failed"), pl.Boolean()),
    **{f"observed_{direction}": pl.Int64() for direction in Direction},
}
TWIN = {**dict.fromkeys((*KEY, "to_lo", "to_hi"), pl.Int64()), "matched_by": pl.String()}
AMBIGUOUS = {**dict.fromkeys(KEY, pl.Int64()), "candidates": pl.List(pl.String())}
RELATED = {
    **dict.fromkeys(KEY, pl.Int64()),
    "relation": pl.String(),
    "unsure": pl.Boolean(),
    **{f"tries_{direction}": pl.Int64() for direction in Direction},
}


@dataclass(frozen=True, slots=True)
class Links:
    """What the attempts of a month are to one another.

    Attributes:
        twins: attempt_lo, attempt_hi of a report's key -> to_lo, to_hi of the attempt it is about; how it was found.
        ambiguous: attempts with several partners, or whose identifier others have too, with the ids of these.
        related: attempts with a relation to others of their request, what tries without a report were observed, and
            whether it is `unsure` to whom the report of the attempt, or the attempt of the report, belongs.
    """

    twins: pl.DataFrame
    ambiguous: pl.DataFrame
    related: pl.DataFrame

    def rekeyed(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Rows of a table by attempt under the keys they are compared under."""
        if self.twins.is_empty():
            return rows
        names = rows.collect_schema().names()
        told = rows.join(self.twins.lazy().drop("matched_by"), on=list(KEY), how="left")
        return told.with_columns(
            attempt_lo=pl.coalesce("to_lo", "attempt_lo"), attempt_hi=pl.coalesce("to_hi", "attempt_hi")
        ).select(names)

    def with_undecided(self, keys: pl.DataFrame) -> Links:
        """The links with attempts that belong to nobody for certain, and whose candidates are too many to be named."""
        fresh = keys.join(self.ambiguous, on=list(KEY), how="anti")
        if self.twins.height:
            fresh = fresh.join(self.twins, on=list(KEY), how="anti")
            fresh = fresh.join(self.twins.select(attempt_lo="to_lo", attempt_hi="to_hi"), on=list(KEY), how="anti")
        if fresh.is_empty():
            return self
        nobody = fresh.with_columns(candidates=pl.lit([], dtype=pl.List(pl.String))).select(*AMBIGUOUS)
        known = self.related.with_columns(
            pl.col("unsure") | pl.struct(KEY).is_in(fresh.select(pl.struct(KEY)).to_series().implode())
        )
        added = fresh.join(self.related, on=list(KEY), how="anti").with_columns(unsure=pl.lit(value=True))
        related = pl.concat(
            [
                known,
                added.select(
                    pl.col(n) if n in added.columns else pl.lit(None, dtype=k).alias(n) for n, k in RELATED.items()
                ),
            ]
        )
        return Links(self.twins, pl.concat([self.ambiguous, nobody]).sort(KEY), related.sort(KEY))


@dataclass(slots=True)
class _Found:
    twins: dict[Key, tuple[Key, MatchedBy]] = field(default_factory=dict)
    candidates: dict[Key, set[Key]] = field(default_factory=dict)
    relations: dict[Key, Relation] = field(default_factory=dict)
    tries: dict[Key, set[Key]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Member:
    key: Key
    by_request: bool
    row: dict[str, object]

    @property
    def observed_only(self) -> bool:
        return bool(self.row["observed"]) and not self.row["reported"]

    @property
    def reported_only(self) -> bool:
        return bool(self.row["reported"]) and not self.row["observed"]


def linked(members: pl.DataFrame) -> Links:
    """What the members of groups are to one another; in any order of rows the same.

    Args:
        members: `MEMBER`, a row per group and attempt: when it began and ended, its parameters, whether it was
            observed (and how much), and whether usage of it was reported.
    """
    found = _Found()
    groups = list(_groups(members))
    for group in groups:
        _pair(group, found)
    for group in groups:
        _relate(group, found)
    observed = {
        direction: {(lo, hi): count for lo, hi, count in members.select(*KEY, f"observed_{direction}").iter_rows()}
        for direction in Direction
    }
    return Links(_twins(found), _ambiguous(found), _related(found, observed))


NOTHING = Links(pl.DataFrame(schema=TWIN), pl.DataFrame(schema=AMBIGUOUS), pl.DataFrame(schema=RELATED))


def _groups(members: pl.DataFrame) -> Iterator[list[_Member]]:
    order = members.sort("by_request", "group", *KEY, descending=[True, False, False, False])
    for _, rows in order.group_by("group", maintain_order=True):
        if 1 < rows.height <= LARGEST_GROUP:
            yield [
                _Member((row["attempt_lo"], row["attempt_hi"]), row["by_request"], row)
                for row in rows.iter_rows(named=True)
            ]


def _pair(group: Sequence[_Member], found: _Found) -> None:
    """Observed ones and reported ones of a group that can be the same attempt."""
    # What failed owes no report, so that of nobody is its own.
    seen = [m for m in group if m.observed_only and not m.row["failed"] and not _is_taken(m, found)]
    told = [m for m in group if m.reported_only and not _is_taken(m, found)]
    partners = {m.key: _partners(m, told) for m in seen} | {m.key: _partners(m, seen) for m in told}
    for one in told:
        mine = partners[one.key]
        if len(mine) == 1 and partners[mine[0].key] == [one]:
            alone = one.by_request and len(seen) == len(told) == 1
            found.twins[one.key] = mine[0].key, MatchedBy.REQUEST if alone else MatchedBy.TIME
        elif mine:
            for other in mine:
                found.candidates.setdefault(one.key, set()).add(other.key)
                found.candidates.setdefault(other.key, set()).add(one.key)
    if not group[0].by_request:
        # An identifier that several attempts have says nothing about any of them that has both sides.
        crossed = [m for m in group if m.row["observed"] and m.row["reported"]]
        for one in crossed:
            found.candidates.setdefault(one.key, set()).update(m.key for m in group if m.key != one.key)


def _is_taken(member: _Member, found: _Found) -> bool:
    return member.key in found.twins or any(to == member.key for to, _ in found.twins.values())


def _partners(member: _Member, others: Sequence[_Member]) -> list[_Member]:
    """Those that can be the same attempt: parameters do not differ; of these the ones at the same time, if any are."""
    alike = [other for other in others if _same_parameters(member, other) and not _are_apart(member, other)]
    together = [other for other in alike if _overlap(member, other)]
    return together or alike


def _same_parameters(one: _Member, other: _Member) -> bool:
    return not any(
        one.row[name] is not None and other.row[name] is not None and one.row[name] != other.row[name]
        for name in PARAMETERS
    )


def _span(member: _Member) -> tuple[object, object]:
    return member.row["begun"], member.row["ended"]


def _are_apart(one: _Member, other: _Member) -> bool:
    """Whether they are known to have begun at different times altogether."""
    (begun, _), (later, _) = _span(one), _span(other)
    return begun is not None and later is not None and abs(begun - later) > WINDOW  # type: ignore[operator]


def _overlap(one: _Member, other: _Member) -> bool:
    """Whether both ran at one time; what took nobody knows how long was there for as long as clocks differ."""
    (begun, ended), (later, latest) = _span(one), _span(other)
    if begun is None or later is None:
        return False
    slack = timedelta(0) if ended is not None and latest is not None else CLOCKS
    return (ended or begun) + slack >= later and (latest or later) + slack >= begun  # type: ignore[operator]


def _relate(group: Sequence[_Member], found: _Found) -> None:
    """Tries of a request beside those that were observed, and what they add to the report of another one."""
    open_ones = {to for to, _ in found.twins.values()}
    left = [m for m in group if m.key not in found.twins]
    seen = [m for m in left if m.row["observed"] and _is_near(group, m)]
    whole = [m for m in seen if m.row["reported"] or m.key in open_ones]
    without = [m for m in seen if m.observed_only and m.key not in open_ones and m.key not in found.candidates]
    for one in left:
        if one.reported_only and one.key not in found.candidates and whole and _near_any(one, whole):
            relation = _relation(one, whole)
            known = found.relations.get(one.key)
            order = list(Relation)
            if known is None or order.index(relation) < order.index(known):
                found.relations[one.key] = relation
    if len(whole) == 1 and without:
        found.tries.setdefault(whole[0].key, set()).update(m.key for m in without if _near_any(m, whole))


def _is_near(group: Sequence[_Member], member: _Member) -> bool:
    return member.by_request or _near_any(member, [other for other in group if other is not member])


def _near_any(member: _Member, others: Sequence[_Member]) -> bool:
    """Whether it is a try of one request with any of them: by the request's key, or soon after with one client id."""
    if member.by_request:
        return True
    mine = member.row["begun"]
    return mine is not None and any(
        other.row["begun"] is not None and abs(other.row["begun"] - mine) <= WINDOW  # type: ignore[operator]
        for other in others
    )


def _relation(one: _Member, seen: Sequence[_Member]) -> Relation:
    if any(_ran_together(one, other) for other in seen):
        return Relation.SPECULATIVE
    same = [all(one.row[n] is None or one.row[n] == other.row[n] for n in ("provider", "model")) for other in seen]
    return Relation.RETRY if any(same) else Relation.FALLBACK


def _ran_together(one: _Member, other: _Member) -> bool:
    """Whether one is known to have begun before the other ended, and the other way round."""
    (begun, ended), (later, latest) = _span(one), _span(other)
    known = begun is not None and later is not None and ended is not None and latest is not None
    return known and begun < latest and later < ended  # type: ignore[operator]


def _twins(found: _Found) -> pl.DataFrame:
    rows = [(*key, *to, str(how)) for key, (to, how) in sorted(found.twins.items())]
    return pl.DataFrame(rows, schema=TWIN, orient="row")


def _ambiguous(found: _Found) -> pl.DataFrame:
    rows = [(*key, sorted(map(_digits, others))) for key, others in sorted(found.candidates.items())]
    return pl.DataFrame(rows, schema=AMBIGUOUS, orient="row")


def _related(found: _Found, observed: dict[Direction, dict[Key, int | None]]) -> pl.DataFrame:
    rows = []
    for key in sorted(found.relations.keys() | found.tries.keys() | found.candidates.keys()):
        sums = []
        for direction in Direction:
            counts = [observed[direction].get(other) for other in sorted(found.tries.get(key, ()))]
            sums.append(None if not counts or None in counts else sum(c for c in counts if c is not None))
        relation = found.relations.get(key)
        rows.append((*key, None if relation is None else str(relation), key in found.candidates, *sums))
    return pl.DataFrame(rows, schema=RELATED, orient="row")


def _digits(key: Key) -> str:
    return AttemptKey(key[1], key[0]).to_hex()
