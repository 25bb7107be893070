"""What reconciliation has to find, counted while the faults are made and independently of how they are found."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from weighbridge.pipeline.simulate import faults, world
from weighbridge.pipeline.simulate.lengths import Lengths
from weighbridge.pipeline.simulate.traffic import Traffic
from weighbridge.pipeline.simulate.world import Ints

FILE = "expected.json"


@dataclass(frozen=True, slots=True, order=True)
class ExpectedFinding:
    """A fault of one month, provider and model.

    Attributes:
        code: of the finding, which is that of its cause.
        provider, model: who answered; the name the answer carried.
        period: the UTC month of the attempts, `YYYY-MM`.
        rows: attempts that have the fault.
        tokens: reported minus observed tokens, both directions together.
    """

    code: str
    provider: str
    model: str
    period: str
    rows: int
    tokens: int


def expected_of(traffic: Traffic, tokens: Lengths, fault: Ints) -> list[ExpectedFinding]:
    """The findings these attempts have to lead to."""
    month = traffic.day.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    out = []
    for index, kind in enumerate(faults.FAULTS):
        rows = np.flatnonzero(fault == index)
        difference = kind.tokens(tokens)[rows]
        cells, at = np.unique(np.stack([month[rows], traffic.model[rows]]), axis=1, return_inverse=True)
        for cell, (when, model) in enumerate(cells.T):
            inside = at.ravel() == cell
            out.append(
                ExpectedFinding(
                    kind.code,
                    world.MODELS[model].provider,
                    world.MODELS[model].served,
                    str(np.datetime64(int(when), "M")),
                    int(inside.sum()),
                    int(difference[inside].sum()),
                )
            )
    return out


def together(found: Iterable[ExpectedFinding]) -> list[ExpectedFinding]:
    """One finding per code, provider, model and month, in order."""
    sums: dict[tuple[str, str, str, str], tuple[int, int]] = {}
    for item in found:
        cell = (item.code, item.provider, item.model, item.period)
        rows, tokens = sums.get(cell, (0, 0))
        sums[cell] = (rows + item.rows, tokens + item.tokens)
    return [ExpectedFinding(*cell, rows, tokens) for cell, (rows, tokens) in sorted(sums.items())]


def write_expected(path: Path, found: Iterable[ExpectedFinding], labels: Mapping[str, str]) -> Path:
    """Write the expected findings as JSON, labelled as simulated."""
    content = {"labels": dict(labels), "expected": [asdict(item) for item in found]}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path
