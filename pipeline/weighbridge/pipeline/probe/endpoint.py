"""The one way of a probe to its endpoint: one host, no redirect, no body in any message."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from weighbridge.pipeline.probe.address import Endpoint
from weighbridge.pipeline.probe.api import Api
from weighbridge.schemas.errors import ConfigError, Terminal, WeighbridgeError

if TYPE_CHECKING:
    import httpx

MOST_BYTES: Final = 16 * 2**20  # of an answer or a scrape
LONGEST_WAIT_S: Final = 30.0
TRIES: Final = 3
_WHOLE: Final = 10  # times the timeout of one wait
_NOT_OFFERED: Final = frozenset({400, 404, 405, 413, 415, 422, 501})
_ADVICE: Final[Mapping[int, str]] = {
    401: "name the environment variable that holds its key with --key-env",
    403: "its key may not use this model; name another with --key-env",
    404: "check the address (as a rule it ends in /v1), --api and --model",
    429: "wait, or ask for fewer steps with --steps",
}


class ProbeError(WeighbridgeError, Terminal):
    """An endpoint that could not be probed. The message names a status or a kind of failure, never what it sent."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status

    @property
    def not_offered(self) -> bool:
        """Whether the server understood the request and will not do it."""
        return self.status in _NOT_OFFERED


@dataclass(frozen=True, slots=True)
class Answered:
    """What came back: a body, or the events of a stream; `told` are its headers."""

    body: Mapping[str, Any] | None
    events: tuple[Any, ...] | None
    told: Mapping[str, str]


@dataclass(slots=True)
class Wire:
    """Sends requests, one at a time, at most so many.

    Attributes:
        endpoint, api: where and how.
        key_env: the environment variable that holds the key; null: none is sent.
        most: requests that may be sent in all.
        timeout_s: of connecting, and of each wait for more of an answer; a whole answer may take ten times as long.
        sent: requests that were sent.
    """

    endpoint: Endpoint
    api: Api
    key_env: str | None
    most: int
    timeout_s: float = 60.0
    sleep: Callable[[float], None] = time.sleep
    sent: int = 0
    _headers: dict[str, str] = field(init=False, repr=False)
    _client: httpx.Client = field(init=False, repr=False)

    def __post_init__(self) -> None:
        try:
            import httpx  # noqa: PLC0415 - only a probe needs it
        except ModuleNotFoundError:
            raise ConfigError('a probe needs httpx; run `pip install "weighbridge[probe]"`') from None
        self._headers = dict(self.api.headers)
        if self.key_env is not None:
            key = os.environ.get(self.key_env)
            if not key:
                raise ConfigError(f"the environment variable {self.key_env} is not set; set it to the endpoint's key")
            if not key.isascii() or not key.isprintable():
                raise ConfigError(f"the environment variable {self.key_env} holds no key: a key is printable ASCII")
            name, form = self.api.key_header
            self._headers[name] = form.format(key)
        agent = {"User-Agent": "weighbridge-probe"}
        self._client = httpx.Client(
            headers=agent, timeout=self.timeout_s, follow_redirects=False, trust_env=not self.endpoint.loopback
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def post(self, body: Mapping[str, Any], *, stream: bool) -> Answered:
        """Send one request; a 429 or a 5xx is tried again, as often as there are requests left.

        Raises:
            ProbeError: no answer, or none that can be read.
        """
        for attempt in range(1, TRIES + 1):
            if self.sent >= self.most:
                raise ProbeError(f"{self.most} requests are sent, more may not be; ask for fewer steps with --steps")
            self.sent += 1
            wait, answered = self._once(body, stream=stream, last=attempt == TRIES)
            if answered is not None:
                return answered
            self.sleep(wait)
        raise AssertionError("the last try gives an answer or raises")

    def _once(self, body: Mapping[str, Any], *, stream: bool, last: bool) -> tuple[float, Answered | None]:
        import httpx  # noqa: PLC0415 - as above

        url = self.endpoint.base + self.api.path
        try:
            with self._client.stream("POST", url, json=body, headers=self._headers) as response:
                status = response.status_code
                if status == 429 or status >= 500:
                    wait = _wait(response.headers.get("retry-after"))
                    if not last and wait is not None:
                        return wait, None
                if not response.is_success:
                    raise _refused(status)
                raw = self._bounded(response)
                kind = response.headers.get("content-type", "")
                told = {name.lower(): value for name, value in response.headers.items()}
        except httpx.HTTPError as error:
            raise _no_answer(error) from None
        if stream and "text/event-stream" in kind:
            return 0.0, Answered(None, tuple(_events(raw)), told)
        return 0.0, Answered(_object(raw), None, told)

    def _bounded(self, response: httpx.Response) -> bytes:
        """All of an answer, if it ends in time and is no larger than an answer can be."""
        held, until = bytearray(), time.monotonic() + _WHOLE * self.timeout_s
        for piece in response.iter_bytes():
            held += piece
            if len(held) > MOST_BYTES:
                raise ProbeError(f"it sent more than {MOST_BYTES // 2**20} MiB; this is no answer to a prompt of ours")
            if time.monotonic() > until:
                raise ProbeError("its answer did not end in time; ask for more with --timeout, or for less of it")
        return bytes(held)

    def get(self, url: str) -> str:
        """The text of a page of the same host, such as `/metrics`. The key is not sent along.

        Raises:
            ProbeError: there is none.
        """
        import httpx  # noqa: PLC0415 - as above

        try:
            with self._client.stream("GET", url) as response:
                if not response.is_success:
                    raise ProbeError(f"the metrics answered with status {response.status_code}; check --metrics")
                return self._bounded(response).decode("utf-8")
        except httpx.HTTPError as error:
            raise ProbeError(f"the metrics could not be read ({type(error).__name__}); check --metrics") from None
        except UnicodeDecodeError:
            raise ProbeError("the metrics are no text; check --metrics") from None


def _refused(status: int) -> ProbeError:
    if 300 <= status < 400:
        return ProbeError(f"it answered with a redirect ({status}), which is not followed; give its address", status)
    advice = _ADVICE.get(status) or ("try again later" if status >= 500 else "check --api and --model")
    return ProbeError(f"the endpoint answered with status {status}; {advice}", status)


def _no_answer(error: Exception) -> ProbeError:
    return ProbeError(f"the endpoint gave no answer ({type(error).__name__}); check its address, and that it is up")


def _wait(told: str | None) -> float | None:
    """Seconds to wait before another try; null where it would be too long. A date in place of seconds is one second."""
    try:
        wait = 1.0 if told is None else float(told)
    except ValueError:
        return 1.0
    return wait if 0 <= wait <= LONGEST_WAIT_S else None


def _object(raw: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        raise ProbeError("the endpoint's answer is no JSON; check the address and --api") from None
    if not isinstance(found, dict):
        raise ProbeError("the endpoint's answer is no JSON object; check the address and --api")
    return found


def _events(raw: bytes) -> list[Any]:
    """The data of server-sent events; `[DONE]` stays as it is."""
    found: list[Any] = []
    for line in raw.decode("utf-8", errors="replace").splitlines():
        if not line.startswith("data:"):
            continue
        data = line.removeprefix("data:").strip()
        if data == "[DONE]":
            found.append(data)
            continue
        try:
            found.append(json.loads(data))
        except (ValueError, RecursionError):
            raise ProbeError("an event of the endpoint's stream is no JSON; check the address and --api") from None
    return found
