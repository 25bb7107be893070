"""Whatever stands in a record of a gateway's log: nothing escapes, every record is in the account, no count is new."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pipeline.ingest.gateway_samples import observation, request, run, spend

from weighbridge.pipeline.ingest.importer import Source, importers

DAY = date(2026, 1, 15)
SAMPLES: dict[str, Callable[[int], dict[str, Any]]] = {
    "helicone": request,
    "langfuse": observation,
    "langsmith": run,
    "litellm": spend,
}
COUNTS = ("input", "output", "total", "input_tokens", "prompt_tokens", "usage_metadata", "usage_object", "kwargs", "")
NUMBERS = st.integers(-3, 9) | st.sampled_from([2**53 + 1, 2**63, -(2**63), 10**30, 0.5, 7.0, -0.0, 1e300, 1e-300])
SCALARS = st.none() | st.booleans() | NUMBERS | st.sampled_from(["", "a canary", "5", "1e999", "NaN", "{"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(COUNTS), inner, max_size=3),
    max_leaves=6,
)


def integers(value: object) -> Iterator[int]:
    """Every number without a fraction inside a value."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from integers(item)
    elif isinstance(value, int | float) and value == int(value):
        yield int(value)


@st.composite
def records(draw: Callable[[st.SearchStrategy[Any]], Any], name: str) -> list[dict[str, Any]]:
    out = []
    for number in range(draw(st.integers(1, 3))):
        record = SAMPLES[name](number + 1)
        for field in draw(st.lists(st.sampled_from(sorted(record)), max_size=4, unique=True)):
            record[field] = draw(VALUES)
        out.append(record)
    return out


@pytest.mark.parametrize("name", SAMPLES)
@settings(max_examples=40)
@given(data=st.data())
def test_any_record_is_read_or_refused(name: str, data: st.DataObject) -> None:
    lines = data.draw(records(name))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        source = Source(path, bytes(32), DAY)
        importer = importers()[name]
        staged = importer.read(source, importer.check(source))
    known = {number for line in lines for number in integers(line)}
    reports = staged.tables.get("usage_report")
    told = [] if reports is None else [n for row in reports["leaf_integers"] for n in row if n is not None]
    assert set(told) <= known
    stored = staged.tables["attempt"]["segment_row"].n_unique() if "attempt" in staged.tables else 0
    assert stored + staged.refused_records + staged.repeated == staged.records
