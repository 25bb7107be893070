"""The words of the report and what they mean, said the same everywhere."""

from __future__ import annotations

DEFINITIONS: tuple[tuple[str, str], ...] = tuple(
    {
        "Attempt": "One API call that was sent, failed ones included. A request that is tried again is several "
        "attempts.",
        "Observed": "Tokens counted independently of the API's own report: computed by the serving engine or, where "
        "no engine was seen, found by tokenising the text again.",
        "Reported": "Tokens that the API's usage reports state. Every report counts, repeated ones too: that is what "
        "was claimed. A report that contradicts itself has no figure that could count; how many there are stands "
        "under data quality.",
        "Priced": "Reported tokens multiplied by the price of their class on their day, in exact decimals. An amount "
        "is priced only where every part of it is; a missing price is unknown, never zero.",
        "Billed": "Tokens in usage that is priced. It becomes the invoice's figure once invoice lines are imported "
        "and matched.",
        "Computed": "Tokens the serving engine processed and verified, whether or not their text reached the caller.",
        "Attended": "Keys read by attention. It counts work, not tokens, and is never added to them.",
        "Verdict": "How sure the reading of a usage report is. PROVED: exactly one reading satisfies its totals. "
        "ASSUMED: several do, and the documented convention decides. CONTRADICTORY: none does; kept, flagged and not "
        "priced. UNKNOWN: no counts, or no dialect that reads them.",
        "Grade": "What a comparison rests on. G1: generated token ids seen by our own agent. G2: an identity with "
        "calibrated constants. G3: text tokenised again. G4: a prediction.",
        "Status": "MATCHED: both sides agree to the token. EXPLAINED: named causes add up to the gap. UNEXPLAINED: a "
        "residual is left. PROVISIONAL: the period is open and data may still come. NOT_COMPARED: only one side "
        "exists.",
        "Gap, cause, residual": "Gap is reported minus observed. Causes name parts of it; what no cause names is the "
        "residual.",
        "Unknown": "Not recorded, not reported or not priced. Unknown is never counted as zero.",
        "Average, p50, p95": "Over attempts whose tokens are known. p50 and p95 are nearest-rank: the smallest value "
        "that 50 or 95 per cent of the attempts do not exceed, so each is the size of a real attempt.",
    }.items()
)

CLASS_WORDS: dict[str, str] = {
    "input_uncached": "Input, not cached",
    "cache_read": "Input, read from cache",
    "cache_write_5m": "Input, written to cache for 5 minutes",
    "cache_write_1h": "Input, written to cache for 1 hour",
    "cache_write_unknown": "Input, written to cache, lifetime unknown",
    "output_visible": "Output, visible",
    "reasoning": "Output, reasoning",
}
