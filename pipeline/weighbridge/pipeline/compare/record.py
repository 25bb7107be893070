"""Comparisons in the lake: what they found, and the rows the report shows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import polars as pl

from weighbridge.pipeline.compare.answer import Answer, Side
from weighbridge.pipeline.compare.comparison import Compared, Comparison, saved_by
from weighbridge.pipeline.compare.eviction import Forgotten, Visible
from weighbridge.pipeline.compare.found import NOTHING_SEEN, findings
from weighbridge.pipeline.compare.recommendation import Change, check, propose, refused
from weighbridge.pipeline.compare.saving import MONEY
from weighbridge.pipeline.lake.found import write_findings
from weighbridge.pipeline.lake.lake import Lake
from weighbridge.pipeline.lake.shape import polars_schema
from weighbridge.schemas.comparison_run import ACTED
from weighbridge.schemas.enumerations import FindingOrigin
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.finding import Finding
from weighbridge.schemas.identity import NAME, framed

TABLE: Final = "comparison"
_SUMS: Final = {
    "input": "prompt_tokens",
    "computed": "forward",
    "attended": "attended",
    "attended_dense": "attended_dense",
    "kv_bytes": "kv_peak_bytes",
}


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a comparison left in the lake.

    Attributes:
        comparison_id: its id.
        found: the comparison, which recommends nothing that a person refused.
        findings: of it.
        changes: of recommendations.
        refused: strategies that stay refused, by name, with who, when and why.
    """

    comparison_id: str
    found: Comparison
    findings: tuple[Finding, ...]
    changes: tuple[Change, ...]
    refused: Mapping[str, Change]


def record(
    lake: Lake,
    found: Comparison,
    at: datetime,
    by: str,
    *,
    forgotten: Iterable[Forgotten] = (),
    visible: Mapping[str, Sequence[Visible]] = NOTHING_SEEN,
    currency: str | None = None,
) -> Recorded:
    """Keep a comparison: its rows, its findings in place of the last ones of these strategies, and what it recommends.

    Args:
        lake: the lake.
        found: the comparison.
        at: when it was made.
        by: who made it.
        forgotten: strategies that lost a system prompt.
        visible: strategy -> what its state events say is left of each prompt.
        currency: of the money in it.

    Raises:
        ConfigError: a strategy whose name cannot be kept.
        LakeBusyError: another process is writing.
    """
    moment = at.astimezone(UTC)
    check_names(found)
    number = comparison_id(found, moment)
    told = findings(found, moment.date(), forgotten, visible)
    subjects = [_beginning(found, each.side.name) for each in found.strategies]
    subjects.append(_beginning(found, found.baseline.name))
    same = pl.any_horizontal(*(pl.col("subject") == subject for subject in subjects))
    with lake.lock():
        kept_out = refused(lake, found)
        found = found.without(kept_out)
        lake.append(TABLE, pl.DataFrame(rows(found, number, moment, currency), schema=polars_schema(TABLE)))
        write_findings(lake, told, origin=FindingOrigin.COMPARE, periods=[f"{moment:%Y-%m}"], where=same)
        changes = [*check(lake, found, number, moment, by), *propose(lake, found, number, moment, by)]
    return Recorded(number, found, tuple(told), tuple(changes), kept_out)


def check_names(found: Comparison) -> None:
    """See that strategies have names that may stand in the lake.

    Raises:
        ConfigError: one has not.
    """
    named = [found.baseline.name, *(each.side.name for each in found.strategies)]
    for name in named:
        if not NAME.fullmatch(f"{name}{ACTED}") or name.endswith(ACTED):
            raise ConfigError(
                f"{name!r} is no name that can be kept; it must match {NAME.pattern}, leave room for {ACTED} and not "
                "end in it: name it otherwise"
            )


def comparison_id(found: Comparison, at: datetime) -> str:
    """The id of a comparison that was made at that time."""
    names = [each.side.name for each in found.strategies]
    parts = (found.baseline.model or "", found.baseline.tokenizer or "", found.baseline.name, *names, at.isoformat())
    return hashlib.sha256(framed("weighbridge comparison", *parts)).hexdigest()[:32]


def rows(found: Comparison, number: str, at: datetime, currency: str | None) -> list[dict[str, Any]]:
    """The rows of the table `comparison`: the baseline, the strategies, and what they are where they acted on some."""
    about = {"comparison_id": number, "day": at.date(), "made_at": at, "resource": found.resource}
    answers = list(found.baseline.answers.values())
    money = next((each.saved[MONEY].off for each in found.strategies if MONEY in each.saved), None)
    first = {"baseline": True, "recommended": False, "pairs": len(answers), "amount": money}
    out = [about | _of_side(found.baseline, answers) | first | {"currency": None if money is None else currency}]
    out += [about | _of_strategy(found, each, currency) for each in found.strategies]
    return out + [about | _of_acted(found, each, currency) for each in found.strategies if each.touched]


def _of_acted(found: Comparison, each: Compared, currency: str | None) -> dict[str, Any]:
    """The pairs on which it acted: beside the row of all of them, which carries the judgement."""
    row = _of_strategy(found, each.acted_on(), currency)
    return row | {"strategy": f"{each.side.name}{ACTED}", "strategy_id": None, "judgement": None, "recommended": False}


def _of_strategy(found: Comparison, each: Compared, currency: str | None) -> dict[str, Any]:
    answers = [pair.on for pair in each.pairs]
    decided = {name: loss for name, loss in each.losses.items() if loss[0] is not None}
    worst = max(decided, key=lambda name: (decided[name][0] or 0.0) / found.margins[name], default=None)
    loss, low, high = decided[worst] if worst is not None else (None, None, None)
    money = each.saved[MONEY].on if MONEY in each.saved else None
    return _of_side(each.side, answers) | {
        "baseline": False,
        "judgement": str(each.judgement),
        "pairs": len(each.pairs),
        "unshown": each.unshown,
        "exact": sum(pair.held.exact for pair in each.pairs),
        "measure": worst,
        "loss": loss,
        "loss_low": low,
        "loss_high": high,
        "margin": None if worst is None else found.margins[worst],
        "saved": saved_by(each, found.resource),
        "amount": money,
        "currency": None if money is None else currency,
        "recommended": each.side.name == found.recommended,
    }


def _of_side(side: Side, answers: Sequence[Answer]) -> dict[str, Any]:
    seconds = [answer.cost.seconds for answer in answers]
    kept = [answer.cost.kv_kept for answer in answers]
    masked = sum(answer.cost.kv_masked or 0 for answer in answers)
    entries = _sum(kept)
    return {
        "strategy": side.name,
        "strategy_id": side.strategy_id,
        "model": side.model if side.model is None or NAME.fullmatch(side.model) else None,
        "tokenizer": side.tokenizer if side.tokenizer is None or NAME.fullmatch(side.tokenizer) else None,
        "implementation": side.implementation,
        "parameters": json.dumps(dict(side.parameters), sort_keys=True, separators=(",", ":")),
        "output": sum(len(answer.ids) for answer in answers),
        "kv_entries": None if entries is None else entries - masked,
        "seconds": None if None in seconds else sum(value for value in seconds if value is not None),
        **{column: _sum([getattr(answer.cost, name) for answer in answers]) for column, name in _SUMS.items()},
    }


def _sum(values: Sequence[int | None]) -> int | None:
    """Null where one is unknown: a part is no sum."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _beginning(found: Comparison, strategy: str) -> str:
    """The subject of a finding about this strategy."""
    about = [] if found.model is None else [f"model={found.model}"]
    return "; ".join([*about, f"strategy={strategy}", f"baseline={found.baseline.name}"])
