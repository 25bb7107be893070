"""One scrape of a server's `/metrics`: its counters as they stood, when and where, and what does not agree in it.

    # scraped_at: 2026-01-15T10:30:00Z      comments of ours, or the time at the end of the file's name
    # instance: gpu-7:8000
    # engine_version: 0.32.0
    # TYPE vllm:prompt_tokens_total counter
    vllm:prompt_tokens_total{engine="0",model_name="m"} 1788.0

The text is parsed by Prometheus's own client. A counter is a state: what happened between two scrapes is a difference,
which is worked out later, where both lie in the lake.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from weighbridge.pipeline.ingest.call_days import FIRST_S, LAST_S
from weighbridge.pipeline.ingest.json_lines import opened
from weighbridge.pipeline.ingest.metric_facts import Metric, all_metrics
from weighbridge.pipeline.ingest.record_fields import epoch_time, iso_time
from weighbridge.schemas.errors import ContractError

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as Family

MAX_SCRAPE = 64 * 2**20  # bytes; a whole scrape of a busy server takes some hundred thousand
_COMMENT = re.compile(r"^#\s*(scraped_at|instance|engine_version)\s*[:=]\s*(\S{1,200})\s*$", re.MULTILINE)
# 20260115T103000Z, 2026-01-15T10-30-00Z or seconds since 1970, at the end of a name.
_STAMP = re.compile(r"(?:^|[._-])(\d{4}-?\d{2}-?\d{2}T\d{2}[:-]?\d{2}[:-]?\d{2})Z?$|(?:^|[._-])(\d{10})$")
_VERSION = re.compile(r"v?\d[0-9A-Za-z.+-]{0,60}")
_CREATED, _STARTED = "_created", "process_start_time_seconds"


@dataclass(frozen=True, slots=True)
class Sample:
    """One counter of a scrape.

    Attributes:
        metric: what is known about it.
        described: its HELP text, which is not kept.
        labels: its labels as they stand, which are not kept.
        value: as it stands.
        taken: the time the sample itself states.
        created: when its series began to count.
    """

    metric: Metric
    described: str
    labels: Mapping[str, str]
    value: float
    taken: datetime | None
    created: datetime | None


@dataclass(frozen=True, slots=True)
class Scrape:
    """What one file says.

    Attributes:
        samples: the counters that are known, in the order of the file; repeated: how many of them count the same
            under an older name, and were left out.
        at: when it was read; instance, version: what its comments say.
        started: when the server process began.
    """

    samples: tuple[Sample, ...]
    repeated: int
    at: datetime | None
    instance: str | None
    version: str | None
    started: datetime | None


def read_scrape(path: Path) -> Scrape:
    """Read a file.

    Raises:
        ContractError: it is damaged, too large, or no text of Prometheus. What it holds is not repeated.
    """
    with opened(path) as file:
        raw = file.read(MAX_SCRAPE + 1)
    if len(raw) > MAX_SCRAPE:
        raise ContractError(
            f"{path} is larger than {MAX_SCRAPE // 2**20} MiB: a file holds one scrape. Write each scrape to a file "
            "of its own; nothing was written."
        )
    try:
        text = raw.decode("utf-8")
        families = list(_families(text))
    except ValueError:
        # The parser's own message quotes the line.
        raise ContractError(
            f"{path} is no text as `/metrics` of a server gives it, or damaged. Scrape it again, with plain text "
            "accepted; nothing was written."
        ) from None
    told = dict(_COMMENT.findall(text))
    kept, repeated = _kept(families)
    started = [sample.value for family in families for sample in family.samples if sample.name == _STARTED]
    version = told.get("engine_version")
    return Scrape(
        samples=kept,
        repeated=repeated,
        at=iso_time(told.get("scraped_at")) or _stamped(path),
        instance=told.get("instance") or _named(path),
        version=version if version and _VERSION.fullmatch(version) else None,
        started=_moment(started[0]) if len(started) == 1 else None,
    )


def samples_in(text: str) -> tuple[Sample, ...]:
    """The counters of a text as `/metrics` gives it, those left out that count the same under an older name.

    Raises:
        ContractError: it is no such text. What it holds is not repeated.
    """
    try:
        return _kept(list(_families(text)))[0]
    except ValueError:
        raise ContractError("this is no text as `/metrics` of a server gives it; check the address") from None


def _kept(families: list[Family]) -> tuple[tuple[Sample, ...], int]:
    samples = list(_samples(families))
    present = {(sample.metric.metric, _names(sample.labels)) for sample in samples}
    kept = tuple(s for s in samples if (s.metric.renamed, _names(s.labels)) not in present)
    return kept, len(samples) - len(kept)


def _families(text: str) -> Iterator[Family]:
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415 - it sets up collectors

    yield from text_string_to_metric_families(text)


def _samples(families: list[Family]) -> Iterator[Sample]:
    known = all_metrics()
    created = {
        (sample.name.removesuffix(_CREATED), _names(sample.labels)): sample.value
        for family in families
        for sample in family.samples
        if sample.name.endswith(_CREATED)
    }
    for family in families:
        for sample in family.samples:
            metric = known.get(sample.name)
            if metric is None:
                continue
            series = re.sub(r"_(total|sum|count)$", "", sample.name)
            began = created.get((series, _names(sample.labels)))
            taken = None if sample.timestamp is None else _moment(float(sample.timestamp))
            yield Sample(metric, family.documentation, sample.labels, sample.value, taken, _moment(began))


def _names(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))


def _moment(seconds: float | None) -> datetime | None:
    """Seconds since 1970 as a time, or null where they can be none."""
    if seconds is None or not FIRST_S <= seconds < LAST_S:
        return None
    return datetime.fromtimestamp(seconds, UTC)


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".prom")


def _stamped(path: Path) -> datetime | None:
    """The time at the end of a file's name."""
    found = _STAMP.search(_stem(path))
    if found is None:
        return None
    if found.group(2):
        return epoch_time(int(found.group(2)))
    digits = re.sub(r"\D", "", found.group(1))
    try:
        return datetime.strptime(digits, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None


def _named(path: Path) -> str | None:
    """What stands before the time in a file's name: the server, by the habit of whoever scraped it."""
    found = _STAMP.search(_stem(path))
    return (_stem(path)[: found.start()] or None) if found else None
