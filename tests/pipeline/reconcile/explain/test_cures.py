"""What to do about a cause, by who answered."""

from __future__ import annotations

import pytest
from tests.pipeline.reconcile.conftest import World, weighed

from weighbridge.pipeline.reconcile.explain.cause import all_causes
from weighbridge.pipeline.reconcile.explain.cures import CURES, FAMILIES, cure_of

BY_CODE = {cause.code: cause for cause in all_causes()}


@pytest.mark.parametrize(("code", "family"), list(CURES))
def test_a_cure_of_a_family_is_one_sentence_about_a_cause_there_is(code: str, family: str) -> None:
    """And it is another one than that of all others."""
    assert code in BY_CODE
    assert family in FAMILIES
    cure = CURES[code, family]
    assert cure.endswith(".")
    assert cure != BY_CODE[code].cure
    assert {cure_of(BY_CODE[code], provider) for provider in FAMILIES[family]} == {cure}


def test_no_provider_is_of_two_families() -> None:
    """Else its cure would depend on the order of the table."""
    named = [provider for providers in FAMILIES.values() for provider in providers]
    assert len(named) == len(set(named))


def test_whoever_is_not_named_gets_the_cure_of_the_cause() -> None:
    """So does somebody who is not known."""
    for cause in all_causes():
        assert cure_of(cause, "somebody-else") == cure_of(cause, None) == cause.cure


def test_findings_of_one_cause_have_the_cure_of_their_provider(world: World) -> None:
    """Two providers, each with a missing report."""
    for number, provider in ((1, "vllm"), (2, "somebody-else"), (3, None)):
        world.attempt(number, input_computed=10, provider=provider)
    found = {f.subject.get("provider"): f.cure for f in weighed(world).result.findings if f.code == "usage_missing"}
    assert found == {
        "vllm": CURES["usage_missing", "vllm"],
        "somebody-else": BY_CODE["usage_missing"].cure,
        None: BY_CODE["usage_missing"].cure,
    }
