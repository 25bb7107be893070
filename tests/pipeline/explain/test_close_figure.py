"""A figure of a closed month: what it rests on in its pack, and the attempts it is about."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.pipeline.close.conftest import Office
from tests.pipeline.close.conftest import closed_once as closed_once  # noqa: PLC0414 - a fixture
from tests.pipeline.close.conftest import filled_once as filled_once  # noqa: PLC0414 - a fixture

from weighbridge.pipeline.close.closed import closed_figures
from weighbridge.pipeline.close.figures import flat
from weighbridge.pipeline.explain.explain import explain
from weighbridge.pipeline.reconcile.tree.node import Node
from weighbridge.schemas.errors import ConfigError


def at(node: Node, *labels: str) -> Node:
    for label in labels:
        node = next(child for child in node.children if child.label == label)
    return node


def test_every_figure_of_a_close_can_be_asked_about(closed_once: Office) -> None:
    found = closed_figures(closed_once.lake, closed_once.packs, "2026-03")
    assert found is not None
    for name, value in list(flat(found.figures).items())[::17]:
        tree = explain(closed_once.lake, f"2026-03/close/{name}", packs=closed_once.packs)
        assert tree.value == value, name
        assert at(tree, "month", "root").value == found.root


def test_it_leads_to_the_rows_it_rests_on_and_to_attempts(closed_once: Office) -> None:
    found = closed_figures(closed_once.lake, closed_once.packs, "2026-03")
    assert found is not None
    name = next(name for name in flat(found.figures) if name.startswith("usage_by_model[") and name.endswith(".tokens"))
    tree = explain(closed_once.lake, f"2026-03/close/{name}", packs=closed_once.packs)
    reading = at(tree, "rests on", "reading")
    assert isinstance(reading.value, int)
    assert reading.value > 0
    attempts = at(tree, "attempts")
    assert isinstance(attempts.value, int)
    assert 0 < len(attempts.children) <= min(attempts.value, 5)
    assert {child.label for child in attempts.children} == {"attempt"}


@pytest.mark.parametrize("name", ["2026-03/close/nothing", "2026-04/close/usage.tokens", "2026-03/usage.tokens"])
def test_what_is_no_figure_of_a_close_is_said(closed_once: Office, name: str) -> None:
    with pytest.raises(ConfigError, match="figure of a close: MONTH/close/NAME"):
        explain(closed_once.lake, name, packs=closed_once.packs)
    with pytest.raises(ConfigError, match="figure of a close"):
        explain(closed_once.lake, "2026-03/close/usage.tokens", packs=Path("nowhere"))
