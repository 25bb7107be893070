"""What it costs to see tokens one by one, beside reading the finished answer once; and what native code could save.

    python benchmarks/capture_per_token.py [--rounds N] [--tokens N] [--seed N]

Reference load: `generate()` of a random Llama (two layers, tiny) on one thread of the CPU. Every way to see the tokens
runs once per round, in shuffled order, beside a bare generation of the same round; figures are medians of the paired
differences in CPU time (`process_time_ns`), per generated token. A second bare generation shows the noise.

The second table takes the ids of a finished answer out of what holds them: that, and nothing else, is what a compiled
extractor could make faster, down to the floor of copying the bytes. Needs the extra `models`.
"""

from __future__ import annotations

import argparse
import array
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from weighbridge.capture.adapters import transformers as adapter
from weighbridge.capture.recorder import Recorder

KEY: Final = bytes(range(32))
PROMPT: Final = 32
REPEATS: Final = 200
WATCHED: Final = "adapter: read once"


def model(seed: int) -> Any:
    """A random Llama small enough that what is done per token shows, and large enough to be a model."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=4_000, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=4096, eos_token_id=None, pad_token_id=0, bos_token_id=1,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


class Seen:
    """What a way to see tokens has seen: it has to be all of them."""

    def __init__(self) -> None:
        self.ids: list[int] = []


def ways(made: Any) -> dict[str, Callable[[Seen], Any]]:
    """Name -> a context in which generations are seen; its value is what `generate` is given more."""
    import torch

    @contextmanager
    def bare(_: Seen) -> Iterator[dict[str, Any]]:
        yield {}

    @contextmanager
    def processor(seen: Seen) -> Iterator[dict[str, Any]]:
        def note(ids: Any, scores: Any) -> Any:
            seen.ids.append(int(ids[0, -1]))
            return scores

        yield {"logits_processor": [note]}

    @contextmanager
    def empty_processor(_: Seen) -> Iterator[dict[str, Any]]:
        yield {"logits_processor": [lambda _, scores: scores]}

    @contextmanager
    def streamer(seen: Seen) -> Iterator[dict[str, Any]]:
        class Streamer:
            def put(self, ids: Any) -> None:
                seen.ids.extend(ids.reshape(-1).tolist())

            def end(self) -> None:
                """Nothing."""

        yield {"streamer": Streamer()}

    @contextmanager
    def hooks(seen: Seen) -> Iterator[dict[str, Any]]:
        def note(_: Any, __: Any, output: Any) -> None:
            seen.ids.append(tuple((output[0] if isinstance(output, tuple) else output).shape)[1])

        held = [layer.register_forward_hook(note) for layer in made.model.layers]
        yield {}
        for each in held:
            each.remove()

    assert torch is not None
    return {
        "bare": bare,
        WATCHED: bare,
        "streamer": streamer,
        "logits processor, empty": empty_processor,
        "logits processor, keeps the id": processor,
        "forward hook per layer (2)": hooks,
    }


def measure(rounds: int, tokens: int, seed: int) -> tuple[float, dict[str, tuple[float, float]]]:
    """CPU nanoseconds of a bare token, and per way the median of what it adds and its 90th percentile."""
    import torch

    made, watched = model(seed), model(seed)
    ids = torch.arange(1, PROMPT + 1).reshape(1, -1)
    order = random.Random(seed)
    added: dict[str, list[float]] = {}
    base: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder.start(Path(folder) / "spool", installation="bench", key=KEY)
        installed = adapter.install(watched, recorder, fingerprint=False)
        known = ways(made)

        def once(name: str) -> float:
            seen = Seen()
            with known[name](seen) as more:
                began = time.process_time_ns()
                (watched if name == WATCHED else made).generate(ids, max_new_tokens=tokens, do_sample=False, **more)
                return (time.process_time_ns() - began) / tokens

        for name in known:
            once(name)
        for _ in range(rounds):
            names = [*known, "bare"]
            order.shuffle(names)
            times: dict[str, list[float]] = {}
            for name in names:
                times.setdefault(name, []).append(once(name))
            plain, again = times.pop("bare")
            base.append(plain)
            times["bare"] = [again]
            for name, (found,) in times.items():
                added.setdefault(name, []).append(found - plain)
        installed.remove()
        recorder.close()
    told = {name: (statistics.median(found), sorted(found)[int(len(found) * 0.9)]) for name, found in added.items()}
    return statistics.median(base), told


def extractions(tokens: int) -> dict[str, float]:
    """Nanoseconds per token of taking the ids of a finished answer out of what holds them."""
    import torch

    held = torch.randint(0, 4_000, (1, tokens))
    listed = held[0].tolist()
    packed = array.array("I", listed)
    view = memoryview(packed).cast("B")
    target = bytearray(len(view))

    def copy() -> None:
        target[:] = view

    steps: dict[str, Callable[[], object]] = {
        "a reference": lambda: held,
        "array of a list": lambda: array.array("I", listed),
        "tensor to list": held[0].tolist,
        "tensor to uint32 (numpy)": lambda: held[0].numpy().astype("uint32"),
        "copying the bytes: the floor": copy,
    }
    out = {}
    for name, step in steps.items():
        found = []
        for _ in range(REPEATS):
            began = time.perf_counter_ns()
            step()
            found.append((time.perf_counter_ns() - began) / tokens)
        out[name] = statistics.median(found)
    return out


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args()
    base, added = measure(told.rounds, told.tokens, told.seed)
    print(f"CPU us per generated token, {told.rounds} rounds of {told.tokens} tokens; bare: {base / 1000:.1f}")
    for name, (median, high) in added.items():
        label = "bare once more (noise)" if name == "bare" else name
        print(f"  {label:<32} +{median / 1000:7.2f}   p90 +{high / 1000:7.2f}   {100 * median / base:6.2f} %")
    print(f"ns per token to take the ids of a finished answer of {told.tokens} out of what holds them")
    for name, value in extractions(told.tokens).items():
        print(f"  {name:<32} {value:8.2f}   {100 * value / base:9.5f} % of a bare token")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
