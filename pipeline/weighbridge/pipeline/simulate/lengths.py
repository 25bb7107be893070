"""How many tokens each attempt took, in truth: the figures everything else is derived from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weighbridge.pipeline.simulate import world
from weighbridge.pipeline.simulate.traffic import SUCCEEDED, Traffic
from weighbridge.pipeline.simulate.world import Ints, Mask
from weighbridge.schemas.enumerations import FinishReason

FINISHES: tuple[FinishReason, ...] = (FinishReason.STOP, FinishReason.LENGTH, FinishReason.TOOL_CALLS)
STOP, LENGTH, TOOL_CALLS = range(3)
_FIXED_SHARE = 0.12
_OPENING = 3  # template tokens that open the answer, beside those of each message


@dataclass(slots=True)
class Lengths:
    """Tokens of every attempt. They are meaningful where it succeeded; the others have none that anyone saw.

    Attributes:
        prompt: all input tokens; cached and written ones, template and special tokens included.
        cached: of prompt: read from a prefix cache.
        written_5m, written_1h: of prompt: written to a cache of that lifetime.
        template, special: of prompt: added by chat template and tokenizer.
        output: all output tokens; reasoning, end and trimmed ones included.
        reasoning: of output.
        end: of output: end-of-sequence token, computed and not delivered.
        trimmed: of output: cut off with a stop string.
        limit: the output limit asked for.
        messages, stop_strings: of the prompt and of the call.
        finish: index into FINISHES.
        stream: whether the answer was streamed.
        engine: whether our own engine served it.
    """

    prompt: Ints
    cached: Ints
    written_5m: Ints
    written_1h: Ints
    template: Ints
    special: Ints
    output: Ints
    reasoning: Ints
    end: Ints
    trimmed: Ints
    limit: Ints
    messages: Ints
    stop_strings: Ints
    finish: Ints
    stream: Mask
    engine: Mask

    @property
    def seen(self) -> Ints:
        """Output tokens the agent counted: all of them in an engine, those that were not hidden in a client."""
        return np.where(self.engine, self.output, self.output - self.reasoning)


def of_model(name: str) -> Ints:
    """One attribute of every model, as an array to be indexed by model."""
    return np.array([getattr(model, name) for model in world.MODELS])


def of_task(name: str) -> Ints:
    """One attribute of every task, as an array to be indexed by task."""
    return np.array([getattr(task, name) for task in world.TASKS])


def lengths(rng: np.random.Generator, traffic: Traffic) -> Lengths:
    """Draw the lengths of these attempts."""
    rows, model, task = traffic.rows, traffic.model, traffic.task
    messages = 1 + rng.poisson(of_task("messages")[task] - 1)
    template = of_model("message_tokens")[model] * messages + _OPENING
    special = of_model("special")[model]
    prompt = _prompt(rng, traffic) + template + special
    cached = _cached(rng, model, prompt)
    written_5m, written_1h = _written(rng, model, prompt - cached)
    limit = _chosen(rng, task, "limits")
    engine = rng.random(rows) < np.array([m.engine_share for m in world.MODELS])[model]
    stop_strings = np.where(rng.random(rows) < 0.06, rng.integers(1, 3, rows), 0)
    output, reasoning = _output(rng, model, task, limit)
    pinned = output >= limit
    tooled = ~pinned & (of_task("tools")[task] > 0) & (rng.random(rows) < 0.3)
    end = np.where(engine & ~pinned, 1, 0)
    # End and trimmed tokens count against the limit too.
    stopped = engine & (stop_strings > 0) & (output + 4 <= limit)
    trimmed = np.where(stopped, rng.integers(1, 4, rows), 0)
    return Lengths(
        prompt=prompt,
        cached=cached,
        written_5m=written_5m,
        written_1h=written_1h,
        template=template,
        special=special,
        output=np.where(pinned, limit, output + end + trimmed),
        reasoning=reasoning,
        end=end,
        trimmed=trimmed,
        limit=limit,
        messages=messages,
        stop_strings=stop_strings,
        finish=np.where(pinned, LENGTH, np.where(tooled, TOOL_CALLS, STOP)),
        stream=rng.random(rows) < np.array([t.stream_share for t in world.TASKS])[task],
        engine=engine & (traffic.status == SUCCEEDED),
    )


def _lognormal(rng: np.random.Generator, task: Ints, name: str) -> Ints:
    median = np.log([getattr(t, name)[0] for t in world.TASKS])
    spread = np.array([getattr(t, name)[1] for t in world.TASKS])
    drawn: Ints = np.rint(np.exp(median[task] + spread[task] * rng.standard_normal(len(task)))).astype(np.int64)
    return drawn


def _chosen(rng: np.random.Generator, task: Ints, name: str) -> Ints:
    out = np.empty(len(task), np.int64)
    for index, kind in enumerate(world.TASKS):
        rows = task == index
        out[rows] = rng.choice(np.array(getattr(kind, name)), int(rows.sum()))
    return out


def _prompt(rng: np.random.Generator, traffic: Traffic) -> Ints:
    """Prompt lengths without template and special tokens: a lognormal body, fixed lengths, a cap."""
    body = _lognormal(rng, traffic.task, "prompt")
    fixed = _chosen(rng, traffic.task, "fixed")
    drawn = np.where(rng.random(traffic.rows) < _FIXED_SHARE, fixed, body)
    return np.clip(drawn, 8, of_model("context")[traffic.model])


def _cached(rng: np.random.Generator, model: Ints, prompt: Ints) -> Ints:
    """Cached prefix: none for most, else a share of the prompt in whole blocks."""
    block, least = of_model("cache_block")[model], of_model("cache_from")[model]
    share = rng.beta(2.0, 2.2, len(model)) * (rng.random(len(model)) < 0.38)
    cached = np.floor(prompt * share).astype(np.int64) // block * block
    return np.where(cached >= least, cached, 0)


def _written(rng: np.random.Generator, model: Ints, left: Ints) -> tuple[Ints, Ints]:
    """Tokens written to a cache, by lifetime; only Anthropic charges for them."""
    writes = np.array([m.provider == "anthropic" for m in world.MODELS])[model] & (rng.random(len(model)) < 0.25)
    written = np.where(writes & (left >= 1200), np.floor(left * rng.uniform(0.3, 0.9, len(model))), 0).astype(np.int64)
    short = rng.random(len(model)) < 0.8
    return np.where(short, written, 0), np.where(short, 0, written)


def _output(rng: np.random.Generator, model: Ints, task: Ints, limit: Ints) -> tuple[Ints, Ints]:
    """Output and reasoning lengths up to the limit, before end and trimmed tokens."""
    visible = np.maximum(_lognormal(rng, task, "output"), 1)
    median = np.array([m.reasoning for m in world.MODELS])[model]
    share = np.clip(median + 0.18 * rng.standard_normal(len(model)), 0.0, 0.9) * (rng.random(len(model)) < 0.8)
    reasoning = np.where(median > 0, np.floor(visible * share / (1 - share)), 0).astype(np.int64)
    reasoning = np.where(reasoning >= 16, reasoning, 0)
    block = np.array([m.reasoning_block for m in world.MODELS])[model]
    reasoning -= reasoning % block
    output = np.minimum(visible + reasoning, limit)
    counted = np.minimum(reasoning, output)
    return output, counted - counted % block
