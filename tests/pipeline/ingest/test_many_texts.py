"""Whole answers are read many at once as each of them is read alone, whatever their texts hold."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from weighbridge.pipeline import read_usage_file
from weighbridge.pipeline.ingest.json_lines import MAX_LINE, parse
from weighbridge.pipeline.ingest.many import blocks, forms
from weighbridge.pipeline.ingest.many.columns import one_by_one
from weighbridge.pipeline.ingest.many.texts import bare_of_texts
from weighbridge.schemas.enumerations import QuarantineReason

USAGE = b'"usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}'
# `%b` is a text as it stands between its quotes, or what breaks out of them.
SHAPES = [
    b'{"provider": "openai", "api": "chat", "response": {"id": "%b", "choices": [{"text": "%b"}], ' + USAGE + b"}}",
    b'{"provider": "openai", "api": "chat", "response": {"status": "%b", "x": "%b", ' + USAGE + b"}}",
    b'{"provider":"openai","api":"chat","response":{"error":"%b","%b":"a",' + USAGE + b"}}",
    b'{"provider": "openai", "api": "chat", "response": {"%b": "a", "%b": "b", ' + USAGE + b"}}",
    b'{"provider": "openai", "api": "chat", "model": "%b", "day" : "%b", "at":null, ' + USAGE + b"}",
    b'{"provider": "bedrock", "api": "invoke_model", "headers": {"x-amzn-bedrock-input-token-count": "%b"}, "a": "%b"}',
    (
        b'{"provider": "google", "api": "generateContent", "usage": {"promptTokenCount": 7, "promptTokensDetails": '
        b'[{"modality": "%b", "tokenCount": 7}], "trafficType": "%b"}}'
    ),
    b'{"provider": "openai", "api": "chat", "response": ["%b", "%b", {' + USAGE + b"}]}",
    b'{"provider": "openrouter", "api": "chat", "usage": {"cost": "%b", "prompt_tokens": 5, "is_byok": "%b"}}',
    b'{"usage": {"prompt_tokens": "%b", "total_tokens": 3}, "api": "%b"}',
    b'"%b"%b',
]
ESCAPED = [rb"\"", rb"\\", rb"\\\"", rb"\n", rb"\u00e9", rb"\ud800", rb"\u006d", rb"\x", rb"\u12", b"\\", rb"a\\\\"]
BYTES = [b"\x00", b"\t", b"\r", b"\x7f", b"\xff", b"\xc3\xa9", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"\xc3"]
KEYS = [b"model", rb"m\u006fdel", rb"\u0065rror", b"error", b"status", b"usage", rb"us\u0061ge", b"type", b"id"]
BROKEN = [b'"', b'": "', b'", "', b'": 1, "', b'"}', b'", "error": "', b'"" "', b"{", b"[" * 210, b":", b",", b'\\" ']
WORDS = [
    b"",
    b"a",
    b"no 1",
    b"failed",
    b"error",
    b"TEXT",
    b"AUDIO",
    b"0.25",
    b"12",
    b"2026-01-02",
    b"gpt-5-mini",
    b"true",
]
PIECE = st.sampled_from([*WORDS, *WORDS, *WORDS, *KEYS, *BYTES, *BROKEN, *ESCAPED])
TEXT = st.one_of(st.sampled_from(WORDS), st.lists(PIECE, max_size=3).map(b"".join))


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """The lines of a file: several of each of some shapes, mixed, which differ in one text each."""
    lines: list[bytes] = []
    for shape in draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=2)):
        texts = draw(st.lists(TEXT, min_size=shape.count(b"%b"), max_size=shape.count(b"%b")))
        varied = draw(st.integers(0, len(texts) - 1))
        for text in draw(st.lists(st.one_of(st.sampled_from(WORDS), TEXT), min_size=4, max_size=14)):
            lines.append(shape % (*texts[:varied], text, *texts[varied + 1 :]))
    end = draw(st.sampled_from([b"\n", b"\r\n"]))
    return end.join(draw(st.permutations(lines))) + b"\n"


def alone(content: bytes) -> pl.DataFrame:
    told = [(number, parse(line)) for number, line in enumerate(content.split(b"\n")) if line.strip()]
    return one_by_one((number, reason or record or {}) for number, (record, reason) in told)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files())
def test_whole_answers_are_read_as_each_of_them_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forms, "_PEEKED", 0)
        patch.setattr(forms, "_VARIED", 10**9)
        found = pl.concat(read_usage_file(path, threads=1))
    assert_frame_equal(found, alone(content))


def test_texts_that_nothing_reads_are_left_out_and_no_others() -> None:
    line = rb'{"id": "a\"b", "model": "gpt-5", "error":"x", "list": ["kept"], "spaced" : "kept", "n": {"text":"gone"}}'
    bare, odd = bare_of_texts([line + b"\n", line + b"\r\n"], MAX_LINE)
    expected = rb'{"id": "", "model": "gpt-5", "error":"x", "list": ["kept"], "spaced" : "kept", "n": {"text":""}}'
    assert b"".join(bare) == expected + b"\n" + expected + b"\r\n"
    assert odd.tolist() == []


@pytest.mark.parametrize(
    "line",
    [rb'{"a": "\x"}', rb'{"a": "\u12g4"}', b'{"a": "b\tc"}', b'{"a": "b}', rb'{"mod\u0065l": "b"}', b'{"a": "\xff"}'],
)
def test_lines_that_may_be_something_else_are_read_as_they_stand(line: bytes) -> None:
    sound = b'{"a": "b"}\n'
    _, odd = bare_of_texts([sound + sound, sound + line + b"\n" + sound], MAX_LINE)
    assert 3 in odd.tolist()
    assert not {0, 1} & set(odd.tolist())


def test_a_line_that_is_too_long_is_told_so_though_its_form_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "records.jsonl"
    texts = [b"%d" % number * (1 if number != 30 else 60) for number in range(60)]
    path.write_bytes(b"".join(SHAPES[0] % (text, b"") + b"\n" for text in texts))
    for module in (forms, blocks):
        monkeypatch.setattr(module, "MAX_LINE", 250)
    monkeypatch.setattr("weighbridge.pipeline.ingest.many.many.MAX_LINE", 250)
    (found,) = read_usage_file(path)
    assert found.filter(pl.col("error").is_not_null()).rows_by_key("error") == {
        QuarantineReason.TOO_LARGE: [found.row(30)[:-1]]
    }
