"""What must hold between the counters of one scrape. Where it does not, the counters are flagged and stay as they are.

    local_compute 1,020 + local_cache_hit 768 + external_kv_transfer 0 = prompt_tokens 1,788     holds
    11,008 first tokens, 11,228 finished requests                                                 some finished without

Counters are read one after the other while the server works, so a difference of a few tokens can also be the moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from weighbridge.schemas.enumerations import CounterUnit, EngineCounter

Row = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Law:
    """One law: the sum of the parts equals the whole, or does not exceed it.

    Attributes:
        flag: what a scrape that breaks it is flagged with.
        whole, parts: counters; of one with labels all labels are added.
        labels: only these labels of the parts; empty: all.
        exact: equal, not only within.
        engines: whose metrics keep it.
    """

    flag: str
    whole: tuple[EngineCounter, ...]
    parts: tuple[EngineCounter, ...]
    engines: tuple[str, ...]
    labels: frozenset[str] = frozenset()
    exact: bool = False


_C = EngineCounter
_BOTH = ("vllm", "sglang")
LAWS = (
    Law("sources_differ_from_prompt", (_C.PROMPT_TOKENS,), (_C.PROMPT_TOKENS_BY_SOURCE,), ("vllm",), exact=True),
    Law(
        "cached_differ_from_sources",
        (_C.PROMPT_TOKENS_CACHED,),
        (_C.PROMPT_TOKENS_BY_SOURCE,),
        ("vllm",),
        labels=frozenset({"local_cache_hit", "external_kv_transfer"}),
        exact=True,
    ),
    Law("cached_exceed_prompt", (_C.PROMPT_TOKENS,), (_C.PROMPT_TOKENS_CACHED,), _BOTH),
    Law("cached_exceed_prompt", (_C.PROMPT_TOKENS,), (_C.PROMPT_TOKENS_CACHED_BY_SOURCE,), ("sglang",)),
    Law("hits_exceed_queries", (_C.PREFIX_CACHE_QUERIES,), (_C.PREFIX_CACHE_HITS,), _BOTH),
    Law(
        "hits_exceed_queries",
        (_C.EXTERNAL_PREFIX_CACHE_QUERIES,),
        (_C.EXTERNAL_PREFIX_CACHE_HITS,),
        ("vllm",),
    ),
    Law("accepted_exceed_drafted", (_C.DRAFTED_TOKENS,), (_C.ACCEPTED_TOKENS,), _BOTH),
    Law("finished_exceed_prompt", (_C.PROMPT_TOKENS,), (_C.FINISHED_PROMPT_TOKENS,), ("vllm",)),
    Law("finished_exceed_generated", (_C.GENERATION_TOKENS,), (_C.FINISHED_GENERATION_TOKENS,), ("vllm",)),
    Law("finished_without_first_token", (_C.FIRST_TOKEN_SAMPLES,), (_C.FINISHED_SAMPLES,), ("sglang",)),
    # SGLang observes each generated token once: the first, or the time since the one before.
    Law(
        "samples_differ_from_generated",
        (_C.GENERATION_TOKENS,),
        (_C.FIRST_TOKEN_SAMPLES, _C.INTER_TOKEN_SAMPLES),
        ("sglang",),
        exact=True,
    ),
)


def disagreements(rows: Sequence[Row]) -> Iterator[tuple[str, int]]:
    """Every law that a scrape breaks, as its flag and the place of each row it is about."""
    cells: dict[tuple[object, ...], list[int]] = {}
    for at, row in enumerate(rows):
        cells.setdefault(tuple(row[name] for name in ("engine", "model", "instance", "rank", "scraped_at")), []).append(
            at
        )
    for (engine, *_), places in cells.items():
        for law in LAWS:
            if engine in law.engines:
                yield from ((law.flag, at) for at in _broken(law, rows, places))


def _broken(law: Law, rows: Sequence[Row], places: Sequence[int]) -> list[int]:
    wholes = [at for at in places if rows[at]["counter"] in law.whole]
    parts = [
        at for at in places if rows[at]["counter"] in law.parts and (not law.labels or rows[at]["label"] in law.labels)
    ]
    told = {str(rows[at]["counter"]) for at in (*wholes, *parts)}
    if told != {str(counter) for counter in (*law.whole, *law.parts)}:
        return []
    units = {rows[at]["unit"] for at in (*wholes, *parts)}
    if CounterUnit.BLOCKS in units and len(units) > 1:
        return []
    whole, part = (sum(int(str(rows[at]["value"])) for at in held) for held in (wholes, parts))
    return [*wholes, *parts] if (part != whole if law.exact else part > whole) else []
