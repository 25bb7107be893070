"""`weighbridge probe` from the command line: what it prints, its exit codes, and findings that are kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Terminal
from tests.pipeline.probe.served import MODEL, Scale, serving

from weighbridge.cli.commands.probe import _AGAINST
from weighbridge.pipeline.probe.case import Against


@pytest.fixture(scope="module")
def _server() -> Iterator[Scale]:
    with serving(Scale()) as scale:
        yield scale


@pytest.fixture
def scale(_server: Scale) -> Scale:
    """The server, without any fault."""
    return _server.with_faults()


STEPS = ("--steps", "longer,tools,tools_longer")


def test_a_clean_probe_says_what_it_sends_and_that_it_is_consistent(weighbridge: Terminal, scale: Scale) -> None:
    ran = weighbridge("probe", scale.address, "--model", MODEL, "--metrics", scale.metrics, "--steps", "longer")
    assert ran.code == 0
    # 31 and 67 bytes, each with 16 around the message and 64 around the prompt; 16 tokens out each.
    assert ran.err.strip() == (
        "weighbridge: 2 requests, at most 258 tokens in and 32 out; no price is known for this model"
    )
    assert "consistent: usage and engine agree in 2 steps" in ran.out
    cells = [[cell.strip() for cell in line.split("│")] for line in ran.out.splitlines()]
    lines = {line[0]: line[1:] for line in cells}
    assert lines["longer"] == ["87", "–", "87", "3", "–", "3", "stop", ""]


def test_a_fault_is_printed_with_cause_and_cure(weighbridge: Terminal, scale: Scale) -> None:
    scale.with_faults(tools=False)
    ran = weighbridge("probe", scale.address, "--model", MODEL, *STEPS)
    assert ran.code == 1
    assert (
        "tools_longer, input: usage says 51, by what the same words weigh elsewhere 87, difference -36 tokens"
        in ran.out
    )
    assert "cause: tools_not_counted: Tools are not counted" in ran.out
    assert "cure:  Check that tools are switched on" in ran.out


def test_every_word_for_what_is_held_against_is_there() -> None:
    assert set(_AGAINST) == {str(word) for word in Against}


def test_json_has_the_first_parting_and_the_digest_of_the_prompts(weighbridge: Terminal, scale: Scale) -> None:
    scale.with_faults(tools=False)
    told = weighbridge("probe", scale.address, "--model", MODEL, "--json", *STEPS).json
    assert (told["verdict"], told["first"]["cause"], told["first"]["difference"]) == ("parts", "tools_not_counted", -36)
    assert told["requests"] == 4
    assert len(told["prompts"]["digest"]) == 64


def test_findings_are_kept_and_replaced_by_the_next_probe(weighbridge: Terminal, scale: Scale, tmp_path: Path) -> None:
    assert weighbridge("init", tmp_path).code == 0
    kept = ("--lake", "--config", tmp_path)
    scale.with_faults(tools=False)
    ran = weighbridge("probe", scale.address, "--model", MODEL, *STEPS, *kept)
    assert "1 finding kept in the lake" in ran.out
    (row,) = weighbridge("findings", "ls", "--json", "--code", "tools_not_counted", "--config", tmp_path).json
    assert (row["origin"], row["model"], row["expected"], row["observed"]) == ("probe", MODEL, 87, 51)
    assert row["subject"].endswith("step=tools_longer; direction=input; weight=usage")
    scale.with_faults()
    assert weighbridge("probe", scale.address, "--model", MODEL, *STEPS, *kept).code == 0
    assert weighbridge("findings", "ls", "--json", "--config", tmp_path).json == []


def test_an_endpoint_that_is_none_is_usage(weighbridge: Terminal) -> None:
    ran = weighbridge("probe", "http://127.0.0.1:1/v1", "--model", "m")
    assert ran.code == 2
    assert "the endpoint gave no answer (ConnectError)" in ran.err
    ran = weighbridge("probe", "https://api.example.invalid/v1", "--model", "m")
    assert ran.code == 2
    assert "Say --yes to send them" in ran.err
