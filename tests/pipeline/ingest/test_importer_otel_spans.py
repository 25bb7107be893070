"""Spans: every family of names, each call once whatever stands around it, and no more of a span than what is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from tests.pipeline.ingest.log_samples import TRACE, attribute, chat, export, span

from weighbridge.pipeline.ingest.ingest import IngestResult
from weighbridge.pipeline.lake import Lake
from weighbridge.schemas.errors import ConfigError, ContractError

Take = Callable[..., IngestResult]
Jsonl = Callable[..., Path]
FIGURES = ("input_total", "output_total", "total", "input_uncached", "cache_read", "cache_write_unknown", "reasoning")


@pytest.fixture
def read(lake: Lake, take: Take, jsonl: Jsonl) -> Callable[..., pl.DataFrame]:
    """Take spans in, and give their readings in the order of their records."""

    def taken(*spans: dict[str, object], name: str = "spans.jsonl", **options: object) -> pl.DataFrame:
        take([jsonl(name, [export(*spans)])], lake, **options)
        return lake.scan("reading").collect().sort("segment_row", "revision")

    return taken


Read = Callable[..., pl.DataFrame]


FAMILIES: list[tuple[dict[str, object], tuple[object, ...]]] = [
    # OpenTelemetry: cached tokens are part of the input
    (
        chat(2600, 50, usage__cache_read__input_tokens=2000, usage__cache_creation__input_tokens=400,
             usage__reasoning__output_tokens=20),
        ("otel_gen_ai", "ASSUMED", 2600, 50, 2650, 200, 2000, 400, 20),
    ),
    # an emitter that passes on Anthropic's figures: 400 + 2,000 cannot be part of 100
    (
        chat(100, 50, usage__cache_read__input_tokens=2000, usage__cache_creation__input_tokens=400,
             usage__reasoning__output_tokens=0),
        ("otel_gen_ai", "PROVED", 2500, 50, 2550, 100, 2000, 400, 0),
    ),
    # a write by its other name, as on counters
    (
        chat(2600, 50, usage__cache_read__input_tokens=2000, usage__cache_write__input_tokens=400),
        ("otel_gen_ai", "ASSUMED", 2600, 50, 2650, 200, 2000, 400, None),
    ),
    # nothing of the cache is shown
    (chat(97, 52), ("otel_gen_ai", "ASSUMED", 97, 52, 149, None, None, None, None)),
    # deprecated names
    (
        {"gen_ai.system": "openai", "gen_ai.usage.prompt_tokens": 9, "gen_ai.usage.completion_tokens": 12},
        ("otel_gen_ai", "ASSUMED", 9, 12, 21, None, None, None, None),
    ),
    # OpenLLMetry adds up the total itself, here to 110: it does not prove that 2,000 were part of 100
    (
        {"gen_ai.system": "Anthropic", "gen_ai.usage.input_tokens": 3000, "gen_ai.usage.output_tokens": 10,
         "gen_ai.usage.cache_read_input_tokens": 2000, "gen_ai.usage.cache_creation_input_tokens": 0,
         "llm.usage.total_tokens": 3010},
        ("otel_gen_ai", "ASSUMED", 3000, 10, 3010, 1000, 2000, 0, None),
    ),
    # Sentry
    (
        {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.input_tokens.cached": 8, "gen_ai.usage.output_tokens": 30,
         "gen_ai.usage.output_tokens.reasoning": 20, "gen_ai.usage.total_tokens": 40},
        ("otel_gen_ai", "ASSUMED", 10, 30, 40, 2, 8, 0, 20),
    ),
    # Strands passes on Converse, whose total is the sum of all four
    (
        {"gen_ai.system": "strands-agents", "gen_ai.usage.input_tokens": 400, "gen_ai.usage.output_tokens": 10,
         "gen_ai.usage.cache_read_input_tokens": 300, "gen_ai.usage.cache_write_input_tokens": 50,
         "gen_ai.usage.total_tokens": 760},
        ("strands", "PROVED", 750, 10, 760, 400, 300, 50, None),
    ),
    # OpenInference
    (
        {"openinference.span.kind": "LLM", "llm.token_count.prompt": 36, "llm.token_count.completion": 75,
         "llm.token_count.total": 111, "llm.token_count.prompt_details.cache_read": 35},
        ("openinference", "ASSUMED", 36, 75, 111, 1, 35, 0, None),
    ),
    # Vercel, version 4 and later ones
    (
        {"ai.operationId": "ai.generateText.doGenerate", "ai.model.provider": "openai.responses",
         "ai.usage.promptTokens": 14, "ai.usage.completionTokens": 20, "gen_ai.usage.input_tokens": 14,
         "gen_ai.usage.output_tokens": 20},
        ("vercel_ai", "ASSUMED", 14, 20, 34, None, None, None, None),
    ),
    (
        {"ai.operationId": "ai.streamText.doStream", "ai.usage.inputTokens": 100, "ai.usage.outputTokens": 20,
         "ai.usage.totalTokens": 120, "ai.usage.cachedInputTokens": 80, "ai.usage.reasoningTokens": 0,
         "ai.usage.inputTokenDetails.noCacheTokens": 15, "ai.usage.inputTokenDetails.cacheReadTokens": 80,
         "ai.usage.inputTokenDetails.cacheWriteTokens": 5},
        ("vercel_ai", "PROVED", 100, 20, 120, 15, 80, 5, 0),
    ),
    (
        {"ai.operationId": "ai.embed.doEmbed", "ai.usage.tokens": 10},
        ("span_embeddings", "PROVED", 10, 0, 10, 10, 0, 0, 0),
    ),
]  # fmt: skip


def test_each_family_is_read_by_its_own_conventions(read: Read) -> None:
    rows = read(*(span(at, told, traceId=f"{at:032x}") for at, (told, _) in enumerate(FAMILIES, 1)))
    assert rows.select("api", "verdict", *FIGURES).rows() == [expected for _, expected in FAMILIES]


def test_two_names_of_one_count_that_disagree_are_contradictory_and_both_are_kept(read: Read, lake: Lake) -> None:
    rows = read(span(1, chat(9, 1) | {"gen_ai.usage.prompt_tokens": 10}))
    assert rows.select("verdict", "flags").row(0) == ("CONTRADICTORY", ["fields_disagree"])
    report = lake.scan("usage_report").collect().row(0, named=True)
    assert dict(zip(report["leaf_shape"].split(" "), report["leaf_integers"], strict=True)) == {
        "gen_ai.usage.input_tokens": 9,
        "gen_ai.usage.output_tokens": 1,
        "gen_ai.usage.prompt_tokens": 10,
    }


def test_what_is_taken_of_a_span(lake: Lake, read: Read) -> None:
    told = chat(5, 6, response__id="chatcmpl-1", response__finish_reasons=["stop"], request__max_tokens=200,
                request__temperature=0.5, request__stream=True)  # fmt: skip
    read(span(1, told))
    row = lake.scan("attempt").collect().row(0, named=True)
    assert {name: row[name] for name in ("provider", "model_requested", "model_served", "stream", "max_tokens")} == {
        "provider": "openai",
        "model_requested": "gpt-4o",
        "model_served": "gpt-4o-2024-08-06",
        "stream": True,
        "max_tokens": 200,
    }
    assert (row["status"], row["finish_reason"], row["temperature"]) == ("succeeded", "stop", 0.5)
    assert row["arrived_at"] == datetime(2026, 1, 15, 10, 30, 1, tzinfo=UTC)
    assert row["total_us"] == 1_000_000
    ids = lake.scan("foreign_id").collect()
    assert dict(ids.select("kind", "value").rows()) == {
        "record_id": f"{TRACE}/{1:016x}",
        "span_id": f"{1:016x}",
        "trace_id": TRACE,
        "provider_response_id": "chatcmpl-1",
    }


PROVIDERS = {
    "aws.bedrock": "bedrock",
    "az.ai.openai": "azure",
    "gcp.vertex_ai": "vertex",
    "google.generative-ai": "google",
    "openai.responses": "openai",
    "amazon-bedrock": "bedrock",
    "Anthropic": "anthropic",
    "my-gateway": "my-gateway",
}


def test_providers_have_our_names_where_we_have_one(lake: Lake, read: Read) -> None:
    read(*(span(at, chat(1, 1) | {"gen_ai.provider.name": name}) for at, name in enumerate(PROVIDERS, 1)))
    found = lake.scan("attempt").collect().sort("segment_row")["provider"].to_list()
    assert found == list(PROVIDERS.values())


def test_an_agent_around_its_calls_is_not_added_to_them(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    agent = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.usage.input_tokens": 113,
        "gen_ai.usage.output_tokens": 11,
    }
    spans = [span(1, agent), span(2, chat(56, 5), 1), span(3, chat(57, 6), 1), span(4, {"http.method": "GET"}, 2)]
    (file,) = take([jsonl("s.jsonl", [export(*spans)])], lake).files
    assert (file.rows_in, file.rows_out, file.rows_duplicate) == (3, 2, 1)
    sums = lake.scan("reading").select(pl.col("input_total", "output_total").sum()).collect()
    assert sums.row(0) == (113, 11)


def test_an_outer_span_with_other_numbers_is_noted_on_the_calls_inside(lake: Lake, read: Read) -> None:
    read(span(1, chat(1568, 423) | {"gen_ai.operation.name": "invoke_agent"}), span(2, chat(663, 225), 1))
    assert lake.scan("usage_report").collect()["notes"].to_list() == [["outer_span_differs"]]


def test_two_libraries_that_watched_one_call_tell_one(read: Read, lake: Lake) -> None:
    """Siblings of one trace with one answer id and the same counts; the fuller one stays."""
    other = {"openinference.span.kind": "LLM", "llm.token_count.prompt": 9, "llm.token_count.completion": 1,
             "llm.token_count.total": 10, "llm.token_count.prompt_details.cache_read": 0,
             "gen_ai.response.id": "resp_1"}  # fmt: skip
    rows = read(span(1, chat(9, 1, response__id="resp_1")), span(2, other))
    assert rows.select("api", "total").rows() == [("openinference", 10)]
    assert lake.scan("segment").collect()["rows_duplicate"].to_list() == [1]


def test_two_calls_that_share_an_answer_id_are_two(read: Read) -> None:
    same, apart = chat(9, 1, response__id="resp_1"), chat(30, 2, response__id="resp_1")
    rows = read(span(1, same), span(2, apart), span(3, same, traceId="a" * 32))
    assert sorted(rows["total"].to_list()) == [10, 10, 32]


def test_a_span_that_is_exported_twice_is_one_and_its_last_counts_are_taken(
    lake: Lake, take: Take, jsonl: Jsonl
) -> None:
    lines = [export(span(1, chat(9, 1))), export(span(1, chat(9, 4))), export(span(1, {}))]
    (file,) = take([jsonl("s.jsonl", lines)], lake).files
    assert (file.rows_in, file.rows_out, file.rows_duplicate) == (2, 1, 1)
    assert lake.scan("reading").collect()["output_total"].to_list() == [4]


def test_vercels_outer_span_repeats_its_inner_one_even_in_another_trace(read: Read) -> None:
    usage = {"ai.usage.promptTokens": 14, "ai.usage.completionTokens": 20}
    outer = {"ai.operationId": "ai.generateText", **usage}
    rows = read(span(1, outer, traceId="b" * 32), span(2, {"ai.operationId": "ai.generateText.doGenerate", **usage}))
    assert rows["total"].to_list() == [34]
    alone = read(span(7, outer, traceId="c" * 32), name="alone.jsonl")
    assert alone["total"].to_list() == [34, 34]


def test_zeros_of_a_failed_call_are_unknown(lake: Lake, read: Read) -> None:
    failed = span(1, chat(0, 0) | {"error.type": "429"}, status={"code": 2})
    assert read(failed, span(2, chat(0, 0) | {"error.type": "timeout"}, status={"code": 2})).is_empty()
    rows = lake.scan("attempt").collect().sort("segment_row")
    assert rows.select("status", "http_status", "usage_expected").rows() == [
        ("rejected", 429, False),
        ("failed", None, False),
    ]


def test_a_failed_try_inside_a_call_that_counts_is_an_attempt_of_its_own(lake: Lake, read: Read) -> None:
    tried = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "error.type": "500"}
    rows = read(span(1, chat(9, 1)), span(2, tried, 1, status={"code": 2}))
    assert rows["total"].to_list() == [10]
    assert sorted(lake.scan("attempt").collect()["status"].to_list()) == ["failed", "succeeded"]


def test_a_call_without_usage_is_told_unless_a_span_around_or_inside_it_has_some(lake: Lake, read: Read) -> None:
    silent = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai"}
    read(span(1, silent), span(2, chat(9, 1)), span(3, silent, 2), span(4, silent), span(5, chat(8, 1), 4))
    rows = lake.scan("attempt").collect().sort("segment_row")
    assert rows.select("segment_row", "usage_expected").rows() == [(0, True), (1, True), (4, True)]
    assert lake.rows("usage_report") == 2


def test_an_attribute_names_tenant_and_task_where_the_settings_say_so(
    lake: Lake, take: Take, jsonl: Jsonl, tmp_path: Path
) -> None:
    settings = tmp_path / "spans.toml"
    settings.write_text('[columns]\ntenant = "service.namespace"\ntask = "gen_ai.agent.name"\n')
    line = export(span(1, chat(1, 1, agent__name="triage")), service_namespace="Acme Corp")
    take([jsonl("s.jsonl", [line])], lake, importer="otel_spans", mapping=settings)
    row = lake.scan("attempt").collect().row(0, named=True)
    assert row["task"] == "triage"
    assert row["tenant"].startswith("t_")
    assert row["tenant_key_id"] is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[columns\n", "is no TOML file"),
        ('[leaves]\na = "b"\n', r"has leaves; for spans \[columns\] with tenant and task"),
        ('[columns]\nteam = "b"\n', "has team; for spans"),
        ("[columns]\ntenant = 3\n", "has a value that is no text"),
    ],
)
def test_settings_that_say_something_else_are_refused(
    lake: Lake, take: Take, jsonl: Jsonl, tmp_path: Path, text: str, said: str
) -> None:
    settings = tmp_path / "spans.toml"
    settings.write_text(text)
    with pytest.raises(ConfigError, match=said):
        take([jsonl("s.jsonl", [export(span(1, chat(1, 1)))])], lake, importer="otel_spans", mapping=settings)
    assert lake.rows("segment") == 0


PYTHON = {
    "name": "chat gpt-4o",
    "context": {"trace_id": "0x" + TRACE, "span_id": "0x" + "1" * 16, "trace_state": "[]"},
    "kind": "SpanKind.CLIENT",
    "parent_id": None,
    "start_time": "2026-01-15T10:30:00.000001Z",
    "end_time": "2026-01-15T10:30:02.000001Z",
    "status": {"status_code": "UNSET"},
    "attributes": {"gen_ai.usage.input_tokens": 5, "gen_ai.usage.output_tokens": 6},
}
SCRIPT = {
    "name": "ai.generateText.doGenerate",
    "spanContext": {"traceId": TRACE, "spanId": "2" * 16},
    "startTime": [1768473000, 1000],
    "endTime": [1768473002, 1000],
    "status": {"code": 0},
    "attributes": {"ai.usage.promptTokens": 5, "ai.usage.completionTokens": 6, "gen_ai.system": "openai.chat"},
}
BARE = {"llm.token_count.prompt": 5, "llm.token_count.completion": 6, "llm.model_name": "m"}


def test_spans_as_an_sdk_prints_them_and_bare_attributes_are_read_as_well(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    (file,) = take([jsonl("s.jsonl", [PYTHON, SCRIPT, BARE, BARE, {"body": BARE}])], lake).files
    assert (file.importer, file.rows_in, file.rows_out) == ("otel_spans", 5, 5)
    rows = lake.scan("attempt").collect().sort("segment_row")
    assert rows["total_us"].to_list() == [2_000_000, 2_000_000, None, None, None]
    assert rows["undated"].to_list() == [False, False, True, True, True]
    assert lake.scan("reading").collect()["total"].to_list() == [11] * 5


def test_a_document_a_list_and_lines_are_the_same_spans(lake: Lake, take: Take, tmp_path: Path) -> None:
    spans = [span(1, chat(1, 1)), span(2, chat(2, 2))]
    (tmp_path / "one.json").write_text(json.dumps(export(*spans)))
    (tmp_path / "two.json").write_text(json.dumps([export(spans[0]), export(spans[1])], indent=1))
    (tmp_path / "three.jsonl").write_text("\n".join(json.dumps(export(one)) for one in spans))
    files = take([tmp_path / name for name in ("one.json", "two.json", "three.jsonl")], lake).files
    assert [(file.rows_out, file.rows_duplicate) for file in files] == [(2, 0), (0, 2), (0, 2)]


def test_what_cannot_be_read_goes_to_quarantine_and_the_rest_is_stored(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    wrong = [
        span(1, chat(1, 1) | {"gen_ai.usage.output_tokens": 2**63}),
        span(2, chat(1, 1) | {"gen_ai.usage.output_tokens": 1.5}),
        span(3, chat(1, 1) | {"gen_ai.usage.output_tokens": "many"}),
        span(4, {}, attributes=[attribute("a", 1), {"value": {}}]),
        span(5, {}, attributes={"gen_ai.usage.input_tokens": 1}),
    ]
    lines = [export(*wrong, span(6, chat(1, 1))), {"nothing": 1}, b"{torn", {"resourceMetrics": []}, export()]
    (file,) = take([jsonl("s.jsonl", lines)], lake).files
    assert (file.rows_in, file.rows_out, file.rows_quarantined) == (8, 1, 7)
    held = lake.scan("quarantine").collect().sort("line")
    assert held.select("reason", "path").rows() == [
        ("range", "gen_ai.usage.output_tokens"),
        ("fraction", "gen_ai.usage.output_tokens"),
        ("type", "gen_ai.usage.output_tokens"),
        ("type", ""),
        ("type", ""),
        ("missing_field", ""),
        ("not_json", ""),
    ]


def test_a_file_that_holds_no_object_says_what_to_do(lake: Lake, take: Take, jsonl: Jsonl) -> None:
    with pytest.raises(ContractError, match=r"no export of spans, or damaged\. Export it again as OTLP JSON"):
        take([jsonl("s.jsonl", [[1], "x"])], lake, importer="otel_spans")


@pytest.mark.real
def test_the_recorded_spans_tell_each_generation_once(shared_real: Path, lake: Lake, take: Take) -> None:
    """14 lines: 8 calls, 6 spans that repeat one, a tool's span, and a list of results that is none."""
    (file,) = take([shared_real / "spans" / "openinference_spans.jsonl"], lake).files
    assert (file.importer, file.rows_in) == ("otel_spans", 15)
    assert (file.rows_out, file.rows_duplicate, file.rows_quarantined) == (8, 6, 1)
    rows = lake.scan("reading").collect().sort("total", "api")
    assert rows.select("api", "input_total", "output_total", "total").rows() == [
        ("span_embeddings", 10, 0, 10),
        ("vercel_ai", 14, 20, 34),
        ("vercel_ai", 50, 9, 59),
        ("vercel_ai", 15, 112, 127),
        ("openinference", 97, 52, 149),
        ("openinference", 97, 52, 149),
        ("otel_gen_ai", 97, 52, 149),
        ("vercel_ai", 63, 156, 219),
    ]
