"""A comparison as tables for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from weighbridge.cli.output import counted, write_line, write_table

if TYPE_CHECKING:
    from weighbridge.pipeline.compare.comparison import Compared, Comparison, Loss
    from weighbridge.pipeline.compare.recommendation import Change
    from weighbridge.pipeline.compare.verdicts import Judged
    from weighbridge.pipeline.lake.lake import Lake
    from weighbridge.schemas.finding import Finding

_ALWAYS = (
    "exact",
    "similarity",
    "rouge_1",
    "rouge_2",
    "agreement",
    "semantic",
    "bert_score",
    "score",
    "rep_4",
    "capped",
    "length",
)


def percent(value: float | None, *, sign: bool = False) -> str | None:
    """A share in per cent."""
    return None if value is None else f"{100 * value:{'+' if sign else ''}.1f} %"


def write(found: Comparison, findings: Sequence[Finding], refused: Mapping[str, Change]) -> None:
    """Judgements with the curve of saving and loss, measures, edits, findings, the recommendation."""
    from weighbridge.pipeline.compare.why import why, word

    off = found.baseline
    pairs = counted(max(len(each.pairs) for each in found.strategies), "pair")
    floor = "run twice" if found.floor_measured else "run once: that it would answer alike again is taken for granted"
    if found.unrepeated:
        floor += f", and differed from itself in {counted(found.unrepeated, 'pair')}: losses are those beyond that"
    write_line(f"baseline {off.name}, {pairs}; {floor}\n")
    deciding = ", ".join(f"{name} (margin {margin:g})" for name, margin in found.margins.items()) or "nothing"
    write_line(f"what decides: {deciding}; ranked by {found.resource or 'nothing, as no saving is known'}\n")
    write_table(
        ["strategy", "saves", "loss", "from", "to", "judgement", "pairs", "acted on", "not", "loss there", "from", "to",
         "parts at", "moved", "replaced"],
        [_judged(found, each) for each in found.strategies],
    )  # fmt: skip
    write_line()
    for each in found.strategies:
        write_line(f"{each.side.name}: {word(each)}; {why(found, each)}")
    write_line("\nmeasures: the baseline beside its second run or by itself, then each strategy; * differs for sure\n")
    names = [name for name in _ALWAYS if any(name in each.measured for each in found.strategies)]
    write_table(["strategy", *names], [_row(each, names) for each in [*found.strategies]])
    null = {name: each.measured[name].unrelated for each in found.strategies[:1] for name in names}
    told = [f"{name} {value:.3f}" for name, value in null.items() if value is not None]
    if told:
        write_line(f"\nbetween answers to different prompts: {', '.join(told)}")
    fed = [each for each in found.strategies if each.perplexity is not None]
    if fed:
        held = [(each.side.name, each.perplexity[1]) for each in fed if each.perplexity is not None]
        base = next(each.perplexity[0] for each in fed if each.perplexity is not None)
        write_line(
            f"perplexity of the baseline's answers: {off.name} {base:.3f}, "
            + ", ".join(f"{name} {value:.3f}" for name, value in held)
        )
    for finding in findings:
        about = finding.subject["strategy"]
        write_line(f"\n{finding.severity}: {finding.code}, {about}, {counted(finding.rows, 'answer')}")
        write_line(f"  cure: {finding.cure}")
    for name, change in refused.items():
        said = "" if change.reason is None else f": {change.reason}"
        write_line(f"\n{name} stays refused since {change.changed_at:%Y-%m-%d}, by {change.changed_by}{said}")
    write_line(f"\nrecommended: {found.recommended or _none(found)}")


def _none(found: Comparison) -> str:
    most = max(len(each.pairs) for each in found.strategies)
    if most < found.gate.pairs:
        return f"none; {counted(most, 'pair')} cannot be judged, {found.gate.pairs} are needed"
    return "none; no strategy that saves anything is known to be not worse"


def _judged(found: Comparison, each: Compared) -> list[object]:
    from weighbridge.pipeline.compare.comparison import saved_by
    from weighbridge.pipeline.compare.survival import median
    from weighbridge.pipeline.compare.why import word

    moved = sum(pair.held.moved for pair in each.pairs)
    replaced = sum(pair.held.replaced for pair in each.pairs)
    return [
        each.side.name, percent(saved_by(each, found.resource)), *map(_figure, _most(each.losses)), word(each),
        len(each.pairs), each.acted, each.unshown, *map(_figure, _most(each.touched)), median(each.parting),
        moved, replaced,
    ]  # fmt: skip


def _most(losses: Mapping[str, Loss]) -> Loss:
    """Of the measure that loses most, with its limits."""
    known = [loss for loss in losses.values() if loss[0] is not None]
    return max(known, key=lambda loss: loss[0] or 0.0) if known else (None, None, None)


def _row(each: Compared, names: Sequence[str]) -> list[object]:
    out: list[object] = [each.side.name]
    for name in names:
        held = each.measured.get(name)
        sure = held is not None and held.q is not None and held.q <= 0.05
        out.append(None if held is None else f"{held.off:.3f} {held.on:.3f}{'*' if sure else ''}")
    return out


def _figure(value: float | None) -> str | None:
    return None if value is None else f"{value:+.3f}"


def latest(lake: Lake) -> list[dict[str, Any]]:
    """The rows of the latest comparison, the baseline first, then what saves most."""
    import polars as pl

    from weighbridge.schemas.comparison_run import ACTED

    rows = lake.scan("comparison").collect()
    if rows.is_empty():
        return []
    last = rows.filter(pl.col("comparison_id") == rows.sort("made_at", "comparison_id")["comparison_id"][-1])
    of_all = last.filter(~pl.col("strategy").str.ends_with(ACTED))
    order = ["baseline", "saved", "strategy"]
    some = {row["strategy"].removesuffix(ACTED): row for row in last.to_dicts() if row["strategy"].endswith(ACTED)}
    told = of_all.sort(order, descending=[True, True, False], nulls_last=True).to_dicts()
    return [row | {"where_it_acted": some.get(row["strategy"])} for row in told]


def write_latest(rows: Sequence[dict[str, Any]]) -> None:
    """The latest comparison on one screen."""
    if not rows:
        write_line("No comparison is kept yet.\nNext: weighbridge compare run FILE, or compare analyse A --lake")
        return
    first = rows[0]
    write_line(
        f"comparison {first['comparison_id'][:8]} of {shown(first['made_at'], 'made_at')}, {first['model'] or ''}\n"
    )
    names = ("strategy", "judgement", "pairs", "measure", "loss", "loss_high", "saved", "attended", "kv_bytes",
             "seconds", "amount")  # fmt: skip
    part = ("pairs", "loss", "loss_high")
    write_table([*names, "acted on", "loss there", "loss_high there", "recommended"], [
        [
            *(shown(row[name], name) for name in names), *(shown(_there(row, name), name) for name in part),
            "yes" if row["recommended"] else "",
        ]
        for row in rows
    ])  # fmt: skip


def _there(row: dict[str, Any], name: str) -> object:
    """What a row says of the pairs on which the strategy acted: the same where it acted on all."""
    if row["baseline"]:
        return None
    there = row["where_it_acted"]
    if there is not None:
        return there[name]
    return row[name] if not row["unshown"] else 0 if name == "pairs" else None


def shown(value: object, name: str) -> object:
    """A value of a row as people read it."""
    if isinstance(value, float):
        return percent(value) if name == "saved" else f"{value:+.3f}" if name.startswith("loss") else f"{value:.2f}"
    return f"{value:%Y-%m-%d %H:%M}" if isinstance(value, datetime) else value


def write_evicted(gone: Mapping[str, Any]) -> None:
    """Where evicted entries lay, by origin and by tenth of the prompt, as state events say."""
    origins = sorted({origin for each in gone.values() for origin in each["by_origin"]})
    if not origins:
        return
    write_line(
        "\nKV entries of prompts that are gone when the answer ends, by state events; tenths from the beginning\n"
    )
    write_table(
        ["strategy", *origins, *(str(tenth) for tenth in range(1, 11))],
        [
            [name, *(percent(each["by_origin"].get(origin)) for origin in origins), *map(percent, each["by_decile"])]
            for name, each in gone.items()
        ],
    )


def write_shared(gone: Mapping[str, Any]) -> None:
    """Of beginnings that prompts share, how much their answers still had."""
    rows = [
        [name, cluster, held["length"], held["answers"], percent(held["left_least"]), percent(held["left_most"])]
        for name, each in gone.items()
        for cluster, held in each["shared_beginnings"].items()
    ]
    if rows:
        write_line("\nbeginnings that prompts of a cluster share, and what of them was left when answers ended\n")
        write_table(["strategy", "cluster", "ids", "answers", "least", "most"], rows)


def told_of_verdicts(found: Judged) -> dict[str, Any]:
    """What people say, for JSON."""
    names = ("raters", "pairs", "won", "lost", "same", "neither", "unknown", "p")
    low, high = found.preference.limits
    preference = {"mean": found.preference.mean, "low": low, "high": high, "level": found.preference.level}
    return {
        **{name: getattr(found, name) for name in names},
        "preference": preference,
        "agreement": found.agreed._asdict(),
        "judgement": found.judgement,
    }


def write_verdicts(found: Judged, strategy: str) -> None:
    """What people say, in a few lines."""
    write_line(
        f"{counted(found.pairs, 'pair')} judged by {counted(found.raters, 'rater')}; {strategy} is {found.judgement}\n"
    )
    write_table(
        ["for the strategy", "for the baseline", "same", "neither", "preference", "from", "to", "p"],
        [[
            found.won, found.lost, found.same, found.neither,
            *map(_figure, (found.preference.mean, *found.preference.limits)),
            f"{found.p:.3f}",
        ]],
    )  # fmt: skip
    named = {name: value for name, value in found.agreed._asdict().items() if name != "items" and value is not None}
    told = ", ".join(f"{name} {value:.2f}" for name, value in named.items())
    write_line(
        f"\nagreement over {counted(found.agreed.items, 'item')}: {told or 'not known, as one rater judged each'}"
    )
    if found.unknown:
        write_line(f"{counted(found.unknown, 'verdict')} on items of another sheet, left out")
