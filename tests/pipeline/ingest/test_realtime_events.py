"""Usage of realtime sessions, as it was recorded from four services: every modality in its place, every total kept.

Worked out from the raw numbers alone: what came in by text, audio and image, what of it was cached, what went out.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from weighbridge.pipeline import UsageReading, read_usage
from weighbridge.schemas.enumerations import Verdict

pytestmark = pytest.mark.real


def provider_of(path: str) -> str:
    """Who answered: the folder names him, or the case of a folder where all of them are compared."""
    case = path.rsplit("/", 1)[-1]
    named = case if "parity" in path or "gateway" in path else path.split("/")[-2]
    return next(name for name in ("azure", "google", "gemini", "xai", "openai") if name in named).replace(
        "gemini", "google"
    )


def read(event: dict[str, Any], usage: dict[str, Any]) -> UsageReading:
    provider = provider_of(event["source_path"])
    api = "live" if provider == "google" else "realtime"
    return read_usage({"provider": provider, "api": api, "model": "m", "usage": usage})


def openai_like(usage: dict[str, Any]) -> dict[str, int | None]:
    """What a `response.done` or a transcription counts.

    Nothing of a transcription is cached; who shows no cache for an answer does not say how its
    input splits, unless there is none.
    """
    into, out = usage.get("input_token_details", {}), usage.get("output_token_details", {})
    cached = into.get("cached_tokens_details", {})
    transcribed = usage.get("type") == "tokens"
    shown = transcribed or "cached_tokens" in into or usage["input_tokens"] == 0
    audio, image = into.get("audio_tokens", 0), into.get("image_tokens", 0)
    assert into.get("text_tokens", 0) + audio + image == usage["input_tokens"]
    return {
        "input_total": usage["input_tokens"],
        "output_total": usage["output_tokens"],
        "total": usage["total_tokens"],
        "cache_read": into.get("cached_tokens", 0) if shown else None,
        "input_uncached_audio": audio - cached.get("audio_tokens", 0) if shown or audio == 0 else None,
        "input_uncached_image": image - cached.get("image_tokens", 0) if shown else None,
        "cache_read_audio": cached.get("audio_tokens", 0) if shown or audio == 0 else None,
        "output_visible_audio": 0 if transcribed else out["audio_tokens"],
    }


def google(usage: dict[str, Any]) -> dict[str, int | None]:
    """Thoughts stand beside the response, and are in the total or not: the numbers say which."""
    response = usage.get("responseTokenCount", usage.get("candidatesTokenCount", 0))
    thoughts, prompt, told = usage.get("thoughtsTokenCount", 0), usage["promptTokenCount"], usage["totalTokenCount"]
    assert told in {prompt + response, prompt + response + thoughts}
    rows = usage.get("responseTokensDetails", usage.get("candidatesTokensDetails", []))
    return {
        "input_total": prompt,
        "output_total": response + thoughts,
        "total": prompt + response + thoughts,
        "reasoning": thoughts,
        "output_visible": response,
        "output_visible_audio": sum(row.get("tokenCount", 0) for row in rows if row["modality"] == "AUDIO"),
    }


def test_every_event_is_read_by_its_modalities(shared_real: Path) -> None:
    lines = (shared_real / "realtime_usage_events.jsonl").read_text(encoding="utf-8").splitlines()
    seen: Counter[str] = Counter()
    for event in map(json.loads, lines):
        for _, usage in event["usage_all"]:
            reading = read(event, usage)
            where = (event["source_path"].rsplit("/", 1)[-1], event["message_index"])
            seen[str(reading.verdict)] += 1
            if usage.get("type") == "duration":  # a transcription that is billed by the second
                assert (reading.verdict, reading.total) == (Verdict.UNKNOWN, None), where
                continue
            wanted = google(usage) if reading.provider == "google" else openai_like(usage)
            totals = {"input_total": reading.input_total, "output_total": reading.output_total, "total": reading.total}
            found = {**reading.counts, **reading.cells, **totals}
            assert {name: found[name] for name in wanted} == wanted, where
            assert reading.reported_total == usage.get("total_tokens", usage.get("totalTokenCount")), where
    assert sum(seen.values()) == 72
    assert set(seen) == {Verdict.PROVED, Verdict.UNKNOWN}
    assert seen[Verdict.UNKNOWN] == 5
