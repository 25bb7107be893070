"""Slots made off the fast path: shapes that are new, numbers that are unknown, objects that are no plain JSON.

A record is rendered in memory of its own and then stored as a whole. Its plan is one the binding knows, or is learnt;
a usage object that no plan can store has its leaves written as an entry of their own, and the attempt stands without.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeGuard

from weighbridge.capture import layout
from weighbridge.capture.binding import Attempt, Binding
from weighbridge.capture.dictionary import Dictionary, DictionaryFullError, Entry
from weighbridge.capture.guard import report
from weighbridge.capture.journal import JournalUnavailableError
from weighbridge.capture.plan import LONGEST_KEY, Plan, Scratch, ShapeError, compile_plan
from weighbridge.schemas import leaves
from weighbridge.schemas.enumerations import AttemptStatus, QuarantineReason
from weighbridge.schemas.identity import AttemptKey

MOST_PLANS: Final = 64
MOST_LEARNT: Final = 256  # shapes one binding learns in its life; the leaves of others are written one by one
_NODES: Final = 1024  # of a usage object; a larger one is no usage and is not looked through in a request
_UNKNOWN: Final = layout.outcome_word(AttemptStatus.UNKNOWN)


class Renderer:
    """Makes the slots of one recorder.

    Args:
        key: the installation's pseudonym key, for names of keys that are not allow-listed.
    """

    def __init__(self, dictionary: Dictionary, key: bytes) -> None:
        self._dictionary = dictionary
        self._key = key

    def slot(
        self, binding: Binding, head: list[int], counts: object, usage: object, part: int = 0, *, hot: bool = False
    ) -> bytes:
        """The slot of one record, its commit word still missing.

        Args:
            head: see `layout.HEAD`; its tag is set here.
            counts: whatever the caller passed as counts; what is no integer is unknown.
            part: number of a further part of an answer's usage.
            hot: let its plan be the one the fast path tries.

        Raises:
            DictionaryFullError: the shape is new, and there is no number left for it.
            JournalUnavailableError: the shape is new, and there is no file for its entry.
        """
        scratch = Scratch()
        stated = _whole(counts, len(binding.counts))
        plan = self._known(binding, head, stated, usage, scratch)
        if plan is None and (plain := _plain(usage)) is not None:
            usage = plain
            plan = self._known(binding, head, stated, usage, scratch)
        if plan is None:
            plan = self._learnt(binding, head, stated, usage, part, scratch)
        if hot:
            binding.hot = (plan.store, binding.tag(plan))
        return scratch.slot()

    def _known(
        self, binding: Binding, head: list[int], counts: Sequence[int], usage: object, scratch: Scratch
    ) -> Plan | None:
        """The plan of the binding that has stored the record, None where none fits."""
        for plan in reversed(list(binding.plans)):
            try:
                self._store(plan, binding, head, counts, usage, scratch)
            except Exception:  # noqa: BLE001, S112 - a usage object may be anything; the last resort is its leaves
                continue
            return plan
        return None

    def _learnt(
        self, binding: Binding, head: list[int], counts: Sequence[int], usage: object, part: int, scratch: Scratch
    ) -> Plan:
        """Learn the shape of `usage`; where no plan can store it, its leaves get an entry of their own."""
        try:
            if binding.learnt >= MOST_LEARNT and usage is not None:
                raise ShapeError("this binding met too many shapes to learn another")
            plan = self._learn(binding, usage)
            self._store(plan, binding, head, counts, usage, scratch)
        except (DictionaryFullError, JournalUnavailableError):
            raise
        except Exception:  # noqa: BLE001 - as above
            plan = next((plan for plan in binding.plans if plan.bare), None) or self._learn(binding, None)
            self._write_leaves(binding, head, usage, part)
            self._store(plan, binding, head, counts, None, scratch)
        return plan

    def _store(
        self, plan: Plan, binding: Binding, head: list[int], counts: Sequence[int], usage: object, scratch: Scratch
    ) -> None:
        scratch.clear()  # of what a plan stored before it found that something does not fit
        head[0] = binding.tag(plan)
        plan.store(scratch, 0, head, counts, usage)

    def _learn(self, binding: Binding, usage: object) -> Plan:
        with self._dictionary.lock:
            trial = compile_plan(0, binding.counts, usage, self._key, binding.root)
            number = self._dictionary.number(Entry.PLAN, trial.describe())
            plan = compile_plan(number, binding.counts, usage, self._key, binding.root)
            if number not in {known.number for known in binding.plans}:
                if len(binding.plans) >= MOST_PLANS:
                    binding.plans.pop(0)
                binding.plans.append(plan)
                binding.learnt += 1
        return plan

    def _write_leaves(self, binding: Binding, head: Sequence[int], usage: object, part: int) -> None:
        flat = _flattened(usage, self._key, binding.root)
        content = {
            "attempt": AttemptKey(head[1], head[2]).to_hex(),
            "context": binding.context,
            "us": head[5],
            "outcome": head[7],
            "part": part,
            "leaves": [list(leaf) for leaf in flat.leaves],
            "refusals": [[refusal.path, str(refusal.reason)] for refusal in flat.refusals],
            "dropped": flat.dropped_strings,
            "integral": flat.integral_floats,
        }
        self._dictionary.once(Entry.LEAVES, content)


def head_of(attempt: Attempt, outcome: object, ids_expected: object) -> list[int]:
    """The head of an attempt whatever the caller passed; what is no integer is unknown."""
    word = outcome if _is_word(outcome) else _UNKNOWN
    ids = ids_expected if _is_word(ids_expected) else -1
    # The fast path may have set the outcome before it found that something else does not fit.
    return [0, *attempt.settled()[1:7], word | attempt.level_bits | attempt.mark_bits, attempt.place, ids]


def _is_word(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and leaves.INT64_MIN <= value <= leaves.INT64_MAX


def _whole(counts: object, most: int) -> list[int]:
    """As many counts as there are names for, whatever the caller passed; what is no 64-bit integer is unknown."""
    # Of what can be read but once, the fast path may have read some.
    if isinstance(counts, (str, bytes, Mapping, Iterator)) or not isinstance(counts, Iterable):
        report(TypeError(), "counts")
        counts = ()
    out: list[int] = []
    try:
        out.extend(_count(value) for value in itertools.islice(counts, most))
    except Exception as error:  # noqa: BLE001 - whatever the caller's object does when it is read
        report(error, "counts")
    return out + [-1] * (most - len(out))


def _count(value: Any) -> int:
    if value is None:
        return -1
    try:
        number = operator.index(value)
    except Exception as error:  # noqa: BLE001 - as above
        report(error, "counts")
        return -1
    if not _is_word(number):
        report(OverflowError(), "counts")
        return -1
    return number


def _plain(usage: object) -> object | None:
    """A copy with plain dicts, of a usage object that has others in it and is small; None of any other.

    A dict that answers for keys it has not, as a `Counter` does, would have counts that nobody reported.
    """
    try:
        odd = isinstance(usage, dict) and _nodes(usage, _NODES) >= 0 and not _all_plain(usage)
        return _copied(usage) if odd else None
    except Exception as error:  # noqa: BLE001 - the object may be anything
        report(error, "usage")
    return None


def _all_plain(value: object) -> bool:
    if isinstance(value, dict):
        return type(value) is dict and all(map(_all_plain, value.values()))
    return not isinstance(value, list) or all(map(_all_plain, value[: leaves.MAX_LIST]))


def _copied(value: object) -> object:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list) and len(value) <= leaves.MAX_LIST:  # of a longer one `_nodes` saw the beginning only
        return [_copied(item) for item in value]
    return value


def _flattened(usage: object, key: bytes, root: str) -> leaves.Flattened:
    """The leaves of a usage object, or a refusal where it is too large, or changes or raises while it is read."""
    refused = leaves.Flattened()
    try:
        if _nodes(usage, _NODES) < 0:
            refused.refusals.append(leaves.Refusal(root, QuarantineReason.TOO_LARGE))
            return refused
        return leaves.flatten(usage, key, root)
    except Exception as error:  # noqa: BLE001 - the object may be anything
        report(error, "usage")
    refused.refusals.append(leaves.Refusal(root, QuarantineReason.TYPE))
    return refused


def _nodes(value: object, left: int) -> int:
    """How many more values a usage object may have after `value`; below 0: it has too many, or a key too long."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            left = _nodes(item, left - 1) if len(str(key)) <= LONGEST_KEY else -1
            if left < 0:
                break
    elif isinstance(value, (list, tuple)):
        left = left - len(value)
        for item in value[: leaves.MAX_LIST + 1] if left >= 0 else ():
            left = _nodes(item, left)
            if left < 0:
                break
    return left
