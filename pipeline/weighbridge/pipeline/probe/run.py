"""A probe from what a user gives to its result."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from urllib.parse import urlsplit

from weighbridge.pipeline.price.book import PriceBook
from weighbridge.pipeline.probe.address import Endpoint
from weighbridge.pipeline.probe.api import Api, all_apis
from weighbridge.pipeline.probe.endpoint import Wire
from weighbridge.pipeline.probe.estimate import Estimate, estimate
from weighbridge.pipeline.probe.judge import judge
from weighbridge.pipeline.probe.probe import Probe
from weighbridge.pipeline.probe.recounters import recounter
from weighbridge.pipeline.probe.result import ProbeResult
from weighbridge.pipeline.probe.step import chosen
from weighbridge.pipeline.probe.watch import Watch
from weighbridge.schemas.errors import ConfigError
from weighbridge.schemas.identity import NAME

MOST_REQUESTS = 64
# Whose usage it is where an engine's counters name it otherwise.
_ENGINES = {"llamacpp": "llama_cpp"}
_PROVIDERS = {
    "api.openai.com": "openai",
    "api.anthropic.com": "anthropic",
    "api.mistral.ai": "mistral",
    "api.deepseek.com": "deepseek",
    "api.groq.com": "groq",
    "api.x.ai": "xai",
    "openrouter.ai": "openrouter",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be probed, and how.

    Attributes:
        endpoint: its address.
        model: as the endpoint names it.
        api: its name.
        provider: whose dialect reads the usage; null: by the host, else by the engine whose metrics are read.
        tokenizer, template: see `recounter`; null: nothing is counted here.
        metrics: address of the engine's counters, on the same host; null: they are not read.
        key_env: the environment variable that holds the key.
        steps: names; none: all the API has.
        max_tokens: of one answer.
        repeat: how often the prompt is sent again.
        most: requests that may be sent, retries included.
        timeout_s: of one wait.
        yes: money may be spent.
    """

    endpoint: str
    model: str
    api: str = "chat"
    provider: str | None = None
    tokenizer: str | None = None
    template: Path | None = None
    metrics: str | None = None
    key_env: str | None = None
    steps: Sequence[str] = ()
    max_tokens: int = 16
    repeat: int = 2
    most: int = MOST_REQUESTS
    timeout_s: float = 60.0
    yes: bool = False


def run(
    wanted: Wanted,
    book: PriceBook,
    day: date,
    *,
    say: Callable[[Estimate], None] = lambda _: None,
    sleep: Callable[[float], None] = time.sleep,
) -> ProbeResult:
    """Probe an endpoint.

    Args:
        wanted: what and how.
        book: prices, for the estimate.
        day: whose prices, in UTC.
        say: is told the estimate before anything is sent.
        sleep: how to wait.

    Raises:
        ConfigError: something that was given cannot be used, or the endpoint is another machine's and `yes` is not
            said.
        ProbeError: the endpoint cannot be probed.
        ContractError: the metrics are none.
    """
    api = _api(wanted.api)
    _names(wanted)
    endpoint = Endpoint.parse(wanted.endpoint, api)
    metrics = _metrics(wanted.metrics, endpoint)
    steps = chosen(api, wanted.steps)
    if wanted.template is not None and wanted.tokenizer is None:
        raise ConfigError("--template needs --tokenizer: a template alone counts nothing")
    counts = None if wanted.tokenizer is None else recounter(wanted.tokenizer, wanted.template)
    with closing(Wire(endpoint, api, wanted.key_env, wanted.most, wanted.timeout_s, sleep)) as wire:
        watch = None if metrics is None else Watch(wire, metrics, wanted.model, sleep)
        provider = wanted.provider or _PROVIDERS.get(urlsplit(endpoint.base).hostname or "")
        asked = estimate(
            steps,
            api,
            counts,
            limit=wanted.max_tokens,
            repeat=wanted.repeat,
            book=book,
            provider=provider or "unknown",
            model=wanted.model,
            day=day,
        )
        _allowed(wanted, endpoint, asked)
        say(asked)
        engine = None if watch is None else watch.now().engine
        whose = provider or _ENGINES.get(engine or "", engine) or "unknown"
        probe = Probe(wire, api, wanted.model, whose, counts, watch, wanted.max_tokens, wanted.repeat)
        seen = probe.observe(steps)
        return ProbeResult(
            endpoint=endpoint.base,
            host=endpoint.host,
            provider=whose,
            api=api.name,
            model=wanted.model,
            tokenizer=None if counts is None else counts.tokenizer,
            template=None if counts is None else counts.template,
            engine=engine,
            seen=seen,
            left_out=probe.left_out,
            partings=judge(seen),
            sent=wire.sent,
            estimate=asked,
        )


def _api(name: str) -> Api:
    known = all_apis()
    if name not in known:
        raise ConfigError(f"--api is {name!r}; it is one of {', '.join(known)}")
    return known[name]


def _names(wanted: Wanted) -> None:
    for option, name in (("--model", wanted.model), ("--provider", wanted.provider)):
        if name is not None and not NAME.fullmatch(name):
            raise ConfigError(f"{option} is no name: letters, digits and . _ : / @ - are allowed, and at most 128")


def _metrics(url: str | None, endpoint: Endpoint) -> str | None:
    """The address of the counters. Nothing is sent to another host than the one that was named."""
    if url is None:
        return None
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        host = None
    if host is None or parts.scheme not in {"http", "https"} or parts.username is not None:
        raise ConfigError("--metrics is no http or https address; write it as http://host:port/metrics")
    if host != urlsplit(endpoint.base).hostname:
        raise ConfigError(
            f"--metrics is on another host than the endpoint ({endpoint.host}); name that host's counters"
        )
    return url


def _allowed(wanted: Wanted, endpoint: Endpoint, asked: Estimate) -> None:
    if asked.requests > wanted.most:
        raise ConfigError(f"{asked.requests} requests are needed and {wanted.most} allowed; ask for fewer --steps")
    if not endpoint.loopback and not wanted.yes:
        raise ConfigError(f"{endpoint.host} is another machine: {asked}. Say --yes to send them")
