"""Prompts of a run: ids with the origin of each part, and what a good answer has in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weighbridge.schemas.enumerations import Origin
from weighbridge.schemas.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt.

    Attributes:
        pair: its name.
        ids: its token ids.
        origins: (origin, first position, length) of its parts, in order.
        cluster: task or session.
        expected: what a right answer holds, as text; null where nobody says.
        expected_ids: the same as ids.
    """

    pair: str
    ids: tuple[int, ...] = field(repr=False)
    origins: tuple[tuple[str, int, int], ...]
    cluster: str | None = None
    expected: str | None = field(default=None, repr=False)
    expected_ids: tuple[int, ...] | None = field(default=None, repr=False)

    def score(self, ids: Sequence[int], text: Callable[[Sequence[int]], str] | None) -> float | None:
        """1 where the answer holds what is expected, 0 where not, null where nothing is or text cannot be had."""
        if self.expected_ids is not None:
            wanted, held = list(self.expected_ids), list(ids)
            return float(any(held[at : at + len(wanted)] == wanted for at in range(len(held) - len(wanted) + 1)))
        if self.expected is None or text is None:
            return None
        return float(self.expected in text(ids))


def prompts(given: Sequence[Mapping[str, Any]], tokenizer: Any, vocabulary: int) -> list[Prompt]:
    """The prompts of a plan.

    Args:
        given: per prompt `pair`, its `parts` (origin, and text or ids), `cluster`, `expected`, `expected_ids`.
        tokenizer: turns text into ids; null where the run has none.
        vocabulary: ids the model knows.

    Raises:
        ConfigError: a prompt without ids, text without a tokenizer, or an id the model does not know.
    """
    return [_prompt(each, tokenizer, vocabulary) for each in given]


def _prompt(given: Mapping[str, Any], tokenizer: Any, vocabulary: int) -> Prompt:
    ids: list[int] = []
    origins = []
    where = f"prompt {given['pair']}"
    for origin, part in given["parts"]:
        if isinstance(part, str):
            if tokenizer is None:
                raise ConfigError(f"{where} is text, and the run names no tokenizer; name one, or give ids")
            part = tokenizer(part, add_special_tokens=False)["input_ids"]  # noqa: PLW2901 - the same part, as ids
        origins.append((str(Origin(origin)), len(ids), len(part)))
        ids.extend(part)
    if not ids:
        raise ConfigError(f"{where} is empty; give it a text or ids")
    if max(ids) >= vocabulary:
        raise ConfigError(
            f"{where} has an id beyond the {vocabulary} the model knows; see that the tokenizer is its own"
        )
    wanted = given.get("expected_ids")
    return Prompt(
        given["pair"], tuple(ids), tuple(origins), given.get("cluster"), given.get("expected"),
        None if wanted is None else tuple(wanted),
    )  # fmt: skip
