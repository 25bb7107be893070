"""Facts about providers: one contract over every row, and what rows do to a dialect."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from datetime import date, timedelta
from itertools import combinations
from pathlib import Path

import pytest
from tests.pipeline.ingest.second_reader.compare import readings
from tests.pipeline.ingest.second_reader.reader import answers

from weighbridge.pipeline.ingest import fact as fact_module
from weighbridge.pipeline.ingest import reading
from weighbridge.pipeline.ingest.dialect import Dialect, Role
from weighbridge.pipeline.ingest.dialects import all_dialects, dialect_for
from weighbridge.pipeline.ingest.fact import Axis, Basis, Fact, Repair, all_facts
from weighbridge.pipeline.ingest.facts_page import page
from weighbridge.pipeline.ingest.known import Figures
from weighbridge.pipeline.ingest.outcome import words
from weighbridge.pipeline.ingest.reading import UsageReading, read_usage
from weighbridge.pipeline.ingest.solver import solve
from weighbridge.pipeline.ingest.speakers import lookup, specialised
from weighbridge.schemas.enumerations import Verdict
from weighbridge.schemas.identity import NAME

FACTS = all_facts()
PAGE = "https://example.com/usage"


def name_of(fact: Fact) -> str:
    return f"{fact.provider} {fact.api} {fact.model or ''} {fact.since or ''}".strip()


@pytest.mark.parametrize("fact", FACTS, ids=name_of)
def test_a_row_is_about_a_dialect_and_says_only_what_that_conceives_of(fact: Fact) -> None:
    dialect = all_dialects()[fact.api]
    assert NAME.fullmatch(fact.provider)
    assert fact.source.startswith("https://")
    assert fact.model is None or fact.model == fact.model.lower()
    assert fact.since is None or fact.until is None or fact.since <= fact.until
    assert fact.absent is None or fact.absent in dialect.absent
    assert all(step is None or step > 1 for step in (fact.cached_grain, fact.reasoning_grain))
    spoken = specialised(dialect, (fact,), (fact,), known=True)
    assert dict(fact.declared).items() <= {axis: values[0] for axis, values in spoken.axes.items()}.items()
    assert fact in dialect.facts
    assert dialect.names(fact.provider)


def test_a_negative_input_can_only_be_mended_where_it_excludes_what_was_cached() -> None:
    mended = [fact for fact in FACTS if fact.repair is Repair.NEGATIVE_INPUT]
    for fact in mended:
        spoken = dialect_for(fact.provider, fact.api)
        assert spoken is not None
        assert spoken.axes[Axis.INPUT_INCLUDES_CACHE][0] is False


def test_no_two_rows_have_one_key_and_none_of_one_model_overlap_in_time() -> None:
    for one, other in combinations(FACTS, 2):
        if (one.provider, one.api, one.model) == (other.provider, other.api, other.model):
            assert (one.until or date.max) < (other.since or date.min)
    # Two names of one API are no two APIs: rows are about dialects.
    assert {fact.api for fact in FACTS} <= set(all_dialects())


def test_rows_that_hold_only_sometimes_come_after_those_that_always_hold() -> None:
    for one, other in combinations(FACTS, 2):
        assert one.model is None or other.model is not None


@pytest.mark.parametrize("fact", FACTS, ids=name_of)
def test_a_row_survives_being_kept(fact: Fact) -> None:
    assert Fact.of(fact.to_dict()) == fact


def test_an_axis_that_a_dialect_does_not_conceive_of_is_refused() -> None:
    row = Fact("someone", "openai_images", PAGE, declared=((Axis.TOTAL_LEAVES_OUT_REASONING, True),))
    with pytest.raises(ValueError, match="total_leaves_out_reasoning=True is not conceivable in openai_images"):
        specialised(all_dialects()["openai_images"], (row,), (row,), known=True)


def dated(*facts: Fact) -> Dialect:
    return replace(all_dialects()["openai_chat"], facts=facts)


MARCH, APRIL = date(2026, 3, 1), date(2026, 4, 1)


def test_what_was_declared_changes_on_a_day_and_with_a_model() -> None:
    outside = ((Axis.OUTPUT_INCLUDES_REASONING, False),)
    before = Fact("someone", "openai_chat", PAGE, until=APRIL - timedelta(days=1), declared=outside)
    since = Fact("someone", "openai_chat", PAGE, since=APRIL, cached_grain=128)
    mini = Fact("someone", "openai_chat", PAGE, model="mini|small-*", declared=outside, basis=Basis.RECORDED)
    find = lookup([dated(before, since, mini)])

    def declared(model: str | None, day: date | None) -> tuple[bool, int | None]:
        found = find("someone", "chat", model, day)
        assert found is not None
        return found.readings[0].output_includes_reasoning, found.cached_grain

    assert declared("large", MARCH) == (False, None)
    assert declared("large", APRIL) == (True, 128)
    assert declared("Small-2", APRIL) == (False, 128)
    assert declared("smaller", APRIL) == (True, 128)
    # A day that is not known is the newest one; a model that is not known fits no pattern.
    assert declared(None, None) == (True, 128)


def test_who_is_equal_in_all_facts_is_one_dialect() -> None:
    assert dialect_for("openai", "chat", "gpt-4o") is dialect_for("openai", "chat", "gpt-4o-mini")
    assert dialect_for("openai", "chat", "gpt-4o") is not dialect_for("openai", "chat", "gpt-3.5-turbo")


def test_the_named_speaker_comes_before_the_shape_that_is_open_to_all() -> None:
    shape = all_dialects()["openai_embeddings"]
    own = replace(shape, name="own", providers=("someone",), open=False, facts=())
    find = lookup([shape, own])
    for provider, name, known in (("someone", "own", True), ("else", shape.name, False), (None, shape.name, False)):
        found = find(provider, "embeddings")
        assert found is not None
        assert (found.name, found.known) == (name, known)


def test_a_dialect_of_ones_own_comes_before_one_that_facts_say_one_speaks_too() -> None:
    shape = dated(Fact("someone", "openai_chat", PAGE))
    own = replace(shape, name="own", providers=("someone",), facts=())
    for order in ([shape, own], [own, shape]):
        found = lookup(order)("someone", "chat")
        assert found is not None
        assert found.name == "own"


STEPS: list[tuple[str, int, int, tuple[str, ...]]] = [
    ("gpt-5-mini-2025-08-07", 1280, 128, ()),
    ("gpt-5-mini-2025-08-07", 1281, 128, ("cached_off_grain",)),
    ("gpt-5-mini-2025-08-07", 1280, 65, ("reasoning_off_grain",)),
    ("gpt-5-mini-2025-08-07", 1, 1, ("cached_off_grain", "reasoning_off_grain")),
    ("gpt-5.2", 1280, 65, ()),
    ("gpt-5.2", 1281, 64, ("cached_off_grain",)),
    ("gpt-5.6-sol", 4012, 35, ()),
    ("o3-mini-2025-01-31", 0, 0, ()),
]


@pytest.mark.parametrize(("model", "cached", "reasoning", "flags"), STEPS)
def test_counts_off_the_step_of_their_model_are_noticed_and_stay_proved(
    model: str, cached: int, reasoning: int, flags: tuple[str, ...]
) -> None:
    usage = {
        "input_tokens": 5000,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": 500,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": 5500,
    }
    read = read_usage({"provider": "openai", "api": "responses", "model": model, "usage": usage})
    assert (read.verdict, read.flags) == (Verdict.PROVED, flags)
    assert (read.counts["cache_read"], read.counts["reasoning"]) == (cached, reasoning)


def test_the_page_of_facts_is_up_to_date() -> None:
    found = (Path(__file__).resolve().parents[3] / "docs" / "usage-facts.md").read_text(encoding="utf-8")
    assert found == page(), "run `python -m weighbridge.pipeline.ingest.facts_page docs/usage-facts.md`"
    assert all(f"]({fact.source})" in found for fact in FACTS)


@pytest.mark.parametrize(
    ("told", "day"),
    [
        ({"day": "2026-03-01"}, MARCH),
        ({"day": MARCH}, MARCH),
        ({"at": "2026-03-01T23:30:00Z"}, MARCH),
        ({"at": "2026-03-02T00:30:00+02:00"}, MARCH),
        ({"day": "2026-04-01", "at": "2026-03-01T12:00:00"}, APRIL),
        ({"day": "yesterday", "at": "2026-03-01 12:00"}, MARCH),
        ({"day": 20260301, "at": "0001-01-01T00:00:00+14:00"}, None),
        ({}, None),
    ],
)
def test_the_day_of_a_record_is_that_of_its_day_or_time_in_utc(
    told: dict[str, object], day: date | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[date | None] = []
    monkeypatch.setattr(reading, "read_parts", lambda *_, day, **__: asked.append(day))
    read_usage({"provider": "openai", "api": "chat", "usage": {"prompt_tokens": 3}, **told})
    assert asked == [day]


@pytest.mark.parametrize(
    ("given", "read", "verdict", "total", "flags"),
    [
        (-90, 100, Verdict.ASSUMED, 117, {"repaired_negative_input"}),
        (-100, 100, Verdict.ASSUMED, 107, {"repaired_negative_input"}),
        (-101, 100, Verdict.CONTRADICTORY, None, {"negative_count"}),
        (-90, None, Verdict.CONTRADICTORY, None, {"negative_count"}),
    ],
)
def test_a_negative_input_is_mended_only_as_far_as_its_reads_explain_it(
    given: int, read: int | None, verdict: Verdict, total: int | None, flags: set[str]
) -> None:
    """-90 with 100 read: 10 were not cached, so the input is 110 and with 7 of output the whole is 117."""
    row = Fact("someone", "anthropic_messages", PAGE, repair=Repair.NEGATIVE_INPUT)
    dialect = specialised(all_dialects()["anthropic_messages"], (row,), (row,), known=True)
    told = {Role.INPUT: given, Role.OUTPUT: 7, **({} if read is None else {Role.CACHE_READ: read})}
    solution = solve(dialect, "someone", Figures(told))
    said = words(dialect, solution.code)
    assert (said[0], solution.total, set(said[3])) == (verdict, total, flags)
    if total is not None:
        assert solution.classes[:2] == (total - 107, 100)
        assert "added back" in said[1]


def test_every_row_says_what_it_rests_on_and_links_what_that_is() -> None:
    """Left out, the strongest basis would be claimed."""
    for table in sorted((Path(fact_module.__file__).parent / "facts").glob("*.toml")):
        for row in tomllib.loads(table.read_text(encoding="utf-8"))["facts"]:
            assert "basis" in row, row
    for fact in FACTS:
        reported = "/issues/" in fact.source or "/pull/" in fact.source
        assert not reported or fact.basis is Basis.REPORTED, name_of(fact)


# Recorded, but not as answers of that file: engines on loopback, and realtime sessions.
ELSEWHERE = {("vllm", "anthropic_messages"), ("transformers", "openai_chat"), ("transformers", "openai_responses")}
ELSEWHERE |= {("azure", "openai_realtime")}


@pytest.mark.real
def test_what_is_said_to_be_recorded_is(shared_real: Path) -> None:
    """At least one answer each; of a step at least one count that is not zero."""
    recorded: dict[tuple[str, str], list[UsageReading]] = {}
    for record in answers(shared_real):
        for one in readings(record):
            recorded.setdefault((one.provider, one.dialect or ""), []).append(one)
    for fact in FACTS:
        if fact.basis is not Basis.RECORDED or (fact.provider, fact.api) in ELSEWHERE:
            continue
        held = [one for one in recorded.get((fact.provider, fact.api), []) if fact.holds(one.model, None)]
        assert held, name_of(fact)
        if fact.reasoning_grain:
            assert any(one.counts["reasoning"] for one in held), name_of(fact)
        if fact.cached_grain:
            assert any(one.counts["cache_read"] for one in held), name_of(fact)
    assert (shared_real / "engines" / "vllm").is_dir()
    assert (shared_real / "engines" / "transformers").is_dir()
    assert "azure" in (shared_real / "realtime_usage_events.jsonl").read_text(encoding="utf-8")
