"""The solver over columns gives, on every input, what the scalar solver gives; and what both give keeps the laws."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random
from typing import NamedTuple

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weighbridge.pipeline.ingest.dialect import SUMMED, Absent, Dialect, Role
from weighbridge.pipeline.ingest.dialects import all_dialects, dialect_for
from weighbridge.pipeline.ingest.fact import Axis, Repair
from weighbridge.pipeline.ingest.known import Figures
from weighbridge.pipeline.ingest.outcome import Flag, words
from weighbridge.pipeline.ingest.solver import Solution, solve
from weighbridge.pipeline.ingest.solver_frame import CELLS, INPUTS, NUMBERS, OUTPUTS, solve_frame
from weighbridge.schemas.enumerations import Verdict

# Shapes that no dialect has yet and the solver must know: a total that counts cached tokens twice, and a provider whose
# input excludes cached tokens that it may not tell.
INVENTED = {
    "twice": replace(
        all_dialects()["openai_chat"],
        axes={
            Axis.INPUT_INCLUDES_CACHE: (False, True),
            Axis.OUTPUT_INCLUDES_REASONING: (True, False),
            Axis.TOTAL_COUNTS_CACHE_TWICE: (False, True),
        },
    ),
    "untold": replace(
        all_dialects()["gemini_generate_content"],
        axes={Axis.INPUT_INCLUDES_CACHE: (False, True), Axis.OUTPUT_INCLUDES_REASONING: (False, True)},
        absent={"any": Absent()},
        itemised=False,
    ),
    "left_out": replace(
        all_dialects()["openai_chat"],
        axes={
            Axis.INPUT_INCLUDES_CACHE: (True, False),
            Axis.OUTPUT_INCLUDES_REASONING: (False, True),
            Axis.TOTAL_LEAVES_OUT_REASONING: (True, False),
        },
        known=False,
        cached_grain=2,
        reasoning_grain=3,
    ),
    "mended": replace(all_dialects()["anthropic_messages"], repairs=frozenset({Repair.NEGATIVE_INPUT}), cached_grain=2),
}


def shape(dialect: Dialect, provider: str) -> tuple[object, ...]:
    """What the solver looks at: dialects that are alike in it are solved alike."""
    rule = dialect.absent_for(provider)
    absent = (rule.zero, frozenset(rule.zero_beside.items()))
    counted = frozenset(role for role in dialect.roles.values() if role in SUMMED)
    grains = (dialect.cached_grain, dialect.reasoning_grain, dialect.repairs, dialect.guessed)
    return (*dialect.axes.items(), absent, counted, *grains, dialect.itemised, dialect.direct, dialect.known)


def roles_of(dialect: Dialect) -> list[Role]:
    return sorted({role for role in dialect.roles.values() if role in SUMMED})


def spoken() -> dict[str, tuple[Dialect, str]]:
    """Every dialect as each of its speakers speaks it, and the invented ones; of those that are alike one."""
    found = {}
    for name, base in all_dialects().items():
        named = {*base.providers, *(fact.provider for fact in base.facts)}
        models = {fact.model.split("|")[0].replace("*", "") for fact in base.facts if fact.model}
        for provider, model in product(sorted(named | {"nobody"}), (None, *sorted(models))):
            dialect = dialect_for(provider, name, model)
            if dialect is not None and roles_of(dialect):
                found[shape(dialect, provider)] = (f"{name} {provider} {model}", dialect, provider)
    invented = {name: (dialect, dialect.providers[0]) for name, dialect in INVENTED.items()}
    return {name: (dialect, provider) for name, dialect, provider in found.values()} | invented


SPEAKERS = spoken()
# One of each kind of axes: drawn examples are dear, and the sweep below meets all speakers.
KINDS = list({tuple(dialect.axes.items()): name for name, (dialect, _) in SPEAKERS.items()}.values())
# Small numbers meet each other often, which is where readings coincide; large ones reach the limits of 64 bits.
COUNTS = st.one_of(
    st.integers(0, 6), st.integers(0, 6), st.integers(-2, 40), st.sampled_from([2**53, 2**53 - 1, -(2**53)])
)
NOTICED = st.sampled_from(
    [0, 0, 0, *map(int, (Flag.INTEGRAL_FLOAT, Flag.FIELDS_DISAGREE, Flag.COUNT_TOO_LARGE, Flag.SERVICE_COUNT_DIFFERS))]
)


class Row(NamedTuple):
    """One report, drawn."""

    values: dict[Role, int]
    stale: bool
    noticed: int


@st.composite
def rows(draw: st.DrawFn, dialect: Dialect) -> list[Row]:
    drawn = []
    for _ in range(draw(st.integers(1, 12))):
        values = draw(st.dictionaries(st.sampled_from(roles_of(dialect)), COUNTS, max_size=12))
        if draw(st.booleans()):
            # A total that some reading explains: without it nearly every drawn report would contradict itself.
            added = draw(st.sets(st.sampled_from([Role.REASONING, Role.TOOL_PROMPT, Role.CACHE_READ])))
            parts = [Role.INPUT, Role.OUTPUT, *sorted(added)]
            values[Role.TOTAL] = sum(values.get(role, 0) for role in parts)
        drawn.append(Row(values, draw(st.booleans()), draw(NOTICED)))
    return drawn


def in_columns(dialect: Dialect, provider: str, drawn: list[Row]) -> pl.DataFrame:
    occurring = [role for role in SUMMED if any(role in row.values for row in drawn)]
    figures = pl.DataFrame(
        {
            **{str(role): [row.values.get(role) for row in drawn] for role in occurring},
            "stale_split": [row.stale for row in drawn],
            "noticed": [row.noticed for row in drawn],
        },
        schema={**dict.fromkeys(map(str, occurring), pl.Int64), "stale_split": pl.Boolean, "noticed": pl.Int64},
    )
    return solve_frame(dialect, provider, figures)


def named(solution: Solution) -> dict[str, int | None]:
    totals = (solution.input_total, solution.output_total, solution.total)
    return {"code": solution.code, **dict(zip(NUMBERS, (*totals, *solution.classes, *solution.cells), strict=True))}


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_columns_and_scalars_agree(name: str, data: st.DataObject) -> None:
    dialect, provider = SPEAKERS[name]
    drawn = data.draw(rows(dialect))
    expected = [named(solve(dialect, provider, Figures(row.values, row.stale, row.noticed))) for row in drawn]
    assert in_columns(dialect, provider, drawn).to_dicts() == expected


@pytest.mark.parametrize("name", SPEAKERS)
def test_columns_and_scalars_agree_on_a_wide_sweep(name: str) -> None:
    """Hundreds of reports in one frame: rows of every kind stand beside each other, which drawn examples rarely do."""
    dialect, provider = SPEAKERS[name]
    random = Random(f"{name} {provider}")
    swept = []
    for _ in range(500):
        density = random.choice((0.2, 0.5, 0.9))
        values = {
            role: random.choice((0, 0, 1, 2, 3, 5, 8, 20)) for role in roles_of(dialect) if random.random() < density
        }
        if random.random() < 0.02:
            values[random.choice(roles_of(dialect))] = -1
        if random.random() < 0.7:
            parts = [Role.INPUT, Role.OUTPUT, *random.sample([Role.REASONING, Role.TOOL_PROMPT, Role.CACHE_READ], 1)]
            values[Role.TOTAL] = sum(values.get(role, 0) for role in parts[: random.choice((2, 2, 3))])
        swept.append(Row(values, random.random() < 0.2, 0))
    expected = [named(solve(dialect, provider, Figures(row.values, row.stale, row.noticed))) for row in swept]
    assert in_columns(dialect, provider, swept).to_dicts() == expected
    assert len({row["code"] for row in expected}) > (10 if len(dialect.readings) > 1 else 1)


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_settled_reading_keeps_every_law(name: str, data: st.DataObject) -> None:
    dialect, provider = SPEAKERS[name]
    for row in data.draw(rows(dialect)):
        solution = solve(dialect, provider, Figures(row.values, row.stale, row.noticed))
        read = named(solution)
        verdict, reason, rule, flags = words(dialect, solution.code)
        numbers = [read[name] for name in NUMBERS]
        if verdict not in {Verdict.PROVED, Verdict.ASSUMED}:
            assert numbers == [None] * len(numbers)
            assert reason
            assert flags
            continue
        assert rule
        assert all(number is None or number >= 0 for number in numbers)
        for total, parts in (("input_total", INPUTS), ("output_total", OUTPUTS)):
            classes = [read[part] for part in parts]
            if None not in classes:
                assert read[total] == sum(count for count in classes if count is not None)
            elif read[total] is not None:
                assert sum(count or 0 for count in classes) < (read[total] or 0)
        for token_class in ("input_uncached", "cache_read", "output_visible"):
            inside = [read[cell] or 0 for cell in CELLS if cell.startswith(f"{token_class}_")]
            assert read[token_class] is None or sum(inside) <= (read[token_class] or 0)
        twice = "total_counts_cache_twice=yes" in rule
        if Role.TOTAL in row.values:
            written = sum(read[part] or 0 for part in INPUTS[1:])
            left_out = row.values.get(Role.REASONING, 0) if "total_leaves_out_reasoning=yes" in rule else 0
            assert read["total"] == row.values[Role.TOTAL] - (written if twice else 0) + left_out


@settings(max_examples=150, deadline=None)
@given(
    prompt=st.integers(0, 12),
    cached=st.integers(0, 12),
    output=st.integers(0, 12),
    reasoning=st.integers(0, 12),
    total=st.none() | st.integers(0, 40),
)
def test_the_verdict_is_that_of_trying_all_four_readings(
    prompt: int, cached: int, output: int, reasoning: int, total: int | None
) -> None:
    """Independent of the solver: every way to place cached and reasoning tokens, kept where nothing is negative."""
    kept = {}
    for cached_inside, reasoning_inside in product((True, False), repeat=2):
        fresh = prompt - cached if cached_inside else prompt
        shown = output - reasoning if reasoning_inside else output
        if fresh >= 0 and shown >= 0 and total in {None, fresh + cached + shown + reasoning}:
            kept[cached_inside, reasoning_inside] = (fresh, cached, shown, reasoning)
    figures = {Role.INPUT: prompt, Role.CACHE_READ: cached, Role.OUTPUT: output, Role.REASONING: reasoning}
    if total is not None:
        figures[Role.TOTAL] = total
    dialect = all_dialects()["openai_chat"]
    solution = solve(dialect, "openai", Figures(figures))
    verdict = words(dialect, solution.code)[0]
    got = (*solution.classes[:2], *solution.classes[5:])
    if len(set(kept.values())) == 1:
        assert (verdict, got) == (Verdict.PROVED, next(iter(kept.values())))
    elif (True, True) in kept:
        assert (verdict, got) == (Verdict.ASSUMED, kept[True, True])
    else:
        assert (verdict, got) == (Verdict.CONTRADICTORY, (None, None, None, None))
