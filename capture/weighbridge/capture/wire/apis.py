"""The APIs that are recognised on the wire, and who answers at which host. Facts; what counts mean is not said here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final


@dataclass(frozen=True, slots=True)
class Api:
    """How one API shows on the wire.

    Attributes:
        name: as the pipeline's dialects call it.
        path: matches the end of the URL's path.
        opening, revising, closing: types of the stream events that open with counts, revise them, and end the answer.
        done: whether its streams end with a `[DONE]` of their own.
        asked: usage in a stream has to be asked for, so that it cannot be told whether one that lacks it is at fault.
    """

    name: str
    path: re.Pattern[str]
    opening: frozenset[str] = frozenset()
    revising: frozenset[str] = frozenset()
    closing: frozenset[str] = frozenset()
    done: bool = False
    asked: bool = False


APIS: Final = (
    Api("openai_chat", re.compile(r"/chat/completions/?$"), done=True, asked=True),
    Api("openai_completions", re.compile(r"/completions/?$"), done=True, asked=True),
    Api(
        "openai_responses",
        re.compile(r"/responses/?$"),
        closing=frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"}),
    ),
    Api("openai_embeddings", re.compile(r"/embeddings/?$")),
    Api(
        "anthropic_messages",
        re.compile(r"/messages/?$"),
        opening=frozenset({"message_start"}),
        revising=frozenset({"message_delta"}),
        closing=frozenset({"message_stop"}),
    ),
    Api("gemini_generate_content", re.compile(r":(?:generateContent|streamGenerateContent)$")),
)
HOSTS: Final[Mapping[str, str]] = {
    "api.openai.com": "openai",
    "api.anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "google",
}
HOST_ENDINGS: Final[Mapping[str, str]] = {
    ".openai.azure.com": "azure",
    ".cognitiveservices.azure.com": "azure",
    ".api.openai.com": "openai",
}
# Where a record of our own travels between a client and a server that both run the agent.
ATTEMPT_HEADER: Final = "x-weighbridge-attempt"
REQUEST_HEADER: Final = "x-weighbridge-request"


@lru_cache(maxsize=1024)
def api_of(path: str) -> Api | None:
    """The API that is spoken at this path of a URL, or None."""
    return next((api for api in APIS if api.path.search(path)), None)


def provider_of(host: str, port: int | None, own: Mapping[str, str]) -> str | None:
    """Who answers at a host: `own` (by `host:port` or `host`) before the table; None where neither knows it."""
    told = own.get(f"{host}:{port}") or own.get(host) or HOSTS.get(host)
    return told or next((name for ending, name in HOST_ENDINGS.items() if host.endswith(ending)), None)
