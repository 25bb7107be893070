"""The simulated company: who asks, for what, of which model. All facts of the simulation, as tables.

Model names are real, so that prices and dialects apply; the traffic is made up. Where a model is served by our own
engine (`engine_share`), the agent saw what was computed; elsewhere it only counted the text again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One model behind one API.

    Attributes:
        name, served: the name that is asked for, and the one the answer carries.
        provider, api: who answers, and in which form.
        context: longest prompt, tokens.
        engine_share: share of its attempts that our own engine served.
        message_tokens: tokens the chat template adds per message; three more open the answer.
        special: special tokens the tokenizer adds to a prompt.
        reasoning: median share of the output that is reasoning; 0 where it never reasons.
        reasoning_block: the step in which its reasoning is counted, tokens.
        cache_from, cache_block: shortest cached prefix and its granularity, tokens.
        speculates: whether its engine drafts tokens.
        layers, kv_heads, query_heads: of the engine's model.
    """

    name: str
    served: str
    provider: str
    api: str
    context: int
    tokenizer: str
    template: str
    message_tokens: int
    special: int = 0
    reasoning: float = 0.0
    reasoning_block: int = 1
    cache_from: int = 1024
    cache_block: int = 128
    engine_share: float = 0.0
    speculates: bool = False
    revision: str | None = None
    layers: int = 0
    kv_heads: int = 0
    query_heads: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One kind of work.

    Attributes:
        prompt, output: median and log-spread of the lengths, tokens. Real lengths are skewed and spiky; a lognormal
            body with fixed lengths on top of it (`fixed`, a prompt that is nothing but its template) comes close.
        limits: the output limits callers ask for.
        models: weight per model, in the order of MODELS.
    """

    name: str
    share: float
    prompt: tuple[int, float]
    output: tuple[int, float]
    fixed: tuple[int, ...]
    limits: tuple[int, ...]
    messages: int
    temperature: float
    top_p: float
    stream_share: float
    tools: int
    models: tuple[int, ...]


MODELS: tuple[Model, ...] = (
    Model(
        name="gpt-4o-mini",
        served="gpt-4o-mini-2024-07-18",
        provider="openai",
        api="openai_chat",
        context=128_000,
        tokenizer="o200k_base",
        template="openai-chat",
        message_tokens=4,
    ),
    Model(
        name="gpt-4.1",
        served="gpt-4.1-2025-04-14",
        provider="openai",
        api="openai_chat",
        context=200_000,
        tokenizer="o200k_base",
        template="openai-chat",
        message_tokens=4,
    ),
    Model(
        name="gpt-5-mini",
        served="gpt-5-mini-2025-08-07",
        provider="openai",
        api="openai_responses",
        context=200_000,
        tokenizer="o200k_base",
        template="openai-responses",
        message_tokens=5,
        reasoning=0.55,
        reasoning_block=64,
    ),
    Model(
        name="gpt-4o",
        served="gpt-4o-2024-11-20",
        provider="azure",
        api="openai_chat",
        context=128_000,
        tokenizer="o200k_base",
        template="openai-chat",
        message_tokens=4,
    ),
    Model(
        name="gpt-oss-120b",
        served="gpt-oss-120b",
        provider="azure",
        api="openai_chat",
        context=120_000,
        tokenizer="o200k_harmony",
        template="harmony",
        message_tokens=6,
        reasoning=0.4,
        cache_from=64,
        cache_block=16,
        engine_share=1.0,
        revision="b5c939de8f754692c1647ca79fbf85e8c1e70f8a",
        layers=36,
        kv_heads=8,
        query_heads=64,
    ),
    Model(
        name="Llama-3.3-70B-Instruct",
        served="Llama-3.3-70B-Instruct",
        provider="azure",
        api="openai_chat",
        context=120_000,
        tokenizer="llama-3",
        template="llama-3.3",
        message_tokens=5,
        special=1,
        cache_from=64,
        cache_block=16,
        engine_share=0.7,
        speculates=True,
        revision="6f6073b423013f6a7d4d9f39144961bfbfbc386b",
        layers=80,
        kv_heads=8,
        query_heads=64,
    ),
    Model(
        name="claude-sonnet-4-5",
        served="claude-sonnet-4-5-20250929",
        provider="anthropic",
        api="anthropic_messages",
        context=190_000,
        tokenizer="anthropic-count",
        template="anthropic-messages",
        message_tokens=4,
        cache_block=1,
    ),
    Model(
        name="gemini-2.5-flash",
        served="gemini-2.5-flash",
        provider="google",
        api="gemini_generate_content",
        context=250_000,
        tokenizer="gemini",
        template="gemini-turns",
        message_tokens=3,
        special=1,
        reasoning=0.3,
        cache_block=1,
    ),
)

#                     4o-mini 4.1 5-mini 4o oss llama claude gemini
TASKS: tuple[Task, ...] = (
    Task(
        name="chat",
        share=0.40,
        prompt=(620, 0.9),
        output=(210, 0.8),
        fixed=(318, 402, 877),
        limits=(1024, 2048),
        messages=9,
        temperature=0.7,
        top_p=0.95,
        stream_share=0.85,
        tools=0,
        models=(30, 6, 10, 12, 8, 14, 12, 8),
    ),
    Task(
        name="summarise",
        share=0.15,
        prompt=(3400, 0.7),
        output=(190, 0.5),
        fixed=(2048, 4096),
        limits=(512, 1024),
        messages=2,
        temperature=0.3,
        top_p=1.0,
        stream_share=0.15,
        tools=0,
        models=(28, 10, 4, 8, 4, 14, 12, 20),
    ),
    Task(
        name="extract",
        share=0.22,
        prompt=(1250, 0.5),
        output=(64, 0.6),
        fixed=(911, 1530),
        limits=(256, 512),
        messages=2,
        temperature=0.0,
        top_p=1.0,
        stream_share=0.02,
        tools=2,
        models=(40, 6, 6, 12, 2, 20, 4, 10),
    ),
    Task(
        name="code",
        share=0.15,
        prompt=(2600, 1.0),
        output=(520, 1.0),
        fixed=(1200,),
        limits=(4096, 8192),
        messages=14,
        temperature=0.2,
        top_p=0.95,
        stream_share=0.7,
        tools=6,
        models=(2, 18, 14, 6, 14, 6, 36, 4),
    ),
    Task(
        name="reason",
        share=0.08,
        prompt=(480, 0.8),
        output=(980, 0.9),
        fixed=(655,),
        limits=(8192, 16_384),
        messages=3,
        temperature=1.0,
        top_p=1.0,
        stream_share=0.4,
        tools=1,
        models=(0, 4, 34, 2, 30, 0, 14, 16),
    ),
)

TENANTS: tuple[tuple[str, float], ...] = (
    ("acme", 0.36),
    ("borealis", 0.24),
    ("cobalt", 0.16),
    ("delphi", 0.12),
    ("evergreen", 0.08),
    ("fathom", 0.04),
)
ROUTES: tuple[str, ...] = ("assistant", "documents", "developer", "batch")
# Which route a task mostly comes in by, as an index into ROUTES, in the order of TASKS.
ROUTE_OF_TASK: tuple[int, ...] = (0, 1, 3, 2, 2)
ENVIRONMENTS: tuple[tuple[str, float], ...] = (("production", 0.9), ("development", 0.07), ("pilot", 0.03))

# Shares of attempts, by what is ordinary about them and yet not an answer.
REJECTED_SHARE = 0.012  # 429: the provider was busy, the client tried again
FAILED_SHARE = 0.004  # 500
UNASSIGNED_SHARE = 0.006  # no recorder call, no header, no known API key
UNDATED_SHARE = 0.002

HOURS: tuple[int, ...] = (2, 1, 1, 1, 1, 2, 4, 8, 14, 18, 19, 18, 15, 17, 19, 18, 16, 12, 8, 6, 5, 4, 3, 3)
WEEKDAYS: tuple[float, ...] = (1.0, 1.06, 1.04, 1.0, 0.92, 0.38, 0.32)
MONTHLY_GROWTH = 1.12
