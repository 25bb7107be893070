"""Counters of a scrape as rows of `engine_counter`: one series and time a row, its server under a pseudonym."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from weighbridge.pipeline.ingest.counter_laws import disagreements
from weighbridge.pipeline.ingest.importer import Source, Staged
from weighbridge.pipeline.ingest.scrape import Sample, Scrape
from weighbridge.pipeline.lake import polars_schema
from weighbridge.schemas.enumerations import QuarantineReason
from weighbridge.schemas.identity import NAME, keyed_key, pseudonym

SOURCE = "engine-metrics"
INEXACT = "beyond_exact"  # servers count in floating point, which cannot tell such a value from its neighbour
_TABLE = "engine_counter"
_EXACT, _LIMIT = 2**53, 2**63
_MODEL = "model_name"
# Labels that say which server of several a scrape of all of them (a federation) is about, the most telling first.
_SERVERS = ("instance", "pod", "node")
_RANKS = ("engine", "dp_rank", "pp_rank", "tp_rank", "moe_ep_rank")
# Words of labels that are no names of anybody; any other stands as a keyed hash.
_WORDS = frozenset(
    "local_compute local_cache_hit external_kv_transfer device host disk p2p storage external_unspecified "
    "stop length abort error repetition timeout prefill_compute prefill_cache decode "
    "max_num_queued_reqs max_num_queued_tokens".split()
)


@dataclass(slots=True)
class CounterRows:
    """The rows of one file while they are gathered."""

    source: Source
    scrape: Scrape
    _rows: list[dict[str, object]] = field(default_factory=list)
    _quarantine: list[dict[str, object]] = field(default_factory=list)

    def staged(self) -> Staged:
        """The rows of all counters."""
        for number, sample in enumerate(self.scrape.samples):
            refused = _refusal(sample.value)
            if refused is None:
                self._rows.append({"segment_row": number, **_row(sample, self.scrape, self.source)})
            else:
                self._quarantine.append(_refused(number, sample, self.source, refused))
        for flag, at in disagreements(self._rows):
            self._rows[at]["flags"] = sorted({*_flags(self._rows[at]), flag})
        return Staged(
            records=len(self.scrape.samples) + self.scrape.repeated,
            tables={_TABLE: _frame(_TABLE, self._rows)} if self._rows else {},
            by_line=True,
            refused=_frame("quarantine", self._quarantine) if self._quarantine else None,
            refused_records=len(self._quarantine),
            repeated=self.scrape.repeated,
        )


def _refusal(value: float) -> QuarantineReason | None:
    """Why a value is no count."""
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN
        return QuarantineReason.NOT_A_NUMBER
    if value < 0:
        return QuarantineReason.SCHEMA
    if value >= _LIMIT:
        return QuarantineReason.RANGE
    return None if value == int(value) else QuarantineReason.FRACTION


def _row(sample: Sample, scrape: Scrape, source: Source) -> dict[str, object]:
    key, metric, labels = source.key, sample.metric, sample.labels
    at = sample.taken or scrape.at
    server = next((labels[name] for name in _SERVERS if labels.get(name)), scrape.instance)
    model = labels.get(_MODEL)
    told = labels.get(metric.label) if metric.label else None
    shown = [f"{name}={labels[name]}" for name in sorted(labels)]
    series = keyed_key(key, SOURCE, metric.metric, server or "", *shown)
    cell = keyed_key(
        key, SOURCE, series.to_hex(), at.isoformat() if at else "", source.day.isoformat() if not at else ""
    )
    return {
        "cell_hi": cell.hi,
        "cell_lo": cell.lo,
        "day": at.date() if at else source.day,
        "source": SOURCE,
        "engine": metric.engine,
        "engine_version": scrape.version,
        "model": source.model or _name(model),
        "instance": pseudonym(key, "instance", server) if server else None,
        "rank": _rank(labels),
        "series": series.to_hex(),
        "counter": str(metric.counts(told)),
        "label": _label(told, key),
        "unit": metric.counted_in(sample.described),
        "metric": metric.metric,
        "scraped_at": at,
        "started_at": sample.created or scrape.started,
        "value": int(sample.value),
        "undated": at is None,
        "flags": [INEXACT] if sample.value >= _EXACT else None,
    }


def _flags(row: Mapping[str, object]) -> Sequence[str]:
    held = row["flags"]
    return held if isinstance(held, list) else ()


def _name(value: str | None) -> str | None:
    return value if value is not None and NAME.fullmatch(value) else None


def _rank(labels: Mapping[str, str]) -> str | None:
    """Which engine or worker of a server, as name and number; null where its labels do not tell."""
    told = [f"{name}:{labels[name]}" for name in _RANKS if labels.get(name, "").isdigit()]
    return _name("/".join(told)) if told else None


def _label(told: str | None, key: bytes) -> str | None:
    if told is None or told in _WORDS:
        return told
    return f"h_{keyed_key(key, SOURCE, 'label', told).to_hex()[:8]}"


def _refused(number: int, sample: Sample, source: Source, reason: QuarantineReason) -> dict[str, object]:
    return {
        "line": number,
        "day": source.day,
        "source": SOURCE,
        "provider": sample.metric.engine,
        "api": "metrics",
        "reason": str(reason),
        "path": sample.metric.metric,
    }


def _frame(table: str, rows: Sequence[Mapping[str, object]]) -> pl.DataFrame:
    types = {**polars_schema(table), "segment_row": pl.Int64()}
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pl.DataFrame(rows, schema={name: types[name] for name in names})
