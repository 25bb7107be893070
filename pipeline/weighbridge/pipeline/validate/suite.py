"""The contract as Great Expectations suites, and their checkpoints: the only module that imports Great Expectations.

It is given frames of counts, one row per table and day, and says of each rule whether it holds: it never sees a row of
the lake. Its contexts live in memory, so it writes no file; it is told to send nothing and to draw no progress bars.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from weighbridge.pipeline.validate.rule import Gravity


@dataclass(frozen=True, slots=True)
class NoneBreaks:
    """The sum of a column of counts is zero: no row of any day breaks the rule."""

    rule: str
    gravity: Gravity
    says: str


@dataclass(frozen=True, slots=True)
class NotBelow:
    """In every row one column is not below another; rows where either is unknown are passed over."""

    rule: str
    gravity: Gravity
    says: str
    column: str
    limit: str


@dataclass(frozen=True, slots=True)
class Sheet:
    """One frame of metrics and what is expected of it.

    Attributes:
        name: of the suite.
        columns: column -> values; counts, days and limits, and nothing else.
        expected: what must hold; each about columns of the sheet.
    """

    name: str
    columns: Mapping[str, Sequence[object]]
    expected: Sequence[NoneBreaks | NotBelow]

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(next(iter(self.columns.values()), ()))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found about one expectation of one sheet.

    Attributes:
        sheet, rule: which.
        holds: whether it does.
        rows: of `NotBelow`: the places of the rows where it does not.
    """

    sheet: str
    rule: str
    holds: bool
    rows: tuple[int, ...] = ()


_ROW = "row"
_CONNECT = "pyspark.sql.connect"


def load() -> None:
    """Import Great Expectations, which takes seconds: call it before the lake is locked."""
    with _quiet():
        _library()


def _library() -> Any:
    with without_spark_connect():
        import great_expectations as gx  # noqa: PLC0415 - only who validates pays for it
        import great_expectations.expectations  # noqa: PLC0415

    return gx


@contextmanager
def without_spark_connect() -> Iterator[None]:
    """The client of Spark Connect cannot be imported meanwhile.

    Great Expectations tries to, wherever pyspark is installed. Without its further packages that client takes a process
    whose main module is no file (`python -c`, a worker of a test run) for its own doctests, and ends it with exit
    code 0: whatever was to be validated would pass for clean.
    """
    hidden = _CONNECT not in sys.modules
    if hidden:
        sys.modules[_CONNECT] = None  # type: ignore[assignment]  # that is how an import is refused
    try:
        yield
    finally:
        if hidden:
            del sys.modules[_CONNECT]


def judge(sheets: Sequence[Sheet]) -> list[Verdict]:
    """Run the checkpoint of every sheet that has rows and expectations.

    Raises:
        RuntimeError: an expectation could not be judged, which is an error of the program.
    """
    asked = [sheet for sheet in sheets if sheet.rows and sheet.expected]
    if not asked:
        return []
    with _quiet():
        context = _context()
        return [verdict for sheet in asked for verdict in _run(context, sheet)]


def suite(sheet: Sheet) -> Any:
    """The `ExpectationSuite` of a sheet."""
    with _quiet():
        gx = _library()
        return gx.ExpectationSuite(
            name=sheet.name, expectations=[_expectation(gx.expectations, expected) for expected in sheet.expected]
        )


def _expectation(known: Any, expected: NoneBreaks | NotBelow) -> Any:
    about = {"meta": {"rule": expected.rule}, "notes": expected.says, "severity": str(expected.gravity)}
    if isinstance(expected, NoneBreaks):
        return known.ExpectColumnSumToBeBetween(column=expected.rule, min_value=0, max_value=0, **about)
    return known.ExpectColumnPairValuesAToBeGreaterThanB(
        column_A=expected.column,
        column_B=expected.limit,
        or_equal=True,
        ignore_row_if="either_value_is_missing",
        **about,
    )


def _context() -> Any:
    context = _library().get_context(mode="ephemeral")
    # Not before the library, which is imported with care.
    from great_expectations.data_context.types.base import ProgressBarsConfig  # noqa: PLC0415

    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    return context


def _run(context: Any, sheet: Sheet) -> Iterator[Verdict]:
    import pandas as pd  # type: ignore[import-untyped]  # noqa: PLC0415 - what Great Expectations reads

    gx = _library()
    asset = context.data_sources.add_pandas(sheet.name).add_dataframe_asset(sheet.name)
    batch = asset.add_batch_definition_whole_dataframe(sheet.name)
    definition = gx.ValidationDefinition(name=sheet.name, data=batch, suite=context.suites.add(suite(sheet)))
    checkpoint = gx.Checkpoint(
        name=sheet.name,
        validation_definitions=[context.validation_definitions.add(definition)],
        result_format={"result_format": "COMPLETE", "unexpected_index_column_names": [_ROW]},
    )
    frame = pd.DataFrame({_ROW: range(sheet.rows), **sheet.columns})
    result = context.checkpoints.add(checkpoint).run(batch_parameters={"dataframe": frame})
    for of_suite in result.run_results.values():
        for outcome in of_suite.results:
            yield _verdict(sheet, outcome)


def _verdict(sheet: Sheet, outcome: Any) -> Verdict:
    rule = outcome.expectation_config.meta["rule"]
    # The form of what went wrong varies with where it did; that nothing did is said in one way.
    if outcome.exception_info.get("raised_exception") is not False:
        raise RuntimeError(f"the rule {rule} of {sheet.name} could not be judged")
    places = outcome.result.get("unexpected_index_list") or []
    return Verdict(sheet.name, rule, bool(outcome.success), tuple(sorted(int(place[_ROW]) for place in places)))


@contextmanager
def _quiet() -> Iterator[None]:
    """Nothing is sent, and what the library warns of is for its own developers.

    The collector rests meanwhile: it would go through half a million fresh objects again and again and find nothing,
    for a fifth of the time the import takes.
    """
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    # Some of its loggers have a level of their own, so what they say is kept from going further up.
    log, nowhere = logging.getLogger("great_expectations"), logging.NullHandler()
    further, collects = log.propagate, gc.isenabled()
    log.propagate = False
    log.addHandler(nowhere)
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.removeHandler(nowhere)
        log.propagate = further
        if collects:
            gc.enable()
