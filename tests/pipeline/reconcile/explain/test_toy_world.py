"""A closed world made of the worked example of every cause, alone and in pairs: every gap is explained to the token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from tests.pipeline.reconcile.conftest import Core
from tests.pipeline.reconcile.explain.test_causes import _LATE, _OF_CHILDREN, SCHEMA, example, one_row, value

from weighbridge.pipeline.reconcile.explain import template
from weighbridge.pipeline.reconcile.explain.cause import Cause, all_causes
from weighbridge.pipeline.reconcile.explain.explanation import explained
from weighbridge.pipeline.reconcile.explain.late import CHILDREN, RUNNING, nothing
from weighbridge.pipeline.reconcile.frames import collected
from weighbridge.schemas.enumerations import Direction

Cells = dict[str, object]
# What a whole row is about: a pair of examples shares it, or there is no such pair.
_SIDES = ("observed", "reported")
# Its amount is whatever lies above the limit, so that beside another cause it would stand for that one too.
_ALONE = {"over_cap"}


class Made(NamedTuple):
    """One attempt of the world: its cells, its late evidence, and the tokens of each cause it was made with."""

    direction: Direction
    cells: Cells
    parts: Mapping[str, int]


def made_of(cause: Cause) -> list[Made]:
    """The rows of the example of a cause that it explains."""
    direction, lines = example(cause)
    rows = []
    for line in lines:
        cells = {name: value(name, text) for name, text in line.items()}
        tokens = cells.pop(cause.code)
        if isinstance(tokens, int) and tokens:
            rows.append(Made(direction, cells, {cause.code: tokens}))
    return rows


def pair(one: Made, other: Made) -> Made | None:
    """Both at once: their evidence beside one another; null where it contradicts, or where a side is missing."""
    if one.direction is not other.direction or {*one.parts, *other.parts} & _ALONE:
        return None
    whole = [made.cells.get("reported") is not None and made.cells.get("observed") is not None for made in (one, other)]
    if not all(whole):
        return repeated(one, other)
    # Numbers of the second are another order of magnitude, so that no other sum of amounts is the same by chance.
    first = {name: cell for name, cell in one.cells.items() if name not in _SIDES}
    second = {name: _larger(name, cell) for name, cell in other.cells.items() if name not in _SIDES}
    if any(name in first and first[name] != cell for name, cell in second.items()):
        return None
    (code, tokens), (beside, more) = *one.parts.items(), *other.parts.items()
    amount = more * _SCALE if any(_scales(name, cell) for name, cell in other.cells.items()) else more
    observed = 100_000
    cells = {**first, **second, "observed": observed, "reported": observed + tokens + amount}
    cells |= {name: observed + amount for name in second if name == "other_tokenizer"}
    cells |= {name: observed + tokens for name in first if name == "other_tokenizer"}
    return Made(one.direction, cells, {code: tokens, beside: amount})


def repeated(one: Made, other: Made) -> Made | None:
    """A report of an attempt that nobody saw, told once more; null where that is not what the two are."""
    told = [made for made in (one, other) if made.cells.get("observed") is None]
    again = [made for made in (one, other) if "duplicate_report" in made.parts]
    if len(told) != 1 or len(again) != 1 or told[0].cells.get("reported") is None:
        return None
    (size,), (more,) = told[0].parts.values(), again[0].parts.values()
    cells = {**told[0].cells, "reported": size + more, "repeated": more}
    return Made(told[0].direction, cells, {**told[0].parts, **again[0].parts})


_SCALE = 37


def _scales(name: str, cell: object) -> bool:
    return isinstance(cell, int) and not isinstance(cell, bool) and name not in _SIDES


def _larger(name: str, cell: object) -> object:
    return cell * _SCALE if _scales(name, cell) and isinstance(cell, int) else cell


def world() -> list[Made]:
    """Every example alone, and every pair that can be."""
    alone = [made for cause in all_causes() for made in made_of(cause)]
    firsts = [made_of(cause)[0] for cause in all_causes()]
    pairs = [
        both
        for place, one in enumerate(firsts)
        for other in firsts[place + 1 :]
        if (both := pair(one, other)) is not None
    ]
    return alone + pairs


WORLD = world()


def weighed(core: Core, direction: Direction, numbers: list[int]) -> pl.DataFrame:
    """The attempts of these numbers explained, in their order."""
    rows, children, running, lessons = [], [], [], []
    for number in numbers:
        cells = dict(WORLD[number].cells)
        late = {name: cells.pop(name, None) for name in _LATE}
        key = {"attempt_lo": number, "attempt_hi": number}
        # Each is a cell of its own, so that what one has learnt teaches no other.
        row = {**one_row(direction, cells), **key, "model": f"m-{number}"}
        row.setdefault("provider", None)
        rows.append(row)
        own = {name: late[name] for name in _OF_CHILDREN}
        children.append({**key, **own, f"iterations_{direction}": late["iterations"]})
        totals = {f"{which}_{direction}": late[f"running_{which}"] for which in ("first", "last", "sum")}
        running.append({**key, **totals})
        if late["learnt_template"] is not None:
            place = {"cell_provider": row["provider"] or "", "cell_model": f"m-{number}", "cell_template": ""}
            learnt = {"per_request": late["learnt_template"], "per_message": 0, "fitting": 3, "pupils": 3}
            lessons.append({**place, "cell_counts_messages": row["messages"] is not None, **learnt})
    empty = collected(template.learnt(core.engine(template.NO_POINTS)))
    found = explained(
        core.engine(pl.DataFrame(rows, schema=SCHEMA)),
        direction,
        core.engine(pl.DataFrame(lessons, schema=empty.schema)),
        core.engine(pl.DataFrame(children, schema=nothing(CHILDREN).schema)),
        core.engine(pl.DataFrame(running, schema=nothing(RUNNING).schema)),
    )
    return collected(found).sort("attempt_lo")


def of(direction: Direction) -> list[int]:
    """The attempts of one direction."""
    return [number for number, made in enumerate(WORLD) if made.direction is direction]


def test_the_world_has_every_cause_alone_and_most_of_them_in_pairs() -> None:
    """What has but one side, and what contradicts another, is in no pair."""
    alone = {code for made in WORLD if len(made.parts) == 1 for code in made.parts}
    assert alone == {cause.code for cause in all_causes()}
    paired = {code for made in WORLD if len(made.parts) == 2 for code in made.parts}
    assert paired >= {
        *("duplicate_report", "cache_convention", "special_tokens", "template_not_applied", "history_duplicated"),
        *("tokenizer_version", "retries_summed", "reasoning_convention", "end_token_convention", "stream_merge"),
        *("iterations_left_out", "stop_trimmed"),
    }
    assert sum(len(made.parts) == 2 for made in WORLD) >= 39


@pytest.mark.parametrize("direction", list(Direction))
def test_every_gap_is_explained_to_the_last_token(direction: Direction, polars_core: Core) -> None:
    """No residual anywhere; and where only one set of causes fits, it is the one the attempt was made with."""
    numbers = of(direction)
    found = weighed(polars_core, direction, numbers)
    codes = [name.removeprefix("tokens_") for name in found.columns if name.startswith("tokens_")]
    for number, row in zip(numbers, found.iter_rows(named=True), strict=True):
        made = WORLD[number]
        parts = {code: row[f"tokens_{code}"] for code in codes if row[f"tokens_{code}"] is not None}
        assert row["residual"] == 0, (made, parts)
        assert sum(parts.values()) == row["gap"] == sum(made.parts.values()), (made, parts)
        if parts != made.parts:
            # Then as few causes do as well, and that this is so is said.
            assert len(parts) <= len(made.parts), (made, parts)
            assert row["confidence"] == "ambiguous" or len(parts) < len(made.parts), (made, parts)
    right = sum(
        {code: row[f"tokens_{code}"] for code in codes if row[f"tokens_{code}"] is not None} == WORLD[number].parts
        for number, row in zip(numbers, found.iter_rows(named=True), strict=True)
    )
    assert right >= 0.9 * len(numbers), (right, len(numbers))


@pytest.mark.parametrize("direction", list(Direction))
def test_order_days_and_engine_change_nothing(direction: Direction, polars_core: Core, duckdb_core: Core) -> None:
    """Shuffled, in three parts, and on DuckDB: the same rows, every column of them."""
    numbers = of(direction)
    whole = weighed(polars_core, direction, numbers)
    backwards = weighed(polars_core, direction, numbers[::-1])
    parts = [weighed(polars_core, direction, numbers[start::3]) for start in range(3)]
    assert_frame_equal(whole, backwards)
    assert_frame_equal(whole, pl.concat(parts).sort("attempt_lo"))
    assert_frame_equal(whole, weighed(duckdb_core, direction, numbers))
