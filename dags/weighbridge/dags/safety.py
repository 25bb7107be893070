"""What may leave a task when it fails: our own words. The text of other exceptions may quote data."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from weighbridge.pipeline.run.failure import refused_by_machine
from weighbridge.schemas.errors import Terminal, Transient, WeighbridgeError

if TYPE_CHECKING:
    from prefect import Task
    from prefect.client.schemas.objects import State, TaskRun

P = ParamSpec("P")
T = TypeVar("T")
_PLACES = 4


class CrashError(WeighbridgeError, Terminal):
    """A fault of the program: the type of what was raised and where, never what it said."""


def alone(error: WeighbridgeError) -> WeighbridgeError:
    """One of our own errors without the exceptions that led to it: theirs are not our words."""
    error.__cause__ = error.__context__ = None
    error.__suppress_context__ = True
    return error


def guarded(work: Callable[P, T]) -> Callable[P, T]:
    """Let our own errors pass, and every other as its type and places: Prefect logs and stores what a task raises.

    What the system refused, such as a file that is another user's, is no fault of the program and is said in words.
    A traceback shows the text of every exception that led to one, so what is raised has neither cause nor context: it
    is raised after the other was handled, and our own errors are cut off from what they were raised from.
    """

    @wraps(work)
    def call(*arguments: P.args, **named: P.kwargs) -> T:
        try:
            return work(*arguments, **named)
        except WeighbridgeError as error:
            told = error
        except OSError as error:
            told = refused_by_machine(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, its text stays here
            frames = traceback.extract_tb(error.__traceback__)[-_PLACES:]
            places = ", ".join(f"{frame.filename}:{frame.lineno}" for frame in frames)
            told = CrashError(f"{type(error).__name__} at {places}; this is a fault of the program, please report it")
        raise alone(told)

    return call


def may_help(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    """Whether trying again can help: only where the error itself says so."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, Transient) and not isinstance(error, Terminal)
