"""Traces: how many bytes they take, and what level 3 costs the attempts it is wanted for, and the others.

    python benchmarks/sparsity.py [--pairs 40] [--presses]

Sizes: 2,048 positions of 32 (layer, head) of a random model, under rules and under scores, beside a list of 16-bit
positions, a plain bitmap, zlib, and the entropy of the bits as a floor no encoding of independent bits goes below.
Cost: the same generation without an adapter, watched at level 1, and watched at level 3 with its trace packed and
encrypted within the time that is measured (CPU of this process on one thread, so that neighbours do not count), in
pairs, in random order, as a share of the time without. The bound is the upper end of a 95 % interval of the median
(bootstrap over pairs). `--presses` does it under presses of kvpress instead (`./setup.sh kvpress`).
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import statistics
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from weighbridge.capture.adapters import transformers as generation
from weighbridge.capture.adapters.modules import trace_modules
from weighbridge.capture.keys import KeyFolder
from weighbridge.capture.recorder import Limits, Recorder
from weighbridge.schemas.block import seal_block
from weighbridge.schemas.enumerations import Axis, HeadKind, Operation
from weighbridge.schemas.trace import Trace, positions_of, row_of, survival_events
from weighbridge.schemas.trace_block import block_name, pack_events

WIDTH, LAYERS, HEADS = 2_048, 8, 4
LIMITS = {"StreamingLLM": (64, 64)}
SCORED = (7_680, 1_536)
MOST = 0.05
_numbers = itertools.count()


def model_of(torch: Any, transformers: Any, *, hidden: int = 256, layers: int = LAYERS) -> Any:
    """A random model with the heads that are measured."""
    torch.manual_seed(7)
    config = transformers.LlamaConfig(
        vocab_size=4_000, hidden_size=hidden, intermediate_size=2 * hidden, num_hidden_layers=layers,
        num_attention_heads=2 * HEADS, num_key_value_heads=HEADS, max_position_embeddings=8_192, eos_token_id=None,
        pad_token_id=0,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).eval()


def words(torch: Any, *, again: bool) -> Any:
    """Ids that come as often as words do in a text, or none of which comes again."""
    # A position whose word came before has keys of the same length in layer 0.
    often = 1 / torch.arange(1, 4_000)
    return often.multinomial(WIDTH, replacement=again, generator=torch.Generator().manual_seed(3))[None] + 1


def kept_sets(torch: Any, model: Any) -> dict[str, list[int]]:
    """What rules and scores keep of half of the positions, per (layer, head), from a real pass."""
    ids = words(torch, again=True)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        out = model(ids, use_cache=True, output_attentions=True)
    model.set_attn_implementation("sdpa")
    cache = getattr(out, "cache", None) or out.past_key_values
    half = WIDTH // 2

    def best(scores: Any) -> list[int]:
        return [row_of(row.topk(half).indices.tolist()) for row in scores.reshape(-1, WIDTH)]

    last = torch.stack([each[0, :, -64:].mean(1).view(HEADS, 2, WIDTH).mean(1) for each in out.attentions])
    pooled = torch.nn.functional.avg_pool1d(last, 5, 1, 2)
    norms = torch.stack([-layer.keys[0].norm(dim=-1) for layer in cache.layers])
    first = torch.stack([each[0, :, -1].mean(0).expand(HEADS, WIDTH) for each in out.attentions])
    sinks = row_of([*range(4), *range(WIDTH - half + 4, WIDTH)])
    return {
        "StreamingLLM": [sinks] * (LAYERS * HEADS),
        "TOVA": best(first),
        "SnapKV": best(pooled),
        "Knorm": best(norms),
        "Random": best(torch.rand(LAYERS, HEADS, WIDTH, generator=torch.Generator().manual_seed(1))),
    }


def best_norms(torch: Any, model: Any, ids: Any) -> list[int]:
    """What Knorm keeps of half of the positions, per (layer, head)."""
    with torch.no_grad():
        out = model(ids, use_cache=True)
    cache = getattr(out, "cache", None) or out.past_key_values
    norms = torch.stack([-layer.keys[0].norm(dim=-1) for layer in cache.layers])
    return [row_of(row.topk(WIDTH // 2).indices.tolist()) for row in norms.reshape(-1, WIDTH)]


def learnt(bits: Sequence[int], contexts: Sequence[Any]) -> float:
    """Bytes an arithmetic coder takes that learns, bit by bit, how often a 1 comes in each context."""
    seen: dict[Any, list[float]] = {}
    total = 0.0
    for bit, context in zip(bits, contexts, strict=True):
        counts = seen.setdefault(context, [0.5, 0.5])
        total -= math.log2(counts[bit] / sum(counts))
        counts[bit] += 1
    return total / 8


def order(rows: Sequence[int]) -> None:
    """Print what there is to be gained from knowing how many are kept, other heads, and the positions before."""
    bits = [[row >> place & 1 for place in range(WIDTH)] for row in rows]
    given = sum(math.log2(math.comb(WIDTH, row.bit_count())) for row in rows) / 8
    before = [[tuple(own[max(0, at - 3) : at]) for at in range(WIDTH)] for own in bits]
    alone = sum(map(learnt, bits, before))
    heads = both = 0.0
    for at, own in enumerate(bits):
        takes = [learnt(own, other) + 5 / 8 for other in bits[:at]]
        heads += min([*takes, learnt(own, [0] * WIDTH)])
        alike = bits[takes.index(min(takes))] if takes else own
        known = list(zip(alike, before[at], strict=True)) if takes else before[at]
        both += min(learnt(own, known) + 5 / 8, learnt(own, before[at]))
    trace = Trace()
    trace.add(
        Axis.STORE, Operation.KEEP_ONLY, rows, width=WIDTH, layers=(0, LAYERS - 1), heads=(0, HEADS - 1),
        head_kind=HeadKind.KEY_VALUE,
    )  # fmt: skip
    whole = len(trace.events[0].payload or b"")
    print(
        f"Knorm where no word comes twice: level 3 {whole:,}. What a coder that learns takes: knowing how many are "
        f"kept {given:,.0f};\nof each head the most alike one before it {heads:,.0f}; the three positions before "
        f"{alone:,.0f}; both {both:,.0f}. The limit is {SCORED[0]:,}.\n"
    )


def sizes(torch: Any, model: Any) -> bool:
    """Print the bytes of each; whether all are within their limits."""
    ok = True
    print(f"sizes in bytes, {WIDTH:,} positions x {LAYERS * HEADS} (layer, head), half of them kept")
    print(
        f"{'':14}{'list u16':>10}{'bitmap':>8}{'zlib':>8}{'floor':>8}{'level 3':>9}{'level 2':>9}{'sealed':>8}{'ms':>7}"
    )
    for name, rows in kept_sets(torch, model).items():
        began = time.perf_counter()
        trace = Trace()
        trace.add(
            Axis.STORE, Operation.KEEP_ONLY, rows, width=WIDTH, layers=(0, LAYERS - 1), heads=(0, HEADS - 1),
            head_kind=HeadKind.KEY_VALUE,
        )  # fmt: skip
        whole = sum(len(event.payload or b"") for event in trace.events)
        taken = 1e3 * (time.perf_counter() - began)
        counts = sum(len(event.payload or b"") for event in survival_events(trace.events))
        bits = b"".join(row.to_bytes(WIDTH // 8, "little") for row in rows)
        kept = sum(row.bit_count() for row in rows) / (WIDTH * len(rows))
        entropy = -sum(p * math.log2(p) for p in (kept, 1 - kept) if p) * WIDTH * len(rows) / 8
        evicted = 2 * sum(WIDTH - len(positions_of(row)) for row in rows)
        sealed = (
            len(seal_block(bytes(32), block_name("t_0.0.2026-01.traces.1", "0" * 32), pack_events(trace.events))) + 16
        )
        most = LIMITS.get(name, SCORED)
        within = name == "Random" or (whole <= most[0] and counts <= most[1])
        ok &= within
        print(
            f"{name:14}{evicted:>10,}{len(bits):>8,}{len(zlib.compress(bits, 9)):>8,}{entropy:>8,.0f}{whole:>9,}"
            f"{counts:>9,}{sealed:>8,}{taken:>7.1f}{'' if within else '  TOO LARGE'}"
        )
    print("Random is no strategy: bits without any order are what no encoding makes smaller.")
    order(best_norms(torch, model, words(torch, again=False)))
    return ok


def bound(shares: Sequence[float]) -> tuple[float, float]:
    """Median and upper end of its 95 % interval: of the mean one pair during which a neighbour woke would tell all."""
    draw = random.Random(5)
    medians = sorted(statistics.median(draw.choices(shares, k=len(shares))) for _ in range(2_000))
    return statistics.median(shares), medians[int(0.95 * len(medians))]


def paired(plain: Callable[[], None], watched: Callable[[], None], pairs: int) -> list[float]:
    """What `watched` takes more than `plain`, as a share of it, pair by pair."""
    draw, shares = random.Random(11), []
    for _ in range(pairs):
        spent = {}
        for run in draw.sample([plain, watched], 2):
            began = time.process_time()
            run()
            spent[run] = time.process_time() - began
        shares.append(spent[watched] / spent[plain] - 1)
    return shares


def told(name: str, shares: Sequence[float], limit: float | None) -> bool:
    """Print one line; whether it is within its limit."""
    median, upper = bound(shares)
    within = limit is None or upper <= limit
    said = "" if limit is None else f"  (limit {limit:.0%}{'' if within else ': MISSED'})"
    print(f"{name:44} median {median:+7.2%}   paired upper bound {upper:+7.2%}{said}")
    return within


def recorder_at(folder: Path, level: int) -> Recorder:
    """A recorder all of whose attempts are at one level; its keeper works only when asked."""
    rule = {"level": level, "share": 1.0, "purpose": "billing_audit", "expires": "9999-12-31"}
    policy = folder / f"policy-{level}.json"
    policy.write_text(json.dumps({"version": 1, "cells": [rule] if level > 1 else []}))
    return Recorder.start(
        folder / f"spool-{next(_numbers)}", installation=f"bench-{level}", key=bytes(32), policy_file=policy,
        keys=KeyFolder(folder / "keys"), limits=Limits(keeper_s=3600.0),
    )  # fmt: skip


def costs(torch: Any, model: Any, folder: Path, pairs: int, presses: dict[str, Callable[[], Any]]) -> bool:
    """Print what levels cost; whether all are within their limits."""
    from contextlib import nullcontext

    ids = torch.randint(1, 4_000, (1, 512), generator=torch.Generator().manual_seed(4))
    ways: dict[str, tuple[dict[str, Any], Callable[[], Any]]] = {
        "dense": ({}, nullcontext),
        "prompt lookup": ({"prompt_lookup_num_tokens": 8}, nullcontext),
    }
    if presses:  # whose transformers is another one
        ways = {name: ({}, make) for name, make in presses.items()}
    ok = True
    for name, (more, make) in ways.items():
        settings = {"max_new_tokens": 48, "min_new_tokens": 48, "do_sample": False, "pad_token_id": 0, **more}

        def plain(make: Callable[[], Any] = make, settings: dict[str, Any] = settings) -> None:
            press = make()
            with press(model) if callable(press) else press:
                model.generate(ids, **settings)

        plain()
        told(f"{name}: floor, the same twice", paired(plain, lambda: plain(), pairs), None)  # noqa: PLW0108
        for level in (1, 3):
            recorder = recorder_at(folder, level)

            def watched(
                make: Callable[[], Any] = make, settings: dict[str, Any] = settings, recorder: Recorder = recorder
            ) -> None:
                from weighbridge.capture.adapters import kvpress as pressing

                press = make()
                with (
                    pressing.install(press) if callable(press) else nullcontext(),
                    press(model) if callable(press) else press,
                ):
                    model.generate(ids, **settings)
                recorder.drain_content(all_=True)

            with generation.ADAPTER.install(model, recorder, fingerprint=False):
                watched()
                shares = paired(_outside(plain, model), watched, pairs)
            ok &= told(f"{name}: level {level}", shares, MOST)
            recorder.close()
    return ok


def _outside(plain: Callable[[], None], model: Any) -> Callable[[], None]:
    """`plain` with the model's own `generate`, while an adapter is in."""

    def run() -> None:
        watched = vars(model).pop("generate")
        try:
            plain()
        finally:
            vars(model)["generate"] = watched

    return run


def modules(torch: Any, model: Any, pairs: int) -> None:
    """Print what `trace_modules` costs."""
    ids = torch.randint(1, 4_000, (1, 512), generator=torch.Generator().manual_seed(4))

    def plain() -> None:
        with torch.no_grad():
            model(ids)

    def watched() -> None:
        with trace_modules(model, tell=None), torch.no_grad():
            model(ids)

    told("trace_modules, a forward pass of 8 layers", paired(plain, watched, pairs), None)
    with trace_modules(model), torch.no_grad():
        for _ in range(20):
            model(ids)


def main() -> int:
    """Run it; 1 where a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--presses", action="store_true")
    asked = parser.parse_args()
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, one thread\n")
    model = model_of(torch, transformers)
    ok = sizes(torch, model)
    presses: dict[str, Callable[[], Any]] = {}
    if asked.presses:
        import importlib

        package = importlib.import_module("kvpress")
        presses = {
            "SnapKV": lambda: package.SnapKVPress(0.5),
            "Knorm": lambda: package.KnormPress(0.5),
            "StreamingLLM": lambda: package.StreamingLLMPress(0.5),
            "decoding Knorm": lambda: package.DecodingPress(package.KnormPress(), 8, 256),
        }
    with tempfile.TemporaryDirectory() as folder:
        ok &= costs(torch, model, Path(folder), asked.pairs, presses)
    modules(torch, model, asked.pairs)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
