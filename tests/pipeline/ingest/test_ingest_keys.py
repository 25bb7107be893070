"""Keys in bulk are the keys of the vocabulary; leaf paths that may be stored are those that flattening gives."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.pipeline.ingest.headers import HEADER_PATHS
from weighbridge.pipeline.ingest.json_lines import parse, read_lines
from weighbridge.pipeline.ingest.keys import aliases, keyed_keys
from weighbridge.pipeline.ingest.leaf_paths import DECLARED_PATHS, is_count, is_leaf_path
from weighbridge.schemas.enumerations import ForeignIdKind
from weighbridge.schemas.identity import framed, keyed_key
from weighbridge.schemas.leaves import ENUMERATED, KEYS, flatten_body


@given(st.binary(min_size=16, max_size=64), st.lists(st.text(max_size=5), max_size=3), st.lists(st.text(max_size=9)))
def test_many_keys_are_the_same_as_one_by_one(key: bytes, prefix: list[str], values: list[str]) -> None:
    found = [tuple(pair) for pair in keyed_keys(key, prefix, values).tolist()]
    assert found == [keyed_key(key, *prefix, value) for value in values]


def test_parts_that_were_framed_before_give_the_same_key(key: bytes) -> None:
    (found,) = keyed_keys(key, ["source"], [framed(b"content", 3)], framed_already=True).tolist()
    assert tuple(found) == keyed_key(key, "source", b"content", 3)


def test_an_alias_is_the_hash_of_kind_and_id_and_a_sources_own_numbers_are_hashed_with_it(key: bytes) -> None:
    kinds = ["provider_response_id", "client_request_id", "span_id", "record_id", "trace_id"]
    rows = {"attempt_hi": 1, "attempt_lo": 2, "day": date(2026, 1, 1), "source": "s", "kind": kinds, "value": "x"}
    found = {row["kind"]: (row["alias_hi"], row["alias_lo"]) for row in aliases(key, pl.DataFrame(rows)).to_dicts()}
    assert found == {
        "provider_response_id": keyed_key(key, "provider_response_id", "x"),
        "client_request_id": keyed_key(key, "client_request_id", "x"),
        "span_id": keyed_key(key, "span_id", "x"),
        "record_id": keyed_key(key, "record_id", "s", "x"),
    }
    assert set(kinds) == {str(kind) for kind in ForeignIdKind}


VALUES = st.recursive(
    st.one_of(st.integers(), st.floats(), st.text(max_size=8), st.sampled_from(["TEXT", "5m", "flex"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(st.sampled_from(sorted(KEYS)), st.sampled_from(["modality", "ttl", "type"]), st.text(max_size=8)),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)


@given(VALUES)
def test_every_path_that_flattening_gives_may_be_stored(usage: object) -> None:
    for leaf in flatten_body({"usage": usage, "meta": {"cached_tokens": 1}}, b"k" * 16).leaves:
        assert is_leaf_path(leaf.path), leaf.path


@pytest.mark.parametrize(
    "path",
    [
        "",
        "usage.",
        "usage.the secret",
        "usage.secret",
        "usage[secret].tokenCount",
        "usage[0]secret.tokenCount",
        "usage[TEXT#x].tokenCount",
        "usage.h_123",
        "header.x-api-key",
        "usage.prompt_tokens\n",
    ],
)
def test_a_path_with_anything_else_in_it_may_not(path: str) -> None:
    assert not is_leaf_path(path)


def test_counts_are_told_from_measures_and_words() -> None:
    assert all(is_count(path) for path in DECLARED_PATHS | HEADER_PATHS - {"header.x-amzn-bedrock-invocation-latency"})
    assert is_count("usage.prompt_tokens")
    assert is_count("usageMetadata.promptTokensDetails[TEXT].tokenCount")
    assert not any(is_count(f"usage.{name}") for name in ("cost", *ENUMERATED))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1e400}', "1E+400"),
        ('{"a": 0.1}', "0.1"),
        ('{"a": 123456789012345678901234567890}', "123456789012345678901234567890"),
        ('{"a": NaN}', "NaN"),
        ('{"a": "\\ud800"}', "\ud800"),
    ],
)
def test_json_numbers_keep_every_digit(text: str, value: str) -> None:
    found, reason = parse(text.encode())
    assert reason is None
    assert found is not None
    assert str(found["a"]) == value


def test_brackets_inside_texts_are_no_nesting() -> None:
    deep = '{"a": "' + "[" * 5_000 + '\\"' + "{" * 5_000 + '"}'
    assert parse(deep.encode())[1] is None
    assert parse(('{"a": ' + "[" * 199 + "]" * 199 + "}").encode())[1] is None
    assert parse(('{"a": ' + "[" * 200 + "]" * 200 + "}").encode())[1] == "too_deep"


def test_a_line_of_exactly_the_limit_is_read(tmp_path: Path) -> None:
    line = b'{"a": 1}'
    (tmp_path / "a").write_bytes(line + b"\n" + b" " + line + b"\n" + line)
    reasons = [found.reason for found in read_lines(tmp_path / "a", max_line=len(line))]
    assert reasons == [None, "too_large", None]
