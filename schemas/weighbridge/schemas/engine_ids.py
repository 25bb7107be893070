"""How the ids of requests inside a vLLM engine are made of the id their call has in the API.

    cmpl-V-0, cmpl-V-1          completions: the prompts of one call; its n choices all have the same id
    cmpl-V-<hex>-beam-2         a step of a beam of a completion
    chatcmpl-V                  chat and messages;  resp_<hex>_0  responses;  generate-tokens-V  token in, token out

Seen with vLLM 0.32.0. V is what the client sent as X-Request-Id, else a name of the server's own. Clients choose V, and
may choose it twice: what belongs to one call arrived in the same instant.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

# Two figures that are each rounded to a microsecond.
SAME_US: Final = 2
_BEAM: Final = re.compile(r"(?P<api>.+)-[0-9a-f]+-beam-\d+")
_COMPLETION: Final = re.compile(r"(?P<api>cmpl-.+)-(?P<prompt>\d+)")
_RESPONSE: Final = re.compile(r"(?P<api>resp_.+)_\d+")
_CLIENT: Final = re.compile(r"(?:cmpl|chatcmpl|generate-tokens)-(?P<client>.+)")


class EngineId(NamedTuple):
    """What an id of the engine tells.

    Attributes:
        api_id: the id the answer of its call has.
        prompt: which prompt of the call it works on; null where the id does not tell.
        beam: whether it is a step of a beam.
    """

    api_id: str
    prompt: int | None
    beam: bool


def engine_id(told: str) -> EngineId:
    """Take an id of the engine apart."""
    beam = _BEAM.fullmatch(told)
    if beam:
        return EngineId(beam["api"], None, True)
    completion = _COMPLETION.fullmatch(told)
    if completion:
        return EngineId(completion["api"], int(completion["prompt"][:9]), False)
    response = _RESPONSE.fullmatch(told)
    return EngineId(response["api"] if response else told, None, False)


def client_id(api_id: str) -> str | None:
    """The id the client sent, as the server made the call's own id of it; null where it made one itself."""
    found = _CLIENT.fullmatch(api_id)
    return None if found is None else found["client"]
