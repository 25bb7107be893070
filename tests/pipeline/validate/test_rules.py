"""Every rule of every table fires on the row that breaks it and on no other, and none fires on clean rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

import pytest
from tests.pipeline.validate.conftest import DAY, FILE, MOMENT, TODAY, Row, Rows, clean

from weighbridge.pipeline.lake import Lake
from weighbridge.pipeline.validate.contract import contract
from weighbridge.pipeline.validate.identities import LAWS, SPANS
from weighbridge.pipeline.validate.measure import Measured, days_of, measure
from weighbridge.pipeline.validate.rule import Gravity, Kind, Rule, placed
from weighbridge.schemas.tables import TABLES

KNOWN = {FILE}
NOT_ALLOWED = "two words"


def measured(lake: Lake, table: str, days: list[date] | None = None) -> Measured:
    """A table as it is measured, with one file that has an account."""
    parts = lake.parts(table)
    return measure(lake, table, parts, days_of(table, parts, days), KNOWN, {}, TODAY)


def broken(found: Measured, name: str, day: date | None = DAY) -> int:
    """How many rows break a rule."""
    (rule,) = (rule for rule in found.rules if rule.name == name)
    return found.open(day if TABLES[found.table].daily else None, rule)


def all_broken(found: Measured) -> dict[str, int]:
    """Rule -> rows that break it on any day, notes and all."""
    sums = {rule.name: sum(found.open(day, rule) for day in found.counted) for rule in found.rules}
    return {name: rows for name, rows in sums.items() if rows}


@pytest.mark.parametrize("table", TABLES)
def test_clean_rows_break_nothing(table: str, rows: Rows) -> None:
    rows.put(table, *(clean(table, number) for number in range(3)))
    found = measured(rows.lake, table)
    assert found.rows == 3
    assert all_broken(found) == {}


def wrong(rule: Rule) -> Row | None:
    """What is to be changed of a clean row so that it breaks a rule about one column; null where that needs more."""
    column = rule.column
    if rule.kind is Kind.NULL:
        return {str(column): None}
    if rule.kind is Kind.MINIMUM:
        minimum = TABLES[rule.table].column(str(column)).minimum
        assert minimum is not None
        return {str(column): minimum - 1}
    if rule.name == "pattern.leaf_shape":
        return {"leaf_shape": "usage.secret_word", "leaf_integers": [1]}
    made: dict[Kind, Any] = {Kind.FINITE: float("nan"), Kind.WORD: NOT_ALLOWED, Kind.PATTERN: NOT_ALLOWED}
    if rule.kind is Kind.FILE:
        return {"segment": "b" * 64}
    return {str(column): made[rule.kind]} if rule.kind in made else None


def laws_about(table: str, column: str) -> set[str]:
    """The laws and spans a change of this column may break as well."""
    laws = {f"identity.{law.name}" for law in LAWS.get(table, ()) if column in law.columns}
    return laws | {f"order.{first}" for first, last in SPANS.get(table, ()) if column in {first, last}}


@pytest.mark.parametrize("table", TABLES)
def test_one_row_broken_per_rule_about_a_column_is_the_one_that_is_found(table: str, rows: Rows) -> None:
    cases = [(rule, change) for rule in contract(table, KNOWN) if (change := wrong(rule)) is not None]
    rows.put(table, clean(table, 0), *(clean(table, n) | change for n, (_, change) in enumerate(cases, 1)))
    found = measured(rows.lake, table)
    expected = {rule.name: {number} for number, (rule, _) in enumerate(cases, 1)}
    for number, (rule, change) in enumerate(cases, 1):
        for name in {name for column in change for name in laws_about(table, column)}:
            expected.setdefault(name, set()).add(number)
        if rule.name == "pattern.segment":
            # A digest that is none is that of no file; where it is the key of the table, nobody says so.
            expected.setdefault("file.segment", set()).add(number)
        if rule.name == "null.leaf_shape":
            expected["leaves.leaf_shape"] = {number}
    counts = all_broken(found)
    exact = {rule.name for rule, _ in cases}
    assert {name: n for name, n in counts.items() if name in exact} == {name: len(expected[name]) for name in exact}
    assert set(counts) <= set(expected), "a rule is broken that nothing was done about"
    if placed(TABLES[table]):
        for name in exact - {"pattern.segment", "minimum.segment_row"}:
            places = found.offences[DAY if TABLES[table].daily else None, name].places
            assert set(places["segment_row"]) == expected[name], name
            assert set(places["segment"]) <= {FILE, "b" * 64, None}, "text is no place"


def test_a_digest_that_is_none_is_no_place_and_stands_nowhere(rows: Rows) -> None:
    rows.put("attempt", clean("attempt", 1, segment=NOT_ALLOWED), clean("attempt", 2, segment_row=-1))
    found = measured(rows.lake, "attempt")
    assert found.offences[DAY, "pattern.segment"].places.select("segment", "segment_row").rows() == [(None, 1)]
    assert found.offences[DAY, "minimum.segment_row"].places.select("segment", "segment_row").rows() == [(FILE, None)]


CASES: list[tuple[str, str, Row, Row]] = [
    # table, rule, a row for which it holds, the change that breaks it
    ("attempt", "identity.input",
     {"input_computed": 10, "cached_local": 4, "cached_external": 2, "prefill_computed": 5, "cache_correction": -1},
     {"cache_correction": 0}),
    ("attempt", "identity.output",
     {"output_computed": 9, "output_delivered": 5, "withheld_end_token": 1, "withheld_stop_trimmed": 1,
      "withheld_aborted": 2, "withheld_truncated": 0}, {"output_delivered": 4}),
    ("attempt", "identity.drafted", {"drafted": 6, "accepted": 4, "rejected": 2}, {"rejected": 3}),
    ("attempt", "identity.steps", {"output_computed": 9, "accepted": 4, "bonus": 3, "undrafted": 2}, {"bonus": 2}),
    ("attempt", "identity.forward",
     {"forward": 20, "prefill_computed": 8, "recomputed": 2, "verify_width": 9, "padding": 1}, {"padding": 0}),
    ("attempt", "identity.histogram",
     {"bonus": 3, **{f"accepted_steps_{n}": 0 for n in range(8)}, "accepted_steps_2": 1, "accepted_steps_8_15": 1,
      "accepted_steps_16": 1}, {"accepted_steps_3": 1}),
    ("attempt", "identity.reasoning", {"output_computed": 9, "reasoning_computed": 9}, {"reasoning_computed": 10}),
    ("attempt", "day.arrived_at", {"revision": 0}, {"arrived_at": MOMENT.replace(day=6)}),
    ("attempt", "note.undated", {"undated": False}, {"undated": True}),
    ("attempt", "note.tenant", {}, {"tenant": "unassigned"}),
    ("attempt", "note.task", {}, {"task": "unassigned"}),
    ("attempt", "note.route", {}, {"route": "unassigned"}),
    ("child", "identity.output",
     {"output_computed": 5, "output_delivered": 3, "output_withheld": 2}, {"output_withheld": 1}),
    ("child", "identity.accepted", {"drafted": 5, "accepted": 5}, {"accepted": 6}),
    ("usage_report", "leaves.leaf_shape", {}, {"leaf_integers": [3, 4]}),
    ("reading", "identity.input",
     {"input_total": 15, "input_uncached": 5, "cache_read": 4, "cache_write_5m": 3, "cache_write_1h": 2,
      "cache_write_unknown": 1}, {"cache_read": 5}),
    ("reading", "identity.output", {"output_total": 5, "output_visible": 3, "reasoning": 2}, {"reasoning": 3}),
    ("reading", "identity.total", {"total": 20, "input_total": 15, "output_total": 5}, {"total": 21}),
    ("reading", "identity.modalities_of_input_uncached",
     {"input_uncached": 6, "input_uncached_audio": 1, "input_uncached_image": 2, "input_uncached_video": 3},
     {"input_uncached_video": 4}),
    ("reading", "identity.modalities_of_cache_read", {"cache_read": 2, "cache_read_audio": 2}, {"cache_read_image": 1}),
    ("reading", "identity.modalities_of_output_visible",
     {"output_visible": 2, "output_visible_audio": 2}, {"output_visible_audio": 3}),
    ("state_event", "identity.members", {"n_universe": 8, "n_members": 8}, {"n_members": 9}),
    ("state_event", "order.layer_lo", {"layer_lo": 2, "layer_hi": 2}, {"layer_lo": 3}),
    ("state_event", "order.head_lo", {"head_lo": 0, "head_hi": 7}, {"head_lo": 8}),
    ("segment", "identity.account",
     {"rows_in": 6, "rows_out": 3, "rows_quarantined": 2, "rows_duplicate": 1}, {"rows_duplicate": 0}),
    ("segment", "identity.unplaced", {"rows_out": 1, "rows_unplaced": 1}, {"rows_unplaced": 2}),
    ("gap", "order.began_at", {"began_at": MOMENT, "ended_at": MOMENT}, {"began_at": MOMENT.replace(hour=23)}),
    ("invoice_line", "order.period_start", {}, {"period_start": MOMENT.replace(hour=23)}),
    ("price", "order.valid_from", {"valid_from": DAY, "valid_to": DAY}, {"valid_to": date(2026, 1, 4)}),
    ("priced_amount", "identity.amount",
     {"amount": 7, **{f"amount_{name}": 1 for name in ("input_uncached", "cache_read", "cache_write_5m",
      "cache_write_1h", "cache_write_unknown", "output_visible", "reasoning")}}, {"amount": 8}),
    ("reconciled", "identity.residual", {"gap": 5, "explained": 7, "residual": -2}, {"residual": 2}),
    ("reconciled", "identity.gap", {"reported": 9, "observed": 12, "gap": -3}, {"gap": 3}),
    ("finding", "identity.difference", {"expected": 9, "observed": 7, "difference": -2}, {"difference": 2}),
    ("finding", "order.first_day", {"first_day": DAY, "last_day": DAY}, {"last_day": date(2026, 1, 4)}),
    ("segment", "order.first_day", {"first_day": DAY, "last_day": DAY}, {"last_day": date(2026, 1, 4)}),
    ("receipt", "order.first_day", {"first_day": DAY, "last_day": DAY}, {"last_day": date(2026, 1, 4)}),
    ("usage_period", "leaves.leaf_shape", {}, {"leaf_integers": [3, 4]}),
    ("usage_period", "order.period_start", {}, {"period_start": MOMENT.replace(hour=23)}),
    ("recount_constant", "identity.exact", {"attempts": 4, "exact": 4}, {"exact": 5}),
    ("recount_constant", "order.first_day", {"first_day": DAY, "last_day": DAY}, {"last_day": date(2026, 1, 4)}),
    ("recount_constant", "order.lower", {"lower": -1, "upper": 2}, {"upper": -2}),
    ("invoice_gap", "order.period_start", {}, {"period_start": MOMENT.replace(hour=23)}),
    ("invoice_detail", "order.billing_start", {"billing_start": MOMENT, "billing_end": MOMENT},
     {"billing_start": MOMENT.replace(hour=23)}),
    ("audit_tolerance", "order.first_day", {"first_day": DAY, "last_day": DAY}, {"last_day": date(2026, 1, 4)}),
    ("audit_tolerance", "order.flattest", {"flattest": 0.1, "steepest": 0.2}, {"steepest": 0.05}),
    ("comparison", "identity.unshown", {"pairs": 4, "unshown": 2}, {"unshown": 5}),
    ("comparison", "identity.exact", {"pairs": 4, "exact": 2}, {"exact": 5}),
    ("comparison", "order.loss_low", {"loss_low": 0.1, "loss_high": 0.2}, {"loss_high": 0.05}),
    ("audit_cell", "identity.broken", {"rows": 4, "broken": 2}, {"broken": 5}),
    ("audit_cell", "order.rate_lower", {"rate_lower": 0.1, "rate_upper": 0.2}, {"rate_upper": 0.05}),
    ("audit_cell", "order.slope_lower", {"slope_lower": 0.1, "slope_upper": 0.2}, {"slope_upper": 0.05}),
]  # fmt: skip
# The sums of a period keep the laws of a reading.
CASES += [("usage_period", *case[1:]) for case in CASES if case[0] == "reading"]


@pytest.mark.parametrize(("table", "name", "holds", "change"), CASES, ids=[f"{c[0]}-{c[1]}" for c in CASES])
def test_a_rule_about_several_columns_is_broken_by_the_one_row_that_breaks_it(
    table: str, name: str, holds: Row, change: Row, new_rows: Callable[[], Rows]
) -> None:
    good, bad = new_rows(), new_rows()
    good.put(table, *(clean(table, number, **holds) for number in range(3)))
    bad.put(table, clean(table, 0, **holds), clean(table, 1, **holds) | change, clean(table, 2, **holds))
    assert all_broken(measured(good.lake, table)) == {}
    found = measured(bad.lake, table)
    assert broken(found, name) == 1
    day = DAY if TABLES[table].daily else None
    if placed(TABLES[table]) and not name.startswith("note"):
        assert found.offences[day, name].places["segment_row"].to_list() == [1]


def test_every_rule_about_several_columns_has_a_case() -> None:
    def several() -> Iterator[tuple[str, str]]:
        for table in TABLES:
            yield from ((table, rule.name) for rule in contract(table, KNOWN) if wrong(rule) is None)

    rest = {(table, name) for table, name in several() if name != "unique.key"} - {(c[0], c[1]) for c in CASES}
    assert rest <= {("quarantine", "leaves.leaf_shape"), ("baseline", "finite.centre")}
    assert ("attempt", "identity.drafted") not in rest


LEFT_OPEN: list[tuple[str, str, Row, bool]] = [
    # table, law, what is known, whether that breaks it
    ("attempt", "identity.drafted", {"drafted": 6, "accepted": 4}, False),
    ("attempt", "identity.drafted", {"drafted": 6, "accepted": 7}, True),
    ("attempt", "identity.drafted", {"accepted": 4, "rejected": 9}, False),
    ("attempt", "identity.drafted", {"drafted": 6}, False),
    ("attempt", "identity.input", {"input_computed": 3, "cached_local": 9}, False),
    ("reading", "identity.input", {"input_total": 9}, False),
    ("reading", "identity.input", {"input_total": 9, "cache_read": 10}, True),
    ("reading", "identity.output", {"output_visible": 3, "reasoning": 2}, False),
    ("reconciled", "identity.gap", {"reported": 9, "gap": -3}, False),
]


@pytest.mark.parametrize(("table", "name", "known", "breaks"), LEFT_OPEN)
def test_what_is_unknown_is_held_against_nothing(table: str, name: str, known: Row, breaks: bool, rows: Rows) -> None:
    """Parts that are known may still not exceed the whole, unless one that is unknown may be negative."""
    rows.put(table, clean(table, 1, **known))
    assert broken(measured(rows.lake, table), name) == int(breaks)


def test_a_law_that_no_row_can_be_asked_is_said_to_be_unjudged_and_not_to_hold(rows: Rows) -> None:
    rows.put("attempt", clean("attempt", 1, drafted=6, accepted=4))
    unjudged = dict(measured(rows.lake, "attempt").unjudged)
    assert "identity.drafted" in unjudged
    assert "drafted = accepted + rejected" in unjudged["identity.drafted"]
    rows.put("attempt", clean("attempt", 2, drafted=6, accepted=4, rejected=2))
    assert "identity.drafted" not in dict(measured(rows.lake, "attempt").unjudged)


def test_what_others_told_is_a_warning_and_what_we_computed_shuts_the_gate() -> None:
    gravity = {(table, rule.name): rule.gravity for table in TABLES for rule in contract(table, KNOWN)}
    assert gravity["attempt", "identity.output"] is Gravity.WARNING
    assert gravity["reading", "identity.output"] is Gravity.CRITICAL
    assert gravity["segment", "identity.account"] is Gravity.CRITICAL
    assert gravity["attempt", "pattern.tenant"] is Gravity.CRITICAL
    assert gravity["attempt", "note.tenant"] is Gravity.INFO


def test_every_declared_limit_of_a_column_is_a_rule() -> None:
    """Nothing of the declaration is left out, and nothing is judged that it does not say."""
    for table, about in TABLES.items():
        names = {rule.name for rule in contract(table)}
        wanted = {f"null.{c.name}" for c in about.columns if not c.nullable and c.name != "day"}
        wanted |= {f"minimum.{c.name}" for c in about.columns if c.minimum is not None}
        wanted |= {f"word.{c.name}" for c in about.columns if c.values is not None}
        wanted |= {f"pattern.{c.name}" for c in about.columns if c.pattern is not None}
        wanted |= {"unique.key"}
        assert wanted <= names
        kinds = {name for name in names if name.split(".")[0] in {"null", "minimum", "word"}}
        assert kinds <= wanted
