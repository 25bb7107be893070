"""An answer that lists the model calls its own figures are made of: each is a child, and each token counts once."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weighbridge.pipeline import read_usage_batch
from weighbridge.pipeline.ingest.reading import UsageReading, parts_of, read_usage
from weighbridge.pipeline.ingest.readings import read_reports
from weighbridge.pipeline.lake import polars_schema
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.frame import price_readings
from weighbridge.pipeline.price.keys import expand
from weighbridge.pipeline.price.row import Match, PriceRow
from weighbridge.pipeline.reconcile.frames import collected, frame_of
from weighbridge.pipeline.reconcile.match.reports import marked, per_attempt
from weighbridge.schemas.enumerations import PriceStatus, Verdict

DAY = date(2026, 8, 1)
SMALL, LARGE = "llama-3.3-70b-versatile", "openai/gpt-oss-120b"


def usage(prompt: int | None, completion: int | None, total: int | None = None, **more: Any) -> dict[str, Any]:
    told = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}
    return {name: count for name, count in told.items() if count is not None} | more


def body(top: dict[str, Any], *calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    models = [{"model": model, "usage": told} for model, told in calls]
    return {"usage": top, "usage_breakdown": {"models": models}, "choices": [{"finish_reason": "stop"}]}


THOUGHT = usage(495, 6, 501, completion_tokens_details={"reasoning_tokens": 4})
WHOLE = body(usage(633, 10, 643, queue_time=0.2), (SMALL, usage(138, 4, 142)), (LARGE, THOUGHT))


def read(answer: dict[str, Any]) -> UsageReading:
    return read_usage({"provider": "groq", "api": "chat", "model": "groq/compound", "response": answer})


def test_calls_that_make_up_the_answer_are_children_inside_it() -> None:
    reading = read(WHOLE)
    assert (reading.verdict, reading.input_total, reading.output_total) == (Verdict.PROVED, 633, 10)
    assert (reading.model, reading.flags) == ("groq/compound", ("child_calls",))
    told = [(one.model, one.input_total, one.output_total, one.flags) for one in reading.children]
    assert told == [(SMALL, 138, 4, ("inside_answer",)), (LARGE, 495, 6, ("inside_answer",))]


def test_a_call_may_tell_more_than_the_whole() -> None:
    """The whole is silent about thoughts, and is read by its own words; four tokens of one of its calls are some."""
    reading = read(WHOLE)
    assert (reading.counts["reasoning"], reading.counts["output_visible"]) == (0, 10)
    assert [one.counts["reasoning"] for one in reading.children] == [0, 4]


@pytest.mark.parametrize(
    "answer",
    [
        body(usage(634, 10, 644), (SMALL, usage(138, 4, 142)), (LARGE, usage(495, 6, 501))),
        body(usage(633, 10, 643), (SMALL, usage(633, 10, 643)), (LARGE, usage(633, 10, 643))),
        body(usage(633, 10, 643), (SMALL, usage(138, 4, 142)), (LARGE, usage(495, None))),
        body(usage(633, 10, 643), (SMALL, usage(138, 4, 143)), (LARGE, usage(495, 6))),
        body(usage(5, 5), (SMALL, usage(-5, 5)), (LARGE, usage(10, 0))),
        body(usage(10, 2, prompt_tokens_details={"cached_tokens": 4}), (SMALL, usage(10, 2))),
    ],
    ids=["sum", "each repeats the whole", "a call without output", "a call that is off", "negative", "cached"],
)
def test_a_list_that_does_not_add_up_is_kept_as_leaves_and_said(answer: dict[str, Any]) -> None:
    reading = read(answer)
    assert (reading.children, reading.flags) == ((), ("breakdown_differs", "child_calls"))
    assert reading.input_total == answer["usage"]["prompt_tokens"]
    assert "usage_breakdown.models[0].model" in {leaf.path for leaf in reading.leaves}


def test_a_report_that_contradicts_itself_has_no_calls() -> None:
    twice = {**WHOLE, "x_groq": {"usage": usage(634, 10, 644)}}
    assert (read(twice).verdict, read(twice).children) == (Verdict.CONTRADICTORY, ())
    assert "breakdown_differs" in read(twice).flags


def reports(*answers: dict[str, Any], source: str = "groq") -> pl.DataFrame:
    """Rows of `usage_report`, one answer an attempt."""
    rows = []
    for number, answer in enumerate(answers):
        (part,) = parts_of("chat", response=answer)
        rows.append(
            {
                **dict.fromkeys(("attempt_hi", "attempt_lo", "segment_row"), number),
                **dict.fromkeys(("child", "report", "revision", "part"), 0),
                "day": DAY,
                "source": source,
                "segment": "s",
                "notes": None,
                "part_kind": str(part.part_kind),
                "provider": "groq",
                "api": "chat",
                "model": "groq/compound",
                "ended": str(part.ended),
                "leaf_shape": part.flattened.shape,
                "leaf_integers": part.flattened.integers(),
                "leaf_texts": part.flattened.texts(),
            }
        )
    schema = polars_schema("usage_report")
    return pl.DataFrame(rows, schema={name: schema[name] for name in rows[0]})


def test_in_the_lake_an_attempt_is_the_sum_of_its_rows() -> None:
    rows = read_reports(reports(WHOLE)).rows(named=True)
    told = [(row["child"], row["model"], row["input_total"], row["output_total"]) for row in rows]
    assert told == [(0, "groq/compound", 0, 0), (1, SMALL, 138, 4), (2, LARGE, 495, 6)]
    assert (rows[0]["reported_total"], rows[0]["flags"], rows[0]["reasoning"]) == (643, ["child_calls"], 0)


PLAIN: dict[str, Any] = {"usage": usage(633, 10, 643)}


@pytest.mark.parametrize(("broken_down", "plain"), [("a", "b"), ("b", "a")])
def test_a_source_that_tells_the_same_without_the_calls_repeats_it(broken_down: str, plain: str) -> None:
    told = pl.concat([read_reports(reports(WHOLE, source=broken_down)), read_reports(reports(PLAIN, source=plain))])
    (row,) = collected(per_attempt(frame_of(told))).rows(named=True)
    assert (row["reported_input"] - row["repeated_input"], row["reported_output"] - row["repeated_output"]) == (633, 10)
    assert row["r_model"] == "groq/compound"
    again = collected(marked(frame_of(told))).filter("again")["source"].unique().to_list()
    assert again == ["b"]


def price(model: str, given: str, made: str) -> PriceRow:
    return PriceRow(
        provider="groq",
        match=Match.EQUALS,
        model=model,
        prices=expand({"input": Decimal(given), "output": Decimal(made)}),
        currency="USD",
        origin="test",
    )


def test_each_call_is_priced_at_its_model_and_the_rest_is_nothing() -> None:
    """138 x 1 + 4 x 2 = 146 and 495 x 3 + 6 x 4 = 1,509 millionths; nobody prices the compound itself."""
    told = read_reports(reports(WHOLE, {"usage": usage(0, 0, 0)}))
    priced = price_readings(told, PriceBook([[price(SMALL, "1", "2"), price(LARGE, "3", "4")]]))
    amounts = priced.select("attempt_lo", "child", "amount", "status", "currency").rows()
    done = str(PriceStatus.PRICED)
    assert amounts == [
        (0, 0, Decimal(0), done, "USD"),
        (0, 1, Decimal("0.000146"), done, "USD"),
        (0, 2, Decimal("0.001509"), done, "USD"),
        (1, 0, None, str(PriceStatus.NO_PRICE), None),
    ]


COUNT = st.sampled_from([None, 0, 1, 2, 3, 5, -1, 2**53 + 1])
TOLD = st.builds(
    lambda prompt, completion, total, cached, thought: usage(
        prompt,
        completion,
        total,
        **({} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}),
        **({} if thought is None else {"completion_tokens_details": {"reasoning_tokens": thought}}),
    ),
    *(COUNT,) * 5,
)


@given(st.lists(st.tuples(TOLD, st.lists(st.tuples(st.sampled_from([SMALL, LARGE]), TOLD), max_size=3)), max_size=4))
@settings(max_examples=15, deadline=None)
def test_columns_and_single_records_agree(
    answers: list[tuple[dict[str, Any], list[tuple[str, dict[str, Any]]]]],
) -> None:
    bodies = [WHOLE, PLAIN, *(body(top, *calls) for top, calls in answers)]
    # A sum that holds by construction, so that the examples are not all of lists that are off.
    bodies += [
        body(
            usage(7, 3, 10), *((model, usage(0, 0)) for _, calls in answers for model, _ in calls), (SMALL, usage(7, 3))
        )
    ]
    records = [{"provider": "groq", "api": "chat", "model": "groq/compound", "response": one} for one in bodies]
    rows = iter(read_usage_batch(records).rows(named=True))
    held = iter(read_reports(reports(*bodies)).rows(named=True))
    for reading in map(read_usage, records):
        for at, one in enumerate((reading, *reading.children)):
            row, stored = next(rows), next(held)
            assert (row["child"], row["model"], row["verdict"]) == (at, one.model, str(one.verdict))
            assert (row["flags"], stored["flags"]) == (list(one.flags), list(one.flags))
            assert {name: row[name] for name in one.counts} == one.counts
            divided = at == 0 and reading.children
            assert stored["input_total"] == (0 if divided else one.input_total)
            assert {name: stored[name] for name in one.counts} == (
                dict.fromkeys(one.counts, 0) if divided else one.counts
            )
    assert next(rows, None) is None
    assert next(held, None) is None
