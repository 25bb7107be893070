"""The tables of the settings file: one line per key, with its default and one sentence."""

from __future__ import annotations

from weighbridge.pipeline.settings.kinds import (
    ADDRESS,
    AMOUNT,
    CODES,
    DAYS,
    FEW,
    MAYBE_PATH,
    RANGE,
    RATE,
    SEVERITY,
    SHARE,
    WHOLE,
    WINDOW,
    YES,
)
from weighbridge.pipeline.settings.shape import Line, Named, Shape

_DAYS_OF_ROWS = (
    Line("billing", DAYS, 3650, "exact counts, usage reports, invoices, amounts, findings"),
    Line("operations", DAYS, 400, "requests and their stages"),
    Line("ids", DAYS, 30, "token ids, and their keys"),
    Line("traces", DAYS, 7, "traces of sparse strategies, and their keys"),
)
_DAYS_OF_SOME = tuple(Line(line.name, DAYS, None, line.doc) for line in _DAYS_OF_ROWS)
RETENTION = Shape(
    lines=(
        Line("reports", DAYS, 3650, "reports, and packs of closes"),
        *_DAYS_OF_ROWS,
        Line("spool", DAYS, 7, "sealed segments on this host, from their acknowledgement on"),
    ),
    named=(
        Named("tenants", r"t_[0-9a-f]{16}|unassigned", "a tenant's pseudonym, as reports show it", _DAYS_OF_SOME),
        Named("tasks", r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}", "the name of a task", _DAYS_OF_SOME),
    ),
)


_DAYS_LATE = (
    Line("reports", DAYS, 2, "days after an attempt until which its usage report may still come"),
    Line("attempts", DAYS, 2, "days after a usage report until which the attempt it is about may still come"),
)
LATENESS = Shape(
    lines=_DAYS_LATE,
    named=(
        Named(
            "providers",
            r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}",
            "the name of a provider, as reports show it",
            tuple(Line(line.name, DAYS, None, line.doc) for line in _DAYS_LATE),
        ),
    ),
)

CLOSE = Shape(
    lines=(
        Line("grace_days", DAYS, 3, "how many UTC days after its last one a month stays open for rows that come late"),
        Line("accepts", CODES, [], "codes of findings whose open errors hold no month back"),
        Line("material", AMOUNT, "0", "an open error about less money than this holds no month back, in any currency"),
    )
)

_LIMITS = (
    Line("tokens", WHOLE, None, "a finding about so many tokens matters whatever it costs"),
    Line("share", SHARE, None, "a finding about this part of what its month cost in its currency matters"),
)
MATERIAL = Shape(
    lines=(
        Line("amount", AMOUNT, "0", "a finding about less money than this is small, in any currency"),
        *_LIMITS,
        Line("unpriced", YES, True, "whether a finding matters of which no amount is known"),
    ),
    named=(
        Named(
            "currencies",
            r"[A-Z]{3}",
            "a currency, such as USD",
            (Line("amount", AMOUNT, None, "a finding about less money than this is small"),),
        ),
        Named(
            "tenants",
            r"t_[0-9a-f]{16}|unassigned",
            "a tenant's pseudonym, as reports show it",
            (Line("amount", AMOUNT, None, "as above, in any currency"), *_LIMITS),
        ),
    ),
)

BASELINE = Shape(
    lines=(
        Line("reference_days", WINDOW, 28, "days before a judged one that limits are made of"),
        Line("season_days", WINDOW, 84, "days before a judged one that seasons and days as wholes are learnt from"),
        Line("false_share", RATE, 0.05, "of the cells reported in a day, the share that may be false"),
        Line("request_rate", RATE, 0.01, "how many single requests may lie above their limit"),
        Line("floor", AMOUNT, "1.00", "least cost of what a cell has more than expected in a day, in any currency"),
    ),
    named=(
        Named(
            "tasks",
            r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}",
            "the name of a task",
            (
                Line("input", RANGE, None, "lowest and highest input tokens of one request"),
                Line("output", RANGE, None, "lowest and highest output tokens of one request"),
                Line("tolerance", RATE, None, "how far beyond either end is still within the band"),
            ),
            {
                "short_classification": {"input": [50, 100], "output": [5, 10], "tolerance": 0.10},
                "document_summary": {"input": [1000, 2000], "output": [100, 200], "tolerance": 0.15},
                "code_generation": {"input": [200, 500], "output": [50, 150], "tolerance": 0.20},
                "complex_reasoning": {"input": [500, 1000], "output": [100, 300], "tolerance": 0.25},
            },
        ),
    ),
)
ALERTS = Shape(
    lines=(
        Line("webhook", ADDRESS, "", "address that new findings of baselines are posted to as JSON"),
        Line("timeout_s", FEW, 5, "seconds the receiver has for an answer"),
        Line("attempts", FEW, 3, "how often a post is tried"),
        Line("severity", SEVERITY, "warning", "least severity that is posted: info, notice, warning or error"),
        Line("textfile", MAYBE_PATH, "", "file for the textfile collector of Prometheus, such as weighbridge.prom"),
    )
)
