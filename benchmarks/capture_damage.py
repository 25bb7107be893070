"""Random damage: bits flipped and files cut, in journals and sealed segments; nothing of it is accepted silently.

    python benchmarks/capture_damage.py [--damages 10000] [--seed 7]

Each case damages a copy of a journal (closed, or abandoned as after a SIGKILL) or of a sealed segment in one place and
reads it. Silent would be: a row that differs from what was written and stands on a page with a checksum; a row that is
missing while nothing is counted and the end is called known; a segment that verifies. Exit code 0: none; 1: some.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

from weighbridge.capture import layout, seal
from weighbridge.capture.context import Context
from weighbridge.capture.reader import Contents, journals, read_journal
from weighbridge.capture.recorder import Limits, Recorder
from weighbridge.schemas.enumerations import AttemptStatus, Ended
from weighbridge.schemas.errors import ContractError
from weighbridge.schemas.segment import verify_segment

KEY: Final = bytes(range(32))
DONE: Final = layout.outcome_word(AttemptStatus.SUCCEEDED)
ATTEMPTS: Final = 77
Rows = dict[int, tuple[object, ...]]


def made(folder: Path) -> dict[str, Path]:
    """A closed journal, one whose process was killed before the keeper had checked its last page, and a segment."""
    recorder = Recorder.start(
        folder / "spool", installation="damage-1", key=KEY, limits=Limits(keeper_s=3600, journal_bytes=96 << 10)
    )
    for task in ("one", "two"):
        binding = recorder.bind(Context(provider="openai", task=task), counts=("input_computed",))
        for number in range(ATTEMPTS // 2 + 1):
            binding.begin().finish(DONE, (number,), {"prompt_tokens": number, "total_tokens": 2 * number})
    recorder.journal.check_pages()
    (path,) = journals(recorder.spool)
    abandoned = folder / "abandoned.journal"
    shutil.copyfile(path, abandoned)
    recorder.close()
    return {"closed": path, "abandoned": abandoned, "segment": seal.seal(path, folder / "sealed")}


def rows(contents: Contents) -> Rows:
    """Every accepted slot with the words its numbers stand for."""
    return {
        number: (
            *words,
            str(contents.dictionary.get(words[0] >> 32)),
            str(contents.dictionary.get(words[0] >> 8 & 0xFFFFFF)),
        )
        for number, words in contents.slots
    }


def judged(path: Path, raw: bytes, before: Contents) -> str:
    """What reading the damaged bytes came to; `silent ...` is what must not be."""
    path.write_bytes(raw)
    try:
        after = read_journal(path)
    except ContractError:
        return "refused"
    was, now = rows(before), rows(after)
    changed = {number for number, row in now.items() if was.get(number) != row}
    if changed - set(after.unproved):
        return "silent: a changed row on a page that was checked"
    said = after.damaged > before.damaged or after.unfinished > before.unfinished
    if was.keys() - now.keys() and not said and after.end is Ended.COMPLETE:
        return "silent: a missing row"
    if after.end is Ended.COMPLETE and before.end is not Ended.COMPLETE:
        return "silent: an end that is not known is called known"
    if changed:
        return "changed on an unchecked page, counted as such"
    return "counted" if said or after.end is not before.end else "no row touched"


def damaged(raw: bytes, draw: random.Random) -> bytes:
    """One bit flipped, or the end cut off."""
    if draw.random() < 0.2:
        return raw[: draw.randrange(len(raw))]
    at = draw.randrange(8 * len(raw))
    out = bytearray(raw)
    out[at // 8] ^= 1 << at % 8
    return bytes(out)


def damage(damages: int, seed: int) -> Counter[str]:
    """How many cases came to what."""
    draw = random.Random(seed)
    told: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        sources = made(folder)
        raws = {name: sources[name].read_bytes() for name in ("closed", "abandoned")}
        befores = {name: read_journal(sources[name]) for name in raws}
        segment = {path: path.read_bytes() for path in sorted(sources["segment"].iterdir())}
        for _ in range(damages):
            kind = draw.choice(("closed", "abandoned", "segment"))
            if kind == "segment":
                told[f"segment: {segment_judged(sources['segment'], segment, draw)}"] += 1
            else:
                raw = damaged(raws[kind], draw)
                told[f"{kind}: {judged(folder / 'case.journal', raw, befores[kind])}"] += raw != raws[kind]
    return told


def segment_judged(segment: Path, files: dict[Path, bytes], draw: random.Random) -> str:
    """Damage one file of a segment and verify the whole."""
    path = draw.choice(list(files))
    raw = damaged(files[path], draw)
    path.write_bytes(raw)
    try:
        verify_segment(segment)
    except ContractError:
        return "refused"
    else:
        return f"silent: {path.name} verified" if raw != files[path] else "not damaged"
    finally:
        path.write_bytes(files[path])


def main() -> int:
    """Run the cases and print what they came to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--damages", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    told = damage(args.damages, args.seed)
    for what, times in sorted(told.items()):
        print(f"{times:8,}  {what}")
    return int(any("silent" in what for what in told))


if __name__ == "__main__":
    sys.exit(main())
