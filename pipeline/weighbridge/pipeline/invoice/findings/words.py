"""The codes of what is found about bills, beside those of causes, and what is to be done."""

from __future__ import annotations

from weighbridge.pipeline.ingest.charges.withdrawn import WITHDRAWN
from weighbridge.pipeline.invoice.cause import all_causes
from weighbridge.pipeline.invoice.theirs.doubles import TWO_BILLS, TWO_EDITIONS

UNEXPLAINED, NOT_CHARGED = "invoice_unexplained", "usage_not_charged"
OTHER_CURRENCY = "invoice_other_currency"
UNKNOWN, CURRENCY, TOTAL, PROVISIONAL = (
    "invoice_not_compared", "currency_missing", "invoice_total_differs", "invoice_provisional",
)  # fmt: skip
OTHER_SERVICE = "other_service"
CONTRADICTORY, GRAIN = "contradictory_not_compared", "grouping_not_compared"
PAGE = "usage_page_contradictory"
_OWN = (
    *(OTHER_SERVICE, PAGE),
    *(TWO_EDITIONS, TWO_BILLS, CONTRADICTORY, GRAIN, WITHDRAWN, UNEXPLAINED, NOT_CHARGED, UNKNOWN, CURRENCY),
    *(OTHER_CURRENCY, TOTAL, PROVISIONAL),
)
CODES = frozenset({*_OWN, *(cause.code for cause in all_causes())})
CURES = {
    UNEXPLAINED: "Show the cells with `weighbridge invoice show`, hold the largest against the provider's own page, "
    "and dispute what nobody can explain.",
    NOT_CHARGED: "Nothing is to be done: it was used and not charged; expect it on a later bill.",
    UNKNOWN: "Give the price that is missing in a price file, or the rate of the currency, and reconcile again.",
    CURRENCY: "Import these lines with a mapping that gives their currency; until then they are in no sum.",
    OTHER_SERVICE: "Nothing, where it serves no model; else say in the contract what its SKUs charge, as [skus.<SKU>].",
    OTHER_CURRENCY: "Say in the contract what the provider bills in, as currency; lines in another one are in no sum.",
    WITHDRAWN: "Ask why these lines vanished from the invoice; where they still hold, import an export that has them.",
    TWO_EDITIONS: "Nothing is counted twice: the finer of the two is in the sums. Import only one of them from now on.",
    TWO_BILLS: "Nothing is counted twice: the line is of the earlier bill. Ask for it to be taken off the later one.",
    CONTRADICTORY: "Look at the reports of these calls with `weighbridge explain` and the id of this finding: they are "
    "in no sum, and what they cost lies within these limits.",
    PAGE: "Import these pages again as the provider serves them now: their results contradict themselves and are "
    "compared with nothing.",
    TOTAL: "Fetch the bill again: lines are missing from it, or it was made while they still came.",
    PROVISIONAL: "Wait until the billing period is closed and its lateness is over, then fetch the bill again and "
    "reconcile.",
}
_NOT_TOLD = "The bill states it and calls of ours do not, so the model is compared without it: "
LACKS = {
    "calls": {
        "tenant": f"{_NOT_TOLD}give every call a tenant, by a header or by its key.",
        "service_tier": f"{_NOT_TOLD}`auto` is no tier; log the one the answer names.",
        "region": f"{_NOT_TOLD}log where calls are served, in the words of the bill.",
        "modality": f"{_NOT_TOLD}log the details of modalities that answers carry.",
    },
    "lines": {
        "tenant": "Some lines are of projects or keys that the contract does not name: name them under [projects] or "
        "[keys], and reconcile again.",
        "service_tier": "Some lines name no service tier: import them with a mapping that does.",
        "region": "Some lines name no region: import them with a mapping that does.",
        "modality": "Some lines name no modality: import them with a mapping that does.",
    },
}
