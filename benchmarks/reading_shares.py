"""How sure the readings of recorded answers are, per provider: the table of docs/reading-usage.md.

    python benchmarks/reading_shares.py api_responses_all.jsonl.gz [--write docs/reading-usage.md]

An answer is one call: a record that holds the streams of several calls counts as many. `--write` puts the table, and
the day of the code that made it, between the marks in that page.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from weighbridge.pipeline import read_usage_batch
from weighbridge.pipeline.ingest.reading import calls_of
from weighbridge.schemas.enumerations import Verdict

BEGIN, END = "<!-- shares: python benchmarks/reading_shares.py -->\n", "<!-- end of shares -->\n"
# Providers of fewer answers are one row.
FEWEST = 5
OTHERS = "others"


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The calls of a file of recorded answers, as records that are read."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            about = {"provider": record["provider"], "api": record["api_flavor"], "model": record["model"]}
            about["headers"] = record["meta_headers"]
            answer = record["response"]
            if isinstance(answer, list):
                yield from ({**about, "events": events} for events in calls_of(record["api_flavor"], answer))
            else:
                yield {**about, "response": answer}


def shares(path: Path) -> dict[str, Counter[str]]:
    """Provider -> how many of his answers have each verdict; the one with most answers first."""
    asked = list(records(path))
    read = read_usage_batch(asked)
    whole = read.filter(read["child"] == 0)
    found: dict[str, Counter[str]] = {}
    for record, verdict in zip(asked, whole["verdict"], strict=True):
        found.setdefault(record["provider"], Counter())[verdict] += 1
    few = [name for name, counts in found.items() if counts.total() < FEWEST or not name.isidentifier()]
    rest = sum((found.pop(name) for name in few), Counter[str]())
    ordered = dict(sorted(found.items(), key=lambda item: (-item[1].total(), item[0])))
    return {**ordered, f"{OTHERS} ({len(few)})": rest}


def table(found: Mapping[str, Counter[str]]) -> str:
    """The shares as a table."""
    verdicts = [str(verdict) for verdict in Verdict]
    lines = [
        f"| provider | answers | {' | '.join(verdicts)} | proved of those with counts |",
        "|---|---:|" + "---:|" * 5,
    ]
    rows = {**found, "**all**": sum(found.values(), Counter[str]())}
    for name, counts in rows.items():
        counted = counts.total() - counts[Verdict.UNKNOWN]
        share = f"{counts[Verdict.PROVED] / counted:.1%}" if counted else ""
        cells = " | ".join(f"{counts[verdict]:,}" if counts[verdict] else "" for verdict in verdicts)
        lines.append(f"| {name} | {counts.total():,} | {cells} | {share} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Print the table, or write it into a page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("answers", type=Path)
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()
    shown = table(shares(asked.answers))
    if asked.write is None:
        sys.stdout.write(shown)
        return 0
    day = subprocess.run(
        ["git", "show", "-s", "--format=%cs"], capture_output=True, text=True, check=True
    ).stdout.strip()
    page = asked.write.read_text(encoding="utf-8")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    asked.write.write_text(f"{before}{BEGIN}\nCode of {day}.\n\n{shown}\n{END}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
