"""What kind of tokens they were."""

from __future__ import annotations

from weighbridge.pipeline.report import charts
from weighbridge.pipeline.report.query.classes import class_money, modalities, token_classes
from weighbridge.pipeline.report.sheet import Block, Section
from weighbridge.pipeline.report.view import View


def blocks(view: View) -> tuple[Block, ...]:
    """Classes by model, what each class cost, and modalities."""
    sheet = view.get(token_classes)
    picture = [charts.classes(sheet)] if sheet.rows else []
    return (*picture, sheet, view.get(class_money), view.get(modalities))


SECTION = Section(70, "Token classes", "classes", blocks)
