"""Importers at scale: CPU seconds per million records of each log, beside the floor, in one run.

    python benchmarks/importers.py [--records N] [NAME...]

The records are the constructed ones of the tests, each with its own id and time, LiteLLM's those its own code wrote.

    floor     `json.loads` of the same lines, and nothing else
    strict    the same lines read as the importers read them: no key twice, no number changed, bounded depth
    read      the importer, from file to rows: counts, names, ids, times, pseudonyms, keys
    ingest    the whole way of the file into a fresh lake: recognised, checked, read, settled, stored, readings made

Exit code 0: every record of every file was stored; 1: not.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.pipeline.ingest import gateway_samples as gateway  # noqa: E402 - the tests stand beside, not installed
from tests.pipeline.ingest import log_samples as logs  # noqa: E402

DAY = date(2026, 1, 20)
KEY = bytes(range(32))
START = datetime(2026, 1, 15, tzinfo=UTC)
RECORDED = [json.loads(x) for x in (ROOT / "tests/pipeline/ingest/litellm_spend_logs.jsonl").read_text().splitlines()]


def _time(number: int) -> str:
    return (START + timedelta(milliseconds=37 * number)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _litellm(n: int) -> dict[str, Any]:
    row = RECORDED[n % len(RECORDED)]
    ids = {"request_id": f"chatcmpl-{n:08d}", "litellm_call_id": f"call-{n:08d}"}
    return {**row, **ids, "startTime": _time(n), "endTime": _time(n + 50)}


def _langfuse(n: int) -> dict[str, Any]:
    usage = {"input": 200 + n % 9, "output": 50, "total": 250 + n % 9}
    return gateway.observation(1, id=f"{n:016x}", traceId=f"t-{n // 5}", startTime=_time(n), usageDetails=usage)


def _langsmith(n: int) -> dict[str, Any]:
    return gateway.run(1, id=gateway.run_id(n), trace_id=gateway.run_id(n // 5), start_time=_time(n))


def _helicone(n: int) -> dict[str, Any]:
    ids = {"response_id": f"0000-{n:012d}", "request_id": f"1111-{n:012d}"}
    return gateway.request(1, **ids, request_created_at=_time(n), prompt_tokens=n % 900)


def _otel_spans(n: int) -> dict[str, Any]:
    return logs.export(
        logs.span(n + 1, logs.chat(9 + n % 77, 1, response__id=f"resp_{n}"), traceId=f"{n // 5 + 1:032x}")
    )


def _claude_code(n: int) -> dict[str, Any]:
    line = logs.message(1, n % 500, "end_turn", timestamp=_time(n), requestId=f"req_{n}")
    line["message"]["id"] = f"msg_{n}"
    return line


def _bedrock(n: int) -> dict[str, Any]:
    return logs.invocation(1, timestamp=_time(n), requestId=f"ff4b6c63-5561-{n:012d}")


RECORDS: dict[str, Callable[[int], dict[str, Any]]] = {
    "litellm": _litellm,
    "langfuse": _langfuse,
    "langsmith": _langsmith,
    "helicone": _helicone,
    "otel_spans": _otel_spans,
    "claude_code": _claude_code,
    "bedrock_invocations": _bedrock,
}


def spent(work: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of this process that `work` took, and what it gave."""
    gc.collect()
    begun = time.process_time()
    given = work()
    return time.process_time() - begun, given


def measured(name: str, records: int, folder: Path) -> bool:
    """Print the line of one importer. Returns whether every record was stored."""
    from weighbridge.pipeline.ingest.importer import Source, importers
    from weighbridge.pipeline.ingest.ingest import ingest, reading
    from weighbridge.pipeline.ingest.json_lines import read_lines
    from weighbridge.pipeline.lake import Lake

    path = folder / f"{name}.jsonl"
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(RECORDS[name](number)) + "\n" for number in range(records))
    importer, source = importers()[name], Source(path, KEY, DAY)

    def read() -> None:
        with reading():
            importer.read(source, heading)

    floor, _ = spent(lambda: sum(bool(json.loads(line)) for line in path.open("rb")))
    strict, _ = spent(lambda: sum(line.value is not None for line in read_lines(path)))
    heading = importer.check(source)
    alone, _ = spent(read)
    lake = Lake.create(folder / f"lake-{name}")
    whole, result = spent(lambda: ingest([path], lake, key=KEY, day=DAY))
    (told,) = result.files
    costs = "".join(f"{cpu / records * 1e6:9.1f}" for cpu in (floor, strict, alone, whole))
    print(
        f"{name:<20} {path.stat().st_size / records:7.0f} {costs}   {told.rows_out:,} of {records:,} stored", flush=True
    )
    return bool(told.rows_out == records)


def main() -> int:
    """Measure the importers that are named, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*RECORDS, []], metavar="NAME")
    parser.add_argument("--records", type=int, default=20_000)
    told = parser.parse_args()
    print("CPU seconds per million records")
    print(f"{'importer':<20} {'bytes':>7} {'floor':>9}{'strict':>9}{'read':>9}{'ingest':>9}")
    with tempfile.TemporaryDirectory() as folder:
        whole = [measured(name, told.records, Path(folder)) for name in told.names or RECORDS]
    return 0 if all(whole) else 1


if __name__ == "__main__":
    raise SystemExit(main())
