"""What reading usage costs: a million records that hold nothing but usage, and whole answers beside genai-prices.

    python benchmarks/readings.py [--records 1000000] [--bodies 200000] [--folder DIR]

Every step is a process of its own, so that its time and peak memory are its own. What a record costs is measured once
the step has read some records: what starting costs, imports included, is told beside it.

    floor     every usage record is parsed by the standard library, and nothing is looked at
    usage     the same file to normalised Parquet, as `weighbridge read FILE --out FILE.parquet` does it
    bodies    whole answers, with a text of some hundred words, parsed and read in one thread, as the peer does
    threads   the same in two threads
    peer      the same answers, parsed by the standard library, through the extractor of genai-prices

Records are made up, in the shapes of ten providers, each line with an id of its own. Exit code 0: every record was read
and the budget of memory holds; 1: not. How fast it is, is told as ratios: a crowded machine makes everything slower.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

MEMORY_GIB = 1.5
SEED = 7
WORDS = "the of token count reads cache prompt answer model page month total what is written here and there".split()
# Who of these speaks to genai-prices under which name and flavour.
PEERS = {
    ("openai", "openai_chat"): ("openai", "chat"),
    ("openai", "openai_responses"): ("openai", "responses"),
    ("anthropic", "anthropic_messages"): ("anthropic", "default"),
    ("google", "gemini_generate_content"): ("google", "default"),
    ("bedrock", "bedrock_converse"): ("aws", "default"),
    ("groq", "openai_chat"): ("groq", "default"),
    ("openrouter", "openai_chat"): ("openrouter", "chat"),
    ("mistral", "openai_chat"): ("mistral", "default"),
    ("deepseek", "openai_chat"): ("deepseek", "chat"),
    ("cohere", "cohere_v2_chat"): ("cohere", "default"),
    ("xai", "openai_chat"): ("x-ai", "chat"),
}


# So many records are read before the others are timed.
WARM = 200


class Cost(NamedTuple):
    """What one step took: seconds by the clock, of the processor, and of that to start; peak memory in GiB."""

    wall_s: float
    cpu_s: float
    start_s: float
    peak_gib: float
    read: int


# --- made-up records --------------------------------------------------------------------------------------------------


def usages(random: Random) -> tuple[str, str, str, dict[str, Any]]:
    """Who answered by which API with which model, and the usage."""
    prompt, answer = random.randint(10, 60_000), random.randint(1, 4_000)
    cached = prompt // 128 * 128 if random.random() < 0.4 else 0
    thought = random.randint(0, answer)
    chat = {
        "prompt_tokens": prompt,
        "completion_tokens": answer,
        "total_tokens": prompt + answer,
        "prompt_tokens_details": {"cached_tokens": cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": thought, "audio_tokens": 0},
    }
    responses = {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": answer,
        "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": prompt + answer,
    }
    messages = {
        "input_tokens": prompt,
        "cache_creation_input_tokens": cached,
        "cache_read_input_tokens": random.randint(0, 90_000),
        "cache_creation": {"ephemeral_5m_input_tokens": cached, "ephemeral_1h_input_tokens": 0},
        "output_tokens": answer,
        "service_tier": "standard",
    }
    gemini = {
        "promptTokenCount": prompt,
        "candidatesTokenCount": answer,
        "thoughtsTokenCount": thought,
        "totalTokenCount": prompt + answer + thought,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": prompt}],
    }
    converse = {
        "inputTokens": prompt,
        "outputTokens": answer,
        "totalTokens": prompt + answer + cached,
        "cacheReadInputTokens": cached,
        "cacheWriteInputTokens": 0,
    }
    bare = {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
    hits = {"prompt_cache_hit_tokens": cached, "prompt_cache_miss_tokens": prompt - cached}
    cohere = {
        "billed_units": {"input_tokens": prompt, "output_tokens": answer},
        "tokens": {"input_tokens": prompt + 490},
    }
    shapes = (
        (25, "openai", "openai_chat", ("gpt-4o-2024-08-06", "gpt-5-mini", "gpt-4.1"), chat),
        (10, "openai", "openai_responses", ("gpt-5.2", "o3"), responses),
        (20, "anthropic", "anthropic_messages", ("claude-sonnet-4-5-20250929", "claude-opus-4-7"), messages),
        (15, "google", "gemini_generate_content", ("gemini-2.5-pro", "gemini-2.5-flash"), gemini),
        (7, "bedrock", "bedrock_converse", ("us.anthropic.claude-sonnet-4-5-20250929-v1:0",), converse),
        (6, "groq", "openai_chat", ("llama-3.3-70b-versatile",), {**bare, "queue_time": random.random()}),
        (6, "openrouter", "openai_chat", ("openai/gpt-4o",), {**chat, "cost": prompt * 2.5e-6, "is_byok": False}),
        (4, "mistral", "openai_chat", ("mistral-large-latest",), {**bare, "num_cached_tokens": cached}),
        (3, "deepseek", "openai_chat", ("deepseek-chat",), {**bare, **hits}),
        (2, "cohere", "cohere_v2_chat", ("command-a-03-2025",), cohere),
        (2, "xai", "openai_chat", ("grok-3-mini",), {**chat, "total_tokens": prompt + answer + thought}),
    )
    (_, provider, api, models, usage), *_ = random.choices(shapes, [weight for weight, *_ in shapes])
    return provider, api, random.choice(models), usage


def answer(random: Random, api: str, model: str, usage: dict[str, Any]) -> dict[str, Any]:
    """A whole answer with some text, in the shape of its API."""
    text = " ".join(random.choices(WORDS, k=random.randint(40, 260))) + "\n"
    ident = f"{random.getrandbits(96):024x}"
    if api == "gemini_generate_content":
        parts = {"parts": [{"text": text}], "role": "model"}
        return {
            "candidates": [{"content": parts, "finishReason": "STOP"}],
            "usageMetadata": usage,
            "modelVersion": model,
        }
    if api == "bedrock_converse":
        message = {"message": {"content": [{"text": text}], "role": "assistant"}}
        return {"output": message, "stopReason": "end_turn", "usage": usage}
    if api in {"anthropic_messages", "cohere_v2_chat"}:
        content = [{"type": "text", "text": text}]
        return {"id": ident, "type": "message", "role": "assistant", "model": model, "content": content, "usage": usage}
    if api == "openai_responses":
        said = {"type": "message", "id": ident, "content": [{"type": "output_text", "text": text}]}
        return {
            "id": ident,
            "object": "response",
            "status": "completed",
            "model": model,
            "output": [said],
            "usage": usage,
        }
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return {"id": ident, "object": "chat.completion", "model": model, "choices": [choice], "usage": usage}


def lines(count: int, *, whole: bool) -> Iterator[str]:
    """Records, one a line: with their usage alone, or with the whole answer."""
    random = Random(SEED)
    for _ in range(count):
        provider, api, model, usage = usages(random)
        told = {"response": answer(random, api, model, usage)} if whole else {"usage": usage}
        about = {"id": f"req_{random.getrandbits(64):016x}", "provider": provider, "api": api, "model": model}
        yield json.dumps({**about, **told}) + "\n"


# --- the steps, each in its own process -------------------------------------------------------------------------------


def make(folder: Path, records: int, bodies: int) -> None:
    """Write the records and the answers."""
    folder.mkdir(exist_ok=True)
    for name, count in (("usage", records), ("bodies", bodies)):
        with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(lines(count, whole=name == "bodies"))


def step_floor(folder: Path) -> int:
    """Parse every usage record."""
    with (folder / "usage.jsonl").open("rb") as file:
        return sum(isinstance(json.loads(line), dict) for line in file)


def step_usage(folder: Path) -> int:
    """Usage records to normalised Parquet."""
    from weighbridge.pipeline.ingest.many.parquet import write_readings

    done = write_readings(folder / "usage.jsonl", folder / "usage.parquet")
    return done.verdicts["PROVED"] + done.verdicts["ASSUMED"]


def step_bodies(folder: Path) -> int:
    """Whole answers to readings."""
    return answers_read(folder, threads=1)


def step_threads(folder: Path) -> int:
    """Whole answers to readings."""
    return answers_read(folder, threads=2)


def answers_read(folder: Path, *, threads: int) -> int:
    """How many whole answers have a reading."""
    from weighbridge.pipeline import read_usage_file

    read = read_usage_file(folder / "bodies.jsonl", threads=threads)
    return sum(frame.height - frame["output_total"].null_count() for frame in read)


def step_peer(folder: Path) -> int:
    """The same answers through the extractor of genai-prices."""
    from genai_prices import extract_usage

    read = 0
    with (folder / "bodies.jsonl").open("rb") as file:
        for line in file:
            record = json.loads(line)
            provider, flavor = PEERS[record["provider"], record["api"]]
            read += extract_usage(record["response"], provider_id=provider, api_flavor=flavor).usage is not None
    return read


STEPS: dict[str, Callable[[Path], int]] = {
    name.removeprefix("step_"): step for name, step in globals().items() if name.startswith("step_")
}


def timed(step: str, folder: Path) -> dict[str, float]:
    """Take one step in this process, once it has started."""
    STEPS[step](folder / "warm")
    started, began = time.process_time(), time.perf_counter()
    read = STEPS[step](folder)
    wall, spent = time.perf_counter() - began, time.process_time()
    return {"wall_s": wall, "cpu_s": spent - started, "start_s": started, "read": read}


def measured(step: str, folder: Path) -> Cost:
    """Run one step of this file in a process of its own."""
    process = subprocess.Popen(
        [sys.executable, __file__, "--step", step, "--folder", str(folder)], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the step {step} ended with exit code {process.returncode}")
    return Cost(peak_gib=used.ru_maxrss / 2**20, **json.loads(output))


def told(costs: dict[str, Cost], counts: dict[str, int]) -> list[str]:
    """What is wrong with the costs."""
    wrong = [
        f"{step}: {costs[step].read:,} of {count:,} records were read"
        for step, count in counts.items()
        if costs[step].read != count
    ]
    if costs["usage"].peak_gib > MEMORY_GIB:
        wrong.append(f"usage: {costs['usage'].peak_gib:.2f} GiB are more than {MEMORY_GIB}")
    return wrong


def main() -> int:
    """Measure and print; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--bodies", type=int, default=200_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--step", choices=STEPS)
    asked = parser.parse_args()
    if asked.step is not None:
        sys.stdout.write(json.dumps(timed(asked.step, asked.folder)))
        return 0
    with tempfile.TemporaryDirectory(prefix="weighbridge-", dir=asked.folder) as scratch:
        make(Path(scratch), asked.records, asked.bodies)
        make(Path(scratch) / "warm", WARM, WARM)
        costs = {step: measured(step, Path(scratch)) for step in STEPS}
    counts = {step: asked.records if step in {"floor", "usage"} else asked.bodies for step in STEPS}
    sys.stdout.write(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors\n")
    sys.stdout.write("step      wall s    CPU s  start  GiB   us a record (wall, CPU)\n")
    for step, count in counts.items():
        cost = costs[step]
        each = f"{cost.wall_s / count * 1e6:8.1f} {cost.cpu_s / count * 1e6:8.1f}"
        times = f"{cost.wall_s:7.1f}  {cost.cpu_s:7.1f}  {cost.start_s:5.1f}"
        sys.stdout.write(f"{step:8} {times}  {cost.peak_gib:.2f}  {each}\n")
    peer, ours, floor = costs["peer"], costs["bodies"], costs["floor"]
    sys.stdout.write(
        f"\nwhole answers: {peer.cpu_s / ours.cpu_s:.1f} times as fast as the peer by the processor, "
        f"{peer.wall_s / costs['threads'].wall_s:.1f} times by the clock in two threads\n"
        f"usage to Parquet: {costs['usage'].cpu_s / floor.cpu_s:.1f} times the processor time of parsing alone\n"
    )
    wrong = told(costs, counts)
    for fault in wrong:
        sys.stdout.write(f"WRONG: {fault}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
