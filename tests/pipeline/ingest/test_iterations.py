"""Model calls that the top level of an answer leaves out: each is a reading of its own, counted exactly once."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from weighbridge.pipeline.ingest.reading import UsageReading, parts_of, read_parts, read_usage
from weighbridge.pipeline.ingest.readings import read_reports
from weighbridge.pipeline.lake import polars_schema
from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.price.frame import price_readings
from weighbridge.pipeline.price.keys import expand
from weighbridge.pipeline.price.row import Match, PriceRow
from weighbridge.pipeline.reconcile.frames import collected, frame_of
from weighbridge.pipeline.reconcile.match.reports import per_attempt
from weighbridge.schemas.enumerations import Verdict

DAY = date(2026, 8, 1)


def call(kind: str, given: int, made: int, model: str | None = None, **more: Any) -> dict[str, Any]:
    named = {} if model is None else {"model": model}
    return {"type": kind, "input_tokens": given, "output_tokens": made, **named, **more}


COMPACTED = {
    "input_tokens": 220,
    "output_tokens": 8,
    "iterations": [call("compaction", 55_196, 125), call("message", 220, 8)],
}
ADVISED = {
    "input_tokens": 4727,
    "output_tokens": 3391,
    "iterations": [
        call("message", 1051, 35),
        call("advisor_message", 2728, 3880, "claude-opus-4-7"),
        call("message", 3676, 3356),
    ],
}
FALLEN_BACK = {
    "input_tokens": 412,
    "output_tokens": 264,
    "iterations": [call("message", 408, 0, "claude-fable-5"), call("fallback_message", 412, 264, "claude-opus-4-8")],
}


def read(usage: dict[str, Any], **more: Any) -> UsageReading:
    return read_usage({"provider": "anthropic", "api": "messages", "model": "claude-x", "usage": usage, **more})


def figures(reading: UsageReading) -> tuple[str | None, int | None, int | None]:
    return reading.model, reading.input_total, reading.output_total


@pytest.mark.parametrize(
    ("usage", "child"),
    [
        (COMPACTED, ("claude-x", 55_196, 125)),
        (ADVISED, ("claude-opus-4-7", 2728, 3880)),
        (FALLEN_BACK, ("claude-fable-5", 408, 0)),
    ],
    ids=["compaction", "advisor", "fallback"],
)
def test_a_call_beside_the_top_level_is_a_child_of_its_own_model(
    usage: dict[str, Any], child: tuple[str, int, int]
) -> None:
    reading = read(usage)
    assert figures(reading) == ("claude-x", usage["input_tokens"], usage["output_tokens"])
    assert [figures(one) for one in reading.children] == [child]
    assert reading.flags == ("child_calls",)
    assert reading.children[0].verdict is Verdict.PROVED
    assert all(".iterations[" in leaf.path for leaf in reading.children[0].leaves)


def test_a_child_has_cache_classes_of_its_own() -> None:
    split: dict[str, Any] = {
        "cache_creation_input_tokens": 55_096,
        "cache_creation": {"ephemeral_5m_input_tokens": 55_096},
    }
    usage = {
        "input_tokens": 229,
        "output_tokens": 5,
        "iterations": [call("compaction", 100, 131, **split), call("message", 229, 5)],
    }
    (child,) = read(usage).children
    assert (child.counts["input_uncached"], child.counts["cache_write_5m"], child.input_total) == (100, 55_096, 55_196)


def test_iterations_that_are_the_top_level_are_no_children() -> None:
    usage = {"input_tokens": 12, "output_tokens": 7, "iterations": [call("message", 5, 3), call("message", 7, 4)]}
    assert (read(usage).children, read(usage).flags) == ((), ())


@pytest.mark.parametrize(
    "usage",
    [
        {**COMPACTED, "input_tokens": 221},
        {**COMPACTED, "cache_read_input_tokens": 5},
        {"input_tokens": 5, "output_tokens": 5, "iterations": [call("compaction", 5, 5)]},
    ],
    ids=["input", "cache", "no message"],
)
def test_where_the_sum_is_not_met_nothing_is_guessed(usage: dict[str, Any]) -> None:
    reading = read(usage)
    assert (reading.children, reading.flags) == ((), ("iterations_left_out",))
    assert reading.input_total == usage["input_tokens"] + usage.get("cache_read_input_tokens", 0)


def test_of_a_stream_the_revised_top_level_and_its_iterations_count() -> None:
    """The opening shows the compaction's input, the last event the message's: neither is lost, neither counts twice."""
    events = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 55_196, "output_tokens": 5}}},
        {"type": "message_delta", "usage": COMPACTED},
        {"type": "message_stop"},
    ]
    reading = read_usage({"provider": "anthropic", "api": "messages", "model": "claude-x", "events": events})
    assert figures(reading) == ("claude-x", 220, 8)
    assert [figures(one) for one in reading.children] == [("claude-x", 55_196, 125)]


def reports(*answers: dict[str, Any], source: str = "log") -> pl.DataFrame:
    """Rows of `usage_report`, one answer an attempt."""
    rows = []
    for number, answer in enumerate(answers):
        for part, piece in enumerate(parts_of("messages", **answer)):
            rows.append(
                {
                    **dict.fromkeys(("attempt_hi", "attempt_lo", "segment_row"), number),
                    **dict.fromkeys(("child", "report", "revision"), 0),
                    "day": DAY,
                    "source": source,
                    "part": part,
                    "part_kind": str(piece.part_kind),
                    "provider": "anthropic",
                    "api": "messages",
                    "model": "claude-x",
                    "ended": str(piece.ended),
                    "leaf_shape": piece.flattened.shape,
                    "leaf_integers": piece.flattened.integers(),
                    "leaf_texts": piece.flattened.texts(),
                    "notes": None,
                    "segment": "s",
                }
            )
    schema = polars_schema("usage_report")
    return pl.DataFrame(rows, schema={name: schema[name] for name in rows[0]})


STREAMED = {
    "events": [
        {"type": "message_start", "message": {"usage": {"input_tokens": 1051, "output_tokens": 5}}},
        {"type": "message_delta", "usage": ADVISED},
    ]
}
ANSWERS: tuple[dict[str, Any], ...] = (
    {"usage": COMPACTED},
    STREAMED,
    {"usage": {"input_tokens": 3, "output_tokens": 4}},
    {"usage": {**COMPACTED, "input_tokens": 221}},
    {"usage": {"input_tokens": 1, "output_tokens": 1, "iterations": [call("message", 1, 1)]}},
    {"response": {"type": "message", "usage": FALLEN_BACK}},
)


def test_in_columns_the_children_follow_their_report_and_are_the_same() -> None:
    expected = []
    for number, answer in enumerate(ANSWERS):
        reading = read_parts("anthropic", "messages", "claude-x", parts_of("messages", **answer))
        expected += [(number, at, one) for at, one in enumerate((reading, *reading.children))]
    rows = read_reports(reports(*ANSWERS)).rows(named=True)
    assert len(rows) == len(expected) == len(ANSWERS) + 3
    for row, (number, child, one) in zip(rows, expected, strict=True):
        assert (row["attempt_lo"], row["child"], row["model"]) == (number, child, one.model)
        assert (row["verdict"], row["reason"], tuple(row["flags"])) == (str(one.verdict), one.reason, one.flags)
        assert {name: row[name] for name in one.counts} == one.counts
        assert (row["input_total"], row["output_total"], row["total"]) == (one.input_total, one.output_total, one.total)


def test_calls_are_numbered_after_children_that_are_reported_as_such() -> None:
    first = reports({"usage": COMPACTED})
    chosen = first.with_columns(child=pl.lit(1, dtype=first.schema["child"]), leaf_shape=pl.lit(""))
    chosen = chosen.with_columns(leaf_integers=pl.lit([], dtype=pl.List(pl.Int64)), leaf_texts=None)
    read = read_reports(pl.concat([first, chosen], how="diagonal_relaxed"))
    assert sorted(read["child"]) == [0, 1, 2]
    assert read.filter(pl.col("child") == 2)["input_total"].to_list() == [55_196]


def test_every_token_of_the_answer_is_added_up_exactly_once() -> None:
    """What an attempt reports is the top level and the calls beside it; a second source repeats all of it."""
    once = read_reports(reports(*ANSWERS))
    twice = pl.concat([once, read_reports(reports(*ANSWERS, source="other"))])
    tokens = {0: (55_416, 133), 1: (7455, 7271), 2: (3, 4), 3: (221, 8), 4: (1, 1), 5: (820, 264)}
    for read, times in ((once, 1), (twice, 2)):
        rows = collected(per_attempt(frame_of(read))).sort("r_lo").rows(named=True)
        found = {row["r_lo"]: (row["reported_input"], row["reported_output"]) for row in rows}
        assert found == {key: (given * times, made * times) for key, (given, made) in tokens.items()}
        again = {row["r_lo"]: (row["repeated_input"], row["repeated_output"]) for row in rows}
        assert again == {key: (given * (times - 1), made * (times - 1)) for key, (given, made) in tokens.items()}
        assert all(row["r_model"] == "claude-x" for row in rows)


def price(model: str, given: str, made: str) -> PriceRow:
    return PriceRow(
        provider="anthropic",
        match=Match.EQUALS,
        model=model,
        prices=expand({"input": Decimal(given), "output": Decimal(made)}),
        currency="USD",
        origin="test",
    )


def test_each_call_is_priced_at_its_own_model() -> None:
    """4,727 x 3 + 3,391 x 15 millionths of the model asked; 2,728 x 5 + 3,880 x 25 of the advisor's."""
    book = PriceBook([[price("claude-x", "3", "15"), price("claude-opus-4-7", "5", "25")]])
    priced = price_readings(read_reports(reports(STREAMED)), book).sort("child")
    assert priced["child"].to_list() == [0, 1]
    assert priced["amount"].to_list() == [Decimal("0.065046"), Decimal("0.110640")]
    only = PriceBook([[price("claude-x", "3", "15")]])
    unpriced = price_readings(read_reports(reports(STREAMED)), only).sort("child")
    assert unpriced["amount"].to_list() == [Decimal("0.065046"), None]
