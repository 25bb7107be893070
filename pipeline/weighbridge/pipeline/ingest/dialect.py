"""What a dialect is: the facts by which one API's usage leaves are read. No dialect holds code.

A dialect maps each path to the *role* its number plays, names the *readings* that are conceivable (the first value of
each axis is the convention the provider declares), says what an absent field means, and how the parts of a stream
merge. `solver` weighs the readings against each other; nothing here decides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import product

from weighbridge.pipeline.ingest.fact import Axis, Fact, Repair
from weighbridge.schemas.enumerations import Ended

# The rule for absent fields of a speaker who may not show what he counts.
HIDDEN = "hidden"
_ORDINAL = re.compile(r"#\d+(?=])")
_LABEL = re.compile(r"\[[^\]]*\]")


class Role(StrEnum):
    """The part a reported number plays. Whether one contains another is the question of the reading."""

    INPUT = "input"
    OUTPUT = "output"
    TOTAL = "total"
    CACHE_READ = "cache_read"
    CACHE_WRITE = "cache_write"  # all writes, whatever their lifetime
    CACHE_WRITE_5M = "cache_write_5m"
    CACHE_WRITE_1H = "cache_write_1h"
    REASONING = "reasoning"
    TOOL_PROMPT = "tool_prompt"
    # A part of a direction that only our own vocabulary states outright; for providers it is what is left.
    INPUT_UNCACHED = "input_uncached"
    CACHE_WRITE_UNKNOWN = "cache_write_unknown"
    OUTPUT_VISIBLE = "output_visible"
    # Modalities of the input field, of the tool-use prompt, of the cache reads and of the output field.
    INPUT_TEXT = "input_text"
    INPUT_DOCUMENT = "input_document"  # counted and priced as text
    INPUT_AUDIO = "input_audio"
    INPUT_IMAGE = "input_image"
    INPUT_VIDEO = "input_video"
    TOOL_TEXT = "tool_text"
    TOOL_DOCUMENT = "tool_document"
    TOOL_AUDIO = "tool_audio"
    TOOL_IMAGE = "tool_image"
    TOOL_VIDEO = "tool_video"
    CACHED_TEXT = "cached_text"
    CACHED_DOCUMENT = "cached_document"
    CACHED_AUDIO = "cached_audio"
    CACHED_IMAGE = "cached_image"
    CACHED_VIDEO = "cached_video"
    OUTPUT_TEXT = "output_text"
    OUTPUT_DOCUMENT = "output_document"
    OUTPUT_AUDIO = "output_audio"
    OUTPUT_IMAGE = "output_image"
    OUTPUT_VIDEO = "output_video"
    UNCACHED_AUDIO = "uncached_audio"
    UNCACHED_IMAGE = "uncached_image"
    UNCACHED_VIDEO = "uncached_video"
    # What the service counted where the model's own usage stands beside it: it fills gaps and is compared.
    SERVICE_INPUT = "service_input"
    SERVICE_OUTPUT = "service_output"
    SERVICE_CACHE_READ = "service_cache_read"
    SERVICE_CACHE_WRITE = "service_cache_write"
    # A prompt that was counted and not served.
    WOULD_BE_INPUT = "would_be_input"
    # Evidence: kept and compared, never part of a sum.
    ACCEPTED_PREDICTION = "accepted_prediction"
    REJECTED_PREDICTION = "rejected_prediction"
    EVIDENCE = "evidence"


EVIDENCE: frozenset[Role] = frozenset({Role.ACCEPTED_PREDICTION, Role.REJECTED_PREDICTION, Role.EVIDENCE})
# Numbers that are taken from the leaves, in the order of their columns.
COUNTED: tuple[Role, ...] = tuple(role for role in Role if role not in EVIDENCE)
# The figure of the model's own usage that a count of the service stands for.
WITNESSES: Mapping[Role, Role] = {
    Role.SERVICE_INPUT: Role.INPUT,
    Role.SERVICE_OUTPUT: Role.OUTPUT,
    Role.SERVICE_CACHE_READ: Role.CACHE_READ,
    Role.SERVICE_CACHE_WRITE: Role.CACHE_WRITE,
}
# Of those, what is part of a sum and must not be negative.
SUMMED: tuple[Role, ...] = tuple(r for r in COUNTED if r not in WITNESSES and r is not Role.WOULD_BE_INPUT)
# A report that has none of these says nothing about tokens.
CORE: tuple[Role, ...] = (
    Role.INPUT,
    Role.OUTPUT,
    Role.TOTAL,
    Role.CACHE_READ,
    Role.CACHE_WRITE,
    Role.CACHE_WRITE_5M,
    Role.CACHE_WRITE_1H,
    Role.REASONING,
    Role.TOOL_PROMPT,
    Role.INPUT_UNCACHED,
    Role.CACHE_WRITE_UNKNOWN,
    Role.OUTPUT_VISIBLE,
    *WITNESSES,
)
SPLIT = ("audio", "image", "video")
INPUT_BY_MODALITY = tuple(Role(f"input_{name}") for name in SPLIT)
TOOL_BY_MODALITY = tuple(Role(f"tool_{name}") for name in SPLIT)
CACHED_BY_MODALITY = tuple(Role(f"cached_{name}") for name in SPLIT)
UNCACHED_BY_MODALITY = tuple(Role(f"uncached_{name}") for name in SPLIT)
OUTPUT_BY_MODALITY = tuple(Role(f"output_{name}") for name in SPLIT)
TOOL_ROWS = (Role.TOOL_TEXT, Role.TOOL_DOCUMENT, *TOOL_BY_MODALITY)
# Per figure that providers itemise by modality: its text rows (text and what counts as text), then the split rows.
ITEMISED: Mapping[Role, tuple[tuple[Role, ...], tuple[Role, ...]]] = {
    Role.INPUT: ((Role.INPUT_TEXT, Role.INPUT_DOCUMENT), INPUT_BY_MODALITY),
    Role.TOOL_PROMPT: (TOOL_ROWS[:2], TOOL_BY_MODALITY),
    Role.CACHE_READ: ((Role.CACHED_TEXT, Role.CACHED_DOCUMENT), CACHED_BY_MODALITY),
    Role.OUTPUT: ((Role.OUTPUT_TEXT, Role.OUTPUT_DOCUMENT), OUTPUT_BY_MODALITY),
}


@dataclass(frozen=True, slots=True)
class Reading:
    """One answer to every axis."""

    input_includes_cache: bool = False
    output_includes_reasoning: bool = False
    input_includes_tool_prompt: bool = False
    total_counts_cache_twice: bool = False
    total_leaves_out_reasoning: bool = False


@dataclass(frozen=True, slots=True)
class Absent:
    """What an absent field means; a role that is named nowhere here is unknown.

    Attributes:
        zero: the provider leaves the field out where it is zero, or had nothing to count before the field existed.
        zero_beside: zero where one of these other fields is there, else unknown: the object that holds them was given.
        whole: where what was cached is not shown, it is not taken out of the input either, which then is the prompt.
    """

    zero: frozenset[Role] = frozenset()
    zero_beside: Mapping[Role, frozenset[Role]] = field(default_factory=dict)
    whole: bool = False


class Merge(StrEnum):
    """How the parts of a stream become one report."""

    LAST = "last"  # running totals: the last part that has counts, never a sum
    START_DELTA = "start_delta"  # later parts revise, field by field, what the first one said


@dataclass(frozen=True, slots=True)
class Stream:
    """How the events of a stream are told apart.

    Attributes:
        merge: how parts merge.
        opening: event types that open an answer; their counts of output are placeholders.
        revising: event types that revise the opening.
        closing: event types that end an answer, and how.
        finish: (list, field) of an event: the field is set when the answer is whole.
        ending: fields of an event of which one is set when the answer is whole.
        unclosed: what a stream without any of these says about its end.
    """

    merge: Merge = Merge.LAST
    opening: frozenset[str] = frozenset()
    revising: frozenset[str] = frozenset()
    closing: Mapping[str, Ended] = field(default_factory=dict)
    finish: tuple[tuple[str, str], ...] = ()
    ending: frozenset[str] = frozenset()
    unclosed: Ended = Ended.UNKNOWN


# What the opening of a stream cannot know yet.
PLACEHOLDERS: tuple[Role, ...] = (
    Role.OUTPUT,
    Role.REASONING,
    Role.OUTPUT_TEXT,
    Role.OUTPUT_DOCUMENT,
    *OUTPUT_BY_MODALITY,
)


@dataclass(frozen=True, slots=True)
class Iterations:
    """A list of the model calls of one answer, some of which the top level leaves out.

    Attributes:
        path: the list, below the container. Its elements have the fields of the top level, and some a model.
        shown: kinds of element; the top level is the sum of the first kind that occurs.
    """

    path: str
    shown: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Dialect:
    """The facts of one API.

    Attributes:
        name: as it stands in `reading.dialect`.
        apis: the names the API goes by; the first is ours.
        providers: who speaks it so; `any` where the provider does not matter.
        source: the provider's page the facts were read from.
        containers: where usage stands in a body or event; the first one is that of a bare usage object. The empty
            one, if any the last, is the answer itself.
        roles: path below the container -> role. `[*]` stands for any label of a list; rows of a list are summed.
        axes: per axis the conceivable values, the declared convention first. An axis left out is no.
        absent: rules for absent fields: `any` holds where nothing else is said, facts name the others; one that
            bears the name of a provider is his.
        stream: how a stream is read.
        itemised: modality details list every modality, so that they should add up even without a text row.
        direct: each class is stated outright (our own vocabulary) instead of being what is left.
        open: who is named nowhere is read by this dialect too, by its conventions, with the rule `hidden` for absent
            fields and a flag.
        rare: axes that are conceivable only where a fact declares one of their values.
        children: lists of the calls of other models one answer was made with; each has counts of its own.
        breakdown: the calls in `children` make up the top level; where they add up to it, each is a child.
        iterations: a list of calls of which the top level leaves out some.
        guessed: axes whose declared answer is only assumed where what they are about is not told.
        facts: what is known about single providers.
        known: whether the provider is named.
        cached_grain, reasoning_grain: the step in which these counts come, where there is one.
        repairs: faults that are mended.
    """

    name: str
    apis: tuple[str, ...]
    providers: tuple[str, ...]
    source: str
    containers: tuple[str, ...]
    roles: Mapping[str, Role]
    axes: Mapping[Axis, tuple[bool, ...]]
    absent: Mapping[str, Absent]
    stream: Stream = field(default_factory=Stream)
    itemised: bool = False
    direct: bool = False
    open: bool = False
    rare: Mapping[Axis, tuple[bool, ...]] = field(default_factory=dict)
    children: tuple[str, ...] = ()
    breakdown: bool = False
    iterations: Iterations | None = None
    guessed: frozenset[Axis] = frozenset()
    facts: tuple[Fact, ...] = ()
    known: bool = True
    cached_grain: int | None = None
    reasoning_grain: int | None = None
    repairs: frozenset[Repair] = frozenset()

    @cached_property
    def readings(self) -> tuple[Reading, ...]:
        """Every conceivable reading, the declared one first."""
        combined = product(*self.axes.values())
        return tuple(Reading(**dict(zip((str(a) for a in self.axes), values, strict=True))) for values in combined)

    @property
    def merges(self) -> bool:
        """Whether later parts of a stream revise earlier ones field by field."""
        return self.stream.merge is Merge.START_DELTA

    @property
    def varies(self) -> bool:
        """Whether what is known about the provider depends on the model or the day."""
        return not all(fact.general for fact in self.facts)

    def names(self, provider: str | None) -> bool:
        """Whether this provider is known to speak it."""
        return (
            "any" in self.providers
            or provider in self.providers
            or any(fact.provider == provider for fact in self.facts)
        )

    def absent_for(self, provider: str | None) -> Absent:
        """What absent fields mean when this provider answers."""
        return self.absent.get(provider or "any") or self.absent["any"]

    def relative(self, path: str) -> str | None:
        """The path below its container, or null where it lies in none."""
        for container in self.containers:
            if path.startswith(f"{container}."):
                return path[len(container) + 1 :]
        return path if "" in self.containers else None

    def role_of(self, relative: str) -> tuple[str, Role] | None:
        """The entry of `roles` a path below the container belongs to: (its spelling there, its role)."""
        plain = _ORDINAL.sub("", relative)
        for spelling in (plain, _LABEL.sub("[*]", plain)):
            if spelling in self.roles:
                return spelling, self.roles[spelling]
        return None

    def rule(self, reading: Reading) -> str:
        """A reading as convention=value pairs."""
        return "; ".join(f"{axis}={'yes' if getattr(reading, axis) else 'no'}" for axis in self.axes)
