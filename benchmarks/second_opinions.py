"""What genai-prices makes of the same answers, and each kind of difference with who is right.

    python benchmarks/second_opinions.py genai_prices_usages.json.gz api_responses_all.jsonl.gz

The first file is the data set that genai-prices is tested with: usage of recorded answers, and what its extractors make
of it. The second holds the answers themselves, which say who gave them: the two are matched by the file they were
recorded in and by their usage. Of the extractors that read a usage the one of its provider and API is taken.

Prints the table of docs/second-opinions.md. Exit code 0: every kind of difference is explained; 1: one is not.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from weighbridge.pipeline import UsageReading, read_usage

PLACES = ("usage", "usageMetadata", "meta")
# Who answers -> how genai-prices names him, where it is another name.
NAMES = {"bedrock": "aws", "bedrock_mantle": "aws", "vertex": "google", "xai": "x-ai", "moonshot": "moonshotai"}
# API -> the flavours it may have there, the closest first.
FLAVORS = {
    "openai_chat": ("chat", "default"),
    "openai_responses": ("responses", "default"),
    "other:/v1/responses/compact": ("responses", "default"),
    "anthropic_messages": ("anthropic", "default"),
    "embeddings": ("embeddings", "default"),
}
WRITES = ("cache_write_5m", "cache_write_1h", "cache_write_unknown")
# What is compared: its name there -> what it is here.
SAME = "agree"
NO_EXTRACTOR = "no extractor"
CHILDREN = "calls beside the top level"
_DOCUMENTS = (
    "**open**: Google itemises documents as a modality of their own; pages of a PDF are tokenised as images are, plain "
    "text as text. They are text here and images there. Text and images as input have one price: the cost is equal."
)
EXPLAINED = {
    SAME: "",
    NO_EXTRACTOR: "nothing to compare: it has none for who answered, or for this API of his. The answers are read here "
    "by what is known about the provider, or by the shape.",
    CHILDREN: "**Weighbridge**: `iterations` lists model calls that the top level leaves out and that are billed; they "
    "are children here and are not read there.",
    "cache_read_tokens, mistral openai_chat": "**Weighbridge**: Mistral gives cached tokens as `num_cached_tokens` in "
    "some answers, and bills them at a tenth; its extractor knows the nested name alone.",
    "output_tokens, google openai_chat": "**Weighbridge**: prompt and completion are 47, the total 109: 62 thoughts, "
    "which are billed as output and show nowhere else behind names of OpenAI.",
    "output_reasoning_tokens, google openai_chat": "**Weighbridge**: the same two answers.",
    "input_image_tokens, google gemini_generate_content": _DOCUMENTS,
    "input_image_tokens, vertex gemini_generate_content": "**open**: documents, as above.",
    "cache_image_read_tokens, google gemini_generate_content": "**open**: documents that were cached, as above.",
    "cache_write_5m_tokens, bedrock bedrock_converse": "**Weighbridge** says more: `cacheDetails` tells for how long "
    "was written; the sum of the writes is the same.",
    "input_video_tokens, openrouter openai_chat": "**Weighbridge** says more: 258 of 270 input tokens are video; the "
    "sum is the same.",
}


class Opinion(NamedTuple):
    """One usage: who gave it, what is made of it there (null where nothing is), and here."""

    provider: str
    api: str
    theirs: Mapping[str, int] | None
    ours: UsageReading


def opinions(usages: Path, answers: Path) -> Iterator[Opinion]:
    """Each usage of the data set, read by both."""
    recorded = _by_file(answers)
    with gzip.open(usages, "rt", encoding="utf-8") as file:
        rows = json.load(file)
    for row in rows:
        told = {name: row["body"][name] for name in PLACES if name in row["body"]}
        found = recorded[row["body"]["file"]]
        said = [one for one in found if _usage(told) in {*_usages(one)}]
        answer = (said or found)[0]
        about = {"provider": answer["provider"], "api": answer["api_flavor"], "model": answer["model"]}
        ours = read_usage({**about, "response": told})
        yield Opinion(answer["provider"], answer["api_flavor"], _theirs(row["extracted"], answer), ours)


def _by_file(answers: Path) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    with gzip.open(answers, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            for path in (record["source_path"], *(record.get("also_in") or ())):
                found[path.rsplit(":", 1)[-1].split("tests/", 1)[-1]].append(record)
    return found


def _usage(told: Mapping[str, Any]) -> str:
    return json.dumps(next(iter(told.values())), sort_keys=True)


def _usages(record: Mapping[str, Any]) -> Iterator[str]:
    for usage in (record["usage"], *(usage for _, _, usage in record["usage_all"])):
        yield json.dumps(usage, sort_keys=True)


def _theirs(extracted: list[dict[str, Any]], answer: Mapping[str, Any]) -> Mapping[str, int] | None:
    """What the extractor of this provider and API makes of it."""
    provider = NAMES.get(answer["provider"], answer["provider"])
    by_flavor = {
        one["api_flavor"]: found["usage"]
        for found in extracted
        for one in found["extractors"]
        if one["provider_id"].split("_")[0] == provider
    }
    wanted = FLAVORS.get(answer["api_flavor"], ("default",))
    return next((by_flavor[flavor] for flavor in wanted if flavor in by_flavor), None)


def mine(reading: UsageReading) -> dict[str, int | None]:
    """A reading in the words of genai-prices, where it has words for it."""
    counts, cells = reading.counts, reading.cells
    audio, image, video = (
        total(cells[f"input_uncached_{name}"], cells[f"cache_read_{name}"]) for name in ("audio", "image", "video")
    )
    return {
        "input_tokens": reading.input_total,
        "output_tokens": reading.output_total,
        "output_reasoning_tokens": counts["reasoning"],
        "cache_read_tokens": counts["cache_read"],
        "cache_write_tokens": total(*(counts[name] for name in WRITES)),
        "cache_write_5m_tokens": counts["cache_write_5m"],
        "input_audio_tokens": audio,
        "input_image_tokens": image,
        "input_video_tokens": video,
        "cache_audio_read_tokens": cells["cache_read_audio"],
        "cache_image_read_tokens": cells["cache_read_image"],
        "cache_video_read_tokens": cells["cache_read_video"],
        "output_image_tokens": cells["output_visible_image"],
    }


def total(*counts: int | None) -> int | None:
    """The sum, null where a part of it is."""
    return None if None in counts else sum(count or 0 for count in counts)


def differences(opinion: Opinion) -> list[str]:
    """The kinds of difference of one usage. What is left out there is zero there; null here is unknown."""
    if opinion.theirs is None:
        return [NO_EXTRACTOR]
    said = [
        f"{name}, {opinion.provider} {opinion.api}"
        for name, count in mine(opinion.ours).items()
        if (count or 0) != opinion.theirs.get(name, 0)
    ]
    said += [CHILDREN] if opinion.ours.children else []
    return said or [SAME]


def table(kinds: Mapping[str, int]) -> str:
    """The kinds as a table, the most frequent first."""
    rows = sorted(kinds.items(), key=lambda row: (row[0] != SAME, -row[1], row[0]))
    lines = ["| kind | answers | who is right, and why |", "|---|---:|---|"]
    lines += [f"| {kind} | {count:,} | {EXPLAINED.get(kind, 'NOT EXPLAINED')} |" for kind, count in rows]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Print the table; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("usages", type=Path)
    parser.add_argument("answers", type=Path)
    asked = parser.parse_args()
    found = [differences(opinion) for opinion in opinions(asked.usages, asked.answers)]
    kinds = Counter(kind for one in found for kind in one)
    sys.stdout.write(f"{len(found):,} answers\n\n{table(kinds)}")
    return 0 if kinds.keys() <= EXPLAINED.keys() else 1


if __name__ == "__main__":
    sys.exit(main())
