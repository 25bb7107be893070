"""Exit codes, and what is said when something goes wrong: the next step, and never a value of the data."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import typer

from weighbridge.pipeline.run.failure import of_machine
from weighbridge.schemas.errors import Transient, WeighbridgeError

CLEAN = 0
FINDINGS = 1  # something is wrong with the data
USAGE = 2  # a wrong option, setting or file; an error the user can mend
REFUSED = 3  # a gate refused
CRASH = 70  # a fault of the program
PIPE_CLOSED = 141  # the reader of our output went away, as for every Unix tool
INTERRUPTED = 130
_CHECKED = "Value error, "
# Packages that read files and say of an error neither where it is nor what to do.
_ENGINES = frozenset({"polars", "pyarrow", "pyo3_runtime"})
TERMINATED = 143  # as of any process that was sent SIGTERM


@contextmanager
def guarded(debug: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Turn every way a command can fail into a line on standard error and an exit code.

    Args:
        debug: whether to show where a crash happened, asked when it has. The text of foreign exceptions may quote
            data, so it is never shown.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        hush()
        raise typer.Exit(PIPE_CLOSED) from None
    except WeighbridgeError as error:
        advice = " Try again later." if isinstance(error, Transient) else ""
        complain(f"{error}{advice}")
        raise typer.Exit(USAGE) from None
    except OSError as error:
        complain(of_machine(error))
        raise typer.Exit(USAGE) from None
    except ModuleNotFoundError as error:
        if (error.name or "weighbridge").startswith("weighbridge"):
            crashed(error, debug=debug())
            raise typer.Exit(CRASH) from None
        complain(f'the package {error.name} is not installed; run `pip install "weighbridge[pipeline,report]"`')
        raise typer.Exit(USAGE) from None
    except RuntimeError as error:
        if isinstance(error, (typer.Exit, typer.Abort)):
            raise
        crashed(error, debug=debug())
        raise typer.Exit(CRASH) from None
    except Exception as error:
        if isinstance(error, typer.BadParameter.__bases__):
            _in_our_words(error)
            raise
        _tell_damage(error)
        crashed(error, debug=debug())
        raise typer.Exit(CRASH) from None
    except BaseException as error:
        # A library in Rust that gives up raises what is no Exception, and would end with the code of findings.
        if type(error).__name__ != "PanicException":
            raise
        _tell_damage(error)
        crashed(error, debug=debug())
        raise typer.Exit(CRASH) from None


def _tell_damage(error: BaseException) -> None:
    """Leave with `USAGE` where what an engine gave up at is a file of the lake that is damaged, which is named."""
    if type(error).__module__.partition(".")[0] not in _ENGINES:
        return
    from weighbridge.pipeline.lake.committed import damaged_file

    told = None
    with suppress(Exception):
        told = damaged_file()
    if told is not None:
        complain(str(told))
        raise typer.Exit(USAGE) from None


def _in_our_words(error: Exception) -> None:
    """Leave out what the library that checks words puts before its message."""
    message = getattr(error, "message", None)
    if isinstance(message, str):
        error.message = message.removeprefix(_CHECKED)  # type: ignore[attr-defined]


def check_text(arguments: Sequence[str]) -> None:
    """Leave with `USAGE` where an argument has bytes that are no text; only a file that is there may be named so."""
    for place, argument in enumerate(arguments, start=1):
        try:
            argument.encode()
        except UnicodeEncodeError:
            if not os.path.lexists(argument):
                complain(
                    f"argument {place} has bytes that are no UTF-8; write it in UTF-8, in a locale such as C.UTF-8"
                )
                raise SystemExit(USAGE) from None


def complain(message: str) -> None:
    """A message on standard error: one line, or a list with one thing a line."""
    sys.stderr.write(f"weighbridge: {message}\n")


def crashed(error: BaseException, *, debug: bool) -> None:
    """Say that the program failed: the types of the exceptions and, for debugging, the places; no text of theirs."""
    if debug:
        sys.stderr.write("".join(_places(error)))
    hint = "the lines above say where" if debug else "run it again with --log-level debug to see where"
    complain(f"crashed with {type(error).__name__}; {hint}. This is a fault of the program: please report it.")


def _places(error: BaseException) -> Iterator[str]:
    inner = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if inner is not None:
        yield from _places(inner)
        yield "\nwhich led to\n\n"
    yield from traceback.format_tb(error.__traceback__)
    yield f"{type(error).__module__}.{type(error).__qualname__}\n"


def hush() -> None:
    """Send what is still to be written to standard output nowhere, so that the end of the process says nothing."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
