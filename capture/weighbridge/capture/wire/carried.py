"""What the caller's context carries: the attempt a server is answering, and names for tenant, task and route."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from weighbridge.capture.context import Context, Parameters
from weighbridge.schemas.identity import AttemptKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Tenant, task and route as the calling code names them, in clear; only pseudonyms of tenants are written."""

    tenant: str | None = None
    task: str | None = None
    route: str | None = None


@dataclass(slots=True)
class Answering:
    """The attempt a server is answering. Serving code that knows may state what became of the computed tokens.

    Attributes:
        key: the attempt's key; an engine's adapter in the same process takes it for its own row.
        output_delivered: tokens whose text was sent.
        withheld_stop_trimmed: computed, and cut off with a stop string.
        withheld_aborted: computed, when the client had gone.
        prompt_ids, output_ids: token ids of the prompt, and of each child (0 for the attempt itself), for an attempt
            that is taken at level 2 or above; whoever hands them over changes them no more.
        level, context, parameters: what the middleware knows of the attempt once its body was read.
    """

    key: AttemptKey
    output_delivered: int = -1
    withheld_stop_trimmed: int = -1
    withheld_aborted: int = -1
    prompt_ids: Sequence[int] | None = None
    output_ids: Mapping[int, Any] = field(default_factory=dict)
    level: int = 1
    context: Context | None = None
    parameters: Parameters | None = None


# Set by a server's middleware while it answers.
answering: ContextVar[Answering | None] = ContextVar("weighbridge_answering", default=None)
named: ContextVar[Names | None] = ContextVar("weighbridge_named", default=None)


@contextmanager
def names(*, tenant: str | None = None, task: str | None = None, route: str | None = None) -> Iterator[None]:
    """Name tenant, task and route of every call that is made inside."""
    before = named.get()
    named.set(Names(tenant=tenant, task=task, route=route))
    try:
        yield
    finally:
        named.set(before)  # no token: a generator may be closed in another context than it was entered in
