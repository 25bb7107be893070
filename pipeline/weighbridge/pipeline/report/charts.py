"""The pictures. Each is a Vega-Lite specification made with Altair for a given width; `svg` draws it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from textwrap import fill
from typing import Any

import altair as alt

from weighbridge.pipeline.report.sheet import Chart, Sheet, Value
from weighbridge.pipeline.report.words import CLASS_WORDS

INK, SOFT, RULE = "#17212b", "#52606d", "#dfe4e9"
INPUT, OUTPUT = "#24567a", "#d08a2e"
OVER, UNDER, LEVEL = "#b3432f", "#24567a", "#52606d"
CLASS_COLOURS = {
    "input_uncached": "#24567a",
    "cache_read": "#7fa8c4",
    "cache_write_5m": "#4d8b8b",
    "cache_write_1h": "#8fbcb0",
    "cache_write_unknown": "#bccfd0",
    "output_visible": "#d08a2e",
    "reasoning": "#8d5a86",
}
# Labels thin out below this width, in pixels.
NARROW = 500
# Bars of days touch above this number of days.
MANY_DAYS = 62


# The width given is that of the whole picture, labels included.
_FIT = alt.AutoSizeParams(type="fit-x", contains="padding")


def _spec(chart: alt.Chart | alt.LayerChart) -> Mapping[str, Any]:
    spec: Mapping[str, Any] = chart.to_dict(validate=False)
    return spec


def _axis(**more: Any) -> alt.Axis:
    return alt.Axis(
        title=None, labelColor=SOFT, gridColor=RULE, domainColor=SOFT, tickColor=SOFT, labelFontSize=13, **more
    )


def _amount_axis(count: int = 5, **more: Any) -> alt.Axis:
    """Round numbers as they are said: thousands, millions and billions by letter, small ones with all their digits."""
    size = "abs(datum.value)"
    steps = (("1e12", "tn"), ("1e9", "bn"), ("1e6", "m"), ("1e3", "k"))
    shown = "format(datum.value, ',.12~f')"
    for unit, letter in reversed(steps):
        shown = f"{size} >= {unit} ? format(datum.value / {unit}, ',.3~f') + ' {letter}' : {shown}"
    return _axis(labelExpr=shown, tickCount=count, domain=False, ticks=False, **more)


def _number(value: Value) -> float | None:
    return float(value) if isinstance(value, int | float | Decimal) else None


def daily_tokens(sheet: Sheet) -> Chart:
    """Reported input and output tokens of every day, stacked."""
    names = (("reported_input_tokens", "input", INPUT), ("reported_output_tokens", "output", OUTPUT))
    values = [
        {"day": str(day), "part": word, "place": place, "tokens": _number(value)}
        for place, (name, word, _) in enumerate(names)
        for day, value in zip(sheet.cells("day"), sheet.cells(name), strict=True)
    ]
    colours = alt.Scale(domain=[word for _, word, _ in names], range=[colour for *_, colour in names])
    return Chart(
        name="daily_tokens",
        title="Reported tokens by day",
        description="Stacked bars, one for each day: input tokens below, output tokens above.",
        sheet=sheet.name,
        unit="tokens",
        draw=lambda width: _spec(
            alt.Chart(alt.InlineData(values=values))
            .mark_bar()
            .encode(
                x=_days(sheet, width),
                y=alt.Y("tokens:Q", stack="zero", axis=_amount_axis()),
                color=alt.Color("part:N", scale=colours, legend=None),
                order=alt.Order("place:Q"),
            )
            .properties(width=width, height=210, autosize=_FIT)
        ),
        legend=((INPUT, "input"), (OUTPUT, "output")),
    )


def daily_amount(sheet: Sheet, column: str, currency: str) -> Chart:
    """What each day cost in one currency."""
    values = [
        {"day": str(day), "amount": _number(value)}
        for day, value in zip(sheet.cells("day"), sheet.cells(column), strict=True)
    ]
    return Chart(
        name=f"daily_{column}",
        title=f"Amount by day, {currency}",
        description=f"Bars, one for each day: the priced amount in {currency}.",
        sheet=sheet.name,
        unit=currency,
        draw=lambda width: _spec(
            alt.Chart(alt.InlineData(values=values))
            .mark_bar(color=INPUT)
            .encode(x=_days(sheet, width), y=alt.Y("amount:Q", axis=_amount_axis()))
            .properties(width=width, height=150, autosize=_FIT)
        ),
    )


def _days(sheet: Sheet, width: int) -> alt.X:
    """Days as bands; labels only as many as there is room for."""
    days = [str(day) for day in sheet.cells("day")]
    room = max(1, width // 72)
    labelled = days[:: max(1, -(-len(days) // room))]
    short = 5 if len(days) <= MANY_DAYS else 2
    return alt.X(
        "day:O",
        axis=_axis(
            values=labelled, labelExpr=f"slice(datum.value, {short})", labelAngle=0, labelPadding=6, labelOverlap=False
        ),
        scale=alt.Scale(paddingInner=0.2 if len(days) <= MANY_DAYS else 0, paddingOuter=0.1),
    )


def gap(sheet: Sheet, direction: str) -> Chart:
    """The way from observed to reported: each cause moves the level, the residual is what is left."""
    rows = [row for row in sheet.rows if row[sheet.index("direction")] == direction]
    base = _number(rows[0][sheet.index("tokens")]) or 0.0
    values, level = [], 0.0
    for row in rows[1:-1]:
        change = _number(row[sheet.index("change")]) or 0.0
        values.append(_step(str(row[sheet.index("meaning")]), level, level + change))
        level += change
    end = (_number(rows[-1][sheet.index("tokens")]) or 0.0) - base
    values.append({**_step("Whole gap", 0.0, end), "colour": LEVEL})
    return Chart(
        name=f"gap_{direction}",
        title=f"{direction.capitalize()}: how the gap is made up",
        description=f"Bars from the observed {direction} tokens, set at zero, to the reported ones: one for each "
        "cause, one for the residual, and the whole gap last.",
        sheet=sheet.name,
        unit="tokens",
        draw=lambda width: _gap_spec(values, width),
        legend=((OVER, "reported above observed"), (UNDER, "reported below observed"), (LEVEL, "whole gap")),
    )


def _step(name: str, start: float, end: float) -> dict[str, Any]:
    return {"step": name, "start": start, "end": end, "colour": OVER if end >= start else UNDER, "size": end - start}


def _gap_spec(values: Sequence[Mapping[str, Any]], width: int) -> Mapping[str, Any]:
    wide = width > NARROW
    folded = [{**value, "step": fill(value["step"], 48 if wide else 20)} for value in values]
    order = [value["step"] for value in folded]
    lines = "split(datum.label, '\\n')"
    axis = _axis(labelExpr=lines, labelLimit=0, labelLineHeight=13, ticks=False, domain=False, labelPadding=8)
    base = alt.Chart(alt.InlineData(values=folded))
    y = alt.Y("step:N", sort=order, axis=axis)
    bars = base.mark_bar(height={"band": 0.62}).encode(
        x=alt.X("start:Q", axis=_amount_axis(6 if wide else 3, grid=True)),
        x2="end:Q",
        y=y,
        color=alt.Color("colour:N", scale=None),
    )
    zero = alt.Chart(alt.InlineData(values=[{"x": 0}])).mark_rule(color=SOFT).encode(x="x:Q")
    return _spec((bars + zero).properties(width=width, height=alt.Step(32 if wide else 46), autosize=_FIT))


def classes(sheet: Sheet, most: int = 8) -> Chart:
    """What the tokens of the largest models are made of, in per cent of their tokens."""
    names = list(CLASS_WORDS)
    values = [
        {"model": label, "class": name, "place": place, "tokens": _number(row[sheet.index(name)]) or 0.0}
        for label, row in zip(_labels(sheet), sheet.rows[:most], strict=False)
        for place, name in enumerate(names)
    ]
    used = [name for name in names if any(v["tokens"] for v in values if v["class"] == name)]
    scale = alt.Scale(domain=used, range=[CLASS_COLOURS[name] for name in used])
    shown = [value for value in values if value["class"] in used]
    order = _labels(sheet)[:most]
    return Chart(
        name="classes",
        title="What the tokens of each model are made of",
        description="Horizontal bars, one for each of the largest models, divided into token classes by share.",
        sheet=sheet.name,
        unit="per cent of reported tokens",
        draw=lambda width: _classes_spec(shown, order, scale, width),
        legend=tuple((CLASS_COLOURS[name], CLASS_WORDS[name]) for name in used),
    )


def comparison(sheet: Sheet) -> Chart:
    """The curve: what each strategy saves, and what it loses with the interval of that loss."""
    names = ("strategy", "saved", "loss", "loss_low", "loss_high", "margin")
    rows = [dict(zip(names, (row[sheet.index(name)] for name in names), strict=True)) for row in sheet.rows]
    values = [
        {"strategy": str(row["strategy"]), **{name: 100 * (_number(row[name]) or 0.0) for name in names[1:-1]}}
        for row in rows
        if row["saved"] is not None and row["loss"] is not None
    ]
    margins = {100 * (_number(row["margin"]) or 0.0) for row in rows if row["margin"] is not None}
    return Chart(
        name="comparison_curve",
        title="What strategies save, and what they lose",
        description="A point for each strategy: the share that is saved to the right, the loss upwards, with its "
        "interval as a line; a level line at the margin.",
        sheet=sheet.name,
        unit="per cent saved and lost",
        draw=lambda width: _curve_spec(values, sorted(margins), width),
        legend=((INPUT, "strategy, with its interval"), (OVER, "margin")),
    )


def _curve_spec(values: Sequence[Mapping[str, Any]], margins: Sequence[float], width: int) -> Mapping[str, Any]:
    base = alt.Chart(alt.InlineData(values=list(values))).encode(x=alt.X("saved:Q", axis=_amount_axis(grid=True)))
    height = alt.Y("loss_low:Q", axis=_amount_axis())
    lines = base.mark_rule(color=INPUT, strokeWidth=2).encode(y=height, y2="loss_high:Q")
    points = base.mark_point(color=INPUT, filled=True, size=70).encode(y="loss:Q")
    words = base.mark_text(color=INK, align="left", dx=8, fontSize=13).encode(y="loss:Q", text="strategy:N")
    edge = alt.Chart(alt.InlineData(values=[{"margin": each} for each in margins])).mark_rule(color=OVER)
    drawn = lines + points + words + edge.encode(y="margin:Q")
    return _spec(drawn.properties(width=width, height=240, autosize=_FIT))


def _labels(sheet: Sheet) -> list[str]:
    """The models, with who answered where two answer under the same name."""
    models = [str(value) for value in sheet.cells("model")]
    pairs = zip(models, sheet.cells("provider"), strict=True)
    return [f"{model} ({provider})" if models.count(model) > 1 else model for model, provider in pairs]


def _classes_spec(
    values: Sequence[Mapping[str, Any]], order: Sequence[str], scale: alt.Scale, width: int
) -> Mapping[str, Any]:
    side = 250 if width > NARROW else 118
    chart = (
        alt.Chart(alt.InlineData(values=list(values)))
        .mark_bar(height={"band": 0.62})
        .encode(
            x=alt.X("tokens:Q", stack="normalize", axis=_axis(format=".0%", tickCount=4, domain=False, ticks=False)),
            y=alt.Y(
                "model:N", sort=list(order), axis=_axis(labelLimit=side, ticks=False, domain=False, labelPadding=8)
            ),
            color=alt.Color("class:N", scale=scale, legend=None),
            order=alt.Order("place:Q"),
        )
        .properties(width=width, height=alt.Step(30), autosize=_FIT)
    )
    return _spec(chart)
