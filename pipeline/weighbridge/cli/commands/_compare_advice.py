"""Verbs of `weighbridge compare` about what it recommends: `show`, `apply` and `refuse`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from weighbridge.cli.commands import _comparison
from weighbridge.cli.exits import CLEAN
from weighbridge.cli.options import AsJson, Config, LogLevel
from weighbridge.cli.output import write_json, write_line, write_table
from weighbridge.cli.session import home_of, user_name
from weighbridge.schemas.enumerations import RecommendationState

Reason = Annotated[str | None, typer.Option("--reason", help="Why; kept with it.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="The beginning of its id, as `compare show` lists it.")]


def show(ctx: typer.Context, as_json: AsJson = False, config: Config = None, log_level: LogLevel = None) -> int:
    """The latest comparison that was kept, and what became of every recommendation."""
    from weighbridge.pipeline.compare.recommendation import recommendations

    lake = home_of(ctx, config, log_level).lake()
    rows = _comparison.latest(lake)
    advice = recommendations(lake).to_dicts()
    if as_json:
        write_json({"comparison": rows, "recommendations": advice})
        return CLEAN
    _comparison.write_latest(rows)
    names = [
        "recommendation_id",
        "state",
        "changed_at",
        "changed_by",
        "model",
        "strategy",
        "parameters",
        "saved",
        "reason",
    ]
    if advice:
        write_line()
        write_table(
            ["id", *names[1:]],
            [
                [row["recommendation_id"][:8], *(_comparison.shown(row[name], name) for name in names[1:])]
                for row in advice
            ],
        )
    return CLEAN


def apply(
    ctx: typer.Context, number: Id, reason: Reason = None, config: Config = None, log_level: LogLevel = None
) -> int:
    """A recommended strategy is in use from now on; the next comparison of it says whether that holds."""
    return _decide(ctx, number, RecommendationState.APPLIED, reason, config, log_level)


def refuse(
    ctx: typer.Context, number: Id, reason: Reason = None, config: Config = None, log_level: LogLevel = None
) -> int:
    """A recommended strategy is not wanted, or no longer."""
    return _decide(ctx, number, RecommendationState.REFUSED, reason, config, log_level)


def _decide(
    ctx: typer.Context, number: str, state: RecommendationState, reason: str | None, config: Config, log_level: LogLevel
) -> int:
    from weighbridge.pipeline.compare.recommendation import decide

    lake = home_of(ctx, config, log_level).lake()
    made = decide(lake, number, state, datetime.now(tz=UTC), user_name(), reason)
    write_line(f"{made.recommendation_id[:8]} {made.strategy}: {made.state}")
    return CLEAN
