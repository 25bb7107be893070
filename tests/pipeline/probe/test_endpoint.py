"""The way to an endpoint: which addresses, which answers, what is said of them, and that no key and no text leaks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.pipeline.probe.conftest import DAY, NO_PRICES, Probed
from tests.pipeline.probe.served import MODEL, Scale

from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.probe.address import Endpoint
from weighbridge.pipeline.probe.api import all_apis
from weighbridge.pipeline.probe.endpoint import ProbeError
from weighbridge.pipeline.probe.estimate import Estimate
from weighbridge.pipeline.probe.result import ProbeResult
from weighbridge.pipeline.probe.run import Wanted, run
from weighbridge.schemas.errors import ConfigError, ContractError

CHAT = all_apis()["chat"]
Given = tuple[int, dict[str, str], bytes]


def _bare(scale: Scale, *, sleeps: list[float] | None = None, **more: Any) -> ProbeResult:
    waited = [] if sleeps is None else sleeps
    asked: dict[str, Any] = {"endpoint": scale.address, "model": MODEL, "steps": ["plain"]}
    return run(Wanted(**(asked | more)), NO_PRICES, DAY, sleep=waited.append)


@pytest.mark.parametrize(
    ("text", "base", "loopback"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1", True),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000/v1", True),
        ("http://localhost:8000/v1/", "http://localhost:8000/v1", True),
        ("http://[::1]:8000/v1/chat/completions", "http://[::1]:8000/v1", True),
        ("https://api.example.org/openai/v1", "https://api.example.org/openai/v1", False),
    ],
)
def test_an_address_is_read(text: str, base: str, loopback: bool) -> None:
    found = Endpoint.parse(text, CHAT)
    assert (found.base, found.loopback) == (base, loopback)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("127.0.0.1:8000", "no http or https address"),
        ("ftp://127.0.0.1/v1", "no http or https address"),
        ("http://127.0.0.1:notaport/v1", "no address"),
        ("http://api.example.org/v1", "over https only"),
        ("https://user:hush@api.example.org/v1", "--key-env"),
        ("https://api.example.org/v1?key=hush", "--key-env"),
        ("http://127.0.0.1.example.org/v1", "over https only"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_and_not_repeated(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as raised:
        Endpoint.parse(text, CHAT)
    assert "hush" not in str(raised.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((401, {}, b"SECRET"), "status 401; name the environment variable"),
        ((403, {}, b"SECRET"), "status 403; its key may not"),
        ((404, {}, b"SECRET"), "status 404; check the address"),
        ((302, {"Location": "http://127.0.0.1:1/SECRET"}, b""), r"a redirect \(302\)"),
        ((200, {}, b"SECRET"), "is no JSON;"),
        ((200, {}, b'["SECRET"]'), "is no JSON object"),
        ((200, {}, b"[" * 100_000), "is no JSON"),
        ((429, {"Retry-After": "3600"}, b"SECRET"), "status 429; wait"),
    ],
    ids=str,
)
def test_an_answer_that_is_none_is_told_by_its_kind(scale: Scale, given: Given, said: str) -> None:
    # 400 and 422 would be tried in another form; these are final at the first request.
    scale.with_faults(status=[given])
    with pytest.raises(ProbeError, match=said) as raised:
        _bare(scale)
    assert "SECRET" not in str(raised.value)
    assert len(scale.engine.requests) == 1


def test_a_busy_server_is_asked_again_after_the_time_it_names(scale: Scale) -> None:
    scale.with_faults(status=[(429, {"Retry-After": "7"}, b""), (503, {}, b"")])
    waited: list[float] = []
    result = _bare(scale, sleeps=waited)
    assert result.verdict == "consistent"
    assert waited == [7.0, 1.0]
    assert result.sent == 3


def test_a_server_that_fails_three_times_is_given_up(scale: Scale) -> None:
    scale.with_faults(status=[(500, {}, b"SECRET")] * 3)
    with pytest.raises(ProbeError, match="status 500; try again later"):
        _bare(scale)
    assert len(scale.engine.requests) == 3


def test_no_more_requests_are_sent_than_allowed(scale: Scale) -> None:
    scale.with_faults(status=[(503, {}, b"")] * 3)
    with pytest.raises(ProbeError, match="2 requests are sent"):
        _bare(scale, most=2)
    assert len(scale.engine.requests) == 2
    with pytest.raises(ConfigError, match="3 requests are needed and 2 allowed"):
        _bare(scale, most=2, steps=["plain", "repeat"])


def test_nobody_there_is_told(scale: Scale) -> None:
    with pytest.raises(ProbeError, match=r"no answer \(ConnectError\)"):
        _bare(scale, endpoint="http://127.0.0.1:1/v1")


def test_a_server_with_another_word_for_the_limit_is_asked_in_its_form(scale: Scale) -> None:
    scale.with_faults(refuse={"temperature": 400})
    assert _bare(scale, steps=["plain", "cut"]).verdict == "consistent"
    assert [
        sorted({"max_tokens", "max_completion_tokens", "temperature"} & set(one)) for one in scale.engine.requests
    ] == [
        ["max_tokens", "temperature"],
        ["max_completion_tokens"],
        ["max_completion_tokens"],
    ]


def test_the_key_comes_from_the_environment_and_goes_to_the_api_alone(
    scale: Scale, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROBE_KEY", "sk-hush")
    result = _bare(scale, key_env="PROBE_KEY", metrics=scale.metrics)
    sent = [one.get("authorization") for one in scale.engine.headers]
    assert sent.count("Bearer sk-hush") == 1
    assert sent.count(None) == len(sent) - 1 > 0  # the metrics are read without it
    assert "hush" not in json.dumps(result.to_dict(), default=str)
    monkeypatch.setenv("PROBE_KEY", "sk\n")
    with pytest.raises(ConfigError, match="printable ASCII"):
        _bare(scale, key_env="PROBE_KEY")
    monkeypatch.delenv("PROBE_KEY")
    with pytest.raises(ConfigError, match="PROBE_KEY is not set"):
        _bare(scale, key_env="PROBE_KEY")


def test_another_machine_is_asked_only_with_yes_and_the_cost_is_said_before() -> None:
    said: list[Estimate] = []
    wanted = Wanted(endpoint="https://api.example.invalid/v1", model="m", steps=["plain", "cut"])
    with pytest.raises(
        ConfigError, match=r"another machine: 2 requests, at most 222 tokens in and 17 out; no price"
    ) as no:
        run(wanted, NO_PRICES, DAY, say=said.append)
    # Each: 31 bytes, 16 around the message, 64 around the prompt; 16 and 1 tokens out.
    assert "Say --yes" in str(no.value)
    assert said == []


def test_the_cost_is_that_of_the_price_book() -> None:
    # 222 tokens at 0.15 and 17 at 0.60 for a million: 33.3 + 10.2 millionths.
    wanted = Wanted(endpoint="https://api.openai.com/v1", model="gpt-4o-mini", steps=["plain", "cut"])
    with pytest.raises(ConfigError, match=r"at most 0\.0000435 USD"):
        run(wanted, PriceBook.load(), DAY)


def test_an_answer_that_does_not_end_is_given_up(scale: Scale, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weighbridge.pipeline.probe.endpoint._WHOLE", -1)
    with pytest.raises(ProbeError, match="did not end in time"):
        _bare(scale)
    monkeypatch.undo()
    monkeypatch.setattr("weighbridge.pipeline.probe.endpoint.MOST_BYTES", 100)
    with pytest.raises(ProbeError, match="it sent more than"):
        _bare(scale)


def test_metrics_of_another_host_are_not_read(scale: Scale) -> None:
    with pytest.raises(ConfigError, match="another host"):
        _bare(scale, metrics="http://localhost:9/metrics")
    assert scale.engine.requests == []


def test_a_page_without_counters_is_told(scale: Scale) -> None:
    with pytest.raises(ProbeError, match="metrics answered with status"):
        _bare(scale, metrics=scale.address.replace("/v1", "/none"))
    scale.with_faults(page="process_start_time_seconds 1\n")
    with pytest.raises(ContractError, match="no counter of a known engine"):
        _bare(scale, metrics=scale.metrics)
    scale.with_faults(page="SECRET {{{ 1\n")
    with pytest.raises(ContractError, match="no text as") as raised:
        _bare(scale, metrics=scale.metrics)
    assert "SECRET" not in str(raised.value)


def test_nothing_of_an_answer_is_in_the_result(probed: Probed) -> None:
    shown = json.dumps(probed().to_dict(), default=str)
    assert '"yes"' not in shown
    assert "hmm" not in shown


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"api": "telepathy"}, "one of chat, completions"),
        ({"steps": ["sistem"]}, "did you mean system"),
        ({"tokenizer": "/nowhere/tokenizer.json"}, "no tokenizer at"),
        ({"model": "two words"}, "--model is no name"),
    ],
)
def test_what_cannot_be_used_is_told_before_anything_is_sent(scale: Scale, more: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        _bare(scale, **more)
    assert scale.engine.requests == []
