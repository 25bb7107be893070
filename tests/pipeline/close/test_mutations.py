"""Whatever is changed in a closed month is found and named: a seeded sample of the benchmark's 10,000 mutations."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.xdist_group("mutations")

BENCHMARK = Path(__file__).resolve().parents[3] / "benchmarks" / "close_mutations.py"


@pytest.fixture(scope="module")
def mutations() -> Any:
    """The benchmark as a module."""
    spec = importlib.util.spec_from_file_location("close_mutations", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["close_mutations"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def bench(mutations: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A small closed month with erasures."""
    return mutations.Bench.of(mutations.sealed(tmp_path_factory.mktemp("mutations"), attempts=40))


def test_the_month_holds_before_anything_is_changed(bench: Any) -> None:
    found = bench.sealed.verify(figures=True)
    assert found.sound, found.differences
    assert found.erased > 0
    assert found.receipts


@pytest.mark.parametrize("times", [1, pytest.param(4, marks=pytest.mark.system)])
def test_every_kind_of_mutation_is_found_and_named(mutations: Any, bench: Any, times: int) -> None:
    kinds, missed = mutations.run(bench, times * len(mutations.EVERY), seed=11, figures_every=0)
    assert missed == []
    assert len(kinds) == len(mutations.EVERY)
    assert bench.sealed.verify().sound  # all was put back


@pytest.mark.slow
def test_a_larger_sample_is_found_and_named(mutations: Any, bench: Any) -> None:
    kinds, missed = mutations.run(bench, 1_000, seed=12, figures_every=50)
    assert missed == []
    assert sum(kinds.values()) == 1_000


def test_the_benchmark_tells_what_was_missed(mutations: Any, bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sound = bench.sealed.verify()
    monkeypatch.setattr(mutations.Sealed, "verify", lambda *_, **__: sound)
    _, missed = mutations.run(bench, 2, seed=1, figures_every=0)
    assert len(missed) == 2


@pytest.mark.parametrize("name", ["row_forged", "figure_forged", "pin_forged"])
def test_a_forger_who_puts_every_digest_right_is_found_by_the_root_alone(mutations: Any, bench: Any, name: str) -> None:
    with bench.changed(getattr(mutations, name), random.Random(5)):
        with_root = mutations.verify(bench.sealed.folder, root=bench.sealed.root, figures=False)
        without = mutations.verify(bench.sealed.folder, figures=False)
    assert [str(difference.kind) for difference in with_root.differences] == ["root"]
    assert without.sound
    assert not without.anchored
    assert any("no root was given" in note for note in without.notes)


def test_an_edited_row_is_named_with_its_attempt(mutations: Any, bench: Any) -> None:
    draw = random.Random(3)
    for _ in range(20):
        with bench.changed(mutations.row_edited, draw) as mutation:
            found = bench.sealed.verify()
        (path,) = mutation.paths
        if path.startswith(("rows/attempt/", "rows/reading/")):
            assert any(d.where.startswith(f"{path}, row ") and "attempt 0" in d.where for d in found.differences)
            return
    pytest.fail("no row of an attempt was drawn")
