"""Comparisons on token ids: how fast, beside which peers, and whether judgements keep what they promise.

    python benchmarks/compare.py [speed] [peers] [levels] [--pairs N] [--ids N] [--runs N] [--seed N]

    speed    10,000 pairs of 1,000 ids with every measure and 2,000 resamples, beside a floor: reading all ids once.
    peers    difflib and, where it is installed, rouge-score: time for pairs of the same kind, and what they make of an
             answer with one changed id among common ones (junk to difflib) and of Chinese (nothing to rouge-score).
    levels   seeded simulations: how often the interval covers, how often a loss of five points is called worse, how
             often an equal strategy is, and how often one that loses just the margin passes.

Without names all three run. Times are CPU seconds. Exit code 0: everything holds; 1: something is WRONG.
"""

from __future__ import annotations

import argparse
import difflib
import importlib.util
import random
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from weighbridge.pipeline.compare.answer import Answer, Cost, Side
from weighbridge.pipeline.compare.bootstrap import paired
from weighbridge.pipeline.compare.comparison import compare
from weighbridge.pipeline.compare.gate import Gate
from weighbridge.pipeline.compare.pairwise import pairwise

PARTS = ("speed", "peers", "levels")
LIMIT_S = 40.0
VOCABULARY = 32_000
MARGIN, TAIL = 0.02, 0.025
TRUNCATED = Cost(attended=1, attended_dense=2)


def answers(pairs: int, length: int, seed: int) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """Answers as Zipf draws them; the second side goes its own way from a random place on, and swaps some ids."""
    source = random.Random(seed)
    weights = [1 / rank for rank in range(1, VOCABULARY + 1)]
    drawn = source.choices(range(VOCABULARY), weights, k=1 << 20)

    def ids() -> list[int]:
        at = source.randrange(len(drawn) - length)
        return drawn[at : at + length]

    off, on = {}, {}
    for number in range(pairs):
        first, other, place = ids(), ids(), source.randrange(length)
        second = [*first[:place], *other[place:]]
        for at in source.sample(range(length), max(1, length // 100)):
            second[at] = source.randrange(VOCABULARY)
        off[f"p{number}"], on[f"p{number}"] = first, second
    return off, on


def timed(work: Callable[[], object]) -> float:
    """CPU seconds of a piece of work."""
    began = time.process_time()
    work()
    return time.process_time() - began


def speed(pairs: int, length: int, seed: int) -> bool:
    """The whole comparison of many pairs."""
    off, on = answers(pairs, length, seed)
    sides = [
        Side(name=name, answers={pair: Answer(pair=pair, ids=ids, cost=TRUNCATED) for pair, ids in held.items()})
        for name, held in (("dense", off), ("sparse", on))
    ]
    floor = timed(lambda: [sum(ids) for held in (off, on) for ids in held.values()])
    began = time.perf_counter()
    cpu = timed(lambda: compare(sides[0], sides[1:], Gate()))
    wall = time.perf_counter() - began
    good = cpu < LIMIT_S * max(1.0, pairs * length / 10_000_000)
    print(
        f"speed: {pairs:,} pairs of {length:,} ids: {cpu:.1f} CPU s, {wall:.1f} s; floor {floor:.2f} CPU s", _word(good)
    )
    return good


def peers(length: int, seed: int) -> bool:
    """What others take, and what they get wrong."""
    off, on = answers(20, length, seed)
    both = [(off[pair], on[pair]) for pair in off]
    ours = timed(lambda: [pairwise(first, second) for first, second in both]) / len(both)
    print(f"peers: all measures of a pair, here: {1e3 * ours:.2f} ms")
    for junk in (True, False):
        took = timed(lambda junk=junk: [ratio(first, second, junk) for first, second in both]) / len(both)  # type: ignore[misc]
        print(f"  difflib ratio alone, autojunk {junk}: {1e3 * took:.2f} ms")
    common = [at % 20 for at in range(400)]
    changed = [*common[:200], 99, *common[201:]]
    told = pairwise(common, changed).similarity, ratio(common, changed, True), ratio(common, changed, False)
    print("  400 ids of 20 kinds, one changed: here {:.4f}, difflib {:.4f}, without autojunk {:.4f}".format(*told))
    good = abs(told[0] - 0.9975) < 1e-9 and told[1] < 0.6
    if importlib.util.find_spec("rouge_score") is None:
        print("  rouge-score: not installed")
        return good
    from rouge_score import rouge_scorer  # type: ignore[import-not-found]

    scorer = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL"])
    texts = [(" ".join(map(str, first)), " ".join(map(str, second))) for first, second in both[:3]]
    took = timed(lambda: [scorer.score(*each) for each in texts]) / len(texts)
    print(f"  rouge-score, three ROUGEs: {1e3 * took:.0f} ms")
    chinese = "秤称出真正送到的货物"
    theirs = scorer.score(chinese, chinese)["rougeL"].fmeasure
    ids = [ord(sign) for sign in chinese]
    print(f"  ten Chinese signs beside themselves: here {pairwise(ids, ids).similarity:.1f}, rouge-score {theirs:.1f}")
    return good and theirs == 0.0


def ratio(first: Sequence[int], second: Sequence[int], junk: bool) -> float:
    """What difflib calls likeness."""
    return difflib.SequenceMatcher(None, first, second, autojunk=junk).ratio()


def levels(runs: int, seed: int) -> bool:
    """Do intervals cover, and judgements keep their rates?"""
    source, good = np.random.default_rng(seed), True
    draws: dict[str, Callable[[float, int], npt.NDArray[np.floating]]] = {
        "normal": lambda mean, n: mean + source.normal(0, 0.15, n),
        "skewed": lambda mean, n: mean + 0.15 * (1 - source.exponential(1, n)),
        # Equal but for some answers, which lose much: what strategies do.
        "rare": lambda mean, n: mean - 0.05 + 0.5 * (0.1 - (source.random(n) < 0.1)) + 0.05,
    }
    for name, draw in draws.items():
        for pairs in (200, 400):
            covered = worse = equal = passed = 0
            for run in range(runs):
                found = paired(draw(0.0, pairs).tolist(), seed=run)
                covered += (found.low or 0) <= 0 <= (found.high or 0)
                equal += (found.p_above(-MARGIN) or 0) <= TAIL
                lost = paired(draw(-0.05, pairs).tolist(), seed=run)
                worse += (lost.p_above(-MARGIN) or 0) <= TAIL
                edge = paired(draw(-MARGIN, pairs).tolist(), seed=run, worst=1.0)
                passed += (edge.p_not_below(-MARGIN) or 0) <= TAIL
            # A correct rate of 2.5 % exceeds this bound once in a thousand times.
            most = TAIL + 3.1 * (TAIL * (1 - TAIL) / runs) ** 0.5 + 0.01
            fine = covered / runs >= 0.92 and equal / runs <= most and passed / runs <= most
            fine &= worse / runs >= 0.8 or pairs < 400
            good &= fine
            print(
                f"levels: {name}, {pairs} pairs: covers {covered / runs:.3f}, 5 points lost worse {worse / runs:.3f}, "
                f"equal worse {equal / runs:.3f}, loss of the margin not worse {passed / runs:.3f}",
                _word(fine),
            )
    for pairs in (40, 100):  # full losses in as many answers as the margin allows, which few pairs often do not show
        alone = passed = 0
        for run in range(runs):
            few = source.normal(0, 0.01, pairs) - (source.random(pairs) < MARGIN)
            found = paired(few.tolist(), seed=run, worst=1.0)
            alone += (found.p_below(-MARGIN) or 0) <= TAIL
            passed += (found.p_not_below(-MARGIN) or 0) <= TAIL
        fine = passed / runs <= TAIL + 3.1 * (TAIL * (1 - TAIL) / runs) ** 0.5
        good &= fine
        print(
            f"levels: few full losses, {pairs} pairs: not worse {passed / runs:.3f}, by resampling alone "
            f"{alone / runs:.3f}",
            _word(fine),
        )
    return good


def _word(good: bool) -> str:
    return "" if good else "WRONG"


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all where none is named")
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--ids", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if unknown := sorted(set(asked.parts) - set(PARTS)):
        parser.error(f"{unknown[0]} is no part; allowed are {', '.join(PARTS)}")
    wanted = asked.parts or PARTS
    good = True
    if "speed" in wanted:
        good &= speed(asked.pairs, asked.ids, asked.seed)
    if "peers" in wanted:
        good &= peers(asked.ids, asked.seed)
    if "levels" in wanted:
        good &= levels(asked.runs, asked.seed)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
