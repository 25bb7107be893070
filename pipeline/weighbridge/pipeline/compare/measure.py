"""The measures of quality, in one table. Each is a number per pair and side, so that differences can be paired."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from weighbridge.pipeline.compare.alone import Alone
from weighbridge.pipeline.compare.answer import Answer
from weighbridge.pipeline.compare.pairwise import Pairwise
from weighbridge.schemas.enumerations import FinishReason


class Basis(StrEnum):
    """What a measure looks at."""

    AGAINST = "against"  # an answer beside the baseline's; the other side is the baseline beside its own second run
    OWN = "own"  # each answer by itself
    MODEL = "model"  # what the model says of the baseline's answer when it is fed to it
    MEANING = "meaning"  # a model of meaning, of an answer beside the baseline's
    JUDGED = "judged"  # what a task gives for an answer


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure.

    Attributes:
        name: snake_case.
        title: what it is, for people.
        basis: what it looks at.
        better: 1 where more is better, -1 where less is, 0 where neither can be said.
        share: from 0 to 1, so that a pair can lose 1 at most.
        against: its value of two answers.
        own: its value of one answer, with what that answer took.
    """

    name: str
    title: str
    basis: Basis
    better: int
    share: bool = True
    against: Callable[[Pairwise], float | None] | None = None
    own: Callable[[Answer, Alone], float | None] | None = None


def _per_position(answer: Answer, total: float | None) -> float | None:
    forced = answer.cost.forced
    return None if not forced or total is None else total / forced


def _capped(answer: Answer, _: Alone) -> float | None:
    return None if answer.stop is None else float(answer.stop is FinishReason.LENGTH)


MEASURES: tuple[Measure, ...] = (
    Measure("exact", "equal, id by id", Basis.AGAINST, 1, against=lambda pair: float(pair.exact)),
    Measure("similarity", "2 LCS / (n + m); also ROUGE-L", Basis.AGAINST, 1, against=lambda pair: pair.similarity),
    Measure("edit", "1 - edits / longer length", Basis.AGAINST, 1, against=lambda pair: pair.edit),
    Measure("prefix", "common beginning / shorter length", Basis.AGAINST, 1, against=lambda pair: pair.relative_prefix),
    Measure("rouge_1", "ROUGE-1 F1 of ids", Basis.AGAINST, 1, against=lambda pair: pair.rouge_1),
    Measure("rouge_2", "ROUGE-2 F1 of ids", Basis.AGAINST, 1, against=lambda pair: pair.rouge_2),
    Measure("agreement", "teacher-forced: first choice is the baseline's token", Basis.MODEL, 1,
            own=lambda answer, _: _per_position(answer, answer.cost.forced_agreed)),
    Measure("nll", "teacher-forced: mean negative log-likelihood, nats", Basis.MODEL, -1, share=False,
            own=lambda answer, _: _per_position(answer, answer.cost.nll)),
    Measure("kl", "teacher-forced: mean divergence from the baseline's distribution, nats", Basis.MODEL, -1,
            share=False, own=lambda answer, _: _per_position(answer, answer.cost.kl)),
    Measure("semantic", "likeness of meaning, cosine of whole answers", Basis.MEANING, 1),
    Measure("bert_score", "likeness of words in their place, F1 of cosines", Basis.MEANING, 1),
    Measure("score", "what the task gives", Basis.JUDGED, 1, own=lambda answer, _: answer.score),
    Measure("rep_4", "share of runs of four that stood before", Basis.OWN, -1, own=lambda _, alone: alone.rep_4),
    Measure("distinct_1", "share of distinct ids", Basis.OWN, 1, own=lambda _, alone: alone.distinct_1),
    Measure("distinct_2", "share of distinct neighbours", Basis.OWN, 1, own=lambda _, alone: alone.distinct_2),
    Measure("longest_repeat", "longest run that occurs twice, ids", Basis.OWN, -1, share=False,
            own=lambda _, alone: float(alone.longest_repeat)),
    Measure("length", "ids", Basis.OWN, 0, share=False, own=lambda _, alone: float(alone.length)),
    Measure("capped", "ended at the limit", Basis.OWN, -1, own=_capped),
)  # fmt: skip
BY_NAME = {measure.name: measure for measure in MEASURES}
