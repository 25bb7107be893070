"""Usage reports to readings, many at a time: cut by (provider, api), then by leaf shape, then solved as columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import date

import polars as pl

from weighbridge.pipeline.ingest import merge_frame
from weighbridge.pipeline.ingest.dialect import Dialect, Role
from weighbridge.pipeline.ingest.dialects import dialect_for
from weighbridge.pipeline.ingest.iterations_frame import apart
from weighbridge.pipeline.ingest.outcome import Flag, flag_names, words
from weighbridge.pipeline.ingest.reading import CELL_NAMES, CLASS_NAMES, no_dialect
from weighbridge.pipeline.ingest.solver_frame import solve_frame
from weighbridge.pipeline.ingest.speakers import Lookup
from weighbridge.pipeline.ingest.terms_frame import told
from weighbridge.pipeline.lake import Lake, empty, shaped
from weighbridge.schemas.enumerations import Verdict

# A report is one answer's usage as one source tells it; its parts are the rows that share these.
REPORT_KEY = ("day", "attempt_lo", "attempt_hi", "source", "child", "report", "revision")
_CARRIED = (
    "attempt_hi",
    "attempt_lo",
    "day",
    "source",
    "child",
    "report",
    "provider",
    "api",
    "model",
    "segment",
    "segment_row",
    "revision",
)
_LEAVES = ("part_kind", "ended", "notes", "leaf_shape", "leaf_integers", "leaf_texts")
REPORT_READ = (*_CARRIED, "part", *_LEAVES)
_PARTS = ("row", "report_id", "provider", "api", "model", "day", *_LEAVES)
# What a shape has where an answer lists the model calls it was made with, each with its model.
LISTED = r"iterations\[|\.models\["
# Rows solved at once: enough that the work per call does not show, few enough that its columns stay small.
_CHUNK = 250_000
# Rows of readings held before they are written.
_BATCH = 1_000_000


def read_reports(reports: pl.DataFrame, dialects: Lookup = dialect_for) -> pl.DataFrame:
    """Rows of `usage_report` to rows of `reading`: one per report, in the order of their first parts.

    Single model calls of a report follow it, as further children of the attempt. What an attempt reports is the sum
    of its rows: where calls make up the figures of their report, its own row holds the tokens that are left: none.

    But for that it agrees row by row with `read_usage`. Every revision is read; which one counts is the caller's
    business.

    Args:
        reports: the rows.
        dialects: gives the dialect of a provider, an API, a model and a day; by default those of this version.
    """
    if reports.is_empty():
        return empty("reading")
    frame = reports.with_row_index("row")
    whole = frame
    if not frame["leaf_shape"].unique().str.contains(LISTED).any():
        # Texts name the models of calls and nothing else that is read: they need not be carried along.
        frame = frame.with_columns(leaf_texts=pl.lit(None, dtype=pl.List(pl.String)))
    singles, multiples = _by_parts(frame)
    readings = pl.concat([*_read(singles, _alone, dialects), *_read(multiples, _merged, dialects)], how="diagonal")
    readings = readings.sort("row", *(name for name in ("nth",) if name in readings.columns), nulls_last=False)
    carried = _with_models(frame.select("row", *_CARRIED), multiples)[readings["row"]]
    beside = _beside(whole, multiples)
    made = pl.concat([carried.drop("row"), readings], how="horizontal").join(
        beside, on="row", how="left", maintain_order="left"
    )
    return shaped("reading", _numbered(made).drop("row") if "nth" in made.columns else made.drop("row"))


def _beside(reports: pl.DataFrame, multiples: pl.DataFrame) -> pl.DataFrame:
    """`row` (the first of a report) and what the report says beside its counts."""
    parts = reports.select("row", "api", *_LEAVES[3:])
    if multiples.is_empty():
        return told(parts.rename({"row": "report_id"})).rename({"report_id": "row"})
    firsts = multiples.select("row", first=pl.col("row").first().over("report_id"), order=pl.int_range(pl.len()))
    named = parts.join(firsts, on="row", how="left", maintain_order="left").sort("order", nulls_last=False)
    return told(named.select(pl.coalesce("first", "row").alias("report_id"), "api", *_LEAVES[3:])).rename(
        {"report_id": "row"}
    )


def _numbered(readings: pl.DataFrame) -> pl.DataFrame:
    """Calls of an answer as children, numbered after those that are reported as such; their own model where named."""
    broken_down = pl.col("nth").is_null() & pl.col("inside").any().over("row")
    counts = [*CLASS_NAMES, *CELL_NAMES, "input_total", "output_total", "total"]
    readings = readings.with_columns(
        pl.when(broken_down & pl.col("input_total").is_not_null()).then(0).otherwise(name).alias(name)
        for name in counts
    )
    # What is charged by use, and what was charged, is of the answer and not of one of its calls.
    readings = readings.with_columns(
        pl.when(pl.col("nth").is_null()).then(name).alias(name)
        for name in ("fee_kinds", "fee_counts", "charged", "charged_currency")
    )
    last = pl.col("child").max().over("attempt_lo", "attempt_hi", "source")
    return readings.with_columns(
        child=pl.col("child")
        + pl.when(pl.col("nth").is_not_null()).then(last - pl.col("child") + pl.col("nth")).otherwise(0),
        model=pl.coalesce("child_model", "model"),
    ).drop("nth", "inside", "child_model")


def refresh_readings(lake: Lake, days: Collection[date]) -> int:
    """Read the last revision of every report of these days and replace their readings; returns how many there are."""
    written = 0
    readings: list[pl.DataFrame] = []
    covered: list[date] = []
    for days_read, reports in _by_days(lake, sorted(days)):
        readings.append(read_reports(reports))
        covered += days_read
        if sum(frame.height for frame in readings) >= _BATCH:
            written += _replace(lake, readings, covered)
            readings, covered = [], []
    return written + (_replace(lake, readings, covered) if covered else 0)


def readings_on(lake: Lake, days: Collection[date]) -> dict[date, int]:
    """How many readings each of these days has: of whatever file, for a day may be touched by what has none."""
    if not days:
        return {}
    rows = lake.scan("reading", first=min(days), last=max(days), columns=["day"]).filter(
        pl.col("day").is_in(list(days))
    )
    counted = rows.group_by("day").agg(pl.len()).collect(engine="streaming")
    return dict.fromkeys(sorted(days), 0) | dict(counted.iter_rows())


def _by_days(lake: Lake, days: Iterable[date]) -> Iterator[tuple[list[date], pl.DataFrame]]:
    """The reports that count, some days at a time: what one call of the solver costs does not show in that many."""
    taken: list[date] = []
    held: list[pl.DataFrame] = []
    stored = lake.scan("usage_report", columns=list(REPORT_READ))
    for day in days:
        reports = stored.filter(pl.col("day") == day).collect()
        taken.append(day)
        held.append(last_revisions(reports))
        if sum(frame.height for frame in held) >= _CHUNK:
            yield taken, pl.concat(held)
            taken, held = [], []
    if taken:
        yield taken, pl.concat(held)


def _replace(lake: Lake, readings: list[pl.DataFrame], days: list[date]) -> int:
    whole = pl.concat(readings)
    lake.replace("reading", whole, days=days)
    return whole.height


def last_revisions(reports: pl.DataFrame) -> pl.DataFrame:
    """The rows that count. A part that did not change is not stored again, so each part has its own last revision."""
    if reports.is_empty() or reports["revision"].max() == 0:
        return reports
    report, revision = REPORT_KEY[:-1], pl.col("revision")
    last = reports.filter(revision == revision.max().over(*report, "part"))
    return last.with_columns(revision.max().over(report))


def _by_parts(frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows that are a report each, and the sorted rows of reports of several parts, with an id per report."""
    frame = frame.with_columns(report_id="row")
    later = frame.filter(pl.col("part") > 0).select(REPORT_KEY).unique()
    if later.is_empty():
        return frame.select(_PARTS), frame.clear().select(_PARTS)
    singles = frame.join(later, on=REPORT_KEY, how="anti", maintain_order="left")
    multiples = (
        frame.join(later, on=REPORT_KEY, how="semi")
        .sort(*REPORT_KEY, "part", "row")
        .with_columns(report_id=pl.struct(REPORT_KEY).rle_id())
        .with_columns(
            pl.col("provider", "api").first().over("report_id"),
            pl.col("model").drop_nulls().first().over("report_id"),
        )
    )
    return singles.select(_PARTS), multiples.select(_PARTS)


def _with_models(carried: pl.DataFrame, multiples: pl.DataFrame) -> pl.DataFrame:
    """The model of a report is named by its first part that names one."""
    if multiples.is_empty():
        return carried
    named = multiples.group_by("report_id").agg(
        row=pl.col("row").first(), first_model=pl.col("model").drop_nulls().first()
    )
    joined = carried.join(named.drop("report_id"), on="row", how="left", maintain_order="left")
    return joined.with_columns(model=pl.coalesce("model", "first_model")).drop("first_model")


def _read(
    parts: pl.DataFrame, merge: Callable[[Dialect, pl.DataFrame], pl.DataFrame], dialects: Lookup
) -> Iterator[pl.DataFrame]:
    for (provider, api), rows in parts.partition_by("provider", "api", as_dict=True, maintain_order=True).items():
        if dialects(provider, api) is None:
            yield _unread(no_dialect(provider, api), rows)
            continue
        for dialect, own in _by_dialect(rows, provider, api, dialects):
            for block in _blocks(own):
                yield from _read_block(dialect, provider, block, merge)


def _read_block(
    dialect: Dialect,
    provider: str | None,
    block: pl.DataFrame,
    merge: Callable[[Dialect, pl.DataFrame], pl.DataFrame],
) -> Iterator[pl.DataFrame]:
    figures, calls = apart(dialect, block, merge(dialect, merge_frame.figures_of(dialect, block)))
    yield _worded(dialect, figures, solve_frame(dialect, provider, figures))
    if calls is not None:
        named = calls.select("nth", "inside", "child_model")
        solved = _worded(dialect, calls, solve_frame(dialect, provider, calls))
        yield pl.concat([solved, named], how="horizontal")


def _by_dialect(
    rows: pl.DataFrame, provider: str | None, api: str | None, dialects: Lookup
) -> Iterator[tuple[Dialect, pl.DataFrame]]:
    """The rows of one speaker, cut once more where what he means depends on the model or the day."""
    general = dialects(provider, api)
    if general is None or not general.varies:
        yield from () if general is None else ((general, rows),)
        return
    asked = rows.select("model", "day").unique(maintain_order=True)
    found = [dialects(provider, api, model, day) or general for model, day in asked.rows()]
    numbers = {dialect: number for number, dialect in enumerate(dict.fromkeys(found))}
    if len(numbers) == 1:
        yield found[0], rows
        return
    asked = asked.with_columns(spoken=pl.Series([numbers[dialect] for dialect in found], dtype=pl.Int64))
    marked = rows.join(asked, on=["model", "day"], how="left", nulls_equal=True, maintain_order="left")
    for dialect, number in numbers.items():
        yield dialect, marked.filter(pl.col("spoken") == number).drop("spoken")


def _blocks(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Slices of bounded size; the rows of a report stand together, and no report is in two slices."""
    ids, start = rows["report_id"], 0
    while start < rows.height:
        end = min(start + _CHUNK, rows.height)
        while end < rows.height and ids[end] == ids[end - 1]:
            end += 1
        yield rows[start:end]
        start = end


def _alone(dialect: Dialect, parts: pl.DataFrame) -> pl.DataFrame:
    return merge_frame.single(dialect, parts)


def _merged(dialect: Dialect, parts: pl.DataFrame) -> pl.DataFrame:
    return merge_frame.revised(dialect, parts) if dialect.merges else merge_frame.last(dialect, parts)


def _unread(reason: str, parts: pl.DataFrame) -> pl.DataFrame:
    """Reports nobody can read yet: their leaves stay in `usage_report`."""
    some = pl.col("leaf_shape") != ""
    missing = pl.lit(list(flag_names(Flag.USAGE_MISSING)), dtype=pl.List(pl.String))
    none = pl.lit([], dtype=pl.List(pl.String))
    reports = parts.group_by("report_id", maintain_order=True).agg(
        row=pl.col("row").first(), ended=pl.col("ended").last(), told=some.any()
    )
    return reports.select(
        "row",
        "ended",
        verdict=pl.lit(str(Verdict.UNKNOWN)),
        reason=pl.lit(reason),
        rule=pl.lit(""),
        flags=pl.when("told").then(none).otherwise(missing),
    )


def _worded(dialect: Dialect, figures: pl.DataFrame, solved: pl.DataFrame) -> pl.DataFrame:
    """The solved numbers with verdict, reason, rule and flags in words."""
    codes = solved["code"].unique().sort()
    said = [words(dialect, code) for code in codes]
    lexicon = pl.DataFrame(
        {
            "code": codes,
            "dialect": pl.repeat(dialect.name, len(said), eager=True),
            "verdict": [str(verdict) for verdict, _, _, _ in said],
            "reason": [reason for _, reason, _, _ in said],
            "rule": [rule for _, _, rule, _ in said],
            "flags": pl.Series([list(flags) for *_, flags in said], dtype=pl.List(pl.String)),
        }
    )
    total = pl.col(Role.TOTAL) if Role.TOTAL in figures.columns else pl.lit(None, dtype=pl.Int64)
    beside = figures.select("row", "ended", reported_total=total)
    worded = solved.join(lexicon, on="code", how="left", maintain_order="left").drop("code")
    return pl.concat([beside, worded], how="horizontal")
