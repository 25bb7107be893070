"""Attempts under keys of their own: which are one, which are tries of a request, and which cannot be told."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from polars.testing import assert_frame_equal
from tests.pipeline.reconcile.conftest import DAY, SEGMENT, Reconciled, World, key, weighed

from weighbridge.pipeline.reconcile.match.links import LARGEST_GROUP, linked
from weighbridge.pipeline.reconcile.match.members import members
from weighbridge.schemas.enumerations import ForeignIdKind

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def at(seconds: float, lasting: float | None = 1.0) -> dict[str, Any]:
    """Times of an attempt that arrived so many seconds after noon."""
    return {
        "arrived_at": NOON + timedelta(seconds=seconds),
        "total_us": None if lasting is None else int(lasting * 1_000_000),
    }


def named(world: World, name: int, *numbers: int, kind: str = "client_request_id", source: str = "agent") -> None:
    """Attempts that share an identifier."""
    for number in numbers:
        hi, lo = key(number)
        row = {"alias_hi": name, "alias_lo": name, "kind": kind, "attempt_hi": hi, "attempt_lo": lo, "day": DAY}
        world.add("alias", {**row, "source": source, "segment": SEGMENT})


def engine(world: World, number: int, tokens: int, **columns: Any) -> None:
    """What an engine saw."""
    world.attempt(number, **{"source": "engine", "input_computed": tokens, "usage_expected": None, **columns})


def gateway(world: World, number: int, tokens: int, **columns: Any) -> None:
    """What a gateway logged: an attempt without figures, and its usage."""
    world.attempt(number, **{"source": "gateway", "usage_expected": None, **columns})
    world.reading(number, input_total=tokens, source="gateway")


def met(out: Reconciled, number: int) -> tuple[Any, ...]:
    """By what the sides of an attempt met, and the numbers of its candidates."""
    row = out.row(number)
    others = None if row["candidates"] is None else [int(each, 16) & 0xFFFF for each in row["candidates"]]
    return row["matched_by"], others


def test_one_recorder_and_a_carried_key_match_by_key(world: World) -> None:
    """The same source wrote both sides; or two did under the id that was handed on."""
    world.attempt(1, input_computed=10)
    world.reading(1, input_total=10)
    engine(world, 2, 10)
    world.reading(2, input_total=10, source="gateway")
    world.attempt(3, usage_expected=False)
    out = weighed(world)
    assert [met(out, number) for number in (1, 2, 3)] == [("key", None), ("key", None), (None, None)]


def test_two_sources_that_know_one_identifier_match_by_alias(world: World) -> None:
    """Ingest gave the log's record the key of the attempt; the alias of both says why."""
    engine(world, 1, 10)
    world.reading(1, input_total=10, source="gateway")
    named(world, 7, 1, source="engine")
    named(world, 7, 1, source="gateway")
    assert met(weighed(world), 1) == ("alias", None)


def test_a_client_id_used_twice_one_after_the_other_is_told_apart_by_time(world: World) -> None:
    """`retry-me`: the second call began when the first was over, and each report has its own second."""
    engine(world, 1, 60, **at(0, 0.3))
    engine(world, 2, 61, **at(20, 0.3))
    gateway(world, 3, 60, **at(0, 0.4))
    gateway(world, 4, 61, **at(20, 0.4))
    named(world, 7, 1, 2, source="engine")
    named(world, 7, 3, 4, source="gateway")
    out = weighed(world)
    assert (out.outcome(1), met(out, 1)) == ((60, 60, 0, 0, "MATCHED"), ("time", None))
    assert (out.outcome(2), met(out, 2)) == ((61, 61, 0, 0, "MATCHED"), ("time", None))
    assert (out.outcome(3), met(out, 3)) == ((None, None, None, None, "NOT_COMPARED"), ("time", [1]))
    assert met(out, 4) == ("time", [2])
    assert "ambiguous_match" in out.codes


def test_a_client_id_used_twice_at_once_is_told_apart_by_parameters(world: World) -> None:
    """`order-78`: at the same time, but one asked for 20 tokens and the other for 25."""
    for number, limit in ((1, 20), (2, 25)):
        engine(world, number, 40 + number, max_tokens=limit, **at(0, 0.4))
        gateway(world, number + 2, 40 + number, max_tokens=limit, **at(0, 0.5))
    named(world, 8, 1, 2, source="engine")
    named(world, 8, 3, 4, source="gateway")
    out = weighed(world)
    assert [out.outcome(number) for number in (1, 2)] == [(41, 41, 0, 0, "MATCHED"), (42, 42, 0, 0, "MATCHED")]
    assert [met(out, number) for number in (1, 2)] == [("time", None), ("time", None)]


def test_what_cannot_be_told_apart_names_all_candidates(world: World) -> None:
    """At once and with the same parameters: either could be the other's, and nothing is compared."""
    for number in (1, 2):
        engine(world, number, 40, **at(0))
        gateway(world, number + 2, 40, **at(0))
    named(world, 8, 1, 2, source="engine")
    named(world, 8, 3, 4, source="gateway")
    out = weighed(world)
    assert [met(out, number) for number in (1, 2, 3, 4)] == [
        ("ambiguous", [3, 4]),
        ("ambiguous", [3, 4]),
        ("ambiguous", [1, 2]),
        ("ambiguous", [1, 2]),
    ]
    assert {out.outcome(number)[-1] for number in (1, 2, 3, 4)} == {"NOT_COMPARED"}


def test_a_response_id_under_two_attempts_makes_a_match_by_it_ambiguous(world: World) -> None:
    """The log met the first attempt by an id that a second one has too."""
    engine(world, 1, 10)
    world.reading(1, input_total=10, source="gateway")
    engine(world, 2, 10)
    for source in ("engine", "gateway"):
        named(world, 7, 1, source=source, kind="provider_response_id")
    named(world, 7, 2, source="engine", kind="provider_response_id")
    out = weighed(world)
    assert met(out, 1) == ("ambiguous", [2])
    assert out.outcome(1) == (10, 10, 0, 0, "MATCHED")


def request(world: World, *numbers: int) -> None:
    """Attempts of one request."""
    for row in world.tables["attempt"]:
        if row["attempt_lo"] in numbers:
            row |= {"request_hi": 5, "request_lo": 5}


def test_one_attempt_of_a_request_seen_and_one_reported_are_the_same(world: World) -> None:
    """Agent and gateway know the request, and neither its attempt's key of the other."""
    engine(world, 1, 40)
    gateway(world, 2, 40)
    request(world, 1, 2)
    out = weighed(world)
    assert (out.outcome(1), met(out, 1)) == ((40, 40, 0, 0, "MATCHED"), ("request", None))
    assert met(out, 2) == ("request", [1])


@pytest.mark.parametrize(
    ("columns", "cause"),
    [
        ({**at(5)}, "retry"),
        ({**at(5), "model_served": "m-2"}, "fallback"),
        ({**at(0.5)}, "speculative_request"),
        ({"arrived_at": None, "total_us": None}, "retry"),
    ],
)
def test_a_try_that_nobody_observed_is_explained(columns: dict[str, Any], cause: str, world: World) -> None:
    """The first try was seen and reported; the gateway reports another one of the request."""
    world.attempt(1, input_computed=40, attempt_number=1, **at(0))
    world.reading(1, input_total=40)
    gateway(world, 2, 45, attempt_number=2, **columns)
    request(world, 1, 2)
    out = weighed(world)
    assert out.outcome(2) == (None, 45, 45, 0, "EXPLAINED")
    assert out.causes(2) == {cause: 45}
    assert met(out, 2) == ("request", None)
    assert out.outcome(1) == (40, 40, 0, 0, "MATCHED")


def test_a_client_id_soon_used_again_is_a_retry_and_much_later_another_call(world: World) -> None:
    """Within ten minutes; without a time nothing is said."""
    for number, seconds in ((1, 0), (2, 30), (3, 3600)):
        gateway(world, number, 45, **at(seconds))
    world.tables["attempt"][0] |= {"input_computed": 45}
    named(world, 7, 1, 2, 3)
    out = weighed(world)
    assert out.causes(2) == {"retry": 45}
    assert out.outcome(3) == (None, 45, None, None, "NOT_COMPARED")


def test_one_report_for_all_tries_is_explained_by_what_the_others_computed(world: World) -> None:
    """The engine worked for the failed try, which has no report of its own; the last one's holds both."""
    world.attempt(1, input_computed=600, status="failed", attempt_number=1, **at(0))
    world.attempt(2, input_computed=1000, attempt_number=2, **at(3))
    world.reading(2, input_total=1600)
    request(world, 1, 2)
    out = weighed(world)
    assert out.outcome(2) == (1000, 1600, 600, 0, "EXPLAINED")
    assert out.causes(2) == {"retries_summed": 600}
    # 1600 computed, 1600 reported: the two gaps of 600 are one another's, and over the request nothing is left.
    assert out.outcome(1) == (600, None, -600, 0, "EXPLAINED")
    assert out.causes(1) == {"failed_after_generation": -600}


def test_what_failed_takes_no_report_of_another_try(world: World) -> None:
    """It owes none, so that of the gateway belongs to a try nobody saw; and that was no retry of anything whole."""
    world.attempt(1, input_computed=600, status="failed")
    gateway(world, 2, 600)
    request(world, 1, 2)
    out = weighed(world)
    assert met(out, 2) == (None, None)
    assert out.outcome(2)[-1] == "NOT_COMPARED"


def test_a_repeated_report_of_a_retry_is_a_duplicate_and_no_retry(world: World) -> None:
    """Nothing is explained twice."""
    world.attempt(1, input_computed=40, attempt_number=1)
    world.reading(1, input_total=40)
    gateway(world, 2, 45, attempt_number=2)
    world.reading(2, input_total=45, source="gateway", report=1)
    request(world, 1, 2)
    assert weighed(world).causes(2) == {"duplicate_report": 45, "retry": 45}


def test_an_id_that_everything_has_is_no_group(world: World) -> None:
    """Nobody sends one request more than 32 times."""
    world.attempt(1, input_computed=40, **at(0))
    world.reading(1, input_total=40)
    for number in range(2, LARGEST_GROUP + 2):
        gateway(world, number, 45, **at(1))
    named(world, 7, *range(1, LARGEST_GROUP + 2))
    assert weighed(world).outcome(2)[-1] == "NOT_COMPARED"


def test_in_a_group_too_large_no_usage_is_missing_where_another_has_it(world: World) -> None:
    """Of 33 attempts with one id the first was seen only and the others reported only: any of them may be its own."""
    engine(world, 1, 40, usage_expected=True, **at(0))
    for number in range(2, LARGEST_GROUP + 2):
        gateway(world, number, 45, **at(1))
    named(world, 7, *range(1, LARGEST_GROUP + 2))
    out = weighed(world)
    assert (out.outcome(1)[-1], out.causes(1), met(out, 1)) == ("NOT_COMPARED", {}, ("ambiguous", None))
    assert "usage_missing" not in out.codes


def test_in_a_group_too_large_usage_is_missing_where_nobody_has_it(world: World) -> None:
    """33 attempts with one id: all others have both sides, so the first has no usage at all."""
    engine(world, 1, 40, usage_expected=True, **at(0))
    for number in range(2, LARGEST_GROUP + 2):
        engine(world, number, 45, **at(1))
        world.reading(number, input_total=45)
    named(world, 7, *range(1, LARGEST_GROUP + 2))
    assert weighed(world).causes(1) == {"usage_missing": -40}


@pytest.mark.parametrize("month", ["2026-03", "2026-04", None])
def test_the_two_sides_of_an_attempt_meet_over_a_months_end(world: World, month: str | None) -> None:
    """Seen a second before midnight of the last of March, logged a second after it: one attempt, and it is March's."""
    midnight = datetime(2026, 4, 1, tzinfo=UTC)
    before = midnight - timedelta(seconds=1)
    begun = {"arrived_at": before, "total_us": 3_000_000}
    engine(world, 1, 40, usage_expected=True, day=before.date(), **begun)
    ended = {"arrived_at": midnight + timedelta(seconds=1), "total_us": 500_000}
    gateway(world, 2, 40, day=midnight.date(), **ended)
    world.tables["reading"][-1]["day"] = midnight.date()
    named(world, 7, 1, 2)
    world.tables["alias"][0]["day"], world.tables["alias"][1]["day"] = before.date(), midnight.date()
    out = weighed(world, month=month)
    if month != "2026-04":
        assert (out.outcome(1), met(out, 1)) == ((40, 40, 0, 0, "MATCHED"), ("time", None))
    if month != "2026-03":
        assert (out.outcome(2), met(out, 2)) == ((None, None, None, None, "NOT_COMPARED"), ("time", [1]))
    assert not {"usage_missing", "unmatched_report"} & set(out.codes)


def test_no_order_of_rows_changes_a_link(world: World) -> None:
    """Groups of every kind, shuffled."""
    draw = random.Random(4)
    for number in range(1, 40):
        write = draw.choice([engine, gateway])
        limit = draw.choice([None, 20, 25])
        write(world, number, draw.randint(1, 9), max_tokens=limit, **at(draw.randint(0, 9), draw.choice([None, 1.0])))
        named(world, draw.randint(1, 8), number)
        if draw.random() < 0.6:
            world.tables["attempt"][-1] |= {"request_hi": 1, "request_lo": draw.randint(1, 6)}
    found = []
    for seed in range(3):
        for rows in world.tables.values():
            random.Random(seed).shuffle(rows)
        found.append(linked(members(lambda table, columns: world.frame(table).lazy().select(columns))))
    for other in found[1:]:
        for name in ("twins", "ambiguous", "related"):
            assert_frame_equal(getattr(found[0], name), getattr(other, name))
    assert all(getattr(found[0], name).height for name in ("twins", "ambiguous", "related"))
    assert str(ForeignIdKind.CLIENT_REQUEST_ID) == "client_request_id"
