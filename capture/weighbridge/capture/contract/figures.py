"""Whether what an adapter wrote is what was true, and whether its figures are possible at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weighbridge.capture.contract.engine import Call, Truth
from weighbridge.capture.contract.report import Broken
from weighbridge.capture.contract.trial import Trial, once
from weighbridge.capture.layout import ACCEPTED_STEPS, COUNTS, TIMES

Row = Mapping[str, Any]


def compared(call: Call, made: Trial) -> tuple[list[Broken], list[str]]:
    """What does not hold of a call's rows, and which counts are left unknown."""
    attempts, children, _ = made.rows(len(call.truths))
    broken: list[Broken] = []
    if len(attempts) != len(call.truths):
        found = f"{len(attempts)} attempts were written for a call that made {len(call.truths)}"
        return [Broken("attempts", f"{found}; begin one per prompt and finish each once")], []
    if not all(once(row) for row in attempts):
        broken.append(Broken("finished_twice", "an attempt was written more than once by one source; finish it once"))
    unknown: set[str] = set()
    left = list(attempts)
    for truth in call.truths:
        row = min(left, key=lambda row, truth=truth: _differences(row, truth))  # type: ignore[misc]
        left.remove(row)
        own = sorted((c for c in children if _key(c) == _key(row)), key=lambda each: each["child"])
        broken += [*_outcome(row, truth), *_counts(row, truth, unknown), *impossible(row)]
        broken += [*_children(own, truth), *_ids(row, truth, made)]
    return broken, [f"left unknown: {', '.join(sorted(unknown))}"] if unknown else []


def _differences(row: Row, truth: Truth) -> int:
    wrong = sum(row.get(name) not in (None, value) for name, value in truth.counts.items())
    return wrong + int(row["status"] != truth.status)


def _outcome(row: Row, truth: Truth) -> Iterator[Broken]:
    if row["status"] != truth.status:
        yield Broken("status", f"the row says {row['status']}, and it {truth.status}")
    if truth.finish is not None and row["finish_reason"] != truth.finish:
        yield Broken("finish", f"the row says {row['finish_reason']}; it ended by {truth.finish}")


def _counts(row: Row, truth: Truth, unknown: set[str]) -> Iterator[Broken]:
    for name, value in truth.counts.items():
        told = row.get(name)
        if told is None:
            unknown.add(name)
            if name in truth.must:
                yield Broken("count_missing", f"{name} is null; it was {value}, and an engine's adapter has to know it")
        elif told != value:
            yield Broken("count_wrong", f"{name} is {told}; it was {value}. Leave null what is not known")


def _children(own: Sequence[Row], truth: Truth) -> Iterator[Broken]:
    if len(own) != len(truth.children):
        found = f"{len(own)} children were written; the call had {len(truth.children)}"
        yield Broken("children", f"{found}. Write one for each choice, beam or prompt of a call of several")
        return
    told = sorted(sorted((name, row.get(name)) for name in each) for row, each in zip(own, truth.children, strict=True))
    if told != sorted(sorted(each.items()) for each in truth.children):
        yield Broken("children", f"their counts are {told}")


def _ids(row: Row, truth: Truth, made: Trial) -> Iterator[Broken]:
    for stream, ids in (("prompt", truth.prompt_ids), ("output", truth.output_ids)):
        told = made.offered.get((_key(row), 0, stream))
        if made.offered and ids is not None and told != list(ids):
            yield Broken(
                "ids", f"{len(told or ())} ids of the {stream} were handed over; other ones than the {len(ids)}"
            )
    if made.offered:
        total = sum(len(ids) for (key, _, _), ids in made.offered.items() if key == _key(row))
        if total and row.get("ids_expected") != total:
            yield Broken("ids_expected", f"the row announces {row.get('ids_expected')} ids; {total} were handed over")


def impossible(row: Row) -> Iterator[Broken]:
    """Identities of one row: every token has one class, and every total is the sum of disjoint ones."""
    for name in (*COUNTS, *TIMES):
        if row.get(name) is not None and row[name] < 0:
            yield Broken("negative", f"{name} is {row[name]}")
    sums = (
        ("input_computed", ("cached_local", "cached_external", "prefill_computed")),
        ("drafted", ("accepted", "rejected")),
    )
    for whole, parts in sums:
        held = [row.get(name) for name in (whole, *parts)]
        if None not in held and row[whole] != sum(int(row[name]) for name in parts):
            yield Broken(
                "sum", f"{whole} is {row[whole]}, and {' + '.join(parts)} is {sum(int(part or 0) for part in held[1:])}"
            )
    delivered, computed = row.get("output_delivered"), row.get("output_computed")
    if delivered is not None and computed is not None and delivered > computed:
        yield Broken("sum", f"{delivered} tokens were delivered, and {computed} computed")
    steps = [row.get(name) for name in ACCEPTED_STEPS[:8]]
    rest = [row.get(name) for name in ACCEPTED_STEPS[8:]]
    if row.get("accepted") is not None and None not in steps and rest == [0, 0]:
        told = sum(length * int(count or 0) for length, count in enumerate(steps))
        if told != row["accepted"]:
            yield Broken("sum", f"{row['accepted']} drafted tokens were accepted, and {told} by the verify steps")


def _key(row: Row) -> tuple[int, int]:
    return row["attempt_hi"], row["attempt_lo"]
