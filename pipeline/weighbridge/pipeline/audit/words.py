"""The one place where the sentences of an audit are made.

What was counted by our own engine is *counted*; what was recounted from text *agrees* or *differs*; and what nobody but
the provider sees is *consistent* with what was calibrated or *not consistent* with it. It is never more than that.
"""

from __future__ import annotations

from weighbridge.pipeline.audit.labels import Label
from weighbridge.schemas.enumerations import AuditVerdict, Grade

_CALIBRATE = (
    "Name days on which this cell was honest: `weighbridge audit --calibrate FROM..TO`; nobody is accused before that."
)
_FOUND = {
    Grade.G1: "What our own engine counted and what was reported differ",
    Grade.G2: "The reported total and what was recounted beside the reported reasoning differ",
    Grade.G3: "What was recounted from the text and what was reported differ",
    Grade.G4: "Reported reasoning is not consistent with calibrated traffic: it is off",
}
_QUIET = {
    Grade.G1: "what was reported is what our own engine counted",
    Grade.G2: "the total is accounted for; the reasoning in it is consistent, which is all that can be said of it",
    Grade.G3: "reports agree with recounts within the calibrated tolerance",
    Grade.G4: "reported reasoning is consistent with calibrated traffic, which is all that can be said of it",
}
_LACKS = {
    "calibrated": "the cell was never calibrated",
    "grows": "the gap was not shown to grow with the size of the answer",
    "cause": "the cause that fits may be our own counting",
    "hidden": "a prediction accuses nobody",
    "messages": "how many messages the prompts had is not known, and templates count by message",
}


def quiet(grade: Grade) -> str:
    """What is said of a cell in which nothing was found."""
    return _QUIET[grade]


def sentence(verdict: AuditVerdict, grade: Grade, label: Label | None, lacking: tuple[str, ...] = ()) -> str:
    """What a verdict means, and what to do.

    Args:
        verdict: of the cell.
        grade: what the comparison rests on.
        label: the cause that is named.
        lacking: what an accusation would take beside what is there; keys of `_LACKS`.
    """
    if verdict is AuditVerdict.NOT_CALIBRATED:
        return _CALIBRATE
    if label is None:
        return f"Nothing to do: {quiet(grade)}."
    missing = "" if not lacking else f" No accusation, as {' and '.join(_LACKS[name] for name in lacking)}."
    return f"{_FOUND[grade]}, {label.says}.{missing} {label.cure}"
