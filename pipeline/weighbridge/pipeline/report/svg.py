"""From a specification to a picture inside the page: one SVG, no script, no style, no address, the same bytes always.

The drawing engine numbers its clip paths through the life of the process and writes namespace addresses; both are
put right here, so that the bytes depend on the picture alone. Text is measured in a font the engine carries with it
and shown in whatever the reader has of the same widths.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from html import escape

import vl_convert
from altair.utils.schemapi import debug_mode

from weighbridge.pipeline.report.sheet import Chart

WIDE, NARROW = 1120, 328
_FONT = "Liberation Sans"
_CONFIG = {
    "aria": False,
    "background": None,
    "font": _FONT,
    "view": {"stroke": None},
    "axis": {"labelFont": _FONT},
    "padding": 4,
}
_ID = re.compile(r'\bid="([^"]+)"')
_TAG = re.compile(r'<svg [^>]*?viewBox="([^"]+)"[^>]*>')
_DROPPED = re.compile(r' (?:class|aria-[a-z]+|role|pointer-events|xmlns(?::[a-z]+)?|version|font-family|style)="[^"]*"')


def picture(chart: Chart, width: int) -> str:
    """The chart as an SVG element, drawn for a plot `width` pixels wide, with title and description for readers."""
    # Specifications are held to the schema of Vega-Lite by a test: to do so for every page takes longer than drawing.
    with debug_mode(False):
        drawn = _drawn(json.dumps(chart.draw(width)))
    name = f"{chart.name}_{width}"
    return _opened(_renamed(_DROPPED.sub("", drawn), name), chart, name)


@lru_cache(maxsize=32)
def _drawn(specification: str) -> str:
    """As the engine draws it. A month that is told again with the same figures is not drawn again."""
    svg: str = vl_convert.vegalite_to_svg(specification, config=_CONFIG, allowed_base_urls=[])
    return svg


def _renamed(svg: str, name: str) -> str:
    """Ids in the order they appear, with the name of the chart before them."""
    names = {old: f"{name}_{place}" for place, old in enumerate(dict.fromkeys(_ID.findall(svg)))}
    for old, new in names.items():
        svg = svg.replace(f'id="{old}"', f'id="{new}"').replace(f"url(#{old})", f"url(#{new})")
    return svg


def _opened(svg: str, chart: Chart, name: str) -> str:
    box = _TAG.match(svg)
    assert box is not None, "the drawing engine returned something that is no SVG"
    _, _, width, height = box[1].split()
    head = (
        f'<svg viewBox="{box[1]}" width="{width}" height="{height}" role="img" '
        f'aria-labelledby="{name}_title {name}_desc"><title id="{name}_title">{escape(chart.title)}</title>'
        f'<desc id="{name}_desc">{escape(chart.description)}</desc>'
    )
    return head + svg[box.end() :]
