"""An attempt is found by what another system calls it, and two attempts that are called the same are told apart."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
import pytest
from tests.pipeline.reconcile.conftest import DAY, World, key

from weighbridge.pipeline.explain.explain import explain
from weighbridge.pipeline.ingest.keys import aliases
from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.reconcile.match.foreign import attempts_named
from weighbridge.schemas.errors import ConfigError

KEY = bytes(range(32))
HEXADECIMAL = "deadbeefdeadbeef0123456789abcdef"
CALLED = [
    (1, "provider_response_id", "api-log", "chatcmpl-AbC123"),
    (1, "client_request_id", "agent", "req-1"),
    (1, "client_request_id", "api-log", "req-1"),
    (2, "provider_response_id", "api-log", HEXADECIMAL),
    (3, "provider_response_id", "api-log", "twice"),
    (4, "provider_response_id", "api-log", "twice"),
    (3, "record_id", "export-1", "17"),
    (4, "record_id", "export-2", "17"),
    (4, "record_id", "export-2", "18"),
    (4, "span_id", "agent", "00f067aa0ba902b7"),
    (4, "trace_id", "agent", "trace-1"),
    (6, "client_request_id", "agent", "req-6"),
    (6, "provider_response_id", "agent", "req-6"),
]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Six attempts; the fifth is called nothing, and its own id begins with what the provider calls the second."""
    world = World(tmp_path_factory.mktemp("foreign"))
    for number in (1, 2, 3, 4, 6):
        world.attempt(number, input_computed=9)
    world.attempt(5, attempt_hi=int("deadbeefdeadbeef", 16) - 2**64, attempt_lo=5)
    made = world.lake()
    made.append("alias", aliases(KEY, pl.DataFrame(list(foreign()), schema_overrides={"day": pl.Date})))
    return made


def foreign() -> Iterator[dict[str, object]]:
    for number, kind, source, value in CALLED:
        hi, lo = key(number)
        yield {"attempt_hi": hi, "attempt_lo": lo, "day": DAY, "source": source, "kind": kind, "value": value}


@pytest.mark.parametrize(
    ("name", "number", "kinds"),
    [
        ("chatcmpl-AbC123", 1, ["provider_response_id"]),
        (" chatcmpl-AbC123\n", 1, ["provider_response_id"]),
        ("req-1", 1, ["client_request_id"]),
        ("18", 4, ["record_id"]),
        ("00f067aa0ba902b7", 4, ["span_id"]),
        (HEXADECIMAL, 2, ["provider_response_id"]),
        ("req-6", 6, ["client_request_id", "provider_response_id"]),
    ],
)
def test_an_attempt_is_found_by_a_whole_identifier(lake: Lake, name: str, number: int, kinds: list[str]) -> None:
    root = explain(lake, name, KEY)
    assert (root.label, root.value) == ("attempt", key(number).to_hex())
    assert sorted(str(node.value) for node in root.children if node.label == "found by") == kinds
    assert any(node.label == "recorded by" for node in root.children)


@pytest.mark.parametrize(
    "name", ["chatcmpl-abc123", "chatcmpl-", "req-2", "trace-1", "two words", "", "chatcmpl-AbC123x"]
)
def test_what_nobody_is_called_is_told(lake: Lake, name: str) -> None:
    """Upper case is not lower case, a beginning is not enough, and a trace holds many attempts and names none."""
    with pytest.raises(ConfigError, match="is no id of ours and no identifier of another system that is known here"):
        explain(lake, name, KEY)


@pytest.mark.parametrize("name", ["twice", "17"])
def test_several_attempts_of_one_name_are_all_named(lake: Lake, name: str) -> None:
    """The same response id twice; the same number in the exports of two systems."""
    with pytest.raises(ConfigError, match=f"'{name}' is ambiguous: 2 things are called so") as told:
        explain(lake, name, KEY)
    assert all(f"attempt {key(number).to_hex()}" in str(told.value) for number in (3, 4))


def test_a_name_that_also_begins_an_id_of_ours_is_ambiguous(lake: Lake) -> None:
    """The whole identifier is the second attempt's; its first digits are those of the fifth only."""
    assert str(explain(lake, "deadbeef", KEY).value).startswith("deadbeefdeadbeef")
    hi, lo = key(1)
    row = {"attempt_hi": hi, "attempt_lo": lo, "day": DAY, "source": "agent", "kind": "span_id", "value": "deadbeef"}
    lake.append("alias", aliases(KEY, pl.DataFrame([row], schema_overrides={"day": pl.Date})))
    with pytest.raises(ConfigError, match="'deadbeef' is ambiguous: 2 things are called so"):
        explain(lake, "deadbeef", KEY)


def test_another_key_knows_nobody(lake: Lake) -> None:
    assert attempts_named(lake, bytes(32), "chatcmpl-AbC123") == {}
    with pytest.raises(ConfigError, match="is no id of ours"):
        explain(lake, "chatcmpl-AbC123")


def test_a_lake_without_names_is_asked_in_vain(world: World) -> None:
    assert attempts_named(world.lake(), KEY, "chatcmpl-AbC123") == {}
