"""What an attempt costs its host: in situ, right after a real model step, beside the usual ways to write a record.

    python benchmarks/capture_cost.py [--rounds N] [--threads-rounds N] [--pairs N] [--seed N]

Reference load: a random Llama of four layers and a vocabulary of 128k, every provenance field set, 50 tenants, 600 ids
an attempt. Each round runs one short `generate()`, which leaves the caches of the core cold, and then calls every
variant once with data made after the step, in shuffled order with another step between any two. Times are
`perf_counter_ns` around one call and include that of an empty call, which is printed. On a shared machine compare
within one run only. Exit code 0: every target is met; 1: not. Needs the extras `models` and `peers`.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from weighbridge.capture import layout
from weighbridge.capture.binding import Attempt, Binding
from weighbridge.capture.context import Context, Parameters
from weighbridge.capture.keys import KeyFolder
from weighbridge.capture.recorder import Limits, Recorder
from weighbridge.schemas.enumerations import AttemptStatus, Environment, FinishReason, ReportPart

KEY: Final = bytes(range(32))
TENANTS: Final = 50
IDS: Final = 600
COUNTS: Final = (*layout.COUNTS[:20], *layout.TIMES)
DONE: Final = layout.outcome_word(AttemptStatus.SUCCEEDED, FinishReason.STOP, 200, part=ReportPart.WHOLE)
BATCH: Final = 8
START_FINISH_US: Final = (25.0, 35.0)
OTEL_RATIO: Final = 5.0
THREADS_P99_US: Final = 100.0
LEVEL_2_US: Final = 20.0
CPU_SHARE: Final = 0.001
LOSS_SHARE: Final = 0.01


def context(tenant: int) -> Context:
    """Every provenance field set."""
    return Context(
        provider="self_hosted", api="openai_chat", model_requested="tiny-llama", model_served="tiny-llama-4l",
        model_revision="0123456789abcdef0123456789abcdef01234567", framework="transformers",
        framework_version="5.24.0", tokenizer="b1946ac92492d2347c6235b4d2611184",
        template="591785b794601e212b260e25925636fd", strategy_id="full", tenant=f"tenant-{tenant}",
        subject_bucket=tenant % 64, task="chat", route="v1/chat/completions", environment=Environment.PRODUCTION,
        stream=False, usage_expected=True,
    )  # fmt: skip


PARAMETERS: Final = Parameters(
    max_tokens=150, min_tokens=0, temperature=0.7, top_p=0.95, top_k=50, n=1, beams=1, length_penalty=1.0,
    stop_strings=0, messages=3, tools=0,
)  # fmt: skip


def usage(number: int) -> dict[str, Any]:
    """A usage object of a chat answer: twelve leaves."""
    return {
        "prompt_tokens": 450 + number % 7,
        "completion_tokens": 150,
        "total_tokens": 600 + number % 7,
        "prompt_tokens_details": {"cached_tokens": number % 5, "audio_tokens": 0, "cache_write_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
        "prompt_cache_hit_tokens": number % 5,
        "prompt_cache_miss_tokens": 450,
    }


def counts(number: int) -> tuple[int, ...]:
    """Fresh integers, as an adapter has them after a step."""
    return tuple(10_000 + number + index for index in range(len(COUNTS)))


class Model:
    """A random Llama: four layers, a vocabulary of 128,256, bfloat16."""

    def __init__(self, seed: int, threads: int = 1) -> None:
        import torch
        from transformers import LlamaConfig, LlamaForCausalLM

        torch.set_num_threads(threads)
        torch.manual_seed(seed)
        config = LlamaConfig(
            vocab_size=128_256, hidden_size=128, intermediate_size=384, num_hidden_layers=4, num_attention_heads=4,
            num_key_value_heads=2, max_position_embeddings=2048, pad_token_id=0, eos_token_id=1,
        )  # fmt: skip
        self.model = LlamaForCausalLM(config).to(torch.bfloat16).eval()
        self.prompt = torch.randint(2, 128_000, (1, 24))
        self._no_grad = torch.inference_mode

    def step(self, tokens: int = 4) -> None:
        """One short `generate()`."""
        with self._no_grad():
            self.model.generate(self.prompt, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False)


@dataclass
class Agent:
    """A recorder with one binding per tenant, warm."""

    recorder: Recorder
    bindings: list[Binding]

    @classmethod
    def start(cls, folder: Path, *, mapped: bool = True, level: int = 1) -> Agent:
        """Start one; every shape it will meet is learnt."""
        policy = folder / "policy.json"
        folder.mkdir(parents=True, exist_ok=True)
        cell = {"level": level, "share": 1.0, "purpose": "benchmark_run", "expires": "9999-12-30"}
        policy.write_text(json.dumps({"version": 1, "cells": [cell] if level > 1 else []}))
        recorder = Recorder.start(
            folder / "spool", installation="bench-1", key=KEY, keys=KeyFolder(folder / "keys"),
            limits=Limits(mapped=mapped), policy_file=policy,
        )  # fmt: skip
        bindings = [recorder.bind(context(n), counts=COUNTS, parameters=PARAMETERS) for n in range(TENANTS)]
        for binding in bindings:
            for number in range(3):
                binding.begin().finish(DONE, counts(number), usage(number), IDS)
        return cls(recorder, bindings)


@dataclass
class Variant:
    """One way to record an attempt: `ready` makes its arguments after the step, `call` is what is timed."""

    name: str
    ready: Callable[[int], tuple[Any, ...]]
    call: Callable[..., object]
    per: int = 1
    times: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    def quantile(self, share: float) -> float:
        ordered = sorted(self.times)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def attributes(number: int) -> dict[str, Any]:
    """The same fields as attributes of a span or a line of a log."""
    about = context(number % TENANTS)
    told: dict[str, Any] = {f"weighbridge.{n}": getattr(about, n) for n in about.__slots__}
    told |= {f"weighbridge.{n}": getattr(PARAMETERS, n) for n in PARAMETERS.__slots__}
    told["weighbridge.environment"] = str(about.environment)
    told |= {f"weighbridge.{name}": value for name, value in zip(COUNTS, counts(number), strict=True)}
    body = usage(number)
    for name, value in body.items():
        for inner, item in value.items() if isinstance(value, dict) else ((None, value),):
            told[f"usage.{name}.{inner}" if inner else f"usage.{name}"] = item
    return told | {"http.status": 200, "finish_reason": "stop", "status": "succeeded"}


def all_in(binding: Binding, values: tuple[int, ...], body: dict[str, Any]) -> None:
    """Start and finish in one."""
    binding.begin().finish(DONE, values, body)


def finish(attempt: Attempt, values: tuple[int, ...], body: dict[str, Any]) -> None:
    """The end of an attempt that was started before the step."""
    attempt.finish(DONE, values, body)


def agent_variants(folder: Path) -> tuple[list[Variant], list[Recorder]]:
    """Ours: level 1 in one, its halves, many at once, level 2, the fallback."""
    one, two = Agent.start(folder / "one"), Agent.start(folder / "two", level=2)
    slow = Agent.start(folder / "slow", mapped=False)

    def level_2(binding: Binding, values: tuple[int, ...], body: dict[str, Any], prompt: Any, answer: Any) -> None:
        attempt = binding.begin()
        attempt.finish(DONE, values, body, attempt.offer(prompt, answer))

    def pick(agent: Agent, number: int) -> Binding:
        return agent.bindings[number * 7 % TENANTS]

    def ids(number: int) -> tuple[Any, Any]:
        import numpy as np

        return np.arange(450) + number, np.arange(150) + number

    variants = [
        Variant("empty call", lambda _: (), lambda: None),
        Variant("start + finish, level 1", lambda n: (pick(one, n), counts(n), usage(n)), all_in),
        Variant("begin alone", lambda n: (pick(one, n),), lambda binding: binding.begin()),
        Variant("finish alone", lambda n: (pick(one, n).begin(), counts(n), usage(n)), finish),
        Variant(
            f"finish_many of {BATCH}, per attempt",
            lambda n: ([(pick(one, n + i).begin(), DONE, counts(n + i), usage(n + i)) for i in range(BATCH)],),
            one.recorder.finish_many,
            BATCH,
        ),
        Variant("start + finish + ids, level 2", lambda n: (pick(two, n), counts(n), usage(n), *ids(n)), level_2),
        Variant("start + finish, fallback", lambda n: (pick(slow, n), counts(n), usage(n)), all_in),
    ]
    return variants, [one.recorder, two.recorder, slow.recorder]


def peer_variants(folder: Path) -> list[Variant]:
    """The same fields as an OpenTelemetry span, a line of JSON through `logging`, and one through structlog."""
    import structlog

    log = logging.getLogger("weighbridge.bench.peer")
    log.propagate = False
    log.setLevel(logging.INFO)
    handler = logging.FileHandler(folder / "peer.log")
    handler.setFormatter(logging.Formatter("%(message)s"))
    log.addHandler(handler)
    lines = structlog.wrap_logger(
        structlog.WriteLogger((folder / "structlog.log").open("w", encoding="utf-8")),
        processors=[structlog.processors.TimeStamper(), structlog.processors.JSONRenderer()],
    )
    span, _ = otel_span()
    return [
        Variant("OpenTelemetry span, batch, null exporter", lambda n: (attributes(n),), span),
        Variant("logging, JSON line", lambda n: (attributes(n),), lambda told: log.info(json.dumps(told))),
        Variant("structlog, JSON line", lambda n: (attributes(n),), lambda told: lines.info("attempt", **told)),
    ]


def otel_span() -> tuple[Callable[[dict[str, Any]], None], Callable[[], None]]:
    """A function that records one span with the given attributes, and one that ends it all; the exporter drops them."""
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    class Dropped(SpanExporter):
        def export(self, spans: Iterable[ReadableSpan]) -> SpanExportResult:  # noqa: ARG002
            return SpanExportResult.SUCCESS

    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(Dropped()))
    tracer = provider.get_tracer("weighbridge.bench")

    def span(told: dict[str, Any]) -> None:
        tracer.start_span("attempt", attributes=told).end()

    return span, provider.shutdown


def in_situ(variants: list[Variant], rounds: int, seed: int, step: Callable[[], None]) -> None:
    """Every variant once per round, in shuffled order, a model step before each."""
    order = random.Random(seed)
    for number in range(rounds + 3):
        for variant in order.sample(variants, len(variants)):
            step()
            arguments = variant.ready(number)
            began = time.perf_counter_ns()
            variant.call(*arguments)
            took = time.perf_counter_ns() - began
            if number >= 3:
                variant.times.append(took / 1000 / variant.per)


def in_threads(folder: Path, rounds: int, seed: int) -> Variant:
    """Start + finish in four threads, each with its own model."""
    agent = Agent.start(folder / "threads")
    out = Variant("start + finish, 4 threads", lambda _: (), lambda: None)

    def serve(worker: int) -> None:
        model = Model(seed + worker)
        for number in range(rounds):
            model.step()
            binding, values, body = agent.bindings[(number * 7 + worker) % TENANTS], counts(number), usage(number)
            began = time.perf_counter_ns()
            binding.begin().finish(DONE, values, body, IDS)
            out.times.append((time.perf_counter_ns() - began) / 1000)

    workers = [threading.Thread(target=serve, args=(worker,)) for worker in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    agent.recorder.close()
    return out


@dataclass
class Throughput:
    """Paired runs of `generate()` with and without the agent.

    Attributes:
        losses: per pair, what the run under the agent took longer, as a share.
        cpu_share: CPU of the keeper and of the calls over CPU of generation.
    """

    losses: list[float]
    cpu_share: float

    @property
    def upper(self) -> float:
        """Upper end of the 95 % interval of the mean loss, one-sided normal."""
        spread = statistics.stdev(self.losses) / len(self.losses) ** 0.5
        return float(statistics.mean(self.losses) + 1.645 * spread)


def throughput(model: Model, folder: Path, pairs: int, seed: int, tokens: int = 150) -> Throughput:
    """Generations of 150 tokens, with the agent (its keeper running) and without, in an order drawn per pair."""
    agent = Agent.start(folder / "paired")
    order = random.Random(seed)
    losses, calls, generating = [], 0, 0
    began_cpu = time.process_time_ns()
    for number in range(pairs):
        took = {}
        for watched in order.sample((False, True), 2):
            began = time.thread_time_ns()
            model.step(tokens)
            middle = time.thread_time_ns()
            if watched:
                agent.bindings[number % TENANTS].begin().finish(DONE, counts(number), usage(number), IDS)
            ended = time.thread_time_ns()
            took[watched] = ended - began
            generating += middle - began
            calls += ended - middle if watched else 0
        losses.append(took[True] / took[False] - 1)
    process = time.process_time_ns() - began_cpu
    keeper = keeper_cpu_ns(agent.recorder)
    share = 2 * (calls + keeper * generating / max(process, 1) / 2) / generating
    agent.recorder.close()
    return Throughput(losses, share)


def keeper_cpu_ns(recorder: Recorder) -> int:
    """CPU the keeper's thread has used since it started."""
    ident = recorder.keeper.thread_id
    clock = time.pthread_getcpuclockid(ident) if ident is not None else None
    return 0 if clock is None else time.clock_gettime_ns(clock)


def main() -> int:
    """Run everything and print the table and the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--thread-rounds", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="where the spools go; a temporary folder without it")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as place:
        folder = Path(place)
        model = Model(args.seed)
        variants, recorders = agent_variants(folder)
        variants += peer_variants(folder)
        in_situ(variants, args.rounds, args.seed, model.step)
        for recorder in recorders:
            recorder.close()
        variants.append(in_threads(folder, args.thread_rounds, args.seed))
        paired = throughput(model, folder, args.pairs, args.seed)
        return told(variants, paired)


def told(variants: list[Variant], paired: Throughput) -> int:
    """Print the table and whether each target is met; the exit code."""
    by_name = {variant.name.split(",")[0] + variant.name.partition(",")[2]: variant for variant in variants}
    one = by_name["start + finish level 1"]
    print(f"load at the end: {os.getloadavg()[0]:.1f}; rounds: {len(one.times)}; Python {sys.version.split()[0]}")
    print(f"{'':46}{'median us':>10}{'p95':>9}{'p99':>9}{'x ours':>8}")
    for variant in variants:
        ratio = variant.median / one.median
        print(
            f"{variant.name:46}{variant.median:10.1f}{variant.quantile(0.95):9.1f}{variant.quantile(0.99):9.1f}"
            f"{ratio:8.2f}"
        )
    span = by_name["OpenTelemetry span batch, null exporter"]
    two = by_name["start + finish + ids level 2"]
    threads = by_name["start + finish 4 threads"]
    checks = [
        ("start + finish median us", one.median, START_FINISH_US[0]),
        ("start + finish p95 us", one.quantile(0.95), START_FINISH_US[1]),
        ("share of an OpenTelemetry span", one.median / span.median, 1 / OTEL_RATIO),
        ("4 threads p99 us", threads.quantile(0.99), THREADS_P99_US),
        ("level 2 adds us", two.median - one.median, LEVEL_2_US),
        ("agent CPU / generation CPU", paired.cpu_share, CPU_SHARE),
        ("generate() loss, upper 95 %", paired.upper, LOSS_SHARE),
    ]
    for name, value, most in checks:
        print(f"{name:46}{value:10.4f} at most {most:g}  {'met' if value <= most else 'MISSED'}")
    return int(any(value > most for _, value, most in checks))


if __name__ == "__main__":
    sys.exit(main())
