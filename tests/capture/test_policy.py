"""The policy: which cells are raised, until when, and that a change of the file is seen without a restart."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import pytest

from weighbridge.capture import guard, policy
from weighbridge.capture.context import Context
from weighbridge.capture.policy import load_policy, sample_hash
from weighbridge.capture.recorder import Limits, Recorder
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import pseudonym

CELL: Mapping[str, object] = {"tenant": "acme", "level": 2, "purpose": "billing_audit", "expires": "2026-12-31"}
DAY = date(2026, 6, 1)


def write(path: Path, *cells: Mapping[str, object]) -> Path:
    path.write_text(json.dumps({"version": 1, "cells": list(cells)}))
    return path


def test_a_cell_is_raised_for_its_tenant_route_and_strategy(tmp_path: Path, key: bytes) -> None:
    made = load_policy(write(tmp_path / "p", {**CELL, "route": "chat", "strategy": "s1"}), key)
    acme = pseudonym(key, "tenant", "acme")
    assert made.decide(acme, "chat", "s1", DAY).level == 2
    others = [("acme", "chat", "s1"), (acme, "embed", "s1"), (acme, "chat", "s2"), (acme, "chat", None)]
    assert [made.decide(*facts, DAY).level for facts in others] == [1] * 4


def test_an_escalation_ends_after_its_last_day(tmp_path: Path, key: bytes) -> None:
    made = load_policy(write(tmp_path / "p", {**CELL, "tenant": None}), key)
    assert made.decide("x", "y", None, date(2026, 12, 31)).level == 2
    assert made.decide("x", "y", None, date(2027, 1, 1)).level == 1


def test_the_first_rule_that_covers_decides_and_an_expired_one_does_not(tmp_path: Path, key: bytes) -> None:
    expired = {**CELL, "tenant": None, "level": 3, "expires": "2026-01-01"}
    made = load_policy(write(tmp_path / "p", expired, {**CELL, "tenant": None}, {**CELL, "level": 3}), key)
    assert made.decide(pseudonym(key, "tenant", "acme"), "r", None, DAY).level == 2


def test_the_form_that_is_shown_is_one_that_can_be_used(tmp_path: Path, key: bytes) -> None:
    shown = (policy.__doc__ or "").split("JSON:")[1].split("It is read")[0]
    (tmp_path / "p").write_text(shown)
    (rule,) = load_policy(tmp_path / "p", key).rules
    assert (rule.route, rule.strategy, rule.level) == ("/v1/chat/completions", None, 2)


def test_a_route_may_be_the_path_of_an_endpoint_and_nothing_else_may(tmp_path: Path, key: bytes) -> None:
    made = load_policy(write(tmp_path / "p", {**CELL, "tenant": None, "route": "/v1/chat/completions"}), key)
    facts = Context(route="/v1/chat/completions").entry(key)
    assert made.decide(str(facts["tenant"]), str(facts["route"]), None, DAY).level == 2
    for route in ("//v1", "/", "/v1/what is my salary", "/v1?user=5", "/" + "x" * 129):
        with pytest.raises(ConfigError, match="route must"):
            Context(route=route).entry(key)
        with pytest.raises(ConfigError, match="route must"):
            load_policy(write(tmp_path / "p", {**CELL, "route": route}), key)
    with pytest.raises(ConfigError, match="task must"):
        Context(task="/v1").entry(key)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"level": 4}, "1, 2 or 3"),
        ({"level": True}, "1, 2 or 3"),
        ({"share": 1.5}, "from 0 to 1"),
        ({"share": True}, "from 0 to 1"),
        ({"share": float("nan")}, "from 0 to 1"),
        ({"purpose": None}, "needs a purpose"),
        ({"purpose": "Because I say so"}, "needs a purpose"),
        ({"expires": None}, "needs expires"),
        ({"expires": "soon"}, "needs expires"),
        ({"tenant": "two words"}, "tenant must be null or a name"),
        ({"colour": "blue"}, "unknown key 'colour'"),
    ],
)
def test_a_rule_that_cannot_be_used_says_which_and_what_is_allowed(
    tmp_path: Path, key: bytes, change: Mapping[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as told:
        load_policy(write(tmp_path / "p", CELL, {**CELL, **change}), key)
    assert "cells[1]" in str(told.value)


@pytest.mark.parametrize(
    "content", ["", "[]", '{"version": 2}', '{"version": 1, "cells": 5}', '{"version": 1, "cells": [3]}']
)
def test_what_is_no_policy_is_refused(tmp_path: Path, key: bytes, content: str) -> None:
    (tmp_path / "p").write_text(content)
    with pytest.raises(ConfigError):
        load_policy(tmp_path / "p", key)


def test_sampling_is_even_and_takes_the_key_to_foresee(key: bytes) -> None:
    hashes = [sample_hash(key, 5, lo) for lo in range(4000)]
    assert all(0 <= value < 1 << 64 for value in hashes)
    share = sum(value < (1 << 64) // 10 for value in hashes) / 4000
    assert 0.08 < share < 0.12
    assert hashes != [sample_hash(bytes(32), 5, lo) for lo in range(4000)]
    assert hashes[:10] == [sample_hash(key, 5, lo) for lo in range(10)]


@pytest.fixture
def recorder(tmp_path: Path, key: bytes, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    monkeypatch.setattr(policy, "today", lambda: DAY)
    return Recorder.start(
        tmp_path / "spool", installation="test-1", key=key, policy_file=tmp_path / "policy", limits=Limits(keeper_s=60)
    )


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The policy file, where its being absent or broken is swallowed."""
    monkeypatch.delenv(guard.RAISE_VARIABLE)
    return write(tmp_path / "policy")


def test_a_change_of_the_file_is_seen_without_a_restart(told: Path, recorder: Recorder) -> None:
    binding = recorder.bind(Context(tenant="acme", route="chat"))
    before = recorder.policy.digest
    assert binding.begin().level == 1
    write(told, CELL)
    os.utime(told, ns=(0, 0))  # the content decides, not the clock of whoever wrote it
    recorder.read_policy()
    assert binding.begin().level == 2
    assert recorder.bind(Context(tenant="acme")).begin().level == 2
    assert recorder.bind(Context(tenant="other")).begin().level == 1
    assert recorder.policy.digest != before
    write(told)
    recorder.read_policy()
    assert binding.begin().level == 1
    recorder.close()


def test_an_escalation_expires_while_the_process_runs(
    told: Path, recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(told, CELL)
    recorder.read_policy()
    binding = recorder.bind(Context(tenant="acme"))
    assert binding.begin().level == 2
    monkeypatch.setattr(policy, "today", lambda: date(2027, 1, 1))
    recorder.read_policy()
    assert binding.begin().level == 1
    recorder.close()


@pytest.mark.parametrize("broken", [b"{", b'{"version": 1, "cells": [{"level": 9}]}', None])
def test_a_file_that_cannot_be_read_leaves_the_policy_in_force(
    told: Path, recorder: Recorder, broken: bytes | None
) -> None:
    write(told, CELL)
    recorder.read_policy()
    binding = recorder.bind(Context(tenant="acme"))
    if broken is None:
        told.unlink()
    else:
        told.write_bytes(broken)
    recorder.read_policy()
    assert binding.begin().level == 2
    recorder.close()


def test_a_share_raises_about_that_share_of_attempts(told: Path, recorder: Recorder) -> None:
    write(told, {**CELL, "share": 0.25})
    recorder.read_policy()
    binding = recorder.bind(Context(tenant="acme"))
    raised = sum(binding.begin().level == 2 for _ in range(2000))
    assert 400 < raised < 600
    recorder.close()
