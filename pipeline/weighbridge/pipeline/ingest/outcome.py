"""The outcome of a reading as one integer, so that the scalar and the column form share every word they say.

Bits 0-39 hold what was noticed, then the verdict, the chosen reading, why, and what the answer leaves unsaid.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag, auto
from functools import cache

from weighbridge.pipeline.ingest.dialect import Dialect
from weighbridge.schemas.enumerations import Verdict


class Flag(IntFlag):
    """What was noticed about a report; the name in lower case is the flag."""

    USAGE_MISSING = auto()
    OUTPUT_INCOMPLETE = auto()
    ERROR_AFTER_USAGE = auto()
    SEVERAL_ANSWERS = auto()
    INTEGRAL_FLOAT = auto()
    UNMAPPED_LEAVES = auto()
    ITERATIONS_LEFT_OUT = auto()
    FIELDS_DISAGREE = auto()
    COUNT_TOO_LARGE = auto()
    NEGATIVE_COUNT = auto()
    CACHED_EXCEEDS_INPUT = auto()
    REASONING_EXCEEDS_OUTPUT = auto()
    MODALITY_EXCEEDS_COUNT = auto()
    PARTS_MISMATCH = auto()
    TOTAL_MISMATCH = auto()
    CONVENTION_REFUTED = auto()
    TTL_SPLIT_EXCEEDS_CREATION = auto()
    TTL_SPLIT_INCOMPLETE = auto()
    TTL_SPLIT_STALE = auto()
    CACHE_DETAIL_MISSING = auto()
    MODALITY_DETAILS_INCOMPLETE = auto()
    UNREADABLE = auto()
    PROVIDER_NOT_KNOWN = auto()
    REPAIRED_NEGATIVE_INPUT = auto()
    CACHED_OFF_GRAIN = auto()
    REASONING_OFF_GRAIN = auto()
    CHILD_CALLS = auto()
    SERVICE_COUNT_DIFFERS = auto()
    TOTAL_DOUBLE_COUNTS_CACHE = auto()
    COUNT_ONLY = auto()
    BREAKDOWN_DIFFERS = auto()
    INSIDE_ANSWER = auto()


# With one of these no figure of the report can be relied on, so nothing else is worked out.
SPOILED = Flag.FIELDS_DISAGREE | Flag.COUNT_TOO_LARGE | Flag.NEGATIVE_COUNT
VERDICTS: tuple[Verdict, ...] = (Verdict.PROVED, Verdict.ASSUMED, Verdict.CONTRADICTORY, Verdict.UNKNOWN)
FLAGS = 0xFF_FFFF_FFFF
VERDICT_AT, CHOSEN_AT, WHY_AT, UNSAID_AT = 40, 44, 52, 56


class Why(IntEnum):
    """What settled the verdict."""

    ONE_FITS_TOTAL = 0
    ONE_FITS = 1
    ALL_AGREE = 2
    DECLARED = 3
    REPAIRED = 4
    NONE_FITS = 5
    DECLARED_REFUTED = 6
    NO_COUNTS = 7
    REPAIRED_INPUT = 8
    SERVICE_DIFFERS = 9
    COUNT_ONLY = 10


class Unsaid(IntFlag):
    """What stays unknown although the report has counts."""

    INPUT = auto()
    OUTPUT = auto()
    INPUT_SPLIT = auto()
    OUTPUT_SPLIT = auto()


_WHY = {
    Why.ONE_FITS_TOTAL: "one reading fits the reported total",
    Why.ONE_FITS: "one reading keeps every count at or above zero and every part within its whole",
    Why.ALL_AGREE: "every conceivable reading gives these counts",
    Why.DECLARED: "several readings fit, the provider's declared convention decides",
    Why.REPAIRED: "the lifetime split is larger than the creation count beside it, the split is taken",
    Why.REPAIRED_INPUT: "the negative input is what was not cached less the cache reads, which are added back",
    Why.SERVICE_DIFFERS: "the service counted otherwise than the model's own usage, which is taken",
    Why.COUNT_ONLY: "the answer counts a prompt that was not served: there is no usage",
    Why.NONE_FITS: "no reading fits",
    Why.DECLARED_REFUTED: "several readings fit with different counts, the declared convention is not among them",
    Why.NO_COUNTS: "the answer carries no token count",
}
_MISFITS = {
    Flag.FIELDS_DISAGREE: "two fields for the same count disagree",
    Flag.COUNT_TOO_LARGE: "a count is beyond 2**53",
    Flag.NEGATIVE_COUNT: "a count is negative",
    Flag.CACHED_EXCEEDS_INPUT: "the cached tokens exceed the input that contains them",
    Flag.REASONING_EXCEEDS_OUTPUT: "the reasoning tokens exceed the output that contains them",
    Flag.MODALITY_EXCEEDS_COUNT: "the tokens of a modality exceed the count that contains them",
    Flag.PARTS_MISMATCH: "the parts do not add up to their total",
    Flag.TOTAL_MISMATCH: "input and output do not add up to the reported total",
}
_UNSAID = {
    Unsaid.INPUT: "the input is not reported",
    Unsaid.OUTPUT: "the output is not reported",
    Unsaid.INPUT_SPLIT: "how the input splits is not reported",
    Unsaid.OUTPUT_SPLIT: "how the output splits is not reported",
}


def flag_names(flags: int) -> tuple[str, ...]:
    """The flags as words, in alphabetical order."""
    return tuple(sorted(str(flag.name).lower() for flag in Flag if flag & flags))


def encode(verdict: Verdict, why: Why, chosen: int, flags: int, unsaid: int) -> int:
    """One integer for one outcome."""
    return flags | VERDICTS.index(verdict) << VERDICT_AT | chosen << CHOSEN_AT | why << WHY_AT | unsaid << UNSAID_AT


@cache
def words(dialect: Dialect, code: int) -> tuple[Verdict, str, str, tuple[str, ...]]:
    """The verdict, reason, rule and flags of an outcome."""
    verdict = VERDICTS[code >> VERDICT_AT & 0xF]
    why = Why(code >> WHY_AT & 0xF)
    flags = code & FLAGS
    if verdict in {Verdict.PROVED, Verdict.ASSUMED}:
        said = "the counts are stated outright" if dialect.direct else _WHY[why]
        left = [text for bit, text in _UNSAID.items() if bit & code >> UNSAID_AT]
        rule = dialect.rule(dialect.readings[code >> CHOSEN_AT & 0xFF])
        return verdict, "; ".join([said, *left]), rule, flag_names(flags)
    misfits = [text for flag, text in _MISFITS.items() if flag & flags]
    reason = f"{_WHY[why]}: {', '.join(misfits)}" if misfits else _WHY[why]
    if why is Why.NO_COUNTS and not dialect.known:
        reason += " where this API keeps them"
    return verdict, reason, "", flag_names(flags)
