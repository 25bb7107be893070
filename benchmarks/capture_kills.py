"""SIGKILL at random moments: every attempt whose finish was acknowledged is read back exactly once.

    python benchmarks/capture_kills.py [--kills 1000] [--seed 7] [--processes 4]

Processes write under load, each into the same spool, and note every acknowledged attempt in a shared page that outlives
them. Each is killed at a random moment, and another takes its place. After a round every journal is read: an
acknowledged attempt that is missing, that stands there twice or with other numbers ends the run. Exit code 0: none;
1: some.
"""

from __future__ import annotations

import argparse
import mmap
import os
import random
import signal
import struct
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weighbridge.capture import layout
from weighbridge.capture.context import Context
from weighbridge.capture.layout import Kind
from weighbridge.capture.reader import journals, read_journal
from weighbridge.capture.recorder import Limits, Recorder
from weighbridge.schemas.enumerations import AttemptStatus, Ended

KEY: Final = bytes(range(32))
COUNTS: Final = ("input_computed", "output_computed")
DONE: Final = layout.outcome_word(AttemptStatus.SUCCEEDED)
BODIES: Final = (
    {"prompt_tokens": 1, "completion_tokens": 2},
    {"prompt_tokens": 1, "completion_tokens": 2, "service_tier": "default"},
    None,
)
# Of a writer: how many were acknowledged; then per attempt its key and the number it carries.
_ACKNOWLEDGED: Final = struct.Struct("<qqq")
_MOST: Final = 60_000


@dataclass
class Tally:
    """What a run of kills saw."""

    kills: int = 0
    acknowledged: int = 0
    lost: int = 0
    doubled: int = 0
    wrong: int = 0
    unacknowledged: int = 0
    falsely_complete: int = 0

    @property
    def sound(self) -> bool:
        """Whether nothing is missing, doubled or changed, and no cut file said that it was whole."""
        return not (self.lost or self.doubled or self.wrong or self.falsely_complete)


def write(spool: Path, page: mmap.mmap, seed: int) -> None:
    """Finish attempts until killed; the count in the page goes up only after a finish said that it is durable."""
    draw = random.Random(seed)
    recorder = Recorder.start(
        spool, installation="kills-1", key=KEY, limits=Limits(keeper_s=0.002, journal_bytes=256 << 10)
    )
    binding = recorder.bind(Context(provider="openai", task="chat"), counts=COUNTS)
    for number in range(_MOST):
        if number % 997 == 0:
            binding = recorder.bind(Context(provider="openai", task=f"task-{draw.randrange(9)}"), counts=COUNTS)
        attempt = binding.begin()
        if attempt.finish(DONE, (number, seed), draw.choice(BODIES)):
            _ACKNOWLEDGED.pack_into(page, 8 + number * _ACKNOWLEDGED.size, attempt.hi, attempt.lo, number + 1)
            page[:8] = (number + 1).to_bytes(8, "little")
    while True:
        time.sleep(1)


def one_round(folder: Path, seed: int, processes: int) -> Tally:
    """Start the processes, kill each at a random moment, read everything back."""
    draw = random.Random(seed)
    pages, children = [], []
    for index in range(processes):
        page = mmap.mmap(-1, 8 + _MOST * _ACKNOWLEDGED.size)
        child = os.fork()
        if child == 0:
            try:
                write(folder, page, seed * processes + index)
            finally:
                os._exit(3)
        pages.append(page)
        children.append(child)
    ends = sorted((draw.uniform(0.02, 0.4), child) for child in children)
    began = time.monotonic()
    for at, child in ends:
        time.sleep(max(0.0, began + at - time.monotonic()))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return compared(folder, pages)


def compared(folder: Path, pages: list[mmap.mmap]) -> Tally:
    """Hold what the journals give back against what was acknowledged."""
    tally = Tally(kills=len(pages))
    seen: Counter[tuple[int, int, int]] = Counter()
    for path in journals(folder):
        if path.stat().st_size == 0 or path.read_bytes()[:8] == bytes(8):
            continue  # killed before the header was written: no attempt can be in it
        contents = read_journal(path)
        tally.wrong += contents.damaged
        rolled = contents.end is Ended.COMPLETE
        tally.falsely_complete += rolled and contents.taken < contents.room
        seen.update((words[1], words[2], words[10]) for _, words in contents.slots if words[0] & 0xFF == Kind.ATTEMPT)
    told = set()
    for page in pages:
        for number in range(int.from_bytes(page[:8], "little")):
            hi, lo, carried = _ACKNOWLEDGED.unpack_from(page, 8 + number * _ACKNOWLEDGED.size)
            if carried:
                told.add((hi, lo, carried - 1))
        page.close()
    tally.acknowledged = len(told)
    tally.lost = len(told - seen.keys())
    tally.doubled = sum(times > 1 for times in seen.values())
    tally.unacknowledged = len(seen.keys() - told)
    # One attempt per process may have been stored and not yet acknowledged when the kill came.
    tally.wrong += max(0, tally.unacknowledged - len(pages))
    return tally


def kill(kills: int, seed: int, processes: int) -> Tally:
    """Rounds until `kills` processes were killed."""
    total = Tally()
    for number in range(-(-kills // processes)):
        with tempfile.TemporaryDirectory() as folder:
            tally = one_round(Path(folder), seed + number, processes)
        for name, value in vars(tally).items():
            setattr(total, name, getattr(total, name) + value)
        if not total.sound:
            break
    return total


def main() -> int:
    """Run the kills and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--processes", type=int, default=4)
    args = parser.parse_args()
    tally = kill(args.kills, args.seed, args.processes)
    for name, value in vars(tally).items():
        print(f"{name.replace('_', ' '):20}{value:12,}")
    return int(not tally.sound)


if __name__ == "__main__":
    sys.exit(main())
