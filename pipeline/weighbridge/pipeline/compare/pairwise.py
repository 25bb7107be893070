"""Two answers to one prompt, held against each other as token ids.

The longest common subsequence is that of rapidfuzz, a true one. `ROUGE-L` (its F1) and the normalised Indel similarity
are the same number, 2 LCS / (n + m), so there is one column. Ids of two tokenizers are never comparable; whoever calls
sees to that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise as neighbours
from typing import NamedTuple

from rapidfuzz.distance import LCSseq, Levenshtein

BLOCK = 4  # ids that moved together are a block from so many on


class Pairwise(NamedTuple):
    """What two answers have in common. Shares are from 0 to 1; two empty answers are equal.

    Attributes:
        exact: equal, id by id.
        prefix: length of the common beginning; where `exact`, the whole length, and no divergence was seen.
        relative_prefix: of the shorter one, the share that is common.
        similarity: 2 LCS / (n + m), which is also ROUGE-L.
        edit: 1 - edits / longer length, an edit being an insertion, deletion or replacement.
        replaced, deleted, inserted: ids the shortest such edit touches, of the first, the first and the second answer.
        rouge_1, rouge_2: F1 of ids and of pairs of neighbours.
        moved: ids both have, in another order; in_order + moved = ids both have.
        in_order: the longest common subsequence.
        foreign: ids of the second answer the first does not have.
        moved_blocks: runs of at least `BLOCK` ids that were deleted at one place and inserted at another.
    """

    exact: bool
    prefix: int
    relative_prefix: float
    similarity: float
    edit: float
    replaced: int
    deleted: int
    inserted: int
    rouge_1: float
    rouge_2: float
    in_order: int
    moved: int
    foreign: int
    moved_blocks: int


def pairwise(off: Sequence[int], on: Sequence[int]) -> Pairwise:
    """Compare two answers.

    Args:
        off: ids of the baseline's answer.
        on: ids of the strategy's answer.
    """
    first, second = list(off), list(on)
    n, m = len(first), len(second)
    if first == second:
        return Pairwise(True, n, 1.0, 1.0, 1.0, 0, 0, 0, 1.0, 1.0, n, 0, 0, 0)
    prefix = common_prefix(first, second)
    # What is common at the beginning is in every alignment; the rest is what has to be aligned.
    left, right = first[prefix:], second[prefix:]
    in_order = prefix + LCSseq.similarity(left, right)
    opcodes = [code for code in Levenshtein.opcodes(left, right) if code.tag != "equal"]
    replaced = sum(code.src_end - code.src_start for code in opcodes if code.tag == "replace")
    deleted = sum(code.src_end - code.src_start for code in opcodes if code.tag == "delete")
    inserted = sum(code.dest_end - code.dest_start for code in opcodes if code.tag == "insert")
    shared = _shared(first, second)
    gone = [left[code.src_start : code.src_end] for code in opcodes]
    come = [right[code.dest_start : code.dest_end] for code in opcodes]
    return Pairwise(
        exact=False,
        prefix=prefix,
        relative_prefix=prefix / min(n, m) if n and m else 0.0,
        similarity=2 * in_order / (n + m),
        edit=1 - (replaced + deleted + inserted) / max(n, m),
        replaced=replaced,
        deleted=deleted,
        inserted=inserted,
        rouge_1=2 * shared / (n + m),
        rouge_2=_rouge_2(first, second),
        in_order=in_order,
        moved=shared - in_order,
        foreign=m - shared,
        moved_blocks=_moved_blocks(gone, come) if shared > in_order else 0,
    )


def common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """How many ids two answers begin with alike."""
    for at, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return at
    return min(len(first), len(second))


def _shared(first: Sequence[object], second: Sequence[object]) -> int:
    """How many elements two bags have in common, each as often as in the one with fewer of it."""
    held, other = Counter(first), Counter(second)
    return (held & other).total()


def _rouge_2(first: Sequence[int], second: Sequence[int]) -> float:
    pairs, others = [*neighbours(first)], [*neighbours(second)]
    if not pairs and not others:
        return 1.0 if list(first) == list(second) else 0.0
    return 2 * _shared(pairs, others) / (len(pairs) + len(others))


def _moved_blocks(gone: Sequence[Sequence[int]], come: Sequence[Sequence[int]]) -> int:
    """Runs of inserted ids that stand in what was deleted; each place of it is taken once, longest run first there."""
    places: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for number, run in enumerate(gone):
        for at in range(len(run) - BLOCK + 1):
            places.setdefault(tuple(run[at : at + BLOCK]), []).append((number, at))
    taken: set[tuple[int, int]] = set()
    blocks = 0
    for run in come if places else ():
        at = 0
        while at + BLOCK <= len(run):
            length = 0
            for number, begin in places.get(tuple(run[at : at + BLOCK]), ()):
                if (number, begin) in taken:
                    continue
                length = common_prefix(run[at:], gone[number][begin:])
                taken.update((number, begin + step) for step in range(length))
                break
            blocks += length > 0
            at += max(length, 1)
    return blocks
