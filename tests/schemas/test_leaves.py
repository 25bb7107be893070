"""Raw leaves: every number of usage is kept or refused with a reason, and no word of an answer survives."""

from __future__ import annotations

import hashlib
import json
from decimal import Decimal

import pytest

from weighbridge.schemas.enumerations import QuarantineReason as Reason
from weighbridge.schemas.leaves import (
    COUNT_KEYS,
    ENUMERATED,
    KEYS,
    MAX_LEAVES,
    MAX_LIST,
    MEASURE_KEYS,
    Flattened,
    Leaf,
    Refusal,
    decimal_text,
    flatten,
    flatten_body,
    hashed_key,
)

CANARY = "canary zebra-7431"


def leaves(found: Flattened) -> dict[str, int | str | None]:
    return {leaf.path: leaf.integer if leaf.text is None else leaf.text for leaf in found.leaves}


def test_a_chat_answer(key: bytes) -> None:
    body = {
        "id": "chatcmpl-1",
        "choices": [{"message": {"content": CANARY}}],
        "usage": {
            "prompt_tokens": 21,
            "completion_tokens": 9,
            "total_tokens": 30,
            "prompt_tokens_details": {"cached_tokens": 16, "audio_tokens": None},
        },
        "service_tier": "default",
    }
    found = flatten_body(body, key)
    assert found.leaves == [
        Leaf("service_tier", None, "default"),
        Leaf("usage.completion_tokens", 9, None),
        Leaf("usage.prompt_tokens", 21, None),
        Leaf("usage.prompt_tokens_details.cached_tokens", 16, None),
        Leaf("usage.total_tokens", 30, None),
    ]
    assert (found.refusals, found.dropped_strings, found.integral_floats) == ([], 0, [])


def test_a_list_of_modalities_is_named_by_what_each_element_says(key: bytes) -> None:
    body = {
        "usageMetadata": {
            "promptTokensDetails": [
                {"modality": "TEXT", "tokenCount": 3},
                {"modality": "AUDIO", "tokenCount": 5},
                {"modality": "TEXT", "tokenCount": 7},
                {"modality": "SMELL", "tokenCount": 11},
            ]
        }
    }
    found = flatten_body(body, key)
    stem = "usageMetadata.promptTokensDetails"
    assert leaves(found) == {
        f"{stem}[TEXT].tokenCount": 3,
        f"{stem}[AUDIO].tokenCount": 5,
        f"{stem}[TEXT#2].tokenCount": 7,
        f"{stem}[3].tokenCount": 11,
    }
    assert found.dropped_strings == 1


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"usage": {"input_tokens": 4}}, "usage.input_tokens"),
        ({"type": "message_start", "message": {"usage": {"input_tokens": 4}}}, "message.usage.input_tokens"),
        ({"response": {"usage": {"input_tokens": 4}}}, "response.usage.input_tokens"),
        ({"usageMetadata": {"promptTokenCount": 4}}, "usageMetadata.promptTokenCount"),
        ({"meta": {"billed_units": {"input_tokens": 4}}}, "meta.billed_units.input_tokens"),
        ({"meta": {"cached_tokens": 4}}, "meta.cached_tokens"),
        ({"prompt_eval_count": 4, "response": CANARY}, "prompt_eval_count"),
        ({"results": [{"tokenCount": 4, "outputText": CANARY}]}, "results[0].tokenCount"),
        ({"timings": {"prompt_n": 4}}, "timings.prompt_n"),
        (
            {"amazon-bedrock-invocationMetrics": {"inputTokenCount": 4}},
            "amazon-bedrock-invocationMetrics.inputTokenCount",
        ),
    ],
)
def test_every_known_place_of_usage_is_found(body: dict[str, object], path: str, key: bytes) -> None:
    found = flatten_body(body, key)
    assert leaves(found) == {path: 4}
    assert CANARY not in repr(found)


@pytest.mark.parametrize("body", [{}, {"usage": None}, {"usage": {}}, [], CANARY, 3, None])
def test_an_answer_without_usage_has_no_leaves(body: object, key: bytes) -> None:
    assert flatten_body(body, key) == Flattened()


@pytest.mark.parametrize("told", [CANARY, "", 3, 0, False, 1.5])
@pytest.mark.parametrize("place", ["usage", "usageMetadata", "message.usage"])
def test_usage_that_is_no_object_is_refused_and_not_taken_for_none(place: str, told: object, key: bytes) -> None:
    body: object = told
    for step in reversed(place.split(".")):
        body = {step: body}
    assert flatten_body(body, key) == Flattened(refusals=[Refusal(place, Reason.NOT_AN_OBJECT)])


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (CANARY, Reason.TYPE),
        ("12", Reason.TYPE),
        (True, Reason.TYPE),
        (b"12", Reason.TYPE),
        (2**63, Reason.RANGE),
        (-(2**63) - 1, Reason.RANGE),
        (float(2**63), Reason.RANGE),
        (Decimal("1e30"), Reason.RANGE),
        (Decimal("1e999999999"), Reason.RANGE),
        (1.5, Reason.FRACTION),
        (Decimal("0.1"), Reason.FRACTION),
        (float("nan"), Reason.NOT_A_NUMBER),
        (float("-inf"), Reason.NOT_A_NUMBER),
        (Decimal("NaN"), Reason.NOT_A_NUMBER),
        (Decimal("Infinity"), Reason.NOT_A_NUMBER),
    ],
)
def test_a_count_that_is_no_count_is_refused_without_its_value(value: object, reason: Reason, key: bytes) -> None:
    found = flatten_body({"usage": {"prompt_tokens": value, "completion_tokens": 2}}, key)
    assert [(refusal.path, refusal.reason) for refusal in found.refusals] == [("usage.prompt_tokens", reason)]
    assert leaves(found) == {"usage.completion_tokens": 2}
    assert CANARY not in repr(found)


def test_the_bounds_of_a_signed_64_bit_count_are_kept(key: bytes) -> None:
    found = flatten_body({"usage": {"prompt_tokens": 2**63 - 1, "completion_tokens": -(2**63)}}, key)
    assert leaves(found) == {"usage.prompt_tokens": 2**63 - 1, "usage.completion_tokens": -(2**63)}
    assert found.refusals == []


@pytest.mark.parametrize("value", [7.0, Decimal(7), Decimal("7.00"), Decimal("0.7E+1")])
def test_an_integral_float_is_the_integer_and_is_noted(value: object, key: bytes) -> None:
    found = flatten_body({"usage": {"prompt_tokens": value}}, key)
    assert found.leaves == [Leaf("usage.prompt_tokens", 7, None)]
    assert found.integral_floats == ["usage.prompt_tokens"]


def test_nesting_beyond_the_limit_is_refused_at_the_limit(key: bytes) -> None:
    inner: object = {"tokens": 1}
    for _ in range(5000):
        inner = {"usage": inner}
    found = flatten_body({"usage": inner}, key)
    assert [refusal.reason for refusal in found.refusals] == [Reason.TOO_DEEP]
    assert found.refusals[0].path == ".".join(["usage"] * 9)
    assert found.leaves == []


def test_the_deepest_allowed_leaf_is_kept(key: bytes) -> None:
    inner: object = 1
    for _ in range(7):
        inner = {"cached_tokens" if inner == 1 else "usage": inner}
    assert len(flatten_body({"usage": inner}, key).leaves) == 1
    assert [r.reason for r in flatten_body({"usage": {"usage": inner}}, key).refusals] == [Reason.TOO_DEEP]


def test_too_many_leaves_are_refused_once(key: bytes) -> None:
    usage = {f"unknown {number}": number for number in range(MAX_LEAVES + 40)}
    found = flatten_body({"usage": usage}, key)
    assert len(found.leaves) == MAX_LEAVES
    assert [refusal.reason for refusal in found.refusals] == [Reason.TOO_LARGE]


def test_a_long_list_is_refused_whole(key: bytes) -> None:
    def read(length: int) -> Flattened:
        return flatten_body({"usage": {"iterations": [{"input_tokens": 1}] * length}}, key)

    assert len(read(MAX_LIST).leaves) == MAX_LIST
    assert read(MAX_LIST + 1).leaves == []
    assert [(r.path, r.reason) for r in read(MAX_LIST + 1).refusals] == [("usage.iterations", Reason.TOO_LARGE)]


def test_an_unknown_key_is_hashed_with_the_key_of_the_installation(key: bytes) -> None:
    found = flatten_body({"usage": {CANARY: 5, "prompt_tokens": 1}}, key)
    shown = "h_" + hashlib.blake2b(CANARY.encode(), key=key, digest_size=4).hexdigest()
    assert leaves(found) == {f"usage.{shown}": 5, "usage.prompt_tokens": 1}
    assert hashed_key(b"\x01" * 32, CANARY) != shown
    assert hashed_key(key, "\ud800") == hashed_key(key, "\ud800")


def test_unknown_keys_keep_their_structure(key: bytes) -> None:
    found = flatten_body({"usage": {"new_details": {"cached_tokens": 2, "fresh": [1, 2.5]}}}, key)
    outer, inner = hashed_key(key, "new_details"), hashed_key(key, "fresh")
    assert leaves(found) == {
        f"usage.{outer}.cached_tokens": 2,
        f"usage.{outer}.{inner}[0]": 1,
        f"usage.{outer}.{inner}[1]": "2.5",
    }


def test_enumerations_are_kept_and_every_other_string_is_dropped(key: bytes) -> None:
    usage = {"service_tier": "priority", "inference_geo": CANARY, "unknown": CANARY, "speed": "fast", "is_byok": False}
    found = flatten_body({"usage": usage}, key)
    assert leaves(found) == {"usage.service_tier": "priority", "usage.speed": "fast", "usage.is_byok": "false"}
    assert found.dropped_strings == 2


def test_a_measure_keeps_its_digits_as_text(key: bytes) -> None:
    usage = {
        "cost": Decimal("0.000123000"),
        "total_cost": "1.50",
        "seconds": 12,
        "queue_time": 1e-05,
        "prompt_time": CANARY,
    }
    found = flatten_body({"usage": usage}, key)
    assert leaves(found) == {
        "usage.cost": "0.000123000",
        "usage.total_cost": "1.50",
        "usage.seconds": 12,
        "usage.queue_time": "0.00001",
    }
    assert found.dropped_strings == 1


@pytest.mark.parametrize("value", [Decimal("1e999999999"), Decimal("1e-999999999"), Decimal("0e999999999"), "1e999"])
def test_a_measure_whose_text_would_outgrow_its_source_is_refused(value: object, key: bytes) -> None:
    found = flatten_body({"usage": {"cost": value}}, key)
    assert (found.leaves, [r.reason for r in found.refusals]) == ([], [Reason.RANGE])


def test_a_model_name_is_kept_and_a_sentence_in_its_place_is_not(key: bytes) -> None:
    found = flatten_body({"usage": {"models": [{"model": "gpt-4o", "tokens": 1}, {"model": CANARY, "tokens": 2}]}}, key)
    assert leaves(found) == {
        "usage.models[0].model": "gpt-4o",
        "usage.models[0].tokens": 1,
        "usage.models[1].tokens": 2,
    }


def test_no_word_survives_in_any_place(key: bytes) -> None:
    """The canary in every key and every value, at every depth, under every allow-listed name."""
    hostile: dict[str, object] = {CANARY: CANARY, "deep": {CANARY: [CANARY, {CANARY: CANARY, "type": CANARY}]}}
    hostile |= dict.fromkeys(sorted(KEYS), CANARY)
    for container in ("usage", "usageMetadata", "timings", "results"):
        found = flatten_body({container: hostile, "text": CANARY, "message": {"usage": hostile}}, key)
        written = json.dumps([found.leaves, found.refusals, found.dropped_strings, found.integral_floats, found.shape])
        assert "canary" not in written
        assert "zebra" not in written


def test_leaves_come_in_the_order_of_their_paths_whatever_the_order_of_keys(key: bytes) -> None:
    usage = {"total_tokens": 3, "prompt_tokens": 1, "completion_tokens": 2, "service_tier": "flex"}
    one = flatten_body({"usage": usage}, key)
    two = flatten_body({"usage": dict(reversed(usage.items()))}, key)
    assert one.leaves == two.leaves
    assert one.shape == "usage.completion_tokens usage.prompt_tokens usage.service_tier usage.total_tokens"
    assert one.integers() == [2, 1, None, 3]
    assert one.texts() == [None, None, "flex", None]
    assert flatten_body({"usage": {"prompt_tokens": 1}}, key).texts() is None


def test_flatten_reads_one_usage_object_at_its_path(key: bytes) -> None:
    assert leaves(flatten({"input_tokens": 3}, key, "message.usage")) == {"message.usage.input_tokens": 3}
    assert leaves(flatten({"input_tokens": 3}, key)) == {"usage.input_tokens": 3}


@pytest.mark.parametrize(
    ("number", "text"),
    [(0.1, "0.1"), (1e-7, "0.0000001"), (1e22, "10000000000000000000000"), (Decimal("1.10"), "1.10"), (-2.5, "-2.5")],
)
def test_decimal_text_is_plain_digits(number: float | Decimal, text: str) -> None:
    assert decimal_text(number) == text


def test_the_allow_list_has_no_key_with_two_meanings() -> None:
    assert not COUNT_KEYS & MEASURE_KEYS
    assert not COUNT_KEYS & ENUMERATED.keys()
    assert not MEASURE_KEYS & ENUMERATED.keys()
