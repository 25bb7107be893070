"""What becomes of a recommended strategy: proposed, applied, verified or refused.

A comparison proposes; a person applies or refuses; the next comparison of the applied strategy verifies it, or refuses
it where the answers are worse. What a person refused stays refused until its parameters change, or what a comparison
finds of it. Each change is a row that stays, and stands in the log of changes as well.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Final

import polars as pl

from weighbridge.pipeline.compare.comparison import Compared, Comparison, Loss, saved_by
from weighbridge.pipeline.compare.why import why
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.lake.records import Records
from weighbridge.pipeline.lake.shape import polars_schema
from weighbridge.schemas.enumerations import ConfigKind, Judgement, RecommendationState
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import framed

TABLE: Final = "recommendation"
DIGITS: Final = 8  # of an id, at least: what lists show
CHANGED: Final = 0.05  # of a resource: what is saved more or less is another offer
_LOG: Final = "change"
_FILE: Final = "comparisons"
_PROPOSED, _APPLIED = RecommendationState.PROPOSED, RecommendationState.APPLIED
_VERIFIED, _REFUSED = RecommendationState.VERIFIED, RecommendationState.REFUSED
# What a person may decide, by the state it has.
MAY: Final[Mapping[RecommendationState, tuple[RecommendationState, ...]]] = {
    _PROPOSED: (_APPLIED, _REFUSED),
    _APPLIED: (_REFUSED,),
    _VERIFIED: (_REFUSED,),
    _REFUSED: (_APPLIED,),
}
_BY_COMPARISON: Final[Mapping[Judgement, RecommendationState]] = {
    Judgement.NOT_WORSE: _VERIFIED,
    Judgement.WORSE: _REFUSED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change of one recommendation: a row of the table."""

    recommendation_id: str
    change: int
    state: RecommendationState
    changed_at: datetime
    changed_by: str
    comparison_id: str
    strategy: str
    model: str | None
    parameters: str
    resource: str | None
    saved: float | None
    loss: float | None
    reason: str | None = None


def recommendation_id(model: str | None, strategy: str, parameters: str) -> str:
    """The same strategy with the same parameters for the same model is one recommendation.

    Args:
        model: what identifies it: a fingerprint of its weights, or its name; without one, where its answers came from.
        strategy: its name.
        parameters: canonical JSON.
    """
    parts = framed("weighbridge recommendation", model or "", strategy, parameters)
    return hashlib.sha256(parts).hexdigest()[:32]


def recommendations(lake: Records) -> pl.DataFrame:
    """The last change of every recommendation, the latest first."""
    held = lake.scan(TABLE).sort("recommendation_id", "change").collect()
    last = held.group_by("recommendation_id", maintain_order=True).last()
    return last.select(list(polars_schema(TABLE))).sort("changed_at", "recommendation_id", descending=[True, False])


def refused(lake: Records, found: Comparison) -> dict[str, Change]:
    """Strategies of a comparison that a person refused, by name, with who, when and why.

    A refusal stands for these parameters and for what was known: a comparison whose interval leaves out the loss of
    then, or that saves `CHANGED` more or less, is new evidence.
    """
    out: dict[str, Change] = {}
    for each in found.strategies:
        last = _by_person(lake, recommendation_id(_identity(found), each.side.name, _parameters(each)))
        if last is not None and not _changed(last, found, each):
            out[each.side.name] = last
    return out


def _by_person(lake: Records, wanted: str) -> Change | None:
    """The last change where it is the refusal of a person; that of a comparison rests on a comparison of its own."""
    rows = lake.scan(TABLE).filter(pl.col("recommendation_id") == wanted).sort("change").collect().to_dicts()
    if len(rows) < 2 or RecommendationState(rows[-1]["state"]) is not _REFUSED:
        return None
    return _change(rows[-1]) if rows[-1]["comparison_id"] == rows[-2]["comparison_id"] else None


def _changed(last: Change, found: Comparison, each: Compared) -> bool:
    saved = saved_by(each, found.resource)
    known = last.resource == found.resource and last.saved is not None and saved is not None
    if known and abs((saved or 0.0) - (last.saved or 0.0)) > CHANGED:
        return True
    _, low, high = _loss(each)
    return last.loss is not None and low is not None and high is not None and not low <= last.loss <= high


def propose(lake: Lake, found: Comparison, comparison_id: str, at: datetime, by: str) -> Iterator[Change]:
    """Propose what a comparison recommends, unless it is proposed, applied or verified already."""
    each = next((each for each in found.strategies if each.side.name == found.recommended), None)
    if each is None:
        return
    made = _made(found, each, comparison_id, at, by)
    last = _last(lake, made.recommendation_id)
    if last is not None and last.state is not _REFUSED:
        return
    if last is not None:
        before = f"refused before, on {last.changed_at:%Y-%m-%d} by {last.changed_by}"
        made = replace(made, reason=f"{before}{'' if last.reason is None else f' ({last.reason})'}; {made.reason}")
    yield _append(lake, made, last)


def check(lake: Lake, found: Comparison, comparison_id: str, at: datetime, by: str) -> Iterator[Change]:
    """Hold what was applied, or verified before, against a later comparison of the same strategy."""
    for each in found.strategies:
        made = _made(found, each, comparison_id, at, by)
        last = _last(lake, made.recommendation_id)
        state = _BY_COMPARISON.get(each.judgement)
        if last is None or last.state not in {_APPLIED, _VERIFIED} or state in {None, last.state}:
            continue
        assert state is not None
        yield _append(lake, replace(made, state=state), last)


def decide(lake: Lake, digits: str, state: RecommendationState, at: datetime, by: str, reason: str | None) -> Change:
    """Write down what somebody decided about a recommendation.

    Args:
        digits: the beginning of its id.

    Raises:
        ConfigError: there is none or more than one that begins so, or it cannot take this state now.
        LakeBusyError: another process is writing.
    """
    if len(digits) < DIGITS:
        raise ConfigError(
            f"{digits!r} is too short; give the first {DIGITS} digits, as `weighbridge compare show` does"
        )
    with lake.lock():
        held = recommendations(lake).filter(pl.col("recommendation_id").str.starts_with(digits)).to_dicts()
        if len(held) != 1:
            what = "no recommendation begins" if not held else f"{len(held)} recommendations begin"
            raise ConfigError(f"{what} with {digits!r}; `weighbridge compare show` lists them")
        last = _change(held[0])
        if state not in MAY[last.state]:
            able = " or ".join(MAY[last.state])
            raise ConfigError(f"this recommendation is {last.state}; it can only become {able}, not {state}")
        new = asdict(last) | {"state": state, "changed_at": at, "changed_by": by, "reason": reason}
        return _append(lake, Change(**new), last)


def _made(found: Comparison, each: Compared, comparison_id: str, at: datetime, by: str) -> Change:
    parameters = _parameters(each)
    return Change(
        recommendation_id=recommendation_id(_identity(found), each.side.name, parameters),
        change=0,
        state=_PROPOSED,
        changed_at=at,
        changed_by=by,
        comparison_id=comparison_id,
        strategy=each.side.name,
        model=found.model,
        parameters=parameters,
        resource=found.resource,
        saved=saved_by(each, found.resource),
        loss=_loss(each)[0],
        reason=why(found, each),
    )


def _identity(found: Comparison) -> str | None:
    return found.baseline.identity or found.model


def _parameters(each: Compared) -> str:
    return json.dumps(dict(each.side.parameters), sort_keys=True, separators=(",", ":"))


def _loss(each: Compared) -> Loss:
    """Of the measure that loses most, over all pairs."""
    known = [loss for loss in each.losses.values() if loss[0] is not None]
    return max(known, key=lambda loss: loss[0] or 0.0, default=(None, None, None))


def _last(lake: Records, wanted: str) -> Change | None:
    rows = recommendations(lake).filter(pl.col("recommendation_id") == wanted).to_dicts()
    return _change(rows[0]) if rows else None


def _change(row: dict[str, Any]) -> Change:
    return Change(**(row | {"state": RecommendationState(row["state"])}))


def _append(lake: Lake, made: Change, last: Change | None) -> Change:
    """Write a change, and say so in the log of changes."""
    new = Change(**(asdict(made) | {"change": 0 if last is None else last.change + 1}))
    row = asdict(new) | {"state": str(new.state)}
    lake.append(TABLE, pl.DataFrame([row], schema=polars_schema(TABLE)))
    logged = {
        "number": lake.rows(_LOG),
        "at": new.changed_at,
        "by": new.changed_by,
        "kind": str(ConfigKind.STRATEGY),
        "file": _FILE,
        "key": f"{new.model or 'model'} {new.strategy} {new.parameters}",
        "before": None if last is None else str(last.state),
        "after": str(new.state),
        "file_digest": None,
    }
    lake.append(_LOG, pl.DataFrame([logged], schema=polars_schema(_LOG)))
    return new
