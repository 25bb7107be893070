"""Run a contract: every check by name, each on a recorder of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from weighbridge.capture.contract import harmless
from weighbridge.capture.contract.engine import SCENARIOS, Engine, NotOfferedError
from weighbridge.capture.contract.figures import compared
from weighbridge.capture.contract.report import Broken, Checked, Outcome, Report
from weighbridge.capture.contract.trial import called, installed, trial

Check = Callable[[Engine], tuple[list[Broken], list[str]]]


def _scenario(name: str, engine: Engine) -> tuple[list[Broken], list[str]]:
    """The rows of one kind of call are what was true of it."""
    with trial(engine, level=1) as made:
        with installed(engine, made):
            call = called(engine, name)
        return compared(call, made)


def _sampled(engine: Engine) -> tuple[list[Broken], list[str]]:
    """Ids of an attempt of level 2 are those that were true, and as many as its row announces."""
    with trial(engine, level=2) as made:
        if made.recorder is None:
            raise NotOfferedError("the agent runs in another process")
        with installed(engine, made):
            call = called(engine, "plain")
        found = compared(call, made)
        if not made.offered and any(truth.output_ids is not None for truth in call.truths):
            found[1].append("no ids are handed over at level 2")
        return found


def _of_host(check: Callable[[Engine], list[Broken]], engine: Engine) -> tuple[list[Broken], list[str]]:
    return check(engine), []


CHECKS: Final[dict[str, Check]] = {
    "imports": partial(_of_host, harmless.imports),
    **{name: partial(_scenario, name) for name in SCENARIOS},
    "ids": _sampled,
    "same_results": partial(_of_host, harmless.same_results),
    "never_raises": partial(_of_host, harmless.never_raises),
    "removed": partial(_of_host, harmless.removed),
    "installed_twice": partial(_of_host, harmless.installed_twice),
    "threads": partial(_of_host, harmless.on_threads),
    "forks": partial(_of_host, harmless.in_forks),
    "losses": partial(_of_host, harmless.losses),
    "no_text": partial(_of_host, harmless.no_text),
}


def check(engine: Engine, name: str) -> Checked:
    """Make one check.

    Raises:
        KeyError: there is no check of that name; `CHECKS` has them.
    """
    try:
        broken, notes = CHECKS[name](engine)
    except NotOfferedError as error:
        return Checked(name, Outcome.NOT_OFFERED, notes=(str(error),))
    except Exception as error:  # noqa: BLE001 - what a call raises under the adapter is what is looked for
        found = f"{type(error).__name__} was raised while the check ran, by the adapter or by the engine"
        return Checked(name, Outcome.BROKEN, (Broken("raised", f"{found}; make the call without the adapter first"),))
    return Checked(name, Outcome.BROKEN if broken else Outcome.HELD, tuple(broken), tuple(notes))


def prove(engine: Engine, checks: Iterable[str] = tuple(CHECKS)) -> Report:
    """Hold an engine's adapter against the contract, or against some of its checks."""
    return Report(type(engine).__name__, tuple(check(engine, name) for name in checks))
