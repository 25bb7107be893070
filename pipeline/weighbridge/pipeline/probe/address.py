"""The address of an endpoint: what may stand in it, and whether it is on this machine."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from weighbridge.pipeline.probe.api import Api
from weighbridge.schemas.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address.

    Attributes:
        base: scheme, host, port and path, without the path of an API.
        loopback: whether it is on this machine.
    """

    base: str
    loopback: bool

    @classmethod
    def parse(cls, text: str, api: Api) -> Endpoint:
        """The endpoint of an address; without a path, that is `/v1`; the API's own path at its end is taken off.

        Raises:
            ConfigError: it is no http or https address, or it holds a user, a password, a query or a fragment.
        """
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError:
            raise ConfigError("the endpoint is no address; write it as https://host:port/v1") from None
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ConfigError("the endpoint is no http or https address; write it as https://host:port/v1")
        if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
            raise ConfigError(
                "the endpoint holds a user, a key or a query, which would be printed; write it as "
                "https://host:port/v1, and name the environment variable that holds the key with --key-env"
            )
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        path = parts.path.rstrip("/").removesuffix(api.path) if parts.path.strip("/") else "/v1"
        loopback = _is_loopback(parts.hostname)
        if parts.scheme == "http" and not loopback:
            raise ConfigError("an endpoint on another machine is probed over https only; write https://")
        return cls(f"{parts.scheme}://{host}{'' if port is None else f':{port}'}{path}", loopback)

    @property
    def host(self) -> str:
        """Host and port."""
        return urlsplit(self.base).netloc


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
