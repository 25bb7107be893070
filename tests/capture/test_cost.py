"""An attempt costs its host a fraction of an OpenTelemetry span with the same fields. A ratio: machines differ."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "capture_cost.py"


def test_start_and_finish_cost_at_most_a_third_of_a_span_and_finish_a_quarter(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.sdk", reason="the OpenTelemetry SDK, the peer it is held against, is not here")
    spec = importlib.util.spec_from_file_location("capture_cost", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    cost = importlib.util.module_from_spec(spec)
    sys.modules["capture_cost"] = cost
    spec.loader.exec_module(cost)
    agent = cost.Agent.start(tmp_path)
    span, close = cost.otel_span()
    both = cost.Variant("both", lambda n: (agent.bindings[n % 50], cost.counts(n), cost.usage(n)), cost.all_in)
    finish = cost.Variant(
        "finish", lambda n: (agent.bindings[n % 50].begin(), cost.counts(n), cost.usage(n)), cost.finish
    )
    peer = cost.Variant("span", lambda n: (cost.attributes(n),), span)
    # A stand-in for the model step: it reads and writes more memory than the caches of a core hold.
    cold = bytearray(random.Random(7).randbytes(32 << 20))
    cost.in_situ([both, finish, peer], 100, 7, cold.reverse)
    agent.recorder.close()
    close()
    assert agent.recorder.losses.total == 0
    assert finish.median <= peer.median / 4
    assert both.median <= peer.median / 3
