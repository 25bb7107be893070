"""Tokens dropped or merged before the model, or inside it: what was kept, how many there were, what went where.

    pruned = Pruning.of_texts(prompt, shorter, tokens_before=900, tokens_after=410, strategy=strategy)
    with told(pruned):                       # a call that the adapter of transformers watches
        model.generate(...)
    attempt.offer_trace(pruned.events(), pruned.strategy)    # or an attempt of your own

Only places and counts are kept: no text. A text pruned by another tokenizer than the model's has places in characters,
and both of the model's token counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from weighbridge.capture.adapters._generate_call import Told, beforehand
from weighbridge.schemas.enumerations import Axis, Operation, PositionSpace
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.position_sets import full
from weighbridge.schemas.strategy import Strategy
from weighbridge.schemas.trace import StateEvent, Trace, row_of

# A word, or what stands between words; one letter.
_WORDS: Final = re.compile(r"\w+|\W")
_LETTERS: Final = re.compile(r".", re.DOTALL)


@contextmanager
def told(*what: Told) -> Iterator[None]:
    """Let the next calls of `generate()` in this block have this in their traces."""
    token = beforehand.set((*beforehand.get(), *what))
    try:
        yield
    finally:
        beforehand.reset(token)


@dataclass(frozen=True, slots=True)
class Pruning:
    """What of a prompt was kept.

    Attributes:
        universe: places there were (characters, or tokens of the prompt).
        kept: ranges that were kept, first and last, in order; None where only counts are known.
        tokens_before, tokens_after: of the prompt, counted by the model's tokenizer; None where not known.
        strategy: what pruned it.
        pos_space: what a place is.

    Raises:
        ConfigError: ranges overlap, are out of order or lie beyond the universe, or there are more tokens after.
    """

    universe: int
    kept: tuple[tuple[int, int], ...] | None
    tokens_before: int | None = None
    tokens_after: int | None = None
    strategy: Strategy | None = None
    pos_space: PositionSpace = PositionSpace.CHARS
    held_bytes: int = 0

    def __post_init__(self) -> None:
        """See that it can be so."""
        last = -1
        for low, high in self.kept or ():
            if not last < low <= high < self.universe:
                raise ConfigError(
                    f"kept range {low} to {high} after {last}, of {self.universe} places; ranges are inclusive, in "
                    "order, and do not overlap"
                )
            last = high
        if self.tokens_before is not None and self.tokens_after is not None and self.tokens_after > self.tokens_before:
            raise ConfigError(
                f"{self.tokens_after} tokens after pruning, {self.tokens_before} before; count both by one tokenizer"
            )

    @classmethod
    def of_texts(
        cls,
        before: str,
        after: str,
        *,
        tokens_before: int | None = None,
        tokens_after: int | None = None,
        strategy: Strategy | None = None,
    ) -> Pruning:
        """What of a text was kept by whatever made a shorter one of it; the texts themselves are not.

        Of equal passages the first is taken. A text that says anything the other does not, in its order, was not made
        by leaving out: then only counts are known.
        """
        ranges = _left(before, after)
        return cls(len(before), ranges, tokens_before, tokens_after, strategy)

    def counts(self, _: int = 0) -> dict[str, int]:
        """No counts of level 1: what the model got is counted by whoever watches it."""
        return {}

    def add_to(self, trace: Trace, _: int = 0) -> None:
        """KEEP says which places, DROP how many tokens."""
        trace.strategy_id = None if self.strategy is None else self.strategy.strategy_id
        if self.kept is not None:
            members = 0
            for low, high in self.kept:
                members |= full(high - low + 1) << low
            trace.add(Axis.INPUT, Operation.KEEP, [members], width=self.universe, pos_space=self.pos_space)
        if self.tokens_before is not None and self.tokens_after is not None:
            dropped = self.tokens_before - self.tokens_after
            space = PositionSpace.PROMPT
            trace.count(Axis.INPUT, Operation.DROP, dropped, self.tokens_before, pos_space=space)

    def events(self) -> list[StateEvent]:
        """Its state events."""
        trace = Trace()
        self.add_to(trace)
        return trace.events


def _left(before: str, after: str) -> tuple[tuple[int, int], ...] | None:
    """The passages of `before` that make up `after`: whole words where that is possible, else letters."""
    for pattern in (_WORDS, _LETTERS):
        ranges = _found([(match.group(), match.start()) for match in pattern.finditer(before)], pattern.findall(after))
        if ranges is not None:
            return ranges
    return None


def _found(parts: list[tuple[str, int]], wanted: list[str]) -> tuple[tuple[int, int], ...] | None:
    """The first places at which all wanted parts stand in order: if there are any such places, these are."""
    ranges: list[tuple[int, int]] = []
    following = iter(parts)
    for part in wanted:
        start = next((start for found, start in following if found == part), None)
        if start is None:
            return None
        end = start + len(part) - 1
        if ranges and ranges[-1][1] + 1 == start:
            ranges[-1] = (ranges[-1][0], end)
        else:
            ranges.append((start, end))
    return tuple(ranges)


@dataclass(frozen=True, slots=True)
class Merging:
    """Which positions were merged into which, layer by layer.

    Attributes:
        layers: of the model.
        universe: positions that reached the first layer.
        merged: (layer, sources and where each went), in order; both are positions of the first layer's input. What is
            merged before a layer is missing from that layer on.
        strategy: what merged them.

    Raises:
        ConfigError: a layer that is not there, or a position that was merged away before.
    """

    layers: int
    universe: int
    merged: tuple[tuple[int, Mapping[int, int]], ...]
    strategy: Strategy | None = None
    held_bytes: int = 0

    def __post_init__(self) -> None:
        """See that it can be so."""
        gone: set[int] = set()
        for layer, sources in self.merged:
            if not 0 <= layer < self.layers:
                raise ConfigError(f"layer {layer} of {self.layers}; layers count from 0")
            targets = set(sources.values())
            if (gone | set(sources)) & targets or gone & set(sources):
                raise ConfigError("a position was merged that is not there any more; name what it was merged into")
            if any(not 0 <= place < self.universe for place in (*sources, *targets)):
                raise ConfigError(
                    f"a position is beyond the {self.universe} of the first layer; positions count from 0"
                )
            gone |= set(sources)

    @property
    def left(self) -> int:
        """Positions that reach the end."""
        return self.universe - sum(len(sources) for _, sources in self.merged)

    def counts(self, _: int = 0) -> dict[str, int]:
        """KV entries of the layers by heads are not known here."""
        return {}

    def add_to(self, trace: Trace, _: int = 0) -> None:
        """APPEND of all, then a MERGE per layer, which holds in all later ones as well."""
        trace.strategy_id = None if self.strategy is None else self.strategy.strategy_id
        every = (0, self.layers - 1)
        trace.add(Axis.STORE, Operation.APPEND, [full(self.universe)], width=self.universe, layers=every)
        for layer, sources in self.merged:
            later = (layer, self.layers - 1)
            trace.add(
                Axis.STORE, Operation.MERGE, [row_of(sources)], width=self.universe, layers=later,
                destinations=[sources] * (self.layers - layer),
            )  # fmt: skip

    def events(self) -> list[StateEvent]:
        """Its state events."""
        trace = Trace()
        self.add_to(trace)
        return trace.events
