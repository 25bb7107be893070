"""Level 2: the token ids of one attempt, copied and handed to the recorder."""

from __future__ import annotations

import array
from collections.abc import Iterable, Iterator
from typing import Any

from weighbridge.capture.binding import Attempt
from weighbridge.capture.content import Run
from weighbridge.schemas.enumerations import RunStream


def offer(
    attempt: Attempt, prompt: Any, outputs: Iterable[tuple[int, Any]], drafts: Iterable[tuple[int, Any]] = ()
) -> int:
    """Hand over ids of an attempt that is taken at level 2 or above; how many will follow, -1 none.

    They are copied: what the host does to its tensors and lists later does not reach them, and they do not hold on to
    the batch they were part of.

    Args:
        prompt: ids of the prompt, None where they are not known.
        outputs: child (0 for the attempt itself) and its ids.
        drafts: per verify step its position in the sequence and the proposed ids. How many of them were accepted
            follows from where the next one starts.
    """
    return attempt.binding.recorder.offer_ids(attempt, list(_runs(attempt, prompt, outputs, drafts)))


def _runs(
    attempt: Attempt, prompt: Any, outputs: Iterable[tuple[int, Any]], drafts: Iterable[tuple[int, Any]]
) -> Iterator[Run]:
    number = 0
    if prompt is not None:
        yield Run(attempt.hi, attempt.lo, 0, number, RunStream.PROMPT, 0, _copy(prompt))
        number += 1
    for child, ids in outputs:
        if len(ids):
            yield Run(attempt.hi, attempt.lo, child, number, RunStream.OUTPUT, 0, _copy(ids))
            number += 1
    for position, ids in drafts:
        yield Run(attempt.hi, attempt.lo, 0, number, RunStream.DRAFT, position, _copy(ids))
        number += 1


def _copy(ids: Any) -> Any:
    return ids.detach().to("cpu", copy=True) if hasattr(ids, "detach") else array.array("I", ids)
