"""Counters of an engine that the agent itself adds up, as records of its journal and as rows of a segment.

    tag | how many | told at | counting since, -1 unknown | values in the order of `engine_steps.SERIES` ...

Words stand once in a dictionary entry: which engine, and the keyed name of each series. The rows' source is the
installation and `engine-steps`: what tells counters where the engine came to rest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from weighbridge.capture.dictionary import Entry
from weighbridge.capture.layout import NULL, SLOT, Kind
from weighbridge.schemas.engine_steps import SERIES, Step, Steps, Told, unit_of
from weighbridge.schemas.enumerations import EngineCounter, GapReason
from weighbridge.schemas.identity import AttemptKey, keyed_key

if TYPE_CHECKING:
    from weighbridge.capture.recorder import Recorder

SOURCE: Final = "engine-steps"
_VALUES: Final = 4


class EngineCounters:
    """Adds up the steps of one engine and writes what they have come to. Not for several threads at once."""

    def __init__(
        self, recorder: Recorder, *, engine: str, model: str | None, rank: str | None = None, version: str | None = None
    ) -> None:
        """Name the series.

        Args:
            recorder: where the records go.
            engine, model, version: which engine it is.
            rank: which of several engines of one server.
        """
        self._recorder = recorder
        self._steps = Steps()
        names = [str(recorder.installation), engine, model or "", rank or ""]
        series = [keyed_key(recorder.key, SOURCE, *names, str(c), label or "").to_hex() for c, label in SERIES]
        content = {"engine": engine, "engine_version": version, "model": model, "rank": rank, "series": series}
        with recorder.dictionary.lock:
            self._number = recorder.number(Entry.COUNTERS, content, 0)
            recorder.dictionary.hold(self)

    def entries(self) -> Iterable[int]:
        """Dictionary numbers its records refer to."""
        return (self._number,)

    def add(self, step: Step) -> None:
        """Add a step."""
        for told in self._steps.add(step):
            self._write(told)

    def end(self, at_us: int) -> None:
        """There are no more steps; `at_us`: when that was known."""
        for told in self._steps.end(at_us):
            self._write(told)

    def _write(self, told: Told) -> None:
        if not self._number:
            self._recorder.losses.count(GapReason.BUFFER_FULL, attempts=0)
            return
        began = NULL if told.began_us is None else told.began_us
        values = map(told.counts.__getitem__, SERIES)
        words = (Kind.COUNTER | self._number << 32, len(SERIES), told.at_us, began, *values)
        slot = bytearray(SLOT)
        for index, word in enumerate(words):
            slot[index * 8 : index * 8 + 8] = int(word).to_bytes(8, "little", signed=True)
        self._recorder.put_slot(bytes(slot))


def rows_of(entry: Mapping[str, Any], words: tuple[int, ...], installation: str) -> Iterator[dict[str, Any]]:
    """The rows of `engine_counter` of one record; series this version does not know are left out."""
    at, began = words[2], words[3]
    for place, (counter, label) in enumerate(SERIES[: words[1]]):
        series = entry["series"][place]
        cell = AttemptKey.from_bytes(hashlib.sha256(f"{series}@{at}".encode()).digest()[:16])
        yield {
            "cell_hi": cell.hi,
            "cell_lo": cell.lo,
            "day": _time(at).date(),
            "source": f"{installation}/{SOURCE}",
            "engine": entry["engine"],
            "engine_version": entry["engine_version"],
            "model": entry["model"],
            "rank": entry["rank"],
            "series": series,
            "counter": str(EngineCounter(counter)),
            "label": label,
            "unit": str(unit_of(counter)),
            "metric": f"{entry['engine']}:steps:{counter}",
            "scraped_at": _time(at),
            "started_at": None if began == NULL else _time(began),
            "value": words[_VALUES + place],
            "undated": False,
            "revision": 0,
        }


def _time(us: int) -> datetime:
    return datetime.fromtimestamp(us // 1_000_000, tz=UTC).replace(microsecond=us % 1_000_000)
