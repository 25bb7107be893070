"""Every recorded answer in a shape that is not OpenAI's, held against a second reader; and what is no usage at all."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.pipeline.ingest.second_reader.compare import compared, readings
from tests.pipeline.ingest.second_reader.meaning import BOTH, meanings
from tests.pipeline.ingest.second_reader.reader import (
    ANTHROPIC,
    BEDROCK,
    COHERE,
    GOOGLE,
    NO_USAGE,
    OLLAMA,
    OPENAI,
    VOYAGE,
    Record,
    Shape,
    answers,
    shape_of,
)

from weighbridge.schemas.enumerations import Verdict

pytestmark = pytest.mark.real
PROVED, ASSUMED, UNKNOWN = Verdict.PROVED, Verdict.ASSUMED, Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("shape", "least"),
    [
        (ANTHROPIC, {PROVED: 412, ASSUMED: 20}),
        (GOOGLE, {PROVED: 540}),
        (BEDROCK, {PROVED: 350, ASSUMED: 2}),
        (COHERE, {PROVED: 65}),
        (VOYAGE, {PROVED: 10}),
        (OLLAMA, {PROVED: 3, ASSUMED: 8}),
    ],
    ids=["anthropic", "google", "bedrock", "cohere", "voyage", "ollama"],
)
def test_every_call_is_read_as_the_second_reader_reads_it(
    shared_real: Path, shape: Shape, least: dict[Verdict, int]
) -> None:
    seen = compared(answers(shared_real), lambda one: _has(one, shape))
    verdicts: Counter[Verdict] = Counter()
    for (_, verdict), count in seen.items():
        verdicts[verdict] += count
    assert set(verdicts) <= {*least, UNKNOWN}
    assert all(verdicts[verdict] >= count for verdict, count in least.items())


def _has(record: Record, shape: Shape) -> bool:
    return record["api_flavor"] not in NO_USAGE and shape_of(record) is shape


def test_no_answer_is_left_out(shared_real: Path) -> None:
    shapes = Counter(None if one["api_flavor"] in NO_USAGE else _name(shape_of(one)) for one in answers(shared_real))
    assert sum(shapes.values()) == 3028
    assert shapes[None] == 20
    assert set(shapes) == {None, "openai", "anthropic", "google", "bedrock", "cohere", "voyage", "ollama"}


def _name(shape: Shape) -> str:
    named = {OPENAI: "openai", ANTHROPIC: "anthropic", GOOGLE: "google", BEDROCK: "bedrock", COHERE: "cohere"}
    return {**named, VOYAGE: "voyage", OLLAMA: "ollama"}[shape]


def test_what_is_no_usage_has_no_count(shared_real: Path) -> None:
    counted = 0
    for record in answers(shared_real):
        if record["api_flavor"] not in NO_USAGE:
            continue
        (reading,) = readings(record)
        assert reading.verdict is UNKNOWN, record["id"]
        assert {*reading.counts.values(), reading.total, reading.reported_total} == {None}, record["id"]
        body = record["response"]
        told = body.get("input_tokens", body.get("inputTokens", body.get("totalTokens")))
        assert (reading.estimated or {}).get("input_total") == told, record["id"]
        counted += "count_only" in reading.flags
    assert counted >= 15


def test_were_every_total_of_converse_held_able_to_count_twice_one_answer_would_be_less_sure(shared_real: Path) -> None:
    unsure = set()
    for record in answers(shared_real):
        if record["api_flavor"] == "bedrock_converse":
            (usage,) = BEDROCK.calls(record)
            told = None if usage is None else BEDROCK.told(record, usage)
            if told is not None and len(meanings(told._replace(twice=BOTH))[1]) > 1:
                unsure.add(record["model"])
    assert unsure == {"us.amazon.nova-pro-v1:0"}


# Facts of single answers that are easy to get wrong, by record id.
SPECIAL: dict[str, tuple[dict[str, int | None], set[str]]] = {
    "r_d867ebb1b3d25fc9": ({"cache_write_5m": 3068, "cache_write_unknown": 269}, {"ttl_split_stale"}),
    "r_a785cd71079b96b2": ({"input_uncached": 22397}, set()),
    "r_29aaa78c0051fe67": ({"input_uncached": 220}, {"child_calls"}),
    "r_0f33b634f1df5db1": ({"output_visible": 1283, "reasoning": 174}, {"modality_details_incomplete"}),
    "r_03e4f732c59e2c42": ({"input_uncached": 25}, {"modality_details_incomplete"}),
    "r_42e13f2d9a0888f1": ({"reasoning": 0, "cache_read": None}, {"cache_detail_missing"}),
    "r_26df3448be396cd2": ({"output_visible": None}, {"service_count_differs"}),
    "r_c54529e3b06a0b59": ({"input_uncached": 33, "cache_read": 0}, set()),
}


@pytest.mark.parametrize("record_id", SPECIAL)
def test_answers_known_to_be_odd(shared_real: Path, record_id: str) -> None:
    counts, flags = SPECIAL[record_id]
    record = next(one for one in answers(shared_real) if one["id"] == record_id)
    (reading,) = readings(record)
    assert {name: reading.counts[name] for name in counts} == counts
    assert flags <= set(reading.flags)


# What calls beside the top level are made of, by record id: (model, input, output) each.
BESIDE = {
    "r_29aaa78c0051fe67": [(55196, 125)],
    "r_d93c11fee4373e38": [(2728, 3880)],
}


@pytest.mark.parametrize("record_id", BESIDE)
def test_calls_beside_the_top_level_are_children(shared_real: Path, record_id: str) -> None:
    record = next(one for one in answers(shared_real) if one["id"] == record_id)
    (reading,) = readings(record)
    assert [(child.input_total, child.output_total) for child in reading.children] == BESIDE[record_id]
