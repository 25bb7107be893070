"""The text of a settings file that names every knob."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from weighbridge.pipeline.settings.knobs import KNOBS
from weighbridge.pipeline.settings.shape import Shape, mapping


def document(given: Mapping[str, object] | None = None) -> str:
    """The text of a settings file that names every knob, with its sentence, environment name and default.

    Args:
        given: knob name -> value to be written; the others stay commented out at their default.
    """
    lines = ["# Settings of Weighbridge. A commented line shows the default; the environment goes before this file."]
    for knob in sorted(KNOBS, key=lambda knob: knob.kind.shape is not None):  # what follows a table's head is in it
        chosen = (given or {}).get(knob.name)
        lines += ["", f"# {knob.doc}"]
        if knob.kind.shape:
            lines.append(f"# environment: {knob.env}, one JSON object in place of the whole table")
            lines += _document_table(f"{knob.name}", knob.kind.shape, mapping(chosen))
        else:
            lines.append(f"# environment: {knob.env}")
            lines.append(_document_line(knob.name, knob.default, chosen))
    return "\n".join(lines) + "\n"


def _document_table(head: str, shape: Shape, chosen: Mapping[str, object]) -> Iterator[str]:
    yield f"{'' if chosen else '# '}[{head}]"
    for line in shape.lines:
        yield f"{_document_line(line.name, line.default, chosen.get(line.name))}  # {line.doc}"
    for named in shape.named:
        tables = mapping(chosen.get(named.name))
        for name in dict.fromkeys((*named.default, *tables)):
            written = mapping(tables.get(name))
            yield f"{'' if written else '# '}[{head}.{named.name}.{json.dumps(name)}]"
            for key, value in {**named.default.get(name, {}), **written}.items():
                yield _document_line(key, value, written.get(key))
        keys = ", ".join(line.name for line in named.lines)
        yield f"# Each [{head}.{named.name}.NAME] may have {keys}; NAME is {named.means}."


def _document_line(name: str, default: object, chosen: object) -> str:
    if default is None and chosen is None:  # it has no value until one is written
        return f"# {name}: not set"
    value = json.dumps(default if chosen is None else chosen, ensure_ascii=False)
    return f"{'# ' if chosen is None else ''}{name} = {value}"
