"""What is known of a window, figure by figure, in integers: the only thing causes look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from weighbridge.pipeline.engine.servers import Series
from weighbridge.pipeline.engine.windows import Window
from weighbridge.schemas.enumerations import CounterUnit
from weighbridge.schemas.enumerations import EngineCounter as C

PROMPT, GENERATION = (str(C.PROMPT_TOKENS), None), (str(C.GENERATION_TOKENS), None)
QUERIES, FINISHED = (str(C.PREFIX_CACHE_QUERIES), None), (str(C.REQUESTS_FINISHED), None)
CACHED, RECOMPUTED = (str(C.PROMPT_TOKENS_CACHED), None), (str(C.RECOMPUTED), None)
PROCESSED = (str(C.PROMPT_TOKENS_COMPUTED), None)
FINISHED_PROMPT = (str(C.FINISHED_PROMPT_TOKENS), None)
FINISHED_GENERATION = (str(C.FINISHED_GENERATION_TOKENS), None)
FINISHED_COMPUTED = (str(C.FINISHED_PREFILL_COMPUTED), None)
_SOURCE = str(C.PROMPT_TOKENS_BY_SOURCE)
COMPUTED, LOCAL, EXTERNAL = ((_SOURCE, label) for label in ("local_compute", "local_cache_hit", "external_kv_transfer"))


@dataclass(frozen=True, slots=True)
class Figure:
    """One counter that attempts can be held against.

    Attributes:
        series: the counter and its label.
        unit: what it counts in.
        column: the figure of an attempt that adds to it (`lives`).
        whole: the column with what the engine's requests of an attempt add up to, where one is told.
        most: the column with the most it can be where it is not known.
    """

    series: Series
    unit: CounterUnit
    column: str
    whole: str | None = None
    most: str | None = None


_T = CounterUnit.TOKENS
FIGURES: tuple[Figure, ...] = (
    Figure(PROMPT, _T, "input", "prompts"),
    Figure(COMPUTED, _T, "computed", most="input"),
    Figure(LOCAL, _T, "cached_local", most="input"),
    Figure(EXTERNAL, _T, "cached_external", most="input"),
    Figure(CACHED, _T, "cached", most="input"),
    Figure(PROCESSED, _T, "computed", most="input"),
    Figure(QUERIES, _T, "input", "prompts"),
    Figure(GENERATION, _T, "output", "outputs", "most"),
    Figure(RECOMPUTED, _T, "recomputed"),
    Figure(FINISHED, CounterUnit.REQUESTS, "requests"),
)


@dataclass(frozen=True, slots=True)
class Part:
    """What some attempts of a window add to a counter.

    Attributes:
        attempts: how many they are.
        known: what those of them add whose figure is known.
        unknown: how many there are whose figure is not.
        low: the least those can add; high: the most, null where nothing says so.
    """

    attempts: int = 0
    known: int = 0
    unknown: int = 0
    low: int = 0
    high: int | None = 0


NONE = Part()


@dataclass(frozen=True, slots=True)
class Facts:
    """A window beside one counter.

    Attributes:
        figure: the counter.
        counted: what it counted.
        window: the window, with all its counters.
        done: attempts that came to their end. health, warm_up: of them those made to look after a server. unfinished:
            attempts that were aborted. failed: attempts that ended with an error and no figure. across: attempts that
            run across an end of the window.
        more: what requests of finished attempts add beyond the attempts' own figures, as their engine says.
        several: the most that choices may add of attempts of which no engine says so.
        scored: prompts of finished attempts whose tokens' log probabilities were asked for.
        finished: what the engine itself counted of requests that finished; null where it does not say.
        unseen: how many more requests finished than attempts are known to; null where that cannot be told. Some of
            them may be those that failed.
        strangers: attempts of the model while the window lasted of which nothing says that this engine served them.
    """

    figure: Figure
    counted: int
    window: Window
    done: Part = NONE
    health: Part = NONE
    warm_up: Part = NONE
    unfinished: Part = NONE
    failed: Part = NONE
    across: Part = NONE
    more: int = 0
    several: int = 0
    scored: int = 0
    finished: int | None = None
    unseen: int | None = None
    strangers: int = 0

    @property
    def whole(self) -> bool:
        """Whether all that ran in the window began and ended in it, and every counter ran through."""
        return not self.across.attempts and not self.window.reset


def finished_of(window: Window, figure: Figure) -> int | None:
    """What the engine itself counted of requests that finished, for the figures it keeps sums of."""
    counts = window.counts
    if figure.series in (PROMPT, QUERIES):
        return counts.get(FINISHED_PROMPT)
    if figure.series == GENERATION:
        return counts.get(FINISHED_GENERATION)
    if figure.series == FINISHED:
        return counts.get(FINISHED)
    computed = counts.get(FINISHED_COMPUTED)
    if figure.series == COMPUTED:
        return computed
    prompt = counts.get(FINISHED_PROMPT)
    one_cache = figure.series == CACHED or (figure.series == LOCAL and counts.get(EXTERNAL) == 0)
    return prompt - computed if one_cache and computed is not None and prompt is not None else None


_KINDS = ("done", "health", "warm_up", "unfinished", "failed", "across")


def kinds(rows: pl.DataFrame) -> pl.DataFrame:
    """Attempts with `kind`, which decides what they stand for in a window."""
    nothing_known = pl.col("input").is_null() & pl.col("output").is_null()
    kind = (
        pl.when(pl.col("across"))
        .then(pl.lit("across"))
        .when(pl.col("unfinished"))
        .then(pl.lit("unfinished"))
        .when(pl.col("failed") & nothing_known)
        .then(pl.lit("failed"))
        .when(pl.col("health"))
        .then(pl.lit("health"))
        .when(pl.col("warm_up"))
        .then(pl.lit("warm_up"))
        .otherwise(pl.lit("done"))
    )
    return rows.with_columns(kind=kind)


def facts(
    windows: Sequence[Window], rows: pl.DataFrame, strangers: Sequence[int] | None = None
) -> dict[int, list[Facts]]:
    """Window -> what is known of it beside each counter that it tells.

    Args:
        windows: the windows of a server.
        rows: attempts by window, with `window` and `kind`; one that runs across several stands in each.
        strangers: how many strangers there are to each window; null where there are none.
    """
    told = {figure: _parts(rows, figure) for figure in FIGURES}
    requests = told[_figure(FINISHED)]
    out: dict[int, list[Facts]] = {}
    for number, window in enumerate(windows):
        unseen = _unseen(window, requests.get(number, {}))
        for figure in FIGURES:
            if figure.series not in window.counts:
                continue
            part = told[figure].get(number, {})
            out.setdefault(number, []).append(
                Facts(
                    figure=figure,
                    counted=window.counts[figure.series],
                    window=window,
                    **{kind: part[kind] for kind in _KINDS if kind in part},
                    more=part["more"].known if "more" in part else 0,
                    several=part["more"].high or 0 if "more" in part else 0,
                    scored=part["scored"].known if "scored" in part else 0,
                    finished=finished_of(window, figure),
                    unseen=unseen,
                    strangers=0 if strangers is None else strangers[number],
                )
            )
    return out


def _figure(series: Series) -> Figure:
    return next(figure for figure in FIGURES if figure.series == series)


def _unseen(window: Window, requests: Mapping[str, Part]) -> int | None:
    counted = window.counts.get(FINISHED)
    known = sum(requests[kind].known for kind in ("done", "health", "warm_up") if kind in requests)
    open_ended = "across" in requests or window.reset
    several = requests["more"].high if "more" in requests else 0
    return None if counted is None or open_ended or several else counted - known


def _parts(rows: pl.DataFrame, figure: Figure) -> dict[int, dict[str, Part]]:
    """Window -> kind of attempts -> what they add."""
    if rows.is_empty():
        return {}
    own = pl.col(figure.column)
    whole = pl.col(figure.whole) if figure.whole else pl.lit(None, dtype=pl.Int64)
    ended = pl.col("kind").is_in(["done", "health", "warm_up"])
    # Beams share what they have in common, so requests may also add up to less.
    more = pl.when(ended & whole.is_not_null() & own.is_not_null()).then(whole - own)
    loose = pl.col("several") - 1
    may = pl.when(ended & ~pl.col("engine_counted") & (whole.is_null()) & (loose > 0)).then(_may(figure, own, loose))
    low = pl.col("delivered").fill_null(0) if figure.series == GENERATION else pl.lit(0, dtype=pl.Int64)
    most = pl.col(figure.most) if figure.most else pl.lit(None, dtype=pl.Int64)
    grouped = rows.group_by("window", "kind").agg(
        attempts=pl.len().cast(pl.Int64),
        known=own.sum(),
        unknown=own.null_count().cast(pl.Int64),
        low=low.filter(own.is_null()).sum(),
        boundless=most.filter(own.is_null()).null_count().cast(pl.Int64),
        high=most.filter(own.is_null()).sum(),
        more=more.sum(),
        may=may.sum(),
        scored=pl.when(ended & pl.col("scored")).then(pl.coalesce(whole, own)).sum(),
    )
    out: dict[int, dict[str, Part]] = {}
    for row in grouped.iter_rows(named=True):
        parts = out.setdefault(row["window"], {})
        high = None if row["boundless"] else row["high"]
        # An engine does not count a request as finished that it never began, or that it was told to drop.
        requests = figure.series == FINISHED and row["kind"] == "unfinished"
        known = 0 if requests else row["known"]
        parts[row["kind"]] = Part(row["attempts"], known, row["unknown"], row["low"], high)
        for name, size in (("more", Part(known=row["more"], high=row["may"])), ("scored", Part(known=row["scored"]))):
            held = parts.get(name, NONE)
            parts[name] = Part(known=held.known + size.known, high=(held.high or 0) + (size.high or 0))
    return out


def _may(figure: Figure, own: pl.Expr, loose: pl.Expr) -> pl.Expr:
    """What further choices may add: each the whole prompt again; an answer's tokens are all in its usage."""
    if figure.series == FINISHED:
        return pl.col("several") - own
    return own * loose if figure.column in ("input", "computed", "cached", "cached_local") else pl.lit(0, pl.Int64)
