"""Scrapes of the `/metrics` of vLLM, SGLang, llama.cpp, TGI and TensorRT-LLM: one scrape a file, many in a folder.

    gpu-7_20260115T103000Z.prom       the server and the time may stand in the name,
    # scraped_at: 2026-01-15T10:30:00Z    or in comments

Each counter that is known becomes a row of `engine_counter`; it tells a state of the server and no call.
"""

from __future__ import annotations

import re
from pathlib import Path

from weighbridge.pipeline.ingest.counter_rows import SOURCE, CounterRows
from weighbridge.pipeline.ingest.importer import Heading, Importer, Source, Staged
from weighbridge.pipeline.ingest.json_lines import opened
from weighbridge.pipeline.ingest.scrape import read_scrape
from weighbridge.schemas.errors import ContractError
from weighbridge.schemas.segment import sha256_file

__all__ = ["IMPORTER", "SOURCE"]
_PEEK = 2**20
_SERIES = re.compile(rb"^(?:# TYPE )?(?:(?:vllm|sglang):|tgi_request_|trtllm_)[a-z]", re.MULTILINE)


def _recognises(path: Path) -> bool:
    if not path.is_file() or not path.name.lower().removesuffix(".gz").endswith(".prom"):
        return False
    try:
        with opened(path) as file:
            return _SERIES.search(file.read(_PEEK)) is not None
    except (ContractError, OSError):
        return False


def _check(source: Source) -> Heading:
    if not read_scrape(source.path).samples:
        raise ContractError(
            f"{source.path} has no counter of a serving engine that is known here. Scrape the server's own `/metrics`; "
            "nothing was written."
        )
    return Heading(sha256_file(source.path), source.path.stat().st_size)


def _read(source: Source, heading: Heading) -> Staged:  # noqa: ARG001 - one signature for all importers
    return CounterRows(source, read_scrape(source.path)).staged()


IMPORTER = Importer(
    name="engine_metrics",
    doc="Scrapes of the /metrics of vLLM, SGLang, TGI and others: what their counters stood at, one scrape a file.",
    recognises=_recognises,
    check=_check,
    read=_read,
)
