"""Many records read at once are read as each of them is read alone, whatever a line holds."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from tests.sampling import examples, some

from weighbridge.pipeline import read_usage_batch, read_usage_file
from weighbridge.pipeline.ingest.json_lines import parse
from weighbridge.pipeline.ingest.many import blocks, forms, template
from weighbridge.pipeline.ingest.many.columns import Told, one_by_one
from weighbridge.pipeline.ingest.many.small import packed
from weighbridge.pipeline.ingest.reading import calls_of
from weighbridge.schemas.enumerations import Verdict

CHAT = (
    '{"provider": "openai", "api": "chat", "model": "gpt-5-mini-2025-08-07", "usage": {"prompt_tokens": %s, '
    '"completion_tokens": %s, "total_tokens": 30, "prompt_tokens_details": {"cached_tokens": %s}}}'
)
# Lines that differ from each other in their digits, and in more where a number is odd.
SHAPES = [
    CHAT,
    CHAT.replace(" ", ""),
    (
        '{"id": "req_%s", "provider": "anthropic", "api": "messages", "model": "claude-3-5-haiku", "usage": '
        '{"input_tokens": %s, "cache_creation": {"ephemeral_5m_input_tokens": %s, "ephemeral_1h_input_tokens": 0}, '
        '"output_tokens": 7, "service_tier": "standard"}}'
    ),
    (
        '{"provider": "google", "api": "generateContent", "usage": {"promptTokenCount": %s, "totalTokenCount": %s, '
        '"promptTokensDetails": [{"modality": "TEXT", "tokenCount": %s}]}}'
    ),
    (
        '{"provider": "vertex", "api": "generateContent", "usage": {"promptTokenCount": %s, "totalTokenCount": 9, '
        '"promptTokensDetails": [{"modality": %s, "tokenCount": %s}]}}'
    ),
    (
        '{"provider": "groq", "api": "chat", "model": "m", "response": {"id": "c-%s", "choices": [{"text": "5: %s,"}], '
        '"usage": {"prompt_tokens": %s, "completion_tokens": 1, "queue_time": 0.5}}}'
    ),
    '{"provider": "openrouter", "api": "chat", "day": "2026-01-0%s", "usage": {"prompt_tokens": %s, "cost": %s}}',
    '{"provider": "openai", "api": "chat", "response": {"error": %s, "usage": {"prompt_tokens": %s, "b": %s}}}',
    (
        '{"provider": "anthropic", "api": "messages", "usage": {"input_tokens": %s, "output_tokens": 8, '
        '"iterations": [{"type": "compaction", "model": "b-2", "input_tokens": %s, "output_tokens": 125}, '
        '{"type": "message", "input_tokens": %s, "output_tokens": 8}]}}'
    ),
    (
        '{"provider": "anthropic", "api": "messages", "events": [{"type": "message_start", "message": {"usage": '
        '{"input_tokens": %s, "output_tokens": %s}}}, {"type": "message_delta", "usage": {"output_tokens": %s}}]}'
    ),
    '{"provider": "google", "api": "countTokens", "response": {"totalTokens": %s, "a": %s, "b": %s}}',
    '{"provider": "openai", "api": "telepathy", "usage": {"prompt_tokens": %s, "a": %s, "b": %s}}',
    '{"provider": "xai", "api": "responses", "at": "2026-01-01T10:00:0%sZ", "usage": {"input_tokens": %s}, "n": %s}',
    (
        '{"provider": "bedrock", "api": "invoke_model", "headers": {"x-amzn-bedrock-input-token-count": "%s"}, '
        '"response": {"usage": {"input_tokens": %s, "output_tokens": %s}}}'
    ),
    (
        '{"provider": "openai", "api": "chat", "context": {"ended": "cut", "local_counts": {"prompt_tokens": %s}}, '
        '"usage": {"completion_tokens": %s, "total_tokens": %s}}'
    ),
    '{"usage": {"prompt_tokens": %s}, "usage": {"prompt_tokens": %s, "total_tokens": %s}}',
    "[%s, %s, %s]",
    "%s%s%s",
]
PLAIN = st.integers(0, 40).map(str)
LONG = ["9007199254740993", "999999999999999999", "1000000000000000000", "9223372036854775807", "9223372036854775808"]
TEXTS = ['"5"', '"x"', "[1]", "{}", '{"a": 1, "a": 2}', "", " ", '"', "\\", "[" * 250, '{"usage":' * 9, "é", '"é"']
WORDS = "-1 -0 00 01 007 1.0 1.5 2e1 2E+01 1e-9 5e400 NaN -Infinity null true".split()
ODD = st.sampled_from([*WORDS, *LONG, f"0.{'0' * 31}1", "9" * 40, *TEXTS, "\t3 ", "3\r", '"\\u0035"', '"\\u003a"'])
NUMBERS = st.one_of(PLAIN, PLAIN, PLAIN, ODD)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """The lines of a file: several of each of some shapes, with numbers of their own, mixed."""
    shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=4))
    lines = [
        shape % tuple(draw(NUMBERS) for _ in range(shape.count("%s")))
        for shape in draw(st.lists(st.sampled_from(shapes), min_size=1, max_size=24))
    ]
    end = draw(st.sampled_from(["\n", "\n", "\r\n", "\n\n"]))
    return end.join(lines) + draw(st.sampled_from(["", "\n"]))


def strictly(content: bytes) -> Iterator[Told]:
    for number, line in enumerate(content.split(b"\n")):
        if line.strip():
            record, reason = parse(line)
            yield number, reason or record or {}


def expected(content: bytes) -> pl.DataFrame:
    return one_by_one(strictly(content))


@settings(max_examples=examples(40, 120), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts(), st.sampled_from([40, 2**24]))
def test_a_file_is_read_as_its_lines_are(tmp_path: Path, text: str, block: int) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_BLOCK", block)
        found = pl.concat(read_usage_file(path))
    assert_frame_equal(found, expected(text.encode()))


@settings(max_examples=examples(20, 60), deadline=None)
@given(texts())
def test_records_are_read_as_each_of_them_is(text: str) -> None:
    records = [record for line in text.encode().split(b"\n") if (record := parse(line)[0]) is not None]
    assert_frame_equal(read_usage_batch(records), one_by_one(enumerate(records)))


NUMBERS_BEYOND = {
    "of more digits than a fraction may have": "0." + "1" * 31,
    "of more digits than a float keeps": "123456789012345678901.5",
    "of a large exponent": "1.5e300",
    "of a large exponent after a tab": "\t1.5E+300",
    "of a small exponent": "1.5e-300",
    "beyond 64 bits": "18446744073709551616",
    "without an end": "1e400",
}


@pytest.mark.parametrize("number", NUMBERS_BEYOND.values(), ids=list(NUMBERS_BEYOND))
def test_numbers_that_parsing_would_change_are_read_digit_by_digit(number: str, tmp_path: Path) -> None:
    """Each line is of another form, so that all are made smaller first."""
    lines = [
        f'{{"{name}": "é", "provider": "openrouter", "api": "chat", "response": {{"{name * 2}": 1, "usage": '
        f'{{"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12, "cost": {number}}}}}}}'
        for name in "abcdefghij"
    ]
    path = tmp_path / "records.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert_frame_equal(pl.concat(read_usage_file(path)), expected("\n".join(lines).encode()))


class Kind(Enum):
    SEVEN = 7


@pytest.mark.parametrize(
    "value",
    [Kind.SEVEN, UUID(int=7), (7,), datetime(2026, 1, 1, tzinfo=UTC), date(2026, 1, 1), Decimal(7), float("nan"), b"7"],
    ids=lambda value: type(value).__name__,
)
def test_values_that_are_none_of_json_are_no_words_of_a_batch(value: object) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
    records: list[dict[str, object]] = [
        {"provider": "openai", "api": "chat", "usage": {**usage, "service_tier": value, "prompt_tokens": value}},
        {"provider": "openai", "api": "chat", "response": {"usage": [usage, value], "status": value}},
        {"provider": value, "api": "chat", "usage": usage},
        {"provider": "openai", "api": "chat", "day": value, "usage": usage},
    ]
    assert all(packed(record) is None for record in records[:3])
    assert_frame_equal(read_usage_batch(records), one_by_one(enumerate(records)))


def test_a_number_that_looks_like_a_mark_is_not_taken_for_another() -> None:
    """After a tab and before a return a number is left as it is; 2,000,000,000,000,000,000 is the first mark."""
    line = '{"provider": "openai", "api": "chat", "usage": {"prompt_tokens": %s, "completion_tokens":\t%s\t}}'
    lines = [(line % (count, 2 * 10**18)).encode() for count in range(11, 20)]
    made, rest, _ = forms.Forms().sorted_out([b"".join(one + b"\n" for one in lines)])
    assert (made, rest.tolist()) == ([], list(range(9)))
    assert template.template_of((line % (11, 5)).encode()) is not None


def test_nothing_is_remembered_of_forms_that_few_lines_have() -> None:
    names = [first + second for first in "abcdefgh" for second in "klmnopqr"]
    known = forms.Forms()
    for name in names:
        known.sorted_out([f'{{"{name}": 1, "id": "a1"}}\n'.encode() * 2])
    assert (known.texts, known.known) == ({}, {})


def counted(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The lines of which a template is made from now on."""
    asked: list[bytes] = []

    def noted(line: bytes) -> template.Template | None:
        asked.append(line)
        return template.template_of(line)

    monkeypatch.setattr(forms, "template_of", noted)
    return asked


def test_lines_of_one_form_are_taken_apart_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = counted(monkeypatch)
    records = [json.loads(CHAT % (count, 30 - count, count // 2)) for count in range(11, 30)]
    found = read_usage_batch(records)
    assert len(asked) == 1
    assert found["verdict"].unique().to_list() == [Verdict.PROVED]
    assert found["cache_read"].to_list() == [count // 2 for count in range(11, 30)]
    assert found["input_total"].to_list() == list(range(11, 30))


def test_names_that_differ_from_line_to_line_do_not_keep_lines_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = counted(monkeypatch)
    names = [first + second for first in "abcdefgh" for second in "klmnopqr"]
    lines = [f'{{"id": "{name}", {(CHAT % (9, 21, 0))[1:]}\n' for name in names] * 9
    made, rest, many = forms.Forms().sorted_out(["".join(lines).encode()])
    assert (len(asked), rest.size, sum(len(one.records) for one in made), many) == (1, 0, len(lines), len(lines))


def test_readings_come_in_the_order_of_the_lines_whoever_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl.gz"
    lines = [CHAT % (count % 31, 30 - count % 31, 0) if count % 3 else SHAPES[3] % (9, 9, 9) for count in range(1500)]
    content = "\n".join(lines).encode()
    path.write_bytes(gzip.compress(content))
    assert_frame_equal(pl.concat(read_usage_file(path, threads=2)), expected(content))


def records_of(line: str) -> Iterator[dict[str, Any]]:
    record = json.loads(line)
    about = {"provider": record["provider"], "api": record["api_flavor"], "model": record["model"]}
    about["headers"] = record["meta_headers"]
    if isinstance(record["response"], list):
        yield from ({**about, "events": events} for events in calls_of(record["api_flavor"], record["response"]))
    else:
        yield {**about, "response": record["response"]}


@pytest.mark.real
def test_recorded_answers_are_read_as_each_of_them_is(shared_real: Path, tmp_path: Path) -> None:
    with gzip.open(shared_real / "api_responses_all.jsonl.gz", "rt", encoding="utf-8") as file:
        records = [record for line in file for record in records_of(line)]
    assert len(records) > 3000
    asked = some(records, 600)
    wanted = one_by_one(enumerate(asked))
    assert_frame_equal(read_usage_batch(asked), wanted)
    path = tmp_path / "records.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in asked), encoding="utf-8")
    assert_frame_equal(pl.concat(read_usage_file(path)), wanted)


RECORDED: dict[str, object] = {
    "provider": "openai",
    "api_flavor": "openai_chat",
    "model": "gpt-4o",
    "response_model": "gpt-4o-2024-08-06",
    "response": {"usage": {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}, "id": "x"},
}


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"meta_headers": {"x-amzn-bedrock-input-token-count": "5"}},
        {"api": "openai_chat"},
        {"api": "anthropic_messages"},
        {"calls_in_record": 2},
        {"api_flavor": None},
        {"api_flavor": 7},
        {"response": "a text"},
        {"response": None, "usage": {"prompt_tokens": 2, "completion_tokens": 1, "total_tokens": 3}},
        {"response": [{"usage": {"prompt_tokens": 2, "completion_tokens": 1, "total_tokens": 3}}]},
        {"response_model": ""},
        {"provider": "local_server(8000)"},
    ],
    ids=str,
)
def test_words_of_recorded_answers_are_understood(odd: dict[str, object], tmp_path: Path) -> None:
    """Among others of their form, in a file and as records."""
    records = [
        {**RECORDED, **odd, "response_id": f"r-{number}"} if number % 2 else {**RECORDED, "id": f"r-{number}"}
        for number in range(6)
    ]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    wanted = one_by_one(enumerate(records))
    assert_frame_equal(read_usage_batch(records), wanted)
    assert_frame_equal(pl.concat(read_usage_file(path)), wanted)
