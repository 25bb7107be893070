"""What an API is to a probe: how a request is written, and where in an answer its texts stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from weighbridge.pipeline.probe import apis
from weighbridge.pipeline.probe.ask import Ask, Feature
from weighbridge.schemas.discovery import declared


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of text in an answer: of which choice, and whether it is reasoning."""

    choice: int
    text: str
    reasoning: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """How a request is written where APIs of one name differ: tried in turn at the first step.

    Attributes:
        limit: the name of the field that limits the answer.
        temperature: whether it may be said.
    """

    limit: str
    temperature: bool = True


@dataclass(frozen=True, slots=True)
class Api:
    """One API.

    Attributes:
        name: as it is typed.
        path: of its endpoint, behind the base address.
        dialect: the API's name in usage reports.
        features: what it has.
        chat: whether a chat template is applied to what is sent.
        forms: ways to write a request, the usual one first.
        body: a request, given what is asked, the model, the limit of the answer and the form.
        pieces: the texts of a body, or of one event of a stream.
        headers: sent with every request, beside the key.
        key_header: name and form of the header that carries the key.
    """

    name: str
    path: str
    dialect: str
    features: frozenset[Feature]
    chat: bool
    forms: tuple[Form, ...]
    body: Callable[[Ask, str, int, Form], dict[str, Any]]
    pieces: Callable[[Mapping[str, Any]], Iterator[Piece]]
    headers: Mapping[str, str]
    key_header: tuple[str, str] = ("Authorization", "Bearer {}")


@cache
def all_apis() -> Mapping[str, Api]:
    """Every API of the folder, by name."""
    return {api.name: api for api in declared(apis, "API", Api).values()}


def objects(value: object) -> Sequence[Mapping[str, Any]]:
    """The objects of a list; none where it is no list. What an endpoint sends may have any form."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def text_of(value: object) -> str:
    """A text, or an empty one."""
    return value if isinstance(value, str) else ""


def index_of(value: object) -> int:
    """The number of a choice, or 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
