"""The simulated quarter: labelled, repeatable, lawful row by row, and wrong exactly where it says so."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from weighbridge.pipeline.simulate.simulate import WRITERS, Simulation, simulate
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import key_id, pseudonym
from weighbridge.schemas.leaves import flatten_body
from weighbridge.schemas.segment import read_manifest, read_table, verify_segment

KEY = bytes(range(32))
Row = dict[str, object]


def rows_of(simulation: Simulation, table: str) -> list[Row]:
    parts = [read_table(path, table) for path in simulation.segments if (path / f"{table}.parquet").exists()]
    return pa.concat_tables(parts).to_pylist() if parts else []


@pytest.fixture(scope="module")
def quarter(tmp_path_factory: pytest.TempPathFactory) -> Simulation:
    return simulate(tmp_path_factory.mktemp("quarter"), attempts=6_000, seed=11, key=KEY)


@pytest.fixture(scope="module")
def attempts(quarter: Simulation) -> list[Row]:
    return rows_of(quarter, "attempt")


@pytest.fixture(scope="module")
def reports(quarter: Simulation) -> list[Row]:
    return rows_of(quarter, "usage_report")


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_every_segment_is_sealed_and_says_that_it_is_simulated(quarter: Simulation) -> None:
    for path in quarter.segments:
        manifest, _ = verify_segment(path)
        assert manifest.labels == {"simulated": "true", "seed": "11"}
        assert manifest.writer in WRITERS
        assert manifest.key_id == key_id(KEY)
    assert len({read_manifest(path)[1] for path in quarter.segments}) == 8
    stored = json.loads((quarter.segments[0].parent / "expected.json").read_text())
    assert stored["labels"]["simulated"] == "true"
    assert len(stored["expected"]) == len(quarter.expected) > 0


def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not(tmp_path: Path) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        simulate(tmp_path / name, attempts=300, seed=seed, days=20, key=KEY)
    assert bytes_of(tmp_path / "a") == bytes_of(tmp_path / "b")
    assert bytes_of(tmp_path / "a") != bytes_of(tmp_path / "c")


@pytest.mark.parametrize("count", [1, 2, 7, 100])
def test_as_many_attempts_as_asked_for(tmp_path: Path, count: int) -> None:
    made = simulate(tmp_path, attempts=count, seed=1, days=5, key=KEY, faults=False)
    assert len(rows_of(made, "attempt")) == count


def test_attempts_and_lost_ones_are_all_there(quarter: Simulation, attempts: list[Row]) -> None:
    lost = sum(row["attempts"] for row in rows_of(quarter, "gap"))  # type: ignore[misc]
    assert lost == sum(item.rows for item in quarter.expected if item.code == "capture_gap") > 0
    assert len(attempts) + lost == 6_000


@pytest.mark.parametrize("arguments", [{"attempts": 0}, {"days": 0}, {"seed": -1}])
def test_impossible_arguments_are_refused(tmp_path: Path, arguments: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="at least 1, 1 and 0"):
        simulate(tmp_path, key=KEY, **arguments)  # type: ignore[arg-type]


def test_segments_are_never_written_over(tmp_path: Path) -> None:
    simulate(tmp_path, attempts=10, days=4, key=KEY)
    with pytest.raises(ConfigError, match="empty folder"):
        simulate(tmp_path, attempts=10, days=4, key=KEY)


def number(row: Row, *names: str) -> int:
    values = [row[name] for name in names]
    assert all(isinstance(value, int) for value in values), (names, values)
    return sum(values)  # type: ignore[arg-type]


def test_conservation_holds_for_every_attempt_an_engine_served(attempts: list[Row]) -> None:
    served = [row for row in attempts if row["framework"] == "vllm"]
    assert len(served) > 500
    for row in served:
        caches = number(row, "cached_local", "cached_external", "prefill_computed", "cache_correction")
        assert row["input_computed"] == caches
        withheld = number(row, "withheld_end_token", "withheld_stop_trimmed", "withheld_aborted", "withheld_truncated")
        assert row["output_computed"] == number(row, "output_delivered") + withheld
        assert 0 <= number(row, "reasoning_computed") <= number(row, "output_delivered")
        assert row["drafted"] == number(row, "accepted", "rejected")
        assert row["output_computed"] == number(row, "accepted", "bonus", "undrafted")
        assert row["forward"] == number(row, "prefill_computed", "recomputed", "verify_width", "padding")
        assert number(row, "output_computed") <= number(row, "max_tokens")
        assert row["input_recounted"] is None
        assert row["total_us"] == number(row, "queue_us", "prefill_us", "decode_us")
        counts = (value for name, value in row.items() if isinstance(value, int) and name not in SIGNED)
        assert min(counts) >= 0


SIGNED = {"attempt_hi", "attempt_lo", "request_hi", "request_lo", "cache_correction"}


def test_dense_attention_reads_every_earlier_key_once_per_position(attempts: list[Row]) -> None:
    rows = [row for row in attempts if row["attended"] is not None]
    assert rows
    for row in rows[:200]:
        prompt, output = number(row, "input_computed"), number(row, "output_computed")
        cached = prompt - number(row, "prefill_computed")
        # The token at 0-based position p reads p + 1 keys; the last output token is never fed back.
        assert row["attended"] == sum(range(cached + 1, prompt + output))
        assert row["kv_kept"] == (prompt + output - 1) * 36 * 8


def test_a_client_counts_text_and_leaves_the_engines_columns_unknown(attempts: list[Row]) -> None:
    clients = [row for row in attempts if row["framework"] != "vllm" and row["status"] == "succeeded"]
    assert len(clients) > 3_000
    for row in clients:
        assert row["input_computed"] is row["output_computed"] is row["strategy_id"] is None
        assert number(row, "input_recounted") > 0
        assert row["recount_template"] == MESSAGE_TOKENS[str(row["model_requested"])] * number(row, "messages") + 3


MESSAGE_TOKENS = {
    "gpt-4o-mini": 4,
    "gpt-4.1": 4,
    "gpt-5-mini": 5,
    "gpt-4o": 4,
    "Llama-3.3-70B-Instruct": 5,
    "claude-sonnet-4-5": 4,
    "gemini-2.5-flash": 3,
}


def test_a_failed_try_is_followed_by_another_of_the_same_request(attempts: list[Row]) -> None:
    requests = defaultdict(list)
    for row in attempts:
        requests[row["request_hi"], row["request_lo"]].append(row)
    failures = [row for row in attempts if row["status"] != "succeeded"]
    assert {row["http_status"] for row in failures} == {429, 500}
    for row in failures:
        assert row["usage_expected"] is False
        assert row["attempt_number"] == 1
        assert row["input_recounted"] is row["input_computed"] is row["model_served"] is None


def test_keys_are_version_7_of_the_arrival(attempts: list[Row]) -> None:
    assert len({(row["attempt_hi"], row["attempt_lo"]) for row in attempts}) == len(attempts)
    for row in attempts:
        hi, lo = number(row, "attempt_hi"), number(row, "attempt_lo")
        assert hi >> 12 & 0xF == 7
        assert lo >> 62 & 0b11 == 0b10
        when = datetime.fromtimestamp((hi >> 16) / 1000, UTC)
        assert when.date() == row["day"]
        arrived = row["arrived_at"]
        assert (arrived is None) is row["undated"]
        if isinstance(arrived, datetime):
            assert abs((arrived - when).total_seconds()) < 0.001


def test_names_are_pseudonyms_and_some_traffic_is_unassigned(attempts: list[Row]) -> None:
    tenants = {row["tenant"] for row in attempts}
    assert pseudonym(KEY, "tenant", "acme") in tenants
    assert len(tenants) == 7
    assert {row["tenant_key_id"] for row in attempts if row["tenant"] == "unassigned"} == {None}
    assert {row["tenant_key_id"] for row in attempts if row["tenant"] != "unassigned"} == {key_id(KEY)}


def test_traffic_has_weeks_days_and_growth(attempts: list[Row]) -> None:
    by_day: dict[date, int] = defaultdict(int)
    for row in attempts:
        by_day[row["day"]] += 1  # type: ignore[index]
    weekday = [count for day, count in by_day.items() if day.weekday() < 5]
    weekend = [count for day, count in by_day.items() if day.weekday() >= 5]
    assert sum(weekend) / len(weekend) < 0.5 * sum(weekday) / len(weekday)
    months = [sum(count for day, count in by_day.items() if day.month == month) / days for month, days in MONTHS]
    assert months == sorted(months)
    hours = [row["arrived_at"].hour for row in attempts if row["arrived_at"]]  # type: ignore[attr-defined]
    assert sum(hour in range(8, 18) for hour in hours) > 0.7 * len(hours)


MONTHS = ((1, 31), (2, 28), (3, 31))


def test_prompts_are_skewed_spiky_and_bounded(attempts: list[Row]) -> None:
    chat = [row for row in attempts if row["task"] == "chat" and row["status"] == "succeeded"]
    prompts = sorted(number(row, "input_computed" if row["framework"] == "vllm" else "input_recounted") for row in chat)
    median, mean = prompts[len(prompts) // 2], sum(prompts) / len(prompts)
    assert mean > 1.15 * median
    assert prompts[-1] < 260_000
    pinned = [row for row in attempts if row["finish_reason"] == "length" and row["framework"] == "vllm"]
    assert pinned
    assert all(row["output_computed"] == row["max_tokens"] for row in pinned)


# --- usage reports ----------------------------------------------------------------------------------------------


def body_of(row: Row) -> dict[str, object]:
    """A real answer's body (or stream event) with the figures of a report row."""
    value = dict(zip(str(row["leaf_shape"]).split(" "), row["leaf_integers"], strict=True))  # type: ignore[call-overload]
    return BODIES[str(row["api"]), str(row["part_kind"])](value)


def chat(v: dict[str, int]) -> dict[str, object]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "words"}, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": v["usage.prompt_tokens"],
            "completion_tokens": v["usage.completion_tokens"],
            "total_tokens": v["usage.prompt_tokens"] + v["usage.completion_tokens"],
            "prompt_tokens_details": {
                "cached_tokens": v["usage.prompt_tokens_details.cached_tokens"],
                "audio_tokens": 0,
            },
            "completion_tokens_details": {
                "reasoning_tokens": v["usage.completion_tokens_details.reasoning_tokens"],
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        },
    }


def responses(v: dict[str, int], at: str = "usage") -> dict[str, object]:
    return {
        "object": "response",
        "output": [{"type": "message", "content": [{"type": "output_text", "text": "words"}]}],
        "usage": {
            "input_tokens": v[f"{at}.input_tokens"],
            "input_tokens_details": {"cached_tokens": v[f"{at}.input_tokens_details.cached_tokens"]},
            "output_tokens": v[f"{at}.output_tokens"],
            "output_tokens_details": {"reasoning_tokens": v[f"{at}.output_tokens_details.reasoning_tokens"]},
            "total_tokens": v[f"{at}.input_tokens"] + v[f"{at}.output_tokens"],
        },
    }


def anthropic(v: dict[str, int], at: str = "usage") -> dict[str, object]:
    short = v[f"{at}.cache_creation.ephemeral_5m_input_tokens"]
    long = v[f"{at}.cache_creation.ephemeral_1h_input_tokens"]
    return {
        "type": "message",
        "content": [{"type": "text", "text": "words"}],
        "usage": {
            "input_tokens": v[f"{at}.input_tokens"],
            "cache_creation_input_tokens": short + long,
            "cache_read_input_tokens": v[f"{at}.cache_read_input_tokens"],
            "cache_creation": {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": long},
            "output_tokens": v[f"{at}.output_tokens"],
            "service_tier": "standard",
        },
    }


def anthropic_delta(v: dict[str, int]) -> dict[str, object]:
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    return {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn"},
        "usage": {name: v[f"usage.{name}"] for name in names},
    }


def gemini(v: dict[str, int]) -> dict[str, object]:
    prompt = v["usageMetadata.promptTokenCount"]
    cached = v.get("usageMetadata.cachedContentTokenCount")
    thoughts = v.get("usageMetadata.thoughtsTokenCount")
    candidates = v["usageMetadata.candidatesTokenCount"]
    usage: dict[str, object] = {
        "promptTokenCount": prompt,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": prompt}],
        "candidatesTokenCount": candidates,
        "totalTokenCount": prompt + candidates + (thoughts or 0),
    }
    if cached:
        usage["cachedContentTokenCount"] = cached
        usage["cacheTokensDetails"] = [{"modality": "TEXT", "tokenCount": cached}]
    if thoughts:
        usage["thoughtsTokenCount"] = thoughts
    return {"candidates": [{"content": {"parts": [{"text": "words"}]}}], "usageMetadata": usage}


BODIES: dict[tuple[str, str], Callable[[dict[str, int]], dict[str, object]]] = {
    ("openai_chat", "whole"): chat,
    ("openai_chat", "final"): chat,
    ("openai_responses", "whole"): responses,
    ("openai_responses", "final"): lambda v: {
        "type": "response.completed",
        "response": responses(v, "response.usage"),
    },
    ("anthropic_messages", "whole"): anthropic,
    ("anthropic_messages", "start"): lambda v: {"type": "message_start", "message": anthropic(v, "message.usage")},
    ("anthropic_messages", "delta"): anthropic_delta,
    ("gemini_generate_content", "whole"): gemini,
    ("gemini_generate_content", "final"): gemini,
}


def test_leaves_are_those_of_a_real_body(reports: list[Row]) -> None:
    """The body is built here from the row's figures, goes through JSON, and has to flatten to the same row."""
    seen = set()
    for row in reports:
        flat = flatten_body(json.loads(json.dumps(body_of(row))), KEY)
        assert not flat.refusals
        assert row["leaf_shape"] == flat.shape
        assert row["leaf_integers"] == flat.integers()
        assert row["leaf_texts"] == flat.texts()
        seen.add((row["api"], row["part_kind"], row["leaf_shape"]))
    assert len(seen) == 4 + 3 + 8
    assert {(api, kind) for api, kind, _ in seen} == set(BODIES)


def totals(row: Row) -> tuple[int, int, int]:
    """Input, output and reasoning tokens one whole report means, by the providers' documentation."""
    v = dict(zip(str(row["leaf_shape"]).split(" "), row["leaf_integers"], strict=True))  # type: ignore[call-overload]
    at = "response.usage" if row["api"] == "openai_responses" and row["part_kind"] == "final" else "usage"
    match row["api"]:
        case "openai_chat":
            reasoning = v["usage.completion_tokens_details.reasoning_tokens"]
            return v["usage.prompt_tokens"], v["usage.completion_tokens"], reasoning
        case "openai_responses":
            reasoning = v[f"{at}.output_tokens_details.reasoning_tokens"]
            return v[f"{at}.input_tokens"], v[f"{at}.output_tokens"], reasoning
        case "anthropic_messages":
            entered = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
            return sum(v[f"usage.{name}"] for name in entered), v["usage.output_tokens"], 0
    thoughts = v.get("usageMetadata.thoughtsTokenCount", 0)
    return v["usageMetadata.promptTokenCount"], v["usageMetadata.candidatesTokenCount"] + thoughts, thoughts


def gaps(attempts: list[Row], reports: list[Row]) -> dict[tuple[str, str, str], tuple[int, int]]:
    """(provider, model, month) -> attempts with a gap, tokens reported more than observed; by plain counting."""
    reported: dict[object, tuple[int, int]] = {}
    hidden: dict[object, int] = {}
    named: dict[object, tuple[str, str, str]] = {}
    for row in reports:
        if row["part_kind"] != "start":
            key = row["attempt_hi"], row["attempt_lo"]
            entered, left, hidden[key] = totals(row)
            before = reported.get(key, (0, 0))
            reported[key] = (before[0] + entered, before[1] + left)
            named[key] = (str(row["provider"]), str(row["model"]), f"{row['day']:%Y-%m}")
    observed: dict[object, tuple[int, int]] = {}
    for row in attempts:
        if row["status"] == "succeeded":
            key = row["attempt_hi"], row["attempt_lo"]
            if row["framework"] == "vllm":
                observed[key] = number(row, "input_computed"), number(row, "output_computed")
            else:
                # A client cannot see reasoning; that much of the output rests on the report alone.
                seen = number(row, "output_recounted")
                observed[key] = number(row, "input_recounted"), seen + hidden.get(key, 0)
            named[key] = (str(row["provider"]), str(row["model_served"]), f"{row['day']:%Y-%m}")
    out: dict[tuple[str, str, str], tuple[int, int]] = {}
    for at, cell in named.items():
        gap = sum(reported.get(at, (0, 0))) - sum(observed.get(at, (0, 0)))
        if gap:
            rows, tokens = out.get(cell, (0, 0))
            out[cell] = (rows + 1, tokens + gap)
    return out


def test_reports_are_wrong_exactly_where_they_are_expected_to_be(
    quarter: Simulation, attempts: list[Row], reports: list[Row]
) -> None:
    expected: dict[tuple[str, str, str], tuple[int, int]] = {}
    for item in quarter.expected:
        if item.code in FAULTS:
            cell = (item.provider, item.model, item.period)
            rows, tokens = expected.get(cell, (0, 0))
            expected[cell] = (rows + item.rows, tokens + item.difference)
    assert gaps(attempts, reports) == expected
    assert {item.code for item in quarter.expected} == FAULTS | ORDINARY


FAULTS = {
    "cache_convention",
    "reasoning_convention",
    "special_tokens",
    "template_not_applied",
    "end_token_convention",
    "usage_missing",
    "duplicate_report",
    "capture_gap",
}
ORDINARY = {"reasoning_not_delivered", "assumed_usage", "undated_records", "unassigned_tenant", "gap_records"}


def counts_of(quarter: Simulation, code: str) -> dict[str, tuple[int, int]]:
    """Month -> rows and difference of the expected findings of one code."""
    out: dict[str, tuple[int, int]] = {}
    for item in quarter.expected:
        if item.code == code:
            rows, difference = out.get(item.period, (0, 0))
            out[item.period] = (rows + item.rows, difference + item.difference)
    return out


def counted(rows: Iterable[tuple[Row, int]]) -> dict[str, tuple[int, int]]:
    out: dict[str, tuple[int, int]] = {}
    for row, difference in rows:
        count, total = out.get(month := f"{row['day']:%Y-%m}", (0, 0))
        out[month] = (count + 1, total + difference)
    return out


def test_what_is_ordinary_is_expected_too(quarter: Simulation, attempts: list[Row], reports: list[Row]) -> None:
    def of(code: str) -> dict[str, tuple[int, int]]:
        return counts_of(quarter, code)

    gap_rows = rows_of(quarter, "gap")
    assert of("undated_records") == counted((row, 0) for row in attempts if row["undated"])
    assert of("unassigned_tenant") == counted((row, 0) for row in attempts if row["tenant"] == "unassigned")
    assert of("gap_records") == counted((row, number(row, "attempts")) for row in gap_rows)
    clients = {(row["attempt_hi"], row["attempt_lo"]) for row in attempts if row["input_recounted"] is not None}
    first = [row for row in reports if row["report"] == 0 and row["part_kind"] != "start"]
    hidden = ((row, totals(row)[2]) for row in first if (row["attempt_hi"], row["attempt_lo"]) in clients)
    assert sum(rows for rows, _ in of("reasoning_not_delivered").values()) == sum(tokens > 0 for _, tokens in hidden)


def test_anthropic_input_is_assumed_where_the_cached_tokens_would_fit_into_it(
    quarter: Simulation, reports: list[Row]
) -> None:
    assumed = []
    for row in reports:
        if row["api"] == "anthropic_messages" and row["part_kind"] != "start":
            v = dict(zip(str(row["leaf_shape"]).split(" "), row["leaf_integers"], strict=True))  # type: ignore[call-overload]
            beside = v["usage.cache_read_input_tokens"] + v["usage.cache_creation_input_tokens"]
            if 0 < beside <= v["usage.input_tokens"]:
                assumed.append((row, 0))
    assert counts_of(quarter, "assumed_usage") == counted(assumed)


def test_without_faults_reports_and_observation_agree(tmp_path: Path) -> None:
    made = simulate(tmp_path, attempts=2_000, seed=5, days=31, key=KEY, faults=False)
    assert {item.code for item in made.expected} == ORDINARY - {"gap_records"}
    assert rows_of(made, "gap") == []
    assert gaps(rows_of(made, "attempt"), rows_of(made, "usage_report")) == {}


def test_a_report_is_booked_when_its_attempt_ends_but_inside_the_period(
    attempts: list[Row], reports: list[Row]
) -> None:
    ends = {
        (row["attempt_hi"], row["attempt_lo"]): row["arrived_at"] + timedelta(microseconds=number(row, "total_us"))
        for row in attempts
        if isinstance(row["arrived_at"], datetime) and row["total_us"] is not None
    }
    closes = datetime(2026, 3, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    checked = 0
    for row in reports:
        booked, end = row["reported_at"], ends.get((row["attempt_hi"], row["attempt_lo"]))
        assert isinstance(booked, datetime)
        assert row["day"] == booked.date()
        if end is not None:
            assert booked == min(end, closes)
            checked += 1
    assert checked > 5_000


def test_a_repeated_report_is_the_same_but_for_its_number(reports: list[Row]) -> None:
    first = {(r["attempt_hi"], r["attempt_lo"], r["part"]): r for r in reports if r["report"] == 0}
    again = [row for row in reports if row["report"] == 1]
    assert again
    for row in again:
        assert row | {"report": 0} == first[row["attempt_hi"], row["attempt_lo"], row["part"]]
