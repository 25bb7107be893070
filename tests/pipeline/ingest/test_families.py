"""What the APIs of other shapes than OpenAI's mean: each figure worked out by hand, many from recorded answers."""

from __future__ import annotations

from typing import Any

import pytest

from weighbridge.pipeline.ingest.answers import calls
from weighbridge.pipeline.ingest.reading import UsageReading, read_usage
from weighbridge.schemas.enumerations import Ended, Verdict

PROVED, ASSUMED, CONTRADICTORY, UNKNOWN = Verdict.PROVED, Verdict.ASSUMED, Verdict.CONTRADICTORY, Verdict.UNKNOWN


def read(provider: str, api: str, model: str = "m", **told: Any) -> UsageReading:
    return read_usage({"provider": provider, "api": api, "model": model, **told})


def classes(reading: UsageReading, *names: str) -> tuple[int | None, ...]:
    return tuple(reading.counts[name] for name in names)


def totals(reading: UsageReading) -> tuple[int | None, ...]:
    return reading.input_total, reading.output_total, reading.total


INPUT = ("input_uncached", "cache_read", "cache_write_5m", "cache_write_1h", "cache_write_unknown")


def converse(given: int, made: int, whole: int, cache_read: int = 0, written: int = 0, **more: Any) -> dict[str, Any]:
    """Usage of Converse, each cache field under both of its names."""
    return {
        "inputTokens": given,
        "outputTokens": made,
        "totalTokens": whole,
        **dict.fromkeys(("cacheReadInputTokens", "cacheReadInputTokenCount"), cache_read),
        **dict.fromkeys(("cacheWriteInputTokens", "cacheWriteInputTokenCount"), written),
        **more,
    }


def test_two_names_of_one_cache_field_are_one_count() -> None:
    """3 + 2,074 + 0 + 288 = 2,365, written for five minutes."""
    usage = converse(3, 288, 2365, 0, 2074, cacheDetails=[{"ttl": "5m", "inputTokens": 2074}])
    got = read("bedrock", "converse", usage=usage)
    assert (got.verdict, classes(got, *INPUT), totals(got)) == (PROVED, (3, 0, 2074, 0, 0), (2077, 288, 2365))
    apart = read("bedrock", "converse", usage={**usage, "cacheReadInputTokenCount": 7})
    assert (apart.verdict, apart.flags) == (CONTRADICTORY, ("fields_disagree",))


def test_lifetimes_that_are_not_told_stay_unknown() -> None:
    got = read("bedrock", "converse", usage=converse(64, 4, 2560, 0, 2492))
    assert (got.verdict, classes(got, *INPUT)) == (PROVED, (64, 0, 0, 0, 2492))


def test_a_model_of_openai_on_converse_streams_the_whole_input_and_a_total_that_counts_the_cache_twice() -> None:
    """4,995 + 4,993 + 19 = 10,007, and two of the 4,995 are not cached. Of other models the sum is one of parts."""
    usage = converse(4995, 19, 10_007, 0, 4993)
    got = read("bedrock", "converse_stream", "openai.gpt-oss-120b-1:0", usage=usage)
    assert (got.verdict, classes(got, *INPUT), totals(got)) == (ASSUMED, (2, 0, 0, 0, 4993), (4995, 19, 5014))
    assert got.flags == ("total_double_counts_cache",)
    whole = read("bedrock", "converse", "us.openai.gpt-oss-120b-1:0", usage=converse(2, 19, 5014, 0, 4993))
    assert (whole.verdict, totals(whole), whole.flags) == (PROVED, (4995, 19, 5014), ("convention_refuted",))
    other = read("bedrock", "converse", "anthropic.claude-sonnet-4-5", usage=usage)
    assert (other.verdict, totals(other), other.flags) == (PROVED, (9988, 19, 10_007), ())


def test_events_of_converse_say_when_the_answer_is_whole() -> None:
    events = [
        {"contentBlockDelta": {}},
        {"messageStop": {"stopReason": "end_turn"}},
        {"metadata": {"usage": converse(1, 2, 3)}},
    ]
    assert (
        read("bedrock", "converse_stream", events=events).ended,
        totals(read("bedrock", "converse", events=events)),
    ) == (
        Ended.COMPLETE,
        (1, 2, 3),
    )
    assert read("bedrock", "converse_stream", events=events[:1]).ended is Ended.UNKNOWN


def anthropic_stream(made: int, measured: int) -> list[dict[str, Any]]:
    return [
        {"type": "message_start", "message": {"usage": {"input_tokens": 392, "output_tokens": 8}}},
        {"type": "message_delta", "usage": {"output_tokens": made}},
        {
            "type": "message_stop",
            "amazon-bedrock-invocationMetrics": {
                "inputTokenCount": 392,
                "outputTokenCount": measured,
                "invocationLatency": 3915,
                "firstByteLatency": 1036,
            },
        },
    ]


def test_a_service_that_counts_otherwise_than_the_model_is_noticed_and_the_model_is_read() -> None:
    got = read("bedrock", "invoke_model", events=anthropic_stream(133, 97))
    assert (got.verdict, totals(got), got.flags) == (ASSUMED, (392, 133, 525), ("service_count_differs",))
    assert "the service counted otherwise" in got.reason
    same = read("bedrock", "invoke_model", events=anthropic_stream(97, 97))
    assert (same.verdict, totals(same), same.flags, same.ended) == (PROVED, (392, 97, 489), (), Ended.COMPLETE)


def amazon(**counts: int) -> dict[str, str]:
    return {
        f"X-Amzn-Bedrock-{name.replace('_', '-').title()}-Token-Count": str(count) for name, count in counts.items()
    }


@pytest.mark.parametrize(
    ("model", "response", "headers", "expected"),
    [
        (
            "meta.llama3-70b",
            {"prompt_token_count": 8, "generation_token_count": 35},
            amazon(input=8, output=35),
            (8, 35),
        ),
        ("amazon.titan-text", {"inputTextTokenCount": 28, "results": [{"tokenCount": 197}]}, {}, (28, 197)),
        ("amazon.titan-text", {"inputTextTokenCount": 6, "totalOutputTextTokenCount": 3}, {}, (6, 3)),
        ("amazon.nova-lite", {"usage": {"inputTokens": 30}}, amazon(input=30, output=51), (30, 51)),
        ("cohere.command-light", {"generations": []}, amazon(input=5, output=10), (5, 10)),
        ("mistral.mistral-7b", {"outputs": []}, amazon(input=11, output=12), (11, 12)),
        ("arn:sagemaker", {"usage": {"prompt_tokens": 6, "completion_tokens": 100, "total_tokens": 106}}, {}, (6, 100)),
        ("cohere.embed-v4:0", {"embeddings": {}}, amazon(input=4), (4, 0)),
        ("amazon.titan-embed-text-v2:0", {"inputTextTokenCount": 5}, amazon(input=5), (5, 0)),
        ("unheard-of", {"answer": []}, amazon(input=5), (5, None)),
    ],
)
def test_bodies_of_each_vendor_and_counts_that_stand_in_headers_only(
    model: str, response: dict[str, Any], headers: dict[str, str], expected: tuple[int | None, int | None]
) -> None:
    got = read("bedrock", "invoke_model", model, response=response, headers=headers)
    assert (got.verdict, got.input_total, got.output_total, got.flags) == (PROVED, *expected, ())


def test_headers_exclude_what_was_cached_as_the_body_does() -> None:
    body = {"usage": {"input_tokens": 3, "cache_read_input_tokens": 9511, "output_tokens": 1944}}
    headers = amazon(input=3, output=1944, cache_read_input=9511)
    got = read("bedrock", "invoke_model", response=body, headers=headers)
    alone = read("bedrock", "invoke_model", response={}, headers=headers)
    assert totals(got) == totals(alone) == (9514, 1944, 11_458)
    assert got.flags == alone.flags == ()


@pytest.mark.parametrize("text", ["many", "\uff15", "1.5", ""])
def test_a_header_that_is_no_count_makes_the_answer_unreadable(text: str) -> None:
    got = read("bedrock", "invoke_model", response={}, headers={"x-amzn-bedrock-input-token-count": text})
    assert (got.verdict, got.flags) == (UNKNOWN, ("unreadable",))


def test_the_total_of_gemini_live_leaves_out_what_was_thought() -> None:
    """77 thoughts are no part of 74 tokens of sound, and 417 + 74 = 491."""
    usage = {
        "promptTokenCount": 417,
        "responseTokenCount": 74,
        "totalTokenCount": 491,
        "thoughtsTokenCount": 77,
        "responseTokensDetails": [{"modality": "AUDIO", "tokenCount": 74}],
    }
    got = read("google", "gemini_live", usage=usage)
    assert (got.verdict, totals(got), got.reported_total) == (PROVED, (417, 151, 568), 491)
    assert (classes(got, "output_visible", "reasoning"), got.cells["output_visible_audio"]) == ((74, 77), 74)


def test_gemini_interactions_add_up_four_totals() -> None:
    usage = {
        "total_input_tokens": 22,
        "total_tool_use_tokens": 198,
        "total_output_tokens": 590,
        "total_thought_tokens": 1173,
        "total_cached_tokens": 0,
        "total_tokens": 1983,
        "input_tokens_by_modality": [{"modality": "text", "tokens": 22}],
        "tool_use_tokens_by_modality": [{"modality": "text", "tokens": 198}],
    }
    got = read(
        "google",
        "gemini_interactions",
        events=[{"event_type": "interaction.complete", "interaction": {"usage": usage}}],
    )
    assert (got.verdict, totals(got), got.flags) == (PROVED, (220, 1763, 1983), ())
    assert classes(got, "input_uncached", "output_visible", "reasoning") == (220, 590, 1173)


def test_embeddings_have_no_output_wherever_their_prompt_is_counted() -> None:
    predictions = [{"embeddings": {"statistics": {"token_count": count}, "values": [0.5]}} for count in (5, 6)]
    found = [
        read("vertex", "embeddings", response={"predictions": predictions, "metadata": {"billableCharacterCount": 35}}),
        read("vertex", "embeddings", response={"usageMetadata": {"promptTokenCount": 11, "totalTokenCount": 11}}),
        read("google", "embeddings", response={"usageMetadata": {"promptTokenCount": 11}}),
        read("cohere", "embeddings", response={"meta": {"billed_units": {"input_tokens": 11, "image_tokens": 0}}}),
        read("voyage", "embeddings", response={"usage": {"total_tokens": 11}}),
        read("voyage", "rerank", response={"usage": {"total_tokens": 11}}),
        read("ollama", "embed", response={"prompt_eval_count": 11}),
    ]
    assert {(got.verdict, *totals(got), got.counts["input_uncached"], got.flags) for got in found} == {
        (PROVED, 11, 0, 11, 11, ())
    }


def test_numbers_of_modalities_are_named_as_their_words_are() -> None:
    """Old answers of Vertex AI: 1 is text, 2 an image."""
    details = [{"modality": 1, "tokenCount": 28}, {"modality": 2, "tokenCount": 100}]
    usage = {"promptTokenCount": 128, "candidatesTokenCount": 4, "totalTokenCount": 132, "promptTokensDetails": details}
    got = read("vertex", "generateContent", usage=usage)
    assert (got.verdict, got.cells["input_uncached_image"], got.flags) == (PROVED, 100, ())


def test_a_cached_content_is_written_for_a_time_nobody_names() -> None:
    got = read("google", "cachedContents", response={"usageMetadata": {"totalTokenCount": 3512}})
    assert (got.verdict, totals(got), got.counts["cache_write_unknown"]) == (PROVED, (3512, 0, 3512), 3512)


def test_of_cohere_the_billed_units_are_read_and_what_was_processed_stands_beside() -> None:
    usage = {
        "billed_units": {"input_tokens": 33, "output_tokens": 22},
        "tokens": {"input_tokens": 1452, "output_tokens": 33},
        "cached_tokens": 144,
    }
    bodies: list[dict[str, Any]] = [
        {"api": "cohere_v2_chat", "response": {"usage": usage}},
        {"api": "cohere_v2_chat", "events": [{"type": "message-end", "delta": {"usage": usage}}]},
        {"api": "cohere_v1_chat", "response": {"meta": usage}},
        {"api": "cohere_v1_chat", "events": [{"is_finished": True, "response": {"meta": usage}}]},
        {"api": "generate", "response": {"meta": {"billed_units": usage["billed_units"]}}},
    ]
    for body in bodies:
        got = read("cohere", **body)
        assert (got.verdict, totals(got), got.flags) == (PROVED, (33, 22, 55), ())
        assert classes(got, "input_uncached", "cache_read") == (33, 0)
        assert got.ended is Ended.COMPLETE
    kept = {leaf.path: leaf.integer for leaf in read("cohere", **bodies[0]).leaves}
    assert (kept["usage.tokens.input_tokens"], kept["usage.cached_tokens"]) == (1452, 144)


def test_images_of_cohere_are_counted_beside_the_text() -> None:
    got = read("cohere", "embed", response={"meta": {"billed_units": {"input_tokens": 4, "image_tokens": 260}}})
    assert (got.verdict, totals(got), got.cells["input_uncached_image"]) == (PROVED, (264, 0, 264), 260)


def test_units_that_are_no_tokens_are_kept_and_give_no_count() -> None:
    got = read("cohere", "rerank", response={"meta": {"billed_units": {"search_units": 1}}})
    assert (got.verdict, totals(got), len(got.leaves)) == (UNKNOWN, (None, None, None), 1)


OLLAMA = {"prompt_eval_count": 237, "eval_count": 8}


@pytest.mark.parametrize(
    ("usage", "verdict", "whole", "split"),
    [
        (OLLAMA, ASSUMED, 237, (None, None)),
        ({**OLLAMA, "prompt_eval_cached_count": 0}, PROVED, 237, (237, 0)),
        ({**OLLAMA, "prompt_eval_cached_count": 236}, ASSUMED, 237, (1, 236)),
        ({"prompt_eval_count": 1, "prompt_eval_cached_count": 236, "eval_count": 8}, PROVED, 237, (1, 236)),
        ({**OLLAMA, "timings": {"prompt_n": 1, "cache_n": 236, "predicted_n": 8}}, PROVED, 237, (1, 236)),
        (
            {"prompt_eval_count": 1, "eval_count": 8, "timings": {"prompt_n": 1, "cache_n": 236, "predicted_n": 8}},
            PROVED,
            237,
            (1, 236),
        ),
        # What the answer says holds whatever the version; the rest is unknown.
        ({"eval_count": 8}, PROVED, None, (None, None)),
    ],
)
def test_whether_ollama_counts_cached_tokens_depends_on_a_version_it_does_not_name(
    usage: dict[str, Any], verdict: Verdict, whole: int | None, split: tuple[int | None, ...]
) -> None:
    got = read("ollama", "ollama_chat", response={"done": True, **usage})
    assert (got.verdict, got.input_total, classes(got, "input_uncached", "cache_read")) == (verdict, whole, split)
    assert got.output_total == 8


def test_a_stream_of_ollama_that_is_not_done_is_cut() -> None:
    events: list[dict[str, Any]] = [{"done": False}, {"done": True, **OLLAMA}]
    assert read("ollama", "ollama_generate", events=events).ended is Ended.COMPLETE
    assert read("ollama", "ollama_generate", events=events[:1]).ended is Ended.CUT


@pytest.mark.parametrize(
    ("body", "split"),
    [
        ({"timings": {"cache_n": 236, "prompt_n": 1, "predicted_n": 8}}, (1, 236)),
        ({"tokens_evaluated": 237, "tokens_predicted": 8, "timings": {"prompt_n": 1, "predicted_n": 8}}, (1, 236)),
        ({"tokens_evaluated": 237, "tokens_predicted": 8, "tokens_cached": 244}, (None, None)),
    ],
)
def test_what_llama_cpp_evaluated_is_what_was_not_cached(body: dict[str, Any], split: tuple[int | None, ...]) -> None:
    got = read("llama_cpp", "completion", response=body)
    assert (got.verdict, totals(got), classes(got, "input_uncached", "cache_read")) == (PROVED, (237, 8, 245), split)
    refuted = read(
        "llama_cpp", "completion", response={"tokens_evaluated": 9, "timings": {"prompt_n": 1, "cache_n": 2}}
    )
    assert (refuted.verdict, refuted.flags) == (CONTRADICTORY, ("parts_mismatch",))


def test_the_prompt_of_text_generation_inference_may_stand_in_a_header_only() -> None:
    body = {"generated_text": "", "details": {"generated_tokens": 10, "tokens": [{"id": 7}], "prefill": [{"id": 9}]}}
    got = read("tgi", "generate", response=body, headers={"x-prompt-tokens": "11", "x-generated-tokens": "10"})
    assert (got.verdict, totals(got), got.flags) == (PROVED, (11, 10, 21), ("cache_detail_missing",))
    assert next(leaf.path for leaf in got.leaves) == "details.generated_tokens"
    events: list[dict[str, Any]] = [{"token": {"id": 7}, "generated_text": None}, body]
    assert totals(read("tgi", "generate_stream", events=events)) == (None, 10, None)


def test_writer_answers_in_the_shape_of_openai() -> None:
    usage = {
        "prompt_tokens": 40,
        "completion_tokens": 300,
        "total_tokens": 340,
        "prompt_token_details": {"cached_tokens": 0},
        "completion_token_details": {"reasoning_tokens": 0},
    }
    got = read("writer", "chat", usage=usage)
    assert (got.verdict, totals(got), got.flags) == (PROVED, (40, 300, 340), ())


def test_moonshot_takes_cache_reads_from_an_input_that_does_not_hold_them() -> None:
    """-900 + 1,000 = 100 that were not cached."""
    usage = {"input_tokens": -900, "cache_read_input_tokens": 1000, "output_tokens": 5}
    got = read("moonshot", "messages", usage=usage)
    assert (got.verdict, classes(got, "input_uncached", "cache_read"), got.flags) == (
        ASSUMED,
        (100, 1000),
        ("repaired_negative_input",),
    )
    assert read("anthropic", "messages", usage=usage).flags == ("negative_count",)


@pytest.mark.parametrize(
    ("provider", "body"),
    [
        ("anthropic", {"input_tokens": 14}),
        ("bedrock", {"inputTokens": 14}),
        ("vertex", {"totalTokens": 14, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 14}]}),
    ],
)
def test_a_prompt_that_was_only_counted_is_an_estimate_and_never_usage(provider: str, body: dict[str, Any]) -> None:
    got = read(provider, "count_tokens", response=body)
    assert (got.verdict, totals(got), got.estimated) == (UNKNOWN, (None, None, None), {"input_total": 14})
    assert got.flags == ("count_only", "usage_missing")
    assert "not served" in got.reason
    (call,) = calls(
        {"provider": provider, "api": "count_tokens", "status": 200, "response": body}, b"", provider=None, model=None
    )
    assert call.attempt["usage_expected"] is False


def test_whoever_speaks_these_shapes_is_read_by_them() -> None:
    usage = {"input_tokens": 14, "output_tokens": 10}
    got = read("unknown:localhost:8787", "messages", usage=usage)
    assert (got.verdict, totals(got), got.flags) == (PROVED, (14, 10, 24), ("provider_not_known",))
    assert totals(read("unknown:localhost:8787", "converse", usage=converse(7, 78, 85))) == (7, 78, 85)
