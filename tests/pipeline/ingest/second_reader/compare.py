"""What the product makes of a recorded answer, held against the second reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from tests.pipeline.ingest.second_reader.meaning import Meaning
from tests.pipeline.ingest.second_reader.modalities import KINDS, expected
from tests.pipeline.ingest.second_reader.reader import Record, Usage, has_tokens, shape_of, understood

from weighbridge.pipeline import UsageReading, read_usage
from weighbridge.pipeline.ingest.reading import calls_of
from weighbridge.schemas.enumerations import Verdict

Seen = Counter[tuple[str, Verdict]]


def readings(record: Record) -> list[UsageReading]:
    """The product's reading of each call of a record, by its public function."""
    api, response = record["api_flavor"], record["response"]
    about = {"provider": record["provider"], "api": api, "model": record["model"], "headers": record["meta_headers"]}
    if isinstance(response, list):
        return [read_usage({**about, "events": events}) for events in calls_of(api, response)]
    return [read_usage({**about, "response": response})]


def meant(reading: UsageReading) -> Meaning:
    """A reading in the words of the second reader."""
    counts = reading.counts
    writes = [counts[name] for name in ("cache_write_5m", "cache_write_1h", "cache_write_unknown")]
    return Meaning(
        counts["input_uncached"],
        counts["cache_read"],
        None if None in writes else sum(write or 0 for write in writes),
        counts["output_visible"],
        counts["reasoning"],
        reading.input_total,
        reading.output_total,
    )


def compared(records: Iterable[Record], chosen: Callable[[Record], bool]) -> Seen:
    """Every call of the chosen records read by both readers, who must agree; what was seen, by provider."""
    seen: Seen = Counter()
    for record in filter(chosen, records):
        usages, read = shape_of(record).calls(record), readings(record)
        assert len(usages) == len(read), record["id"]
        for usage, reading in zip(usages, read, strict=True):
            seen[record["provider"], reading.verdict] += 1
            if usage is None or not has_tokens(usage):
                assert reading.verdict is Verdict.UNKNOWN, record["id"]
                assert "usage_missing" in reading.flags, record["id"]
                assert (reading.total, reading.reported_total) == (None, None), record["id"]
            else:
                agree(record, usage, reading)
    return seen


def agree_on_cells(record: Record, usage: Usage, documented: Meaning, reading: UsageReading) -> None:
    """Each modality as the answer states it; of one it does not state there is nothing, or nothing is known."""
    cells = expected(usage, documented)
    for name, found in reading.cells.items():
        if name in cells:
            assert found == cells[name], (record["id"], name)
        else:
            assert found in {0, None}, (record["id"], name)
    for part in ("input_uncached", "cache_read", "output_visible"):
        whole, parts = reading.counts[part], [reading.cells[f"{part}_{kind}"] or 0 for kind in KINDS]
        assert min(parts) >= 0, (record["id"], part)
        assert whole is None or sum(parts) <= whole, (record["id"], part)


def agree(record: Record, usage: Usage, reading: UsageReading) -> None:
    """One call: the same meaning, the verdict that the number of possible meanings asks for, the total as told."""
    documented, possible = understood(record, usage)
    told = usage.get("total_tokens", usage.get("totalTokenCount", usage.get("total")))
    if not possible:
        assert reading.verdict is Verdict.CONTRADICTORY, record["id"]
        assert set(reading.counts.values()) == {None}, record["id"]
        assert (reading.input_total, reading.output_total, reading.total) == (None, None, None), record["id"]
    else:
        assert meant(reading) == documented, record["id"]
        assert reading.verdict is (Verdict.PROVED if len(possible) == 1 else Verdict.ASSUMED), record["id"]
        assert told is None or reading.total == told, record["id"]
        assert documented is not None, record["id"]
        agree_on_cells(record, usage, documented, reading)
    if record["api_flavor"] != "other:/v1beta/cachedContents":  # that total is what was written, not a sum
        assert reading.reported_total == told, record["id"]
