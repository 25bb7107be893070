"""A million made-up records: nothing escapes, and no count appears that is not made of the counts of its record.

    python benchmarks/fuzz_readings.py [--inputs 1000000] [--seed 1]

Every count that is written into a record is another power of five, or a sum of such. A count of a reading is written in
balanced base five, with digits from -2 to 2: a power that is not in the record must not be in the reading either, so
each count is null, zero, or a sum and difference of counts of the input (or no larger, where one of these is no power).
A fifth of the records is broken as text:
characters changed, keys named twice, numbers that are none. One part in ten is read by the batch as well, and must come
out the same.

Exit code 0: all held; 1: one did not, which is printed with its seed and never with its content.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from random import Random
from typing import Any

from polars.testing import assert_frame_equal

from weighbridge.pipeline import UsageReading, read_usage, read_usage_batch
from weighbridge.pipeline.ingest.dialect import Dialect
from weighbridge.pipeline.ingest.dialects import all_dialects
from weighbridge.pipeline.ingest.fact import all_facts
from weighbridge.pipeline.ingest.json_lines import parse
from weighbridge.pipeline.ingest.many.columns import one_by_one
from weighbridge.schemas.enumerations import Verdict

BASE, POWERS = 5, 22  # the last power is below 2**53
CHUNK = 1000
MODELS = (None, "gpt-5-mini", "gpt-5.2", "sonar-deep-research", "openai.example-v1:0", "claude-opus-4-7", "m", 7)
ODD: tuple[Any, ...] = (
    *(None, True, False, "", "12", "auto", "5m", [], {}, [1], [[]], {"a": {"b": {}}}, -1, -5, 0, 0.5, 5.0, 1e300),
    *(float("nan"), float("inf"), Decimal("NaN"), Decimal("25.0"), Decimal("1E+999999"), Decimal("0.1"), 2**53),
    *(2**53 + 1, 2**63 - 1, 2**63, -(2**63), 10**40, "1e5", " 5", "５"),
)
MARKS = '{}[]",:0159-+.eE \\ntruefalsN\x00é'


class Maker:
    """Makes records, and knows of each which powers are in it."""

    def __init__(self, random: Random) -> None:
        """A maker whose records follow from `random` alone."""
        self.random = random
        self.dialects = list(all_dialects().values())
        self.facts = [fact for fact in all_facts() if fact.api in all_dialects()]
        self.free: list[int] = []

    def record(self) -> tuple[dict[str, Any], frozenset[int]]:
        """A record, and the powers that are in it."""
        random = self.random
        self.free = random.sample(range(POWERS), POWERS)
        dialect = random.choice(self.dialects)
        record: dict[str, Any] = {
            "provider": self.provider(dialect),
            "api": random.choice((*dialect.apis, dialect.name)),
            "model": random.choice(MODELS),
        }
        place = random.random()
        if place < 0.45:
            record["usage"] = self.usage(dialect)
        elif place < 0.75:
            record["response"] = self.body(dialect)
        elif place < 0.95:
            record["events"] = [self.event(dialect) for _ in range(random.randint(0, 4))]
        if random.random() < 0.15:
            record["headers"] = {"x-amzn-bedrock-input-token-count": self.count(), "X-Prompt-Tokens": self.value()}
        if random.random() < 0.1:
            record["context"] = {"ended": self.value(), "local_counts": {"prompt_tokens": self.value()}}
        if random.random() < 0.05:
            record[random.choice(("provider", "api", "model", "usage", "response", "events", "day"))] = self.value()
        return record, frozenset(range(POWERS)) - frozenset(self.free)

    def provider(self, dialect: Dialect) -> str:
        """Somebody who speaks it, or nobody."""
        named = [fact.provider for fact in self.facts if fact.api == dialect.name]
        return self.random.choice((*dialect.providers, *named, "nobody"))

    def usage(self, dialect: Dialect) -> dict[str, Any]:
        """Some of the fields of a dialect with counts; a total that is their sum in some."""
        usage: dict[str, Any] = {}
        paths = list(dialect.roles)
        for path in self.random.sample(paths, min(len(paths), self.random.randint(0, 7))):
            put(usage, path.split("."), self.value())
        if self.random.random() < 0.4:
            for name in ("total_tokens", "totalTokenCount", "totalTokens"):
                if name in dialect.roles:
                    usage[name] = sum(number for number in numbers(usage) if number > 0)
        if self.random.random() < 0.15:
            usage[self.random.choice(("iterations", "cacheDetails", "surprise", "details"))] = [
                {"type": self.random.choice(("message", "compaction", 5)), "input_tokens": self.value(), "ttl": "5m"}
                for _ in range(self.random.randint(0, 3))
            ]
        return usage

    def body(self, dialect: Dialect) -> dict[str, Any]:
        """A body with usage in one of its places."""
        body: dict[str, Any] = {}
        place = self.random.choice(dialect.containers)
        inner = self.usage(dialect)
        if place:
            put(body, place.split("."), inner)
        else:
            body.update(inner)
        if self.random.random() < 0.2:
            body[self.random.choice(("status", "error", "type"))] = self.random.choice(
                ("completed", "failed", 0, 5, {})
            )
        return body

    def event(self, dialect: Dialect) -> object:
        """An event of a stream; some are no object at all."""
        if self.random.random() < 0.1:
            return self.random.choice(("[DONE]", None, 5, []))
        kinds = (*dialect.stream.opening, *dialect.stream.revising, *dialect.stream.closing, "error", "other")
        return {"type": self.random.choice(kinds), **self.body(dialect)}

    def value(self) -> Any:
        """A count, or in a tenth of the cases something odd."""
        return self.count() if self.random.random() < 0.9 else self.random.choice(ODD)

    def count(self) -> int:
        """A power of five that is nowhere else in the record; zero where none is left."""
        return BASE ** self.free.pop() if self.free else 0


def put(tree: dict[str, Any], steps: list[str], value: Any) -> None:
    """Put a value at a path of a dialect; a step `name[LABEL]` is a list with an element of that label."""
    for number, step in enumerate(steps):
        name, _, label = step.partition("[")
        if label:
            element = {"modality": label.rstrip("]")} if label.rstrip("]").isupper() else {}
            held = tree.setdefault(name, [])
            if isinstance(held, list):
                held.append(element)
            if number == len(steps) - 1:
                element["tokens"] = value
            tree = element
        elif number == len(steps) - 1:
            tree[name] = value
        else:
            inner = tree.setdefault(name, {})
            tree = inner if isinstance(inner, dict) else {}


def numbers(value: object) -> Iterator[int]:
    """The whole numbers in a tree, those that came as fractions among them."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from numbers(item)
    elif isinstance(value, list):
        for item in value:
            yield from numbers(item)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield value
    elif isinstance(value, float | Decimal) and Decimal(value).is_finite():
        yield from [int(value)] if -(2**63) < value < 2**63 and value == int(value) else []
    elif isinstance(value, str) and value.isascii() and value.strip().isdigit():  # headers are text
        yield int(value)


def broken(random: Random, record: Mapping[str, Any]) -> bytes:
    """A record as a line of JSON with some of its characters changed."""
    line = list(json.dumps(record, default=str))
    for _ in range(random.randint(0, 3)):
        at = random.randrange(len(line))
        line[at : at + random.randint(0, 2)] = random.choice(MARKS)
    return "".join(line).encode("utf-8", "surrogatepass")


def powers_of(count: int) -> set[int]:
    """The powers of five a count is made of, in balanced form."""
    found, power = set(), 0
    while count:
        digit = (count + BASE // 2) % BASE - BASE // 2
        if digit:
            found.add(power)
        count, power = (count - digit) // BASE, power + 1
    return found


def _given(number: int) -> set[int]:
    """The powers a number may lend to counts: sums of one that is no sum of powers of five carry over into others."""
    powers = powers_of(number)
    return powers if number == sum(BASE**power for power in powers) else set(range(max(powers) + 2))


def faults(record: Mapping[str, Any], reading: UsageReading) -> Iterator[str]:
    """What is wrong with a reading."""
    given = {power for number in numbers(record) for power in _given(number)}
    for one in (reading, *reading.children):
        shown = {**one.counts, **one.cells, **(one.estimated or {}), "reported_total": one.reported_total}
        shown |= {"input_total": one.input_total, "output_total": one.output_total, "total": one.total}
        for name, count in shown.items():
            if count is None:
                continue
            if type(count) is not int or (count < 0 and name != "reported_total"):
                yield f"{name} is no count"
            elif not powers_of(count) <= given:
                yield f"{name} is not made of counts of the record"
        if one.verdict in {Verdict.UNKNOWN, Verdict.CONTRADICTORY} and {*one.counts.values(), one.total} != {None}:
            yield f"a reading that is {one.verdict} has counts"
    if not any(leaf.integer is not None for leaf in reading.leaves) and {*reading.counts.values()} != {None}:
        yield "counts without any leaf"


def check(seed: int) -> tuple[Mapping[str, Any] | None, UsageReading | None, list[str]]:
    """One input: its record, null where its text holds none, its reading, and what is wrong with it."""
    random = Random(seed)
    record: Mapping[str, Any] | None = Maker(random).record()[0]
    if random.random() < 0.2:
        record, _ = parse(broken(random, record or {}))
    if record is None:
        return None, None, []
    reading = read_usage(record)
    return record, reading, list(faults(record, reading))


def main() -> int:
    """Check as many inputs as asked for; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    began, seen, bad = time.perf_counter(), Counter[str](), 0
    for first in range(0, asked.inputs, CHUNK):
        records = []
        for number in range(first, min(first + CHUNK, asked.inputs)):
            record, reading, wrong = check(asked.seed * 2**40 + number)
            seen["no record" if reading is None else str(reading.verdict)] += 1
            records += [] if record is None else [record]
            for fault in wrong:
                bad += 1
                sys.stdout.write(f"WRONG: input {number} of seed {asked.seed}: {fault}\n")
        if first // CHUNK % 10 == 0:
            assert_frame_equal(read_usage_batch(records), one_by_one(enumerate(records)))
    shown = ", ".join(f"{count:,} {name}" for name, count in sorted(seen.items()))
    sys.stdout.write(f"{sum(seen.values()):,} inputs in {time.perf_counter() - began:.0f} s: {shown}; {bad} wrong\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
