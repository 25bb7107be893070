"""Which spans of a trace are calls: the innermost ones that carry usage, whatever stands around them."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.pipeline.ingest.span_tree import Place, Span, places


def span(name: str | None, parent: str | None = None, *usage: int, trace: str | None = "t") -> Span:
    return Span(trace, name, parent, dict(zip(("input", "output"), usage, strict=False)) or None)


def told(*spans: Span) -> list[str]:
    return [str(place) for place in places(spans)]


def test_an_agent_that_repeats_the_sum_of_its_calls_is_not_added_to_them() -> None:
    assert told(span("p", None, 113, 11), span("a", "p", 56, 5), span("b", "p", 57, 6)) == [
        "repeats",
        "counts",
        "counts",
    ]


def test_of_three_nested_spans_with_the_same_usage_the_innermost_counts() -> None:
    assert told(span("a", None, 100, 20), span("b", "a", 100, 20), span("c", "b", 100, 20)) == [
        "repeats",
        "repeats",
        "counts",
    ]


def test_a_parent_with_other_numbers_is_no_call_either_and_that_is_said() -> None:
    assert told(span("p", None, 1568, 423), span("c", "p", 663, 225)) == ["differs", "counts"]


def test_spans_without_usage_between_them_change_nothing() -> None:
    assert told(span("p", None, 5, 6), span("m", "p"), span("c", "m", 5, 6)) == ["repeats", "silent", "counts"]


def test_the_order_of_the_rows_changes_nothing() -> None:
    assert told(span("c", "m", 5, 6), span("m", "p"), span("p", None, 5, 6)) == ["counts", "silent", "repeats"]


def test_zeros_are_no_usage_where_another_span_around_or_inside_tells_some() -> None:
    assert told(span("p", None, 9, 1), span("c", "p", 0, 0)) == ["counts", "counts"]
    assert told(span("p", None, 0, 0), span("c", "p", 9, 1)) == ["silent", "counts"]


def test_a_parent_that_is_not_there_is_none_and_ids_of_another_trace_are_others() -> None:
    assert told(span("c", "gone", 1, 2), span("d", "c", 1, 2, trace="u")) == ["counts", "counts"]


def test_rows_without_an_id_are_calls_of_their_own() -> None:
    assert told(span(None, None, 1, 2), span(None, None, 1, 2)) == ["counts", "counts"]


def test_the_same_span_told_twice_is_one() -> None:
    assert told(span("p", None, 2, 2), span("c", "p", 2, 2), span("p", None, 2, 2), span("c", "p", 2, 2)) == [
        "repeats",
        "counts",
        "repeats",
        "counts",
    ]


def test_only_counts_that_both_sides_tell_are_compared() -> None:
    parent = Span("t", "p", None, {"input": 5, "output": 6, "cache_read": 3})
    assert places([parent, span("c", "p", 5, 6)])[0] is Place.REPEATS
    assert places([Span("t", "p", None, {"total": 11}), span("c", "p", 5, 6)])[0] is Place.DIFFERS


def test_parents_in_a_circle_end() -> None:
    assert set(told(span("a", "b", 1, 1), span("b", "a", 1, 1), span("s", "s", 1, 1))) <= set(Place)


_SPANS = st.lists(
    st.builds(
        span,
        st.sampled_from([None, "a", "b", "c", "d"]),
        st.sampled_from([None, "a", "b", "c", "d", "x"]),
        st.integers(0, 3),
        st.integers(0, 3),
        trace=st.sampled_from([None, "t"]),
    ),
    max_size=8,
)


@given(_SPANS)
def test_each_row_gets_one_answer_and_usage_never_disappears_from_a_trace_without_circles(spans: list[Span]) -> None:
    found = places(spans)
    assert len(found) == len(spans)
    ordered = [one for one in spans if one.parent is None or (one.id or "") > one.parent]
    telling = {one.trace for one in ordered if one.tells}
    counted = {one.trace for one, place in zip(ordered, places(ordered), strict=True) if place is Place.COUNTS}
    assert telling <= counted


@pytest.mark.real
def test_the_recorded_traces_count_each_call_once(shared_real: Path) -> None:
    """Four traces hold parents that restate their calls: 3,839 against 1,071 tokens and so on."""
    path = shared_real / "spans" / "langfuse_framework_observations.jsonl"
    rows = [row for line in path.read_text().splitlines() if (row := json.loads(line)).get("type")]
    spans = [Span(row["traceId"], row["id"], row["parentObservationId"], row["usageDetails"] or None) for row in rows]
    all_: dict[str | None, dict[str, int]] = defaultdict(dict)
    leaves: dict[str | None, dict[str, int]] = defaultdict(dict)
    for one, place in zip(spans, places(spans), strict=True):
        if one.usage and one.id:
            all_[one.trace][one.id] = one.usage["total"]
            if place is Place.COUNTS:
                leaves[one.trace][one.id] = one.usage["total"]
    sums = {(sum(all_[trace].values()), sum(leaves[trace].values())) for trace in all_}
    assert {(a, b) for a, b in sums if a != b} == {(3839, 1071), (1427, 761), (623, 399), (204, 147)}
