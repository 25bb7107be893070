"""What providers with OpenAI-shaped answers mean: each figure worked out by hand, many from recorded answers."""

from __future__ import annotations

from typing import Any

import pytest

from weighbridge.pipeline.ingest.reading import UsageReading, read_usage
from weighbridge.schemas.enumerations import Ended, Verdict

PROVED, ASSUMED, CONTRADICTORY, UNKNOWN = Verdict.PROVED, Verdict.ASSUMED, Verdict.CONTRADICTORY, Verdict.UNKNOWN


def read(provider: str | None, api: str = "chat", model: str | None = None, **usage: Any) -> UsageReading:
    return read_usage({"provider": provider, "api": api, "model": model, "usage": usage})


def chat(prompt: int, completion: int, total: int, **more: Any) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total, **more}


def split(reading: UsageReading) -> tuple[int | None, ...]:
    """uncached, cache read, visible, reasoning."""
    return tuple(reading.counts[name] for name in ("input_uncached", "cache_read", "output_visible", "reasoning"))


def details(cached: int | None = None, reasoning: int | None = None) -> dict[str, Any]:
    return {
        **({} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}),
        **({} if reasoning is None else {"completion_tokens_details": {"reasoning_tokens": reasoning}}),
    }


def test_grok_on_chat_counts_reasoning_beside_the_completion() -> None:
    """12 + 1 + 228 = 241."""
    got = read("xai", model="grok-3-mini", **chat(12, 1, 241, **details(2, 228)))
    assert (got.verdict, split(got), got.flags) == (PROVED, (10, 2, 1, 228), ())
    assert "output_includes_reasoning=no" in got.rule


def test_grok_on_responses_counts_reasoning_inside_and_so_may_a_newer_model_on_chat() -> None:
    usage: dict[str, Any] = {"input_tokens": 100, "output_tokens": 50, "total_tokens": 150}
    inside: dict[str, Any] = {
        "input_tokens_details": {"cached_tokens": 20},
        "output_tokens_details": {"reasoning_tokens": 30},
    }
    got = read("xai", "responses", **usage, **inside, cost_in_usd_ticks=123456)
    assert (got.verdict, split(got), got.flags) == (PROVED, (80, 20, 20, 30), ())
    newer = read("xai", model="grok-9", **chat(100, 50, 150, **details(20, 30)))
    assert (newer.verdict, split(newer)) == (PROVED, (80, 20, 20, 30))
    assert newer.flags == ("convention_refuted",)


def test_grok_in_real_time_is_itemised_and_does_not_say_what_was_cached() -> None:
    usage: dict[str, Any] = {
        "input_tokens": 156,
        "output_tokens": 185,
        "total_tokens": 341,
        "output_audio_seconds": 3.38,
    }
    got = read(
        "xai",
        "realtime",
        **usage,
        input_token_details={"text_tokens": 10, "audio_tokens": 146, "grok_tokens": 0},
        output_token_details={"text_tokens": 15, "audio_tokens": 170, "grok_tokens": 0},
    )
    assert (got.verdict, got.input_total, got.output_total) == (PROVED, 156, 185)
    assert split(got)[:2] == (None, None)
    assert got.flags == ("cache_detail_missing",)
    assert any(leaf.path == "usage.output_audio_seconds" and leaf.text == "3.38" for leaf in got.leaves)


def test_deepseek_hit_and_miss_make_the_prompt() -> None:
    got = read("deepseek", **chat(976, 61, 1037, prompt_cache_hit_tokens=896, prompt_cache_miss_tokens=80))
    assert (got.verdict, split(got)) == (PROVED, (80, 896, 61, 0))
    both = chat(976, 61, 1037, prompt_cache_hit_tokens=896, prompt_cache_miss_tokens=80, **details(896, 25))
    assert split(read("deepseek", **both)) == (80, 896, 36, 25)
    wrong = read("deepseek", **chat(976, 61, 1037, prompt_cache_hit_tokens=896, prompt_cache_miss_tokens=79))
    assert (wrong.verdict, wrong.input_total) == (CONTRADICTORY, None)
    assert "parts_mismatch" in wrong.flags


def test_names_for_one_number_must_agree_and_are_never_summed() -> None:
    twice = chat(2006, 300, 2306, cache_read_input_tokens=1920, **details(1920))
    assert split(read("someone", **twice))[:2] == (86, 1920)
    differ = read("someone", **chat(2006, 300, 2306, cache_read_input_tokens=1919, **details(1920)))
    assert (differ.verdict, "fields_disagree" in differ.flags) == (CONTRADICTORY, True)


@pytest.mark.parametrize(
    "cached",
    [
        {"num_cached_tokens": 1008},
        {"prompt_tokens_details": {"cached_tokens": 1008}},
        {"prompt_token_details": {"cached_tokens": 1008}},
    ],
)
def test_mistral_spells_cached_tokens_in_three_ways(cached: dict[str, Any]) -> None:
    got = read("mistral", **chat(1013, 6, 1019, **cached))
    assert (got.verdict, split(got), got.flags) == (PROVED, (5, 1008, 6, 0), ())


def test_mistral_audio_is_kept_in_seconds() -> None:
    got = read("mistral", **chat(13, 151, 164, prompt_audio_seconds=36, request_count=1))
    assert (got.verdict, got.input_total, got.flags) == (PROVED, 13, ())


def test_gemini_behind_names_of_openai_hides_its_thoughts_in_the_total() -> None:
    """35 + 12 = 47; the other 62 of 109 are in no field."""
    got = read("google", model="gemini-2.5-pro", **chat(35, 12, 109))
    assert (got.verdict, split(got), got.output_total) == (PROVED, (35, 0, 12, 62), 74)
    assert got.reason == "one reading fits the reported total"
    plain = read("google", **chat(35, 12, 47))
    assert (plain.verdict, split(plain)) == (ASSUMED, (35, 0, 12, 0))
    short = read("google", **chat(35, 12, 40))
    assert short.verdict is CONTRADICTORY


def test_nobody_else_is_granted_hidden_tokens_for_a_total_that_does_not_add_up() -> None:
    for provider in ("openai", "vllm", "nobody"):
        got = read(provider, **chat(35, 12, 109))
        assert (got.verdict, got.total) == (CONTRADICTORY, None)
        assert "total_mismatch" in got.flags


def test_deep_research_thinks_outside_completion_and_total() -> None:
    usage = chat(33, 7163, 7196, reasoning_tokens=73997, citation_tokens=20016, num_search_queries=18)
    got = read("perplexity", model="sonar-deep-research", **usage)
    assert (got.verdict, got.output_total, got.total, got.reported_total) == (PROVED, 81160, 81193, 7196)
    assert split(got) == (None, None, 7163, 73997)
    assert "total_leaves_out_reasoning=yes" in got.rule
    other = read("perplexity", model="sonar", **usage)
    assert (other.verdict, "reasoning_exceeds_output" in other.flags) == (CONTRADICTORY, True)


def test_openrouter_says_what_it_charged_and_that_is_kept_beside_the_counts() -> None:
    spent = {"cost": 0.00034225, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.0003}}
    got = read("openrouter", model="openai/gpt-5-mini", **chat(73, 162, 235, **details(0, 128), **spent))
    assert (got.verdict, split(got), got.flags) == (PROVED, (73, 0, 34, 128), ())
    kept = {leaf.path: leaf.text for leaf in got.leaves if leaf.text is not None}
    assert kept["usage.cost"] == "0.00034225"
    assert kept["usage.cost_details.upstream_inference_cost"] == "0.0003"
    bare = read("openrouter", **chat(568, 48, 616))
    assert (bare.verdict, split(bare)) == (PROVED, (None, None, None, None))


def test_groq_answers_of_several_models_are_flagged_and_their_leaves_kept() -> None:
    calls = [
        {"model": "llama-3.3-70b-versatile", "usage": {"prompt_tokens": 138, "completion_tokens": 4}},
        {"model": "meta-llama/llama-4-scout-17b-16e-instruct", "usage": {"prompt_tokens": 495, "completion_tokens": 6}},
    ]
    usage = chat(633, 10, 643, queue_time=0, total_time=0.2)
    body = {"usage": usage, "usage_breakdown": {"models": calls}, "choices": [{"finish_reason": "stop"}]}
    got = read_usage({"provider": "groq", "api": "chat", "response": body})
    assert (got.verdict, got.total, got.flags) == (PROVED, 643, ("child_calls",))
    assert "usage_breakdown.models[1].usage.prompt_tokens" in {leaf.path for leaf in got.leaves}
    alone = read_usage({"provider": "groq", "api": "chat", "response": {**body, "usage_breakdown": {"models": None}}})
    assert alone.flags == ()


def test_groq_streams_say_it_in_a_corner_of_their_own() -> None:
    events = [{"choices": [{"finish_reason": "stop"}], "x_groq": {"usage": chat(10, 5, 15)}}]
    got = read_usage({"provider": "groq", "api": "chat", "events": events})
    assert (got.verdict, got.total, got.ended) == (PROVED, 15, Ended.COMPLETE)


@pytest.mark.parametrize(
    ("provider", "usage", "expected"),
    [
        ("moonshot", chat(20, 30, 50, cached_tokens=10, **details(None, 22)), (10, 10, 8, 22)),
        ("huggingface", chat(10, 995, 1005, cached_tokens=0), (10, 0, None, None)),
        ("zai", chat(13, 564, 577, **details(0, 561)), (13, 0, 3, 561)),
        ("dashscope", chat(24, 1355, 1379, **details(0, 1084)), (24, 0, 271, 1084)),
        ("cerebras", chat(42, 8, 50, **details(0)), (42, 0, None, None)),
        ("snowflake", chat(21, 2, 23, **details(0, 0)), (21, 0, 2, 0)),
        ("together", chat(18, 35, 53), (None, None, None, None)),
        ("fireworks", chat(100, 9, 109, **details(64)), (36, 64, None, None)),
        ("crusoe", chat(167, 37, 204, **details(0, 25)), (167, 0, 12, 25)),
        ("bedrock_mantle", chat(72, 56, 128), (None, None, None, None)),
        ("heroku", chat(14, 51, 65), (None, None, None, None)),
        ("ollama_cloud", chat(136, 15, 151), (None, None, None, None)),
        ("lmstudio", chat(5, 6, 11), (None, None, None, None)),
        ("tgi", chat(5, 6, 11), (None, None, None, None)),
        ("tensorrt_llm", chat(5, 6, 11, **details(0)), (5, 0, None, None)),
        ("sglang", chat(50, 20, 70, reasoning_tokens=0, **details(48)), (2, 48, 20, 0)),
        ("sglang", chat(50, 20, 70, reasoning_tokens=12, **details(48, 12)), (2, 48, 8, 12)),
        ("vllm", chat(50, 20, 70, prompt_tokens_details={"cached_tokens": 32, "created_cache_tokens": 16}), (2, 32)),
    ],
)
def test_what_others_show_is_read_and_what_they_may_hide_is_unknown(
    provider: str, usage: dict[str, Any], expected: tuple[int | None, ...]
) -> None:
    got = read(provider, **usage)
    assert got.verdict is PROVED
    assert split(got)[: len(expected)] == expected
    assert set(got.flags) <= {"cache_detail_missing"}
    assert ("cache_detail_missing" in got.flags) is (expected[1] is None)


def test_ollama_has_an_api_of_its_own_beside_that_of_openai() -> None:
    got = read("ollama", "openai_chat", **chat(136, 15, 151))
    assert (got.verdict, got.dialect, got.flags) == (PROVED, "openai_chat", ("cache_detail_missing",))
    own = read_usage({"provider": "ollama", "api": "chat", "response": {"prompt_eval_count": 26, "eval_count": 9}})
    assert (own.dialect, own.input_total, own.output_total) == ("ollama_native", 26, 9)


def test_reasoning_beyond_the_completion_is_a_finding_not_a_clamp() -> None:
    """Speculative decoding on SGLang once counted drafted reasoning."""
    got = read("sglang", **chat(50, 20, 70, reasoning_tokens=25))
    assert (got.verdict, "reasoning_exceeds_output" in got.flags, got.output_total) == (CONTRADICTORY, True, None)


@pytest.mark.parametrize(
    "provider", ["nobody", "unknown:localhost:8787", "local_openai_compatible(8000)", "litellm_proxy", None, ""]
)
def test_whoever_speaks_the_shape_is_read_by_it_with_a_flag(provider: str | None) -> None:
    got = read(provider, **chat(24, 8, 32))
    assert (got.verdict, got.input_total, got.output_total, got.total) == (PROVED, 24, 8, 32)
    assert split(got) == (None, None, None, None)
    assert got.flags == ("cache_detail_missing", "provider_not_known")


def test_of_someone_unknown_the_identity_decides_and_nothing_is_refuted() -> None:
    outside = read("openai_compatible", **chat(307, 26, 588, **details(244, 255)))
    assert (outside.verdict, split(outside), outside.flags) == (PROVED, (63, 244, 26, 255), ("provider_not_known",))
    without = read("openai_compatible", prompt_tokens=300, completion_tokens=80, **details(200, 60))
    assert (without.verdict, split(without), without.flags) == (ASSUMED, (100, 200, 20, 60), ("provider_not_known",))


def test_counts_in_places_of_another_shape_are_not_called_missing_everywhere() -> None:
    got = read_usage(
        {"provider": "nobody", "api": "embeddings", "response": {"usageMetadata": {"promptTokenCount": 8}}}
    )
    assert (got.verdict, got.reason) == (UNKNOWN, "the answer carries no token count where this API keeps them")


def test_an_embedding_has_a_prompt_and_no_output() -> None:
    got = read("openai", "embeddings", prompt_tokens=8, total_tokens=8)
    assert (got.verdict, split(got), got.total) == (PROVED, (8, 0, 0, 0), 8)
    hidden = read("vllm", "embeddings", prompt_tokens=11, total_tokens=11, completion_tokens=0)
    assert (hidden.verdict, split(hidden), hidden.total) == (PROVED, (None, None, 0, 0), 11)


def test_an_empty_legacy_completion_has_no_completion_key() -> None:
    got = read("openai", "completions", prompt_tokens=5, total_tokens=5)
    assert (got.verdict, got.dialect, split(got)) == (PROVED, "openai_chat", (5, 0, 0, 0))


def test_a_transcription_counts_tokens_or_seconds() -> None:
    tokens: dict[str, Any] = {"type": "tokens", "input_tokens": 26, "output_tokens": 9, "total_tokens": 35}
    got = read("openai", "audio", **tokens, input_token_details={"text_tokens": 0, "audio_tokens": 26})
    assert (got.verdict, got.input_total, got.cells["input_uncached_audio"]) == (PROVED, 26, 26)
    timed = read("openai", "audio", type="duration", seconds=37)
    assert (timed.verdict, timed.total, timed.flags) == (UNKNOWN, None, ("usage_missing",))
    assert [(leaf.path, leaf.integer) for leaf in timed.leaves if leaf.integer] == [("usage.seconds", 37)]


def test_an_image_costs_text_and_image_tokens() -> None:
    usage: dict[str, Any] = {"input_tokens": 50, "output_tokens": 272, "total_tokens": 322}
    inputs: dict[str, Any] = {"input_tokens_details": {"text_tokens": 10, "image_tokens": 40}}
    got = read("openai", "images", **usage, **inputs)
    assert (got.verdict, got.input_total, got.output_total) == (PROVED, 50, 272)
    assert (got.cells["input_uncached_image"], got.cells["output_visible_image"]) == (40, None)
    newer = read("openai", "images", **usage, **inputs, output_tokens_details={"text_tokens": 0, "image_tokens": 272})
    assert newer.cells["output_visible_image"] == 272


def answered(status: str = "completed", **usage: Any) -> dict[str, Any]:
    return {"type": "response.done", "response": {"status": status, "usage": usage}}


REALTIME: dict[str, Any] = {
    "input_tokens": 41,
    "output_tokens": 164,
    "total_tokens": 205,
    "input_token_details": {
        "text_tokens": 14,
        "audio_tokens": 27,
        "cached_tokens": 20,
        "cached_tokens_details": {"text_tokens": 4, "audio_tokens": 16, "image_tokens": 0},
    },
    "output_token_details": {"text_tokens": 28, "audio_tokens": 136},
}


def test_an_answer_in_real_time_is_itemised_with_its_cached_tokens() -> None:
    got = read_usage({"provider": "openai", "api": "realtime", "events": [answered(**REALTIME)]})
    assert (got.verdict, split(got), got.ended) == (PROVED, (21, 20, 164, 0), Ended.COMPLETE)
    assert (got.cells["input_uncached_audio"], got.cells["cache_read_audio"]) == (11, 16)
    assert got.cells["output_visible_audio"] == 136


def test_an_answer_that_was_talked_over_is_cut() -> None:
    got = read_usage({"provider": "openai", "api": "realtime", "events": [answered("cancelled", **REALTIME)]})
    assert (got.ended, got.total, got.flags) == (Ended.CUT, 205, ("output_incomplete",))


def test_a_run_repeats_the_sum_of_its_steps() -> None:
    events = [
        {"object": "thread.run.step", "usage": chat(380, 60, 440)},
        {"object": "thread.run.step", "usage": chat(400, 30, 430)},
        {"object": "thread.run", "status": "completed", "usage": chat(780, 90, 870)},
    ]
    got = read_usage({"provider": "openai", "api": "assistants", "events": events})
    assert (got.verdict, got.input_total, got.output_total) == (PROVED, 780, 90)


def test_a_batch_answers_in_the_names_of_the_api_it_went_through() -> None:
    for usage in (chat(10, 5, 15), {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}):
        line = {"custom_id": "a", "response": {"status_code": 200, "body": {"usage": usage}}}
        got = read_usage({"provider": "openai", "api": "batches", "response": line})
        assert (got.verdict, split(got)) == (PROVED, (10, 0, 5, 0))


def test_running_totals_in_every_chunk_are_never_summed() -> None:
    events = [{"choices": [{"finish_reason": None}], "usage": chat(10, n, 10 + n)} for n in (5, 12)]
    events.append({"choices": [{"finish_reason": "stop"}], "usage": chat(10, 20, 30)})
    got = read_usage({"provider": "perplexity", "api": "chat", "events": events})
    assert (got.total, got.ended) == (30, Ended.COMPLETE)
