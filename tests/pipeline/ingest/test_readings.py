"""Reading many reports at once gives, row by row, what reading one gives; and a refresh replaces exactly its days."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sampling import examples, some

from weighbridge.pipeline.ingest.dialect import Dialect
from weighbridge.pipeline.ingest.dialects import all_dialects, dialect_for
from weighbridge.pipeline.ingest.fact import Axis, Fact, all_facts
from weighbridge.pipeline.ingest.reading import Part, UsageReading, calls_of, parts_of, read_parts
from weighbridge.pipeline.ingest.readings import read_reports, refresh_readings
from weighbridge.pipeline.ingest.speakers import Lookup, lookup
from weighbridge.pipeline.lake import Lake, shaped
from weighbridge.schemas.enumerations import Ended, ReportPart
from weighbridge.schemas.leaves import Flattened, Leaf

DAY = date(2026, 3, 1)
LATER = (timedelta(days=0), timedelta(days=1))


def rows_of(
    attempt: int, provider: str | None, api: str | None, parts: Sequence[Part], **more: Any
) -> list[dict[str, Any]]:
    """The rows of `usage_report` for the parts of one answer."""
    return [
        {
            "attempt_hi": attempt // 7,
            "attempt_lo": attempt,
            "day": DAY,
            "source": "test",
            "child": 0,
            "report": 0,
            "part": number,
            "part_kind": str(part.part_kind),
            "provider": provider,
            "api": api,
            "model": "m",
            "ended": str(part.ended),
            "leaf_shape": part.flattened.shape,
            "leaf_integers": part.flattened.integers(),
            "leaf_texts": part.flattened.texts(),
            "notes": list(part.notes) or None,
            "segment": None,
            "segment_row": attempt,
            "revision": 0,
            **more,
        }
        for number, part in enumerate(parts)
    ]


def reports(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    lists = {"leaf_integers": pl.List(pl.Int64), "leaf_texts": pl.List(pl.String), "notes": pl.List(pl.String)}
    texts = dict.fromkeys(("provider", "api", "model", "segment"), pl.String())
    return shaped("usage_report", pl.DataFrame(rows, schema_overrides={**lists, **texts}, infer_schema_length=None))


def expected(attempt: int, reading: UsageReading, child: int = 0) -> dict[str, Any]:
    return {
        "attempt_lo": attempt,
        "child": child,
        "model": reading.model,
        "dialect": reading.dialect,
        "verdict": str(reading.verdict),
        "reason": reading.reason,
        "rule": reading.rule,
        **reading.counts,
        **reading.cells,
        "input_total": reading.input_total,
        "output_total": reading.output_total,
        "total": reading.total,
        "reported_total": reading.reported_total,
        "ended": str(reading.ended),
        "flags": list(reading.flags),
    }


def assert_same(
    answers: Sequence[tuple[str | None, str | None, Sequence[Part]]],
    models: Sequence[str | None] = ("m",),
    dialects: Lookup = dialect_for,
) -> None:
    """Read the answers one by one and all at once; the models are dealt out in turn, and the days with them."""
    dealt = [(models[n % len(models)], DAY + timedelta(days=n // len(models) % 2)) for n in range(len(answers))]
    rows = [
        row
        for number, (answer, (model, day)) in enumerate(zip(answers, dealt, strict=True))
        for row in rows_of(number, *answer, model=model, day=day)
    ]
    wanted = []
    for n, ((provider, api, parts), (model, day)) in enumerate(zip(answers, dealt, strict=True)):
        whole = read_parts(provider, api, model, parts, day=day, dialects=dialects)
        wanted += [expected(n, one, child) for child, one in enumerate((whole, *whole.children))]
    got = read_reports(reports(rows), dialects)
    assert got.select(list(wanted[0])).to_dicts() == wanted


SPEAKERS: list[tuple[str | None, str | None]] = [
    *(("anyone" if p == "any" else p, name) for name, d in all_dialects().items() for p in d.providers),
    *sorted({(fact.provider, fact.api) for fact in all_facts()}),
    ("nobody", "openai_chat"),
    (None, "openai_embeddings"),
    ("openai", "telepathy"),
    (None, None),
]
MODELS = [None, "gpt-5-mini-2025-08-07", "gpt-5.2", "sonar-deep-research", "openai.example-model-v1:0", "m"]
COUNTS = st.one_of(st.integers(0, 9), st.integers(-1, 40), st.sampled_from([2**53, 2**53 + 1, 2**62, -(2**62)]))


def paths_of(dialect: Dialect | None) -> list[str]:
    if dialect is None:
        return ["usage.prompt_tokens", "usage.completion_tokens"]
    paths = [f"{c}.{path.replace('[*]', '[message]')}" for c in dialect.containers for path in dialect.roles]
    if dialect.iterations:
        fields = [path for path in dialect.roles if "[" not in path]
        kinds = ("message", "fallback_message", "advisor_message", "compaction")
        paths += [
            f"{dialect.containers[0]}.{dialect.iterations.path}[{kind}].{path}" for kind in kinds for path in fields
        ]
    repeated = [path.replace("]", "#2]") for path in paths if "[" in path]
    return [*paths, *repeated, f"{dialect.containers[0]}.h_0123abcd", "elsewhere.tokens"]


@st.composite
def answers(draw: st.DrawFn) -> tuple[str | None, str | None, list[Part]]:
    provider, api = draw(st.sampled_from(SPEAKERS))
    paths = paths_of(all_dialects().get(api or ""))
    ended = draw(st.sampled_from(list(Ended)))
    parts = []
    for _ in range(draw(st.integers(1, 4))):
        chosen = draw(st.dictionaries(st.sampled_from(paths), st.none() | COUNTS, max_size=8))
        leaves = [Leaf(path, count, "auto" if count is None else None) for path, count in sorted(chosen.items())]
        notes = draw(st.sets(st.sampled_from(["integral_float", "error_event", "strings_dropped"])))
        kind = draw(st.sampled_from(list(ReportPart)))
        parts.append(Part(kind, Flattened(leaves), ended, tuple(sorted(notes))))
    return provider, api, parts


@settings(max_examples=examples(10, 40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(answers(), min_size=1, max_size=10))
def test_many_at_once_are_read_as_one_by_one(drawn: list[tuple[str | None, str | None, list[Part]]]) -> None:
    assert_same(drawn, MODELS)


def test_rows_of_one_speaker_are_read_by_the_facts_of_their_model_and_day() -> None:
    """Outside until the second day and for one model, inside else; a body and a stream of two parts of each."""
    shape = all_dialects()["anthropic_messages"]
    outside = ((Axis.OUTPUT_INCLUDES_REASONING, False),)
    page = "https://example.com/usage"
    facts = (
        Fact("anthropic", shape.name, page, until=DAY, declared=outside),
        Fact("anthropic", shape.name, page, model="think-*", declared=outside),
    )
    find = lookup([replace(shape, facts=facts)])
    told = {"output_tokens_details": {"thinking_tokens": 3}}
    body = parts_of(shape.name, usage={"input_tokens": 25, "output_tokens": 7, **told})
    answers = [("anthropic", shape.name, parts) for parts in (body, stream(**told)) for _ in range(6)]
    assert_same(answers, ("plain", "think-1", None), find)
    rows = [
        row for n, answer in enumerate(answers) for row in rows_of(n, *answer, model="plain", day=DAY + LATER[n % 2])
    ]
    assert read_reports(reports(rows), find)["output_total"].to_list() == [10, 7] * 6


@pytest.mark.real
def test_every_recorded_answer_is_read_alike_in_columns(shared_real: Path) -> None:
    lines = some((shared_real / "api_responses_small.jsonl").read_text(encoding="utf-8").splitlines(), 100)
    drawn: list[tuple[str | None, str | None, Sequence[Part]]] = []
    for record in map(json.loads, lines):
        api, response = record["api_flavor"], record["response"]
        calls: list[dict[str, Any]] = (
            [{"events": call} for call in calls_of(api, response)]
            if isinstance(response, list)
            else [{"response": response}]
        )
        drawn += [(record["provider"], api, parts_of(api, **call)) for call in calls]
    assert len(lines) >= 100
    assert len({api for _, api, _ in drawn}) >= 10
    assert sum(any(part.flattened.leaves for part in parts) for _, _, parts in drawn) >= 90
    assert_same(drawn)


def stream(opened: dict[str, Any] | None = None, **revised: Any) -> list[Part]:
    usage = {"input_tokens": 25, "output_tokens": 1, **(opened or {})}
    opening = {"type": "message_start", "message": {"usage": usage}}
    closing = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7, **revised}}
    return parts_of("anthropic_messages", events=[opening, closing])


def body(prompt: int) -> list[Part]:
    return parts_of("openai_chat", usage={"prompt_tokens": prompt, "completion_tokens": 5, "total_tokens": prompt + 5})


def test_what_a_service_counted_is_no_count_of_a_call_inside_an_answer() -> None:
    """Alone it makes no call, one by one as in columns; beside a count of the call's own it changes nothing."""
    iteration = "usage.iterations[compaction]."
    service = Leaf(f"{iteration}amazon-bedrock-invocationMetrics.inputTokenCount", 5, None)
    for leaves, calls in (([service], 0), ([service, Leaf(f"{iteration}input_tokens", 3, None)], 1)):
        parts = [Part(ReportPart.WHOLE, Flattened(leaves), Ended.COMPLETE, ())]
        whole = read_parts("bedrock", "bedrock_invoke_model", "m", parts, day=DAY)
        assert [child.input_total for child in whole.children] == [3] * calls
        assert_same([("bedrock", "bedrock_invoke_model", parts)])


def test_stale_lifetime_splits_are_found_in_columns_too() -> None:
    split = {"cache_creation": {"ephemeral_5m_input_tokens": 30, "ephemeral_1h_input_tokens": 0}}
    opened = {"cache_creation_input_tokens": 30, **split}
    beaten = {"cache_creation_input_tokens": 0, **split}
    streams = [
        stream(opened),
        stream(opened, cache_creation_input_tokens=30),
        stream(opened, cache_creation_input_tokens=40),
        stream(opened, cache_creation_input_tokens=10),
        stream(opened, cache_creation_input_tokens=10, cache_creation={"ephemeral_1h_input_tokens": 10}),
        stream(beaten, cache_creation_input_tokens=0),
    ]
    assert_same([("anthropic", "anthropic_messages", parts) for parts in streams])
    rows = [row for n, parts in enumerate(streams) for row in rows_of(n, "anthropic", "anthropic_messages", parts)]
    read = read_reports(reports(rows))
    assert read["input_total"].to_list() == [55, 55, 65, 35, 35, 55]
    assert read["cache_write_unknown"].to_list() == [0, 0, 10, 10, 0, 0]
    assert read["flags"].list.contains("ttl_split_stale").to_list() == [False, False, True, True, False, False]


def test_a_part_that_does_not_name_its_speaker_is_read_with_its_report() -> None:
    rows = rows_of(9, "anthropic", "anthropic_messages", stream())
    rows[1]["provider"] = rows[1]["api"] = None
    read = read_reports(reports(rows))
    assert read.select("provider", "api", "output_total").rows() == [("anthropic", "anthropic_messages", 7)]


def test_readings_stand_in_the_order_of_their_first_parts_and_carry_the_keys() -> None:
    rows = [
        *rows_of(9, "anthropic", "anthropic_messages", stream()),
        *rows_of(3, "openai", "openai_chat", body(50), child=2, report=1, revision=4),
    ]
    rows[0]["model"], rows[1]["model"] = None, "claude"
    read = read_reports(reports(rows))
    assert read["attempt_lo"].to_list() == [9, 3]
    assert read["input_total"].to_list() == [25, 50]
    assert read["output_total"].to_list() == [7, 5]
    assert read["model"].to_list() == ["claude", "m"]
    assert read.select("child", "report", "revision", "segment_row").rows() == [(0, 0, 0, 9), (2, 1, 4, 3)]
    assert read.schema == shaped("reading", read).schema


def test_parts_that_do_not_stand_together_are_one_report() -> None:
    first, second = rows_of(9, "anthropic", "anthropic_messages", stream())
    other = rows_of(3, "openai", "openai_chat", body(50))
    read = read_reports(reports([second, *other, first]))
    assert read.sort("attempt_lo")["output_total"].to_list() == [5, 7]


def test_no_reports_no_readings() -> None:
    read = read_reports(reports(rows_of(1, "openai", "openai_chat", body(1))).clear())
    assert read.height == 0
    assert "input_uncached" in read.columns


def test_a_refresh_reads_the_last_revision_of_each_part(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake")
    rows = [*rows_of(1, "anthropic", "anthropic_messages", stream()), *rows_of(2, "openai", "openai_chat", body(50))]
    lake.append("usage_report", reports(rows))
    assert refresh_readings(lake, [DAY]) == 2
    # The opening did not change, so it is not stored again; only the second part has a revision 1.
    revised = rows_of(1, "anthropic", "anthropic_messages", stream(output_tokens=8), revision=1)[1:]
    lake.append("usage_report", reports(revised))
    assert refresh_readings(lake, [DAY]) == 2
    read = lake.scan("reading").collect().sort("attempt_lo")
    assert read.select("input_total", "output_total", "revision").rows() == [(25, 8, 1), (50, 5, 0)]


def test_a_refresh_touches_its_days_only_and_changes_nothing_when_repeated(tmp_path: Path) -> None:
    lake = Lake.create(tmp_path / "lake")
    other = date(2026, 3, 2)
    lake.append("usage_report", reports(rows_of(1, "openai", "openai_chat", body(50))))
    lake.append("usage_report", reports(rows_of(2, "openai", "openai_chat", body(60), day=other)))
    assert refresh_readings(lake, [DAY, other]) == 2
    digest, version = lake.digest("reading"), lake.version("reading")
    assert refresh_readings(lake, [DAY]) == 1
    assert (lake.digest("reading"), lake.version("reading")) == (digest, version)
    assert lake.scan("reading").collect().sort("day")["input_total"].to_list() == [50, 60]
    assert refresh_readings(lake, [date(2026, 3, 9)]) == 0
    assert refresh_readings(lake, []) == 0
    assert lake.digest("reading") == digest
