"""What the maker of an engine lends to the contract: the adapter, and calls of which the truth is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from weighbridge.schemas.enumerations import AttemptStatus, FinishReason

if TYPE_CHECKING:
    from weighbridge.capture.recorder import Recorder

# A word that stands in every prompt of a contract and must stand in no file of the agent.
CANARY: Final = "CANARY-7f3a91"


class NotOfferedError(Exception):
    """The engine has no such kind of call; the text says why, and is printed."""


class Installed(Protocol):
    """What an adapter's `install` returns."""

    def remove(self) -> None:
        """Put back what was there."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What was true of one attempt, counted by the engine's own maker and not by the adapter.

    Attributes:
        counts: columns of counts (`capture.layout.COUNTS`) and their values. What is left out is not compared; a count
            the adapter leaves null is listed, and does not break the contract.
        must: of them, those the adapter has to know.
        status, finish: how it ended; a finish of None is not compared.
        children: counts of each choice, beam or prompt, where the attempt is made of several.
        prompt_ids, output_ids: token ids, where the adapter hands them over at level 2; None is not compared.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    must: Sequence[str] = ("input_computed", "output_computed")
    status: AttemptStatus = AttemptStatus.SUCCEEDED
    finish: FinishReason | None = None
    children: Sequence[Mapping[str, int]] = ()
    prompt_ids: Sequence[int] | None = None
    output_ids: Sequence[int] | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the engine: its attempts, and what the caller got, compared with `==`."""

    truths: Sequence[Truth]
    result: object = None


class Engine:
    """Subclass this and lend what your engine can do; everything else is reported as not offered.

    Attributes:
        module: the adapter's module: importing it must load none of `frameworks`.
        frameworks: top-level packages of the engine.
        deterministic: whether the same call gives the same result, so that results with and without the adapter are
            compared.
        threads: whether calls may be made on several threads at once.
        forks: whether calls may be made in a forked child.
        spool: for an engine in another process, whose agent is configured there: where it writes. The checks that need
            a recorder of their own are then not offered.
    """

    module: ClassVar[str] = ""
    frameworks: ClassVar[Sequence[str]] = ()
    deterministic: ClassVar[bool] = True
    threads: ClassVar[bool] = True
    forks: ClassVar[bool] = True
    spool: Path | None = None

    def install(self, recorder: Recorder) -> Installed:
        """Install the adapter under `recorder`."""
        raise NotImplementedError(f"{type(self).__name__}.install(recorder) has to install the adapter; see {__name__}")

    def touched(self) -> Sequence[object]:
        """Objects the adapter may put something into; after removal each has to be as it was."""
        return ()

    def plain(self) -> Call:
        """One prompt, one answer, to its end."""
        raise NotOfferedError("no plain call")

    def stream(self) -> Call:
        """The same, streamed and read to its end."""
        raise NotOfferedError("no streams")

    def abort(self) -> Call:
        """A call its caller leaves before its end."""
        raise NotOfferedError("no call can be left")

    def stop_string(self) -> Call:
        """A call that a stop string ends."""
        raise NotOfferedError("no stop strings")

    def choices(self) -> Call:
        """A call for several choices: one truth, with children."""
        raise NotOfferedError("no choices")

    def batch(self) -> Call:
        """Several prompts at once, of different lengths: one truth each."""
        raise NotOfferedError("no batches")

    def speculation(self) -> Call:
        """A call with drafts, some of them rejected."""
        raise NotOfferedError("no speculation")

    def cached(self) -> Call:
        """A call part of whose prompt is taken from a prefix cache."""
        raise NotOfferedError("no prefix cache")

    def failure(self) -> Call:
        """A call that the engine fails: its exception is caught here, and is the result."""
        raise NotOfferedError("no call can be made to fail")


SCENARIOS: Final = (
    "plain", "stream", "abort", "stop_string", "choices", "batch", "speculation", "cached", "failure",
)  # fmt: skip
